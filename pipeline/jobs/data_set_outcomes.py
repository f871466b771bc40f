"""Finish a data set: decide every part, and write the output of the run."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipeline.apis.registry import about_uk_accounts
from pipeline.executors.asking import AskingResult, QuestionsLeft
from pipeline.executors.datasets import steps
from pipeline.executors.datasets.engines import Engine, watched
from pipeline.files.atomic import write_atomically
from pipeline.files.disk_errors import with_own_errors
from pipeline.files.plain import real_path
from pipeline.formats.batches import BATCHES_MAX
from pipeline.frames import (
    ANSWERS,
    CHANGES,
    CHECKS,
    REASONS,
    AnswerState,
    Changes,
    OwnCode,
    Reasons,
    Warned,
)
from pipeline.jobs.comparing import ComparedRun, keep
from pipeline.jobs.data_set_plan import PlannedSet
from pipeline.jobs.prepare import country_of
from pipeline.jobs.writing import DecidedRun, OpenRun, keep_reasons
from pipeline.reports.documents import PartReport, data_set_reports, of_all, shown_reasons
from pipeline.reports.wording import said_reasons
from pipeline.rules.enumeration import in_sequence, unknown_accounts
from pipeline.rules.totals import added_outcomes, control_totals
from pipeline.runs.data_set import DataPart, DataSet
from pipeline.runs.ended import keep_changes
from pipeline.runs.families import made_of
from pipeline.runs.folder import keep_document
from pipeline.runs.manifest import identity_of, identity_of_parts, keep_workbook
from pipeline.runs.request import RunObserver, SetStep, Surface
from pipeline.runs.work_folder import PartFiles, read_as_written, read_document, read_frame, write_frame
from pipeline.stages.compare import added_comparisons
from pipeline.stages.summarise import listed_banks, of_run
from pipeline.stages.write import WrittenOutcomes
from pipeline.wording import speaking
from schemas.data_set import PartDecided, PartRead
from schemas.folder import OUTCOMES, SUMMARY, WARNED
from schemas.outcomes import ApiName, Environment, Outcome, WarningCode
from schemas.summary import (
    ROWS_LISTED_MAX,
    ROWS_NAMED_MAX,
    ApiCalls,
    BatchTotal,
    CodeCount,
    InputFile,
    PartTotal,
    Summary,
    WarningCount,
)

if TYPE_CHECKING:
    from pipeline.executors.from_report import ReceivedReport

_UNDECIDED = (AnswerState.UNANSWERED, AnswerState.DEFERRED)
_BANKS_AT_ONCE = 1_000_000  # the first digits of any account count as a bank, so a part may have very many
_READ = ["check", "state", "code", "time", "attempts"]


class CheckedPart(NamedTuple):
    """One part of a data set, with its result."""

    part: DataPart
    read: PartRead
    decided: PartDecided | None  # None if the part cannot be used


class Answered(NamedTuple):
    """Facts about all answers together."""

    left: QuestionsLeft
    state: str  # hash of the answers: equal states mean equal answers
    in_sequence: str  # hash of the answers about accounts with consecutive numbers


def look_at_answers(shared: steps.SetTask, planned: PlannedSet, asked: AskingResult) -> Answered:
    """Examine all answers, bucket by bucket, for findings that span buckets."""
    counts, unknown, digest = Counter[tuple[str, str, str]](), [], hashlib.sha256()
    for bucket in range(shared.bucket_count):
        pieces = sorted(shared.files.answers(bucket).glob("*.parquet"))
        kept = (read_frame(piece, ANSWERS, _READ) for piece in pieces)
        answers = pl.concat([pl.DataFrame(schema=ANSWERS).select(_READ), *kept])
        questions = read_frame(shared.files.frame("questions", bucket), CHECKS, ["check", "api", "account"])
        digest.update(_digest(answers).encode())
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


def _digest(rows: pl.DataFrame) -> str:
    """Hash rows, independently of their order."""
    hashes = rows.hash_rows()
    return f"{hashes.sum()} {hashes.bitwise_xor()!r} "


class KnownSet(NamedTuple):
    """What is known about a data set after its questions have been asked."""

    data: DataSet
    task: steps.SetTask
    planned: PlannedSet
    answered: Answered
    compared: ComparedRun | None
    bank_reports: "Sequence[ReceivedReport]" = ()  # the reports that the check was compared with


def decide_parts(run: OpenRun, known: KnownSet, at_work: Engine, watch: RunObserver) -> list[CheckedPart]:
    """Decide each undecided part by the answers, and report it to `watch`; return all parts, in order."""
    planned, shared = known.planned, known.task
    out = run.job.out / OUTCOMES
    out.mkdir(mode=0o700, exist_ok=True)
    tasks = _tasks(run, known)
    kept = {task.part.number: found for task in tasks if (found := _decided_before(task)) is not None}
    left = [task for task in tasks if task.part.number not in kept]
    if left:
        buckets = [steps.BucketTask(shared, bucket, planned.rows) for bucket in range(shared.bucket_count)]
        for _ in at_work.each(steps.divide_answers, buckets):
            pass
        decided = watched(at_work.each(steps.decide_part, left), watch, SetStep.WRITTEN, len(left))
        kept |= {task.part.number: found for task, found in decided}
    for path in out.iterdir():
        if path.name not in {found.outcome_name for found in kept.values()}:
            path.unlink()  # the part no longer exists, or had another format
    return [CheckedPart(part, read, kept.get(part.number)) for part, read in planned.parts]


def _tasks(run: OpenRun, known: KnownSet) -> list[steps.DecideTask]:
    data, shared, planned, answered, compared, bank_reports = known
    rows, form = planned.rows, run.job.format or data.outcome_format
    changes = "" if compared is None else _digest(compared.changes)
    others = [changes, *(report.sha256 for report in bank_reports)]
    where = json.dumps([rows.parts, rows.counts, rows.positions.names, form, answered.in_sequence, *others])
    basis = hashlib.sha256(where.encode()).hexdigest()
    return [
        steps.DecideTask(
            shared=shared,
            part=part,
            read=read,
            row_start=start,
            format=form,
            out=real_path(run.job.out) / OUTCOMES,
            environment=run.chosen.environment,
            answers=answered.state,
            basis=basis,
            bank_reports=bank_reports,
        )
        for (part, read), start in zip(planned.usable, rows.starts, strict=True)
    ]


def _decided_before(task: steps.DecideTask) -> PartDecided | None:
    """Return the earlier decision on a part, if it is still valid and its outcome file is unchanged."""
    known = read_document(PartDecided, task.shared.files.done("decided", task.part.number))
    if known is None or known.basis != task.basis:
        return None
    # A bank's later report may contradict an earlier one; a server is not asked again.
    may_differ = known.summary.undecided_count or task.environment is Environment.BANK
    if known.answers != task.answers and may_differ:
        return None
    with suppress(OSError):
        if identity_of(task.out / known.outcome_name)[0] == known.outcome_sha256:
            return known
    return None


def set_results(
    run: OpenRun, left: QuestionsLeft, known: KnownSet, parts: Sequence[CheckedPart], surface: Surface
) -> DecidedRun:
    """Write the summary and reports of a data set beside its outcome files; same errors as `leave`."""
    data, files, planned, compared = known.data, known.task.files, known.planned, known.compared
    out, counts = run.job.out, Counter[ApiName]()
    for bucket in planned.buckets:
        counts.update(bucket.question_counts)
    header = run.header(left, surface.clock) | {
        "input": _input(run, data, planned),
        "routes": planned.routes,
        "compared": None if compared is None else compared.comparison,
        "modulus": planned.modulus,
    }
    decided = {part.part.number: part.decided for part in parts if part.decided is not None}
    # A million rows may have as many banks, warnings and reasons: one part of them in memory at a time.
    banks = (read_as_written(files.frame("banks", number)) for number in decided)
    summary = add_up(header, parts, run.calls(counts), banks)
    with write_atomically(out / WARNED) as file, with_own_errors(file) as through:
        pl.scan_parquet([files.frame("warned", number) for number in decided]).sink_parquet(through)
    every = of_all(
        PartReport(*(read_as_written(files.frame(name, one)) for name in steps.REPORTED)) for one in decided
    )
    warned = pl.scan_parquet(out / WARNED).filter(pl.col("row").is_in(every.shown["row"].implode())).collect()
    shown = pl.col("reason").is_in(list(shown_reasons(summary, every)))
    reasons = Reasons(pl.concat([some.filter(shown) for some in _reasons(files, decided)]).unique("reason"))
    keep_workbook(out, surface)
    with speaking(run.language):
        changes, documents = data_set_reports(
            out, summary, every, said_reasons(reasons), Warned(warned), policy=run.chosen.settings.policy
        )
    sha256 = identity_of_parts((part.outcome_name, part.outcome_sha256) for part in decided.values())
    written = WrittenOutcomes(out / OUTCOMES, sha256)
    work = [files.root, *filter(None, [data.divided])] if summary.complete else []
    keep_document(out / SUMMARY, summary)
    written_too = [out / SUMMARY, out / WARNED, keep_reasons(_reasons(files, decided), out), *documents]
    changed = [read_frame(files.frame("differences", number), CHANGES) for number in decided]
    if compared is not None:
        matched = pl.concat([read_as_written(files.frame("matched", number)) for number in decided])["row"]
        is_match = pl.repeat(value=False, n=sum(planned.rows.counts), eager=True)  # row by row
        is_match = is_match.scatter(matched - 1, values=True)

        def outcomes_of(rows: pl.Series) -> pl.DataFrame:
            return pl.DataFrame({"row": rows.filter(is_match.gather(rows - 1))}).with_columns(
                check_outcome=pl.lit(Outcome.MATCH.value)
            )

        written_too.append(keep(compared, outcomes_of, run.ledger.payee_key, out))
        changed.append(compared.changes)
    if compared is not None or summary.bank_comparison is not None:
        written_too.append(keep_changes(Changes(pl.concat(changed).sort("row", "code")), out))
    return DecidedRun(
        summary, written, written_too, sum(call.question_count for call in summary.calls), changes, work=work
    )


def _reasons(files: PartFiles, parts: Iterable[int]) -> Iterator[Reasons]:
    return (Reasons(read_frame(files.frame("reasons", number), REASONS)) for number in parts)


def added_banks(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Add up the `bank_counts` of parts, some at a time."""
    waiting = list[pl.DataFrame]()
    for banks in parts:
        waiting.append(banks)
        if sum(some.height for some in waiting) > _BANKS_AT_ONCE:
            waiting = [pl.concat(waiting).group_by("bank").sum()]
    return pl.concat(waiting).group_by("bank").sum()


