"""The road of a data set: that of `jobs.check`, part by part. Read that page first.

    part   -read_part->      accepted payments by bucket, rejects
    bucket -plan_bucket->    distinct questions, warnings across parts
             ask             one asking for the questions of all buckets
    bucket -divide_answers-> answers by part
    part   -decide_part->    outcome file, summary of the part

A bucket has all payments to some of the accounts. An engine (`pipeline.executors.datasets`) carries out the
four functions; each leaves its result in the work folder, whole, and is not called again for what is there.
So a run that was killed goes on.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pipeline.config import ConfigurationFile
from pipeline.config.profiles import (
    Chosen,
    choose,
    is_signed_by_profile,
    ledger_url,
    modulus_of,
    opened,
)
from pipeline.connections import routes
from pipeline.errors import ConfigurationError, InputError, UsageError
from pipeline.executors.datasets.engines import engine
from pipeline.executors.results import AskingResult
from pipeline.jobs.check import RunResult, begin
from pipeline.jobs.data_set_outcomes import (
    Answered,
    CheckedSet,
    decide_parts,
    finished_before,
    leave,
    look_at_answers,
    next_step_of,
)
from pipeline.jobs.data_set_plan import plan_parts, refuse_many_names, task_of
from pipeline.jobs.prepare import VERSION, as_configured
from pipeline.runs.data_set import DataSet, identity_in, open_data_set, write_record
from pipeline.runs.folder import has_begun
from pipeline.runs.proof import open_ledger
from pipeline.runs.request import DataSetJob, Notice, Phase, Surface
from pipeline.runs.shared_folder import settled
from pipeline.runs.starting import refuse_foreign_files
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import RunIdentity
from pipeline.wording import Sentence
from schemas.localized import LocalizedText
from schemas.strict import timestamp

if TYPE_CHECKING:
    from pipeline.executors.datasets.questions import SetQuestions
    from pipeline.jobs.sharing import AskingPlan

PROBLEMS_NAMED_MAX = 5


def check_data_set(job: DataSetJob, surface: Surface) -> RunResult:
    """Check every part of a data set, and say what it leaves behind.

    That is said also where an error ended the asking, or a part cannot be used.

    Raises:
        PrecheckError: as `check`.
    """
    job, started = as_configured_set(job), surface.clock()
    check = job.check
    surface.watch.enter(Phase.READING)
    now = timestamp(started)
    chosen = choose(check.profile, check.config)
    refuse_signature(chosen)
    data = open_data_set(check.file, job.work)
    is_shared = ledger_url(chosen) is not None
    if not job.asks and not is_shared:
        raise UsageError(
            Sentence("jobs.leaves_asking_workers"),
            advice=Sentence("jobs.name_one_profile"),
        )
    refuse_foreign_files(check.out, chosen.environment, now=now, fresh=check.fresh)
    input_sha256 = identity_in(data, check.out)
    identity = RunIdentity(input_sha256, chosen.fingerprint, chosen.environment.value, VERSION)
    with ExitStack() as opens:
        ledger = None
        if has_begun(check.out) and not check.fresh:
            ledger = opens.enter_context(open_ledger(check.out, identity, chosen, now=now))
            own = None if is_shared else ledger
            if settled(check.out, ledger, chosen) and (before := finished_before(job, data, own)) is not None:
                return RunResult(before, already_finished=True)
        _notify_what_is_left_out(chosen, surface)
        profile = opens.enter_context(opened(chosen))
        modulus = modulus_of(chosen, today=started.date())
        shared = task_of(job, data, chosen, routes(profile)._replace(modulus=modulus))
        if check.fresh:
            shared.files.remove()
        with engine(job.engine, job.scheduler) as at_work:
            planned = plan_parts(data, shared, at_work, surface.watch.count)
        refuse_many_names(check, planned)
        if ledger is None:  # a refused data set must leave no folder behind, and delete no answers
            over = surface.notify if check.fresh else None
            ledger = opens.enter_context(open_ledger(check.out, identity, chosen, now=now, over=over))
        language = begin(check, ledger, now=timestamp(surface.clock()))
        write_record(check.out, data, input_sha256, planned.unusable, shared.files)

        # The HTTP libraries come with it, and a run that is refused needs none.
        from pipeline.executors.datasets.questions import SetQuestions
        from pipeline.jobs.sharing import AskingPlan

        questions = SetQuestions(shared.files, [bucket.question_counts for bucket in planned.buckets])
        plan, look = AskingPlan(questions, chosen, profile), partial(look_at_answers, shared, planned)
        asked, answered = _ask(job, plan, ledger, look, surface)
        surface.watch.enter(Phase.WRITING)
        run = CheckedSet(job, data, chosen, planned, asked, answered, now, language)
        with engine(job.engine, job.scheduler) as at_work:
            decided = decide_parts(run, shared, at_work, surface.watch.count)
        summary = leave(run, decided, shared.files, None if is_shared else ledger, surface)
        ended_by = asked.ended_by or _unusable(data, [part.problem for part in summary.parts if part.problem])
        step = None if summary.next_step is None else next_step_of(asked, answered.left)
        return RunResult(summary, already_finished=False, next_step=step, ended_by=ended_by)


def _ask(
    job: DataSetJob,
    plan: "AskingPlan[SetQuestions]",
    ledger: SqliteLedger,
    look: Callable[[AskingResult], Answered],
    surface: Surface,
) -> tuple[AskingResult, Answered]:
    """Ask what is left to ask; what came of it, and what is known of its answers as a whole.

    Raises:
        PrecheckError: as `joined_run` and `ask_all`.
    """
    from pipeline.executors.asking import ask_all
    from pipeline.jobs.sharing import finish_shared, joined_run

    check, identity = job.check, ledger.run._replace(tool_version=VERSION)
    with joined_run(check, plan, identity, surface) as joined:
        way = plan.way(ledger, joined, asks=job.asks)
        asked = ask_all(check, plan.questions, plan.profile, way, surface)
        answered = look(asked)
        if joined is not None and answered.left.open_count == 0:
            finish_shared(check, joined)
    return asked, answered


def as_configured_set(job: DataSetJob) -> DataSetJob:
    """The job, with what its configuration says about data sets of this name.

    Raises:
        UsageError: what is said of it means nothing for a data set.
    """
    file, _ = ConfigurationFile(job.check.config).for_profile(job.check.profile)
    check = as_configured(job.check, file)
    options_given = {
        "--pain002": check.pain002,
        "--sheet": check.sheet is not None,
        "--input-format": check.input_format is not None,
        "--compare-with": bool(check.compare_with),
        "--reuse-from": bool(check.reusable.folders),
        "--sign-with": check.sign_with is not None,
        "--order amount": check.order == "amount",
    }
    for option, is_given in options_given.items():
        if is_given:
            raise UsageError(
                Sentence("jobs.option_of_a_file", option=option), advice=Sentence("jobs.leave_out")
            )
    return replace(job, check=check)


def refuse_signature(chosen: Chosen) -> None:
    """Refuse to sign: of a data set there is no manifest (ConfigurationError, where the profile wants it)."""
    if is_signed_by_profile(chosen):
        raise ConfigurationError(
            Sentence("jobs.profile_sign_with_runs", chosen=chosen.name),
            advice=Sentence("jobs.use_profile_without"),
        )


def _notify_what_is_left_out(chosen: Chosen, surface: Surface) -> None:
    if chosen.newest_of is not None:
        surface.notify(Notice(Sentence("jobs.notice_not_compared"), is_vital=True))


def _unusable(data: DataSet, problems: list[LocalizedText | str]) -> InputError | None:
    """The error to end with where parts cannot be used: the others are checked all the same."""
    if not problems:
        return None
    more_count = len(problems) - PROBLEMS_NAMED_MAX
    return InputError(
        Sentence(
            "jobs.parts_cannot_used" if more_count <= 0 else "jobs.parts_cannot_used_and_more",
            path=data.path.name,
            problems_count=len(problems),
            parts_count=len(data.parts),
            problems=problems[:PROBLEMS_NAMED_MAX],
            more_count=more_count,
        ),
        advice=Sentence("jobs.correct_them_run"),
    )
