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

from contextlib import ExitStack

from pipeline.config.profiles import (
    Chosen,
    choose,
    is_signed_by_profile,
    ledger_key,
    ledger_url,
    modulus_of,
    opened,
)
from pipeline.connections import routes
from pipeline.errors import ConfigurationError, InputError, UsageError
from pipeline.executors.datasets.engines import engine
from pipeline.jobs.check import RunResult
from pipeline.jobs.data_set_outcomes import CheckedSet, decide_parts, finished_before, leave
from pipeline.jobs.data_set_plan import plan_parts, refuse_many_names, task_of
from pipeline.jobs.prepare import VERSION
from pipeline.runs.data_set import DataSet, identity_in, open_data_set, write_record
from pipeline.runs.folder import has_begun, ledger_of
from pipeline.runs.request import CheckJob, DataSetJob, Notice, Phase, Surface
from pipeline.runs.shared_folder import settled
from pipeline.runs.starting import refuse_foreign_files, remove_outdated
from pipeline.stores.sqlite.ledger import RunIdentity, SqliteLedger
from pipeline.wording import Sentence
from schemas.strict import timestamp

PROBLEMS_NAMED_MAX = 5


def check_data_set(job: DataSetJob, surface: Surface) -> RunResult:
    """Check every part of a data set.

    Returns:
        What it leaves behind; also where an error ended the asking, or a part cannot be used.

    Raises:
        PrecheckError: the run ended before anything was asked, or its outcome files cannot be written; the
            exit code says why. Answers that came before are kept, and are not asked for again.
    """
    check, started = job.check, surface.clock()
    refuse_what_is_for_files(check)
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
    refuse_foreign_files(check.out, fresh=check.fresh)
    input_sha256 = identity_in(data, check.out)
    identity = RunIdentity(input_sha256, chosen.fingerprint, chosen.environment.value, VERSION)
    path, key = ledger_of(check.out), ledger_key(chosen)
    with ExitStack() as opens:
        ledger = None
        if has_begun(check.out) and not check.fresh:
            ledger = opens.enter_context(SqliteLedger.open(path, identity, now=now, secret=key))
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
            ledger = opens.enter_context(
                SqliteLedger.open(path, identity, now=now, fresh=check.fresh, secret=key)
            )
        if check.many_names_reason is not None:
            ledger.allow(check.many_names_reason, time=timestamp(surface.clock()))
        if ledger.last_finish is None:
            remove_outdated(check.out)
        write_record(check.out, data, input_sha256, planned.unusable, shared.files)

        # The HTTP libraries come with it, and a run that is refused needs none.
        from pipeline.jobs.data_set_asking import AskingOfSet, ask_data_set

        asking = AskingOfSet(chosen, profile, planned, shared)
        asked, answered = ask_data_set(job, asking, ledger, surface)
        surface.watch.enter(Phase.WRITING)
        run = CheckedSet(job, data, chosen, planned, asked, answered, now)
        with engine(job.engine, job.scheduler) as at_work:
            decided = decide_parts(run, shared, at_work, surface.watch.count)
        summary = leave(run, decided, shared.files, None if is_shared else ledger, surface)
        ended_by = asked.ended_by or _unusable(data, [part.problem for part in summary.parts if part.problem])
        return RunResult(summary, already_finished=False, ended_by=ended_by)


def refuse_what_is_for_files(check: CheckJob) -> None:
    """Refuse what is said of a job and means nothing for a data set.

    Raises:
        UsageError: something is.
    """
    said = {
        "--pain002": check.pain002,
        "--sheet": check.sheet is not None,
        "--input-format": check.input_format is not None,
        "--compare-with": bool(check.compare_with),
        "--reuse-from": bool(check.reusable.folders),
        "--sign-with": check.sign_with is not None,
        "--order amount": check.order == "amount",
    }
    for option, is_said in said.items():
        if is_said:
            raise UsageError(
                Sentence("jobs.option_of_a_file", option=option), advice=Sentence("jobs.leave_out")
            )


def refuse_signature(chosen: Chosen) -> None:
    """Refuse a profile whose runs are to be signed: of a data set there is no manifest to sign.

    Raises:
        ConfigurationError: it is one.
    """
    if is_signed_by_profile(chosen):
        raise ConfigurationError(
            Sentence("jobs.profile_sign_with_runs", chosen=chosen.name),
            advice=Sentence("jobs.use_profile_without"),
        )


def _notify_what_is_left_out(chosen: Chosen, surface: Surface) -> None:
    if chosen.newest_of is not None:
        surface.notify(Notice("a data set is not compared with earlier runs, as compare_with would have it"))


def _unusable(data: DataSet, problems: list[str]) -> InputError | None:
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