def _input(run: OpenRun, data: DataSet, planned: PlannedSet) -> InputFile:
    reads, check = [read for _, read in planned.usable], run.job
    facts = planned.facts(run.profile.default_account_type)
    first = reads[0].dialect
    as_first = {
        "encoding": check.encoding or "utf-8",
        "lines_above": any(read.dialect.lines_above for read in reads),
        **dict.fromkeys(("compression", "unpacked_name")),  # each part has its own
    }
    return InputFile(
        **dict(first) | as_first,
        name=data.path.name,
        sha256=data.sha256,
        made_of=made_of(check.file, data.sha256, check.out),
        format=data.format,
        country=country_of(check, run.chosen),
        columns={header: field for read in reads[::-1] for header, field in read.columns.items()},
        mapping=dict(check.mapping),
        decision={field: columns for read in reads[::-1] for field, columns in read.decision.items()},
        row_count=sum(planned.rows.counts),
        byte_count=sum(part.byte_count for part, _ in planned.usable),
        positions=planned.rows.positions,
        control_count=sum(read.control_count for read in reads),
        **facts | {"notes": [*facts["notes"], *run.notes]},
    )


def add_up(
    header: Mapping[str, Any],
    parts: Sequence[CheckedPart],
    calls: Sequence[ApiCalls],
    banks: Iterable[pl.DataFrame],
) -> Summary:
    """Return the summary of a data set, from its parts in order and their `bank_counts`."""
    summaries = [part.decided.summary for part in parts if part.decided is not None]
    has_problem = any(part.read.problem is not None for part in parts)
    is_complete = not has_problem and not any(summary.undecided_count for summary in summaries)
    attention = sorted(
        (row for summary in summaries for row in summary.attention),
        key=lambda row: (row.amount is None, -(row.amount or 0), row.row),
    )
    warnings = [warning for summary in summaries for warning in summary.warnings]
    return Summary(
        **of_run(header, is_left=not is_complete),
        outcomes=added_outcomes(summary.outcomes for summary in summaries),
        codes=_codes(summaries),
        parts=list(_part_totals(parts)),
        batches=list(_batches(parts))[:BATCHES_MAX],
        batch_count=sum(summary.batch_count for summary in summaries),
        **listed_banks(added_banks(banks)),
        calls=list(calls),
        # Sums over the parts, each counted as if it had asked no question.
        saved_call_count=sum(summary.saved_call_count for summary in summaries)
        - sum(call.question_count for call in calls),
        attention=attention[:ROWS_LISTED_MAX],
        attention_count=sum(summary.attention_count for summary in summaries),
        warnings=warnings[:ROWS_LISTED_MAX],
        warning_count=sum(summary.warning_count for summary in summaries),
        warning_codes=_warning_codes(summaries),
        warned_match_count=sum(summary.warned_match_count for summary in summaries),
        bank_comparison=added_comparisons(summary.bank_comparison for summary in summaries),
        complete=is_complete,
    )


