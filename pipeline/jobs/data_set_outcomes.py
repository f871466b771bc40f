"""A data set once all is asked, or is left: every part is decided, and what the run leaves is written."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

import polars as pl

from pipeline.apis.registry import about_uk_accounts
from pipeline.config.profiles import Chosen
from pipeline.errors import InputError
from pipeline.executors.datasets.buckets import divide_answers
from pipeline.executors.datasets.engines import Count, Engine, count_nothing, counted
from pipeline.executors.datasets.parts import decide_part
from pipeline.executors.datasets.tasks import BucketTask, DecideTask, SetTask
from pipeline.executors.results import AskingResult, QuestionsLeft, calls_of, next_step
from pipeline.files.plain import real_path
from pipeline.formats import format_named
from pipeline.frames import ANSWERS, CHECKS, AnswerState, OwnCode
from pipeline.jobs.data_set_plan import PlannedSet
from pipeline.jobs.data_set_summary import CheckedPart, add_up, input_of, modulus_of, routes_of
from pipeline.jobs.prepare import VERSION, country_of
from pipeline.reports.data_sets import data_set_reports
from pipeline.rules.enumeration import in_sequence, unknown_accounts
from pipeline.runs.data_set import DataSet
from pipeline.runs.folder import read_summary, write_summary
from pipeline.runs.manifest import identity_of
from pipeline.runs.part_files import PartFiles, read_as_written, read_document, read_frame, write_frame
from pipeline.runs.request import DataSetJob, SetStep, Surface
from pipeline.stages.summarise import SummaryHeader
from pipeline.stores.protocols import RunLedger
from pipeline.wording import Sentence, speaking
from schemas.data_set import PartDecided
from schemas.folder import ATTENTION, OUTCOMES, REPORT_HTML
from schemas.outcomes import ApiName
from schemas.strict import timestamp
from schemas.summary import InputFile, Summary

_UNDECIDED = (AnswerState.UNANSWERED, AnswerState.DEFERRED)
_READ = ["check", "state", "code", "time", "attempts"]


class Answered(NamedTuple):
    """What is known of the answers as a whole."""

    left: QuestionsLeft
    state: str
    """Names these answers: where it is the same, they are."""
    in_sequence: str
    """The same of the accounts with numbers in sequence."""


class CheckedSet(NamedTuple):
    """A data set that has been asked about."""

    job: DataSetJob
    data: DataSet
    chosen: Chosen
    planned: PlannedSet
    asked: AskingResult
    answered: Answered
    started: str
    language: str
    """Of the page."""

    @property
    def format(self) -> str:
        """Of the outcome files."""
        return self.job.check.format or self.data.format


def look_at_answers(shared: SetTask, planned: PlannedSet, asked: AskingResult) -> Answered:
    """Look at all answers, bucket by bucket, for what no bucket knows alone."""
    counts, unknown, digest = Counter[tuple[str, str, str]](), [], hashlib.sha256()
    for bucket in range(shared.bucket_count):
        pieces = sorted(shared.files.answers(bucket).glob("*.parquet"))
        answers = pl.concat(
            [
                pl.DataFrame(schema=ANSWERS).select(_READ),
                *(read_frame(piece, ANSWERS, _READ) for piece in pieces),
            ]
        )
        questions = read_frame(shared.files.questions(bucket), CHECKS, ["check", "api", "account"])
        hashes = answers.hash_rows()
        digest.update(f"{hashes.sum()} {hashes.bitwise_xor()!r} ".encode())
        for api, state, code, count in (
            answers.join(questions, on="check").group_by("api", "state", "code").len().iter_rows()
        ):
            counts[api, state, code] += count
        unknown.append(unknown_accounts(about_uk_accounts(questions), answers)["account"])
    suspects = in_sequence(pl.concat(unknown), sum(bucket.uk_account_count for bucket in planned.buckets))
    write_frame(suspects.to_frame(), shared.files.in_sequence)
    undecided = {kind: count for kind, count in counts.items() if kind[1] in _UNDECIDED}
    capped = {ApiName(api): count for (api, _, code), count in undecided.items() if code == OwnCode.DAILY_CAP}
    return Answered(
        QuestionsLeft(sum(undecided.values()), asked.given_up_count, capped),
        digest.hexdigest(),
        hashlib.sha256("\n".join(suspects).encode()).hexdigest(),
    )


def decide_parts(
    run: CheckedSet, shared: SetTask, at_work: Engine, count: Count = count_nothing
) -> list[CheckedPart]:
    """Decide every part that is not decided yet by the same answers, and `count` them; all, in order."""
    out = run.job.check.out / OUTCOMES
    out.mkdir(mode=0o700, exist_ok=True)
    tasks = _tasks(run, shared)
    kept = {task.part.number: known for task in tasks if (known := _decided_before(task)) is not None}
    left = [task for task in tasks if task.part.number not in kept]
    if left:
        buckets = [BucketTask(shared, bucket, run.planned.rows) for bucket in range(shared.bucket_count)]
        for _ in at_work.each(divide_answers, buckets):
            pass
        found = counted(at_work.each(decide_part, left), count, SetStep.WRITTEN, len(left))
        kept |= {task.part.number: decided for task, decided in found}
    for path in out.iterdir():
        if path.name not in {decided.outcome_name for decided in kept.values()}:
            path.unlink()  # of a part that there is no more, or in another format
    return [CheckedPart(part, read, kept.get(part.number)) for part, read in run.planned.parts]


def _tasks(run: CheckedSet, shared: SetTask) -> list[DecideTask]:
    rows = run.planned.rows
    where = json.dumps([rows.parts, rows.counts, rows.positions.names, run.format, run.answered.in_sequence])
    basis = hashlib.sha256(where.encode()).hexdigest()
    return [
        DecideTask(
            shared=shared,
            part=part,
            read=read,
            row_start=start,
            format=run.format,
            out=real_path(run.job.check.out) / OUTCOMES,
            profile=run.chosen.name,
            environment=run.chosen.environment,
            tool_version=VERSION,
            answers=run.answered.state,
            basis=basis,
        )
        for (part, read), start in zip(run.planned.usable, rows.starts, strict=True)
    ]


def _decided_before(task: DecideTask) -> PartDecided | None:
    """What was decided about a part, where it still holds and its outcome file is as it was."""
    known = read_document(PartDecided, task.shared.files.decided_part(task.part.number))
    if known is None or known.basis != task.basis:
        return None
    if known.answers != task.answers and known.summary.undecided_count:
        return None
    return known if _is_as_written(task.out / known.outcome_name, known.outcome_sha256) else None


def _is_as_written(path: Path, sha256: str | None) -> bool:
    try:
        return identity_of(path)[0] == sha256
    except OSError:
        return False


def leave(
    run: CheckedSet,
    parts: Sequence[CheckedPart],
    files: PartFiles,
    ledger: RunLedger | None,
    surface: Surface,
) -> Summary:
    """Write all results of a data set beside its outcome files, and record the end of the run.

    The folder has no ledger where the answers are in one that processes share.

    Raises:
        OutputError: a file cannot be created.
        DiskError: the disk is full or failed.
    """
    asked, left, out = run.asked, run.answered.left, run.job.check.out
    counts = Counter[ApiName]()
    for bucket in run.planned.buckets:
        counts.update(bucket.question_counts)
    header = SummaryHeader(
        tool_version=VERSION,
        profile=run.chosen.name,
        environment=run.chosen.environment,
        started=run.started,
        finished=timestamp(surface.clock()),
        input=_input(run),
        routes=routes_of(read for _, read in run.planned.usable),
        next_step=str(next_step_of(asked, left)),
        given_up=0 < left.open_count == left.given_up_count,
        many_names_reason=run.job.check.many_names_reason,
        modulus=modulus_of(bucket.modulus for bucket in run.planned.buckets),
    )
    numbers = [part.part.number for part in parts if part.decided is not None]
    banks = [read_as_written(files.banks(number)) for number in numbers]
    summary = add_up(header, parts, calls_of(counts, asked.tally), banks)
    with speaking(run.language):
        data_set_reports(
            out,
            summary,
            attention=(read_as_written(files.attention(number)) for number in numbers),
            shown=(read_as_written(files.shown(number)) for number in numbers),
            sums=[read_as_written(files.sums(number)) for number in numbers],
        )
    write_summary(out, summary)
    if ledger is not None:
        ledger.finish(
            timestamp(surface.clock()),
            question_count=counts.total(),
            unanswered_count=left.open_count,
            outcome_sha256=_digest(summary),
        )
    if summary.complete:
        files.remove()
        if run.data.divided is not None:
            rmtree(run.data.divided, ignore_errors=True)
    return summary


def next_step_of(asked: AskingResult, left: QuestionsLeft) -> Sentence:
    """How to go on with what is left of a data set."""
    if not left.open_count:
        return Sentence("jobs.correct_the_parts")
    return next_step(left, asked)


def _input(run: CheckedSet) -> InputFile:
    reads = [read for _, read in run.planned.usable]
    first = reads[0]
    check = run.job.check
    file = InputFile(
        name=run.data.path.name,
        sha256=run.data.sha256,
        byte_count=run.data.byte_count,
        row_count=0,
        format=run.data.format,
        country=country_of(check, run.chosen),
        columns={header: field for read in reads[::-1] for header, field in read.columns.items()},
        mapping=dict(check.mapping),
        decision={field: columns for read in reads[::-1] for field, columns in read.decision.items()},
        notes=first.notes,
        **first.dialect,
        places=run.planned.rows.positions,
    )
    return input_of(file, run.planned.usable)


def _digest(summary: Summary) -> str:
    """SHA-256 of the outcome files of all parts."""
    listing = "".join(f"{part.outcome_sha256}  {part.outcome_file}\n" for part in summary.parts)
    return hashlib.sha256(listing.encode()).hexdigest()


def finished_before(job: DataSetJob, data: DataSet, ledger: RunLedger | None) -> Summary | None:
    """The summary of an earlier run that left nothing to do, if its files are still there.

    The folder has no ledger where the answers are in one that processes share.
    """
    out = job.check.out
    try:
        summary = read_summary(out)
    except InputError:
        return None
    if ledger is not None:
        finish = ledger.last_finish
        if finish is None or ledger.finished_at is None or _digest(summary) != finish.outcome_sha256:
            return None
        if job.check.language not in (None, ledger.language):
            return None
    is_same = (
        summary.complete
        and summary.input.sha256 == data.sha256
        and summary.input.mapping == dict(job.check.mapping)
        and (out / REPORT_HTML).exists()
        and (out / ATTENTION).exists()
        and all(
            part.outcome_file is not None
            and part.outcome_file.endswith(format_named(job.check.format or data.format).SUFFIX)
            and _is_as_written(out / part.outcome_file, part.outcome_sha256)
            for part in summary.parts
        )
    )
    if not is_same:
        return None
    nothing = {"request_count": 0, "repeat_count": 0}
    calls = [
        call.model_copy(update={"answered_before_count": call.question_count, **nothing})
        for call in summary.calls
    ]
    return summary.model_copy(update={"calls": calls})