def _codes(summaries: Sequence[Summary]) -> list[CodeCount]:
    found: dict[tuple[Outcome, str], CodeCount] = {}
    for count in (count for summary in summaries for count in summary.codes):
        before = found.get((count.outcome, count.code))
        if before is not None:
            count = count.model_copy(  # noqa: PLW2901 (earlier counts added)
                update={
                    # The shortest reason says nothing beyond this code.
                    "reason": min(before.reason, count.reason, key=len),
                    "row_count": before.row_count + count.row_count,
                    "rows": [*before.rows, *count.rows][:ROWS_NAMED_MAX],
                }
            )
        found[count.outcome, count.code] = count
    return sorted(found.values(), key=lambda count: (-count.row_count, count.code, count.outcome))


def _warning_codes(summaries: Sequence[Summary]) -> list[WarningCount]:
    found: dict[WarningCode, WarningCount] = {}
    for count in (count for summary in summaries for count in summary.warning_codes):
        before = found.get(count.code)
        rows = count.rows if before is None else [*before.rows, *count.rows][:ROWS_NAMED_MAX]
        row_count = count.row_count + (0 if before is None else before.row_count)
        found[count.code] = WarningCount(code=count.code, row_count=row_count, rows=rows)
    return [found[code] for code in WarningCode if code in found]


def _batches(parts: Iterable[CheckedPart]) -> Iterator[BatchTotal]:
    for part, _, decided in parts:
        for batch in () if decided is None else decided.summary.batches:
            yield batch.model_copy(update={"location": f"{part.name} {batch.location}"})


def _part_totals(parts: Iterable[CheckedPart]) -> Iterator[PartTotal]:
    row = 1
    for part, read, decided in parts:
        if decided is None:
            yield PartTotal(name=part.name, problem=read.problem)
            continue
        summary = decided.summary
        yield PartTotal(
            **dict(read.dialect),
            name=part.name,
            sha256=part.sha256,
            first_row=row,
            row_count=read.row_count,
            to_look_at_count=summary.to_look_at_count,
            undecided_count=summary.undecided_count,
            totals=control_totals(summary.outcomes),
            outcome_file=f"{OUTCOMES}/{decided.outcome_name}",
            outcome_sha256=decided.outcome_sha256,
            outcome_byte_count=decided.outcome_byte_count,
        )
        row += read.row_count
