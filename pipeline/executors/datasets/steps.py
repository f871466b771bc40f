"""The four functions of a data set, which engines run; `pipeline.jobs.data_set` shows their order."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import polars as pl

from pipeline import frames
from pipeline.apis.registry import DECLARED, about_uk_accounts
from pipeline.errors import ConfigurationError, InputError, UsageError
from pipeline.formats.batches import batch_places
from pipeline.formats.message import Message, message_fields
from pipeline.formats.pain001.bank_rules import bank_warnings
from pipeline.formats.table import dialect_of
from pipeline.headers.parties import payee_ids
from pipeline.reports.documents import Rows, part_report
from pipeline.reports.groups import LISTED
from pipeline.rules.currencies import currency_sources
from pipeline.rules.enumeration import many_names, sequence_warnings, unknown_accounts
from pipeline.rules.modulus import used
from pipeline.rules.warnings import ACROSS_ROWS, in_order, warnings_about
from pipeline.runs.data_set import DataPart
from pipeline.runs.work_folder import (
    Kept,
    PartFiles,
    read_as_written,
    read_document,
    read_frame,
    write_document,
    write_frame,
)
from pipeline.stages.compare import warnings_of
from pipeline.stages.plan import plan
from pipeline.stages.read import PaymentSource, read
from pipeline.stages.resolve import resolve
from pipeline.stages.summarise import bank_counts, route_counts, summarise
from pipeline.stages.validate import Routes, ValidationResult, validate
from pipeline.stages.write import write
from pipeline.wording import PLACE, Sentence
from schemas.data_set import BucketPlanned, PartDecided, PartRead
from schemas.outcomes import Environment, Outcome
from schemas.row_positions import RowPositions
from schemas.summary import FileDialect, InputFile, Summary

if TYPE_CHECKING:
    from pipeline.executors.from_report import ReceivedReport

POLARS = pl.__version__
Task = TypeVar("Task")
Found = TypeVar("Found")  # the result of a task function


class SetTask(NamedTuple):
    """The settings that all tasks of a data set share; they are sent between processes, without secrets."""

    files: PartFiles
    routes: Routes
    format: str
    mapping: Mapping[str, str]
    encoding: str | None
    bucket_count: int
    country: str | None = None
    bank_rules_on: date | None = None  # the day for which the rules of banks apply; None: they are off
    polars: str = POLARS  # only the same version assigns an account to the same bucket

    def require_alike(self) -> None:
        """Refuse to work in a process with another version of polars (ConfigurationError)."""
        if self.polars != POLARS:
            raise ConfigurationError(
                Sentence("executors.worker_has_other_polars", polars=POLARS, polars_2=self.polars)
            )


class PartTask(NamedTuple):
    """One part to read."""

    shared: SetTask
    part: DataPart


class UsableRows(NamedTuple):
    """The rows of a data set, in terms of its usable parts."""

    parts: Sequence[int]  # the numbers of the parts, in order
    counts: Sequence[int]
    positions: RowPositions

    @property
    def starts(self) -> list[int]:
        """The number of rows before each part."""
        return list(accumulate(self.counts, initial=0))[:-1]


class BucketTask(NamedTuple):
    """One bucket to plan, or whose answers to divide."""

    shared: SetTask
    bucket: int
    rows: UsableRows


class DecideTask(NamedTuple):
    """One part to decide."""

    shared: SetTask
    part: DataPart
    read: PartRead
    row_start: int  # number of rows in the data set before this part
    format: str  # the format of the outcome file
    out: Path  # the folder of the outcome files
    environment: Environment
    answers: str  # name of the answers to use
    basis: str  # name of the other data to use
    bank_reports: Sequence["ReceivedReport"] = ()  # the bank's reports that the check was compared with


_ROWS_AT_ONCE = 200_000
HASH_SEED = 7  # seed of the hash that assigns accounts to buckets
BESIDE: frames.Schema = {
    "reference": pl.String(),
    "payee_id": pl.String(),  # the payee's id in the payer's own system
}
IN_BUCKET: frames.Schema = {**frames.ACCEPTED, **BESIDE}
"""An accepted payment in a bucket; `row` is its row in its part."""
GIVEN: frames.Schema = {
    "row": pl.UInt32(),  # within its part
    **{name: kind for name, kind in (frames.BASES | frames.ANSWERS).items() if name != "check"},
    "in_sequence": pl.Boolean(),  # True for one of several unknown accounts with consecutive numbers
}
"""The answer to one payment."""
SUSPECTS: frames.Schema = {"account": pl.String()}  # unknown accounts with consecutive numbers
IS_ACROSS = pl.col("code").is_in([code.value for code in ACROSS_ROWS])
REPORTED: tuple[Kept, Kept, Kept, Kept] = ("attention", "shown", "sums", "changed")
"""The names that the fields of a `PartReport` are stored under."""
_NEEDED = [name for name in frames.PAYMENTS if name in LISTED]  # the columns of `Payments` that reports need


def read_part(task: PartTask) -> PartRead:
    """Read and validate a part, and distribute its accepted payments to buckets; or state its problem."""
    shared, part = task
    shared.require_alike()
    files = shared.files
    done = files.done("read", part.number)
    if (earlier := read_document(PartRead, done)) is not None:
        return earlier
    try:
        source = _source(shared, part)
    except (InputError, UsageError) as error:
        return PartRead(problem=error.messages[0].recorded())
    valid = validate(source.payments, shared.routes)
    for bucket, some in _by_bucket(source, valid.accepted, shared.bucket_count).items():
        write_frame(some, files.frame("accepted", bucket, part.number))
    write_frame(valid.rejects, files.frame("rejects", part.number))
    write_frame(
        pl.concat([source.warnings, valid.warnings.filter(~IS_ACROSS)]), files.frame("warnings", part.number)
    )
    as_written = _as_written(source)
    _keep(source, as_written, files, part.number)
    if not (batches := batch_places(source.message)).is_empty():
        write_frame(batches, files.frame("batches", part.number))
    found = _found(shared, source, valid, as_written)
    write_document(found, done)
    return found


def _source(shared: SetTask, part: DataPart) -> PaymentSource:
    """Return a part's payments (InputError: it has none, or has changed since the run began)."""
    source = read(part.file, mapping=shared.mapping, encoding=shared.encoding, country=shared.country)
    if source.sha256 != part.sha256:
        raise InputError(Sentence("executors.part_changed_while_checked", part=part.name))
    if source.format != shared.format:
        formats = {"found": source.format, "format": shared.format}
        raise InputError(Sentence("executors.part_of_other_format", part=part.name, **formats))
    return source


def message_of_part(shared: SetTask, part: DataPart) -> Message:
    """Read the message of a part again (InputError: it has changed since the run began)."""
    return _source(shared, part).as_message()


def _by_bucket(source: PaymentSource, accepted: frames.Accepted, count: int) -> dict[int, pl.DataFrame]:
    columns = (source.payments["reference"], payee_ids(source.original).alias("payee_id"))
    beside = [column.gather(accepted["row"] - 1) for column in columns]
    bucket = (accepted["account"].hash(HASH_SEED) % count).alias("bucket")
    parts = accepted.with_columns(*beside, bucket).partition_by("bucket", as_dict=True, include_key=False)
    return {int(number): some for (number,), some in parts.items()}


def _as_written(source: PaymentSource) -> dict[str, str]:
    """Map fields that are exact copies of a column to its header."""
    payments, original = source.payments, source.original
    return {
        field: header
        for header, field in source.read_as.items()
        if field in _NEEDED
        and header in original.columns
        and payments[field].equals(original[header], check_dtypes=True)
    }


def _keep(source: PaymentSource, as_written: Mapping[str, str], files: PartFiles, part: int) -> None:
    """Store a part as it was read, for `decide_part`: reading it again would take most of the time."""
    own = [field for field in _NEEDED if field not in as_written]
    write_frame(source.payments.select(own), files.frame("payments", part))
    path = files.frame("original", part)
    write_frame(source.original, path)
    if pl.read_parquet_schema(path) != source.original.schema:  # a type that Parquet lacks
        path.unlink()


def _found(
    shared: SetTask, source: PaymentSource, valid: ValidationResult, as_written: dict[str, str]
) -> PartRead:
    figures = message_fields(source.message)
    figures.pop("facts", None)
    return PartRead(
        row_count=source.payments.height,
        accepted_count=valid.accepted.height,
        headers=source.original.columns[: source.original.width - source.extra_column_count],
        decision=dict(source.decision),
        blank=[
            f"{PLACE}{number}"
            for number, column in enumerate(source.original.get_columns(), start=1)
            if _is_blank(column)
        ],
        columns=source.read_as,
        as_written=as_written,
        notes=[note.recorded() for note in source.notes],
        assumed_type_count=valid.assumed_type_count,
        dialect=FileDialect(**source.dialect_fields),
        not_payments=source.not_payments,
        **figures,
        currency_sources=currency_sources(source.payments),
        routes=route_counts(valid.accepted),
        bank_warnings=[*bank_warnings(source.message, shared.bank_rules_on)],
    )


def _is_blank(column: pl.Series) -> bool:
    if column.count() == 0:
        return True
    if column.dtype != pl.String:
        return False
    # Checking some cells first is enough for nearly every column.
    return all(
        some.str.strip_chars().str.len_bytes().max() in {None, 0} for some in (column.head(1_000), column)
    )


def kept_part(shared: SetTask, part: DataPart, read: PartRead) -> tuple[frames.Original, frames.Payments]:
    """Return a part as it was read. `Payments` has only the fields that reports need; others are null."""
    path = shared.files.frame("original", part.number)
    original = frames.Original(read_as_written(path)) if path.exists() else _source(shared, part).original
    as_written = [original[header].alias(field) for field, header in read.as_written.items()]
    own = [field for field in _NEEDED if field not in read.as_written]
    kept = read_frame(shared.files.frame("payments", part.number), frames.PAYMENTS, own)
    fields = kept.with_columns(as_written)
    absent = [pl.lit(None, kind).alias(name) for name, kind in frames.PAYMENTS.items() if name not in _NEEDED]
    return original, frames.Payments(fields.with_columns(absent).select(list(frames.PAYMENTS)))


def decide_part(task: DecideTask) -> PartDecided:
    """Decide every payment of a part, and write its outcome file."""
    shared, part, files = task.shared, task.part, task.shared.files
    shared.require_alike()
    original, payments = kept_part(shared, part, task.read)
    outcomes, warnings, reasons = _decided(task)
    written = write(
        original,
        outcomes,
        task.out,
        format_name=task.format,
        dialect=dialect_of(task.read.dialect),
        name=part.outcome_name,
    )
    # From here on, rows are numbered as in the data set.
    number = pl.col("row") + task.row_start
    payments = frames.Payments(payments.with_columns(number))
    outcomes = frames.Outcomes(outcomes.with_columns(number))
    banks = bank_counts(payments, outcomes)
    warnings = frames.Warnings(warnings.with_columns(number))
    batches = read_as_written(path) if (path := files.frame("batches", part.number)).exists() else None
    header, differences = _header(task), frames.Changes(pl.DataFrame(schema=frames.CHANGES))
    if task.bank_reports:
        from pipeline.executors.from_report import compared_with  # few runs have been compared

        compared = compared_with(message_of_part(shared, part), payments, outcomes, task.bank_reports)
        header["bank_comparison"], differences = compared.comparison, compared.changes
        warnings = frames.Warnings(pl.concat([warnings, warnings_of(differences)]))
    summary = summarise(header, payments, outcomes, warnings, (), banks=banks, batches=batches)
    since = read_frame(files.frame("changes", part.number), frames.CHANGES).with_columns(number)
    changes = frames.Changes(pl.concat([since, differences]))
    report = part_report(summary, Rows(payments, outcomes, original, changes, {}))
    found: list[tuple[Kept, pl.DataFrame]] = [
        *zip(REPORTED, report, strict=True),
        ("matched", outcomes.filter(check_outcome=Outcome.MATCH).select("row")),
        ("banks", banks),
        ("warned", warnings.select(list(frames.WARNED)).unique(maintain_order=True)),
        ("reasons", reasons),
        ("differences", differences),
    ]
    for name, frame in found:
        write_frame(frame, files.frame(name, part.number))
    decided = PartDecided(
        answers=task.answers,
        basis=task.basis,
        outcome_name=written.path.name,
        outcome_sha256=written.sha256,
        outcome_byte_count=written.path.stat().st_size,
        summary=_slender(summary),
    )
    write_document(decided, files.done("decided", part.number))
    return decided


def _decided(task: DecideTask) -> tuple[frames.Outcomes, frames.Warnings, frames.Reasons]:
    files, part = task.shared.files, task.part.number
    given = _of_buckets(task, lambda bucket: files.frame("given", part, bucket), GIVEN).with_row_index(
        "check", offset=1
    )
    across = _of_buckets(task, lambda bucket: files.frame("warnings_across", part, bucket), frames.WARNINGS)
    changed = warnings_of(frames.Changes(read_frame(files.frame("changes", part), frames.CHANGES)))
    own = read_frame(files.frame("warnings", part), frames.WARNINGS)
    warnings = frames.Warnings(pl.concat([changed, in_order(own, across)]))
    rejects = frames.Rejects(read_frame(files.frame("rejects", part), frames.REJECTS))
    findings = frames.Findings(rejects, warnings)
    findings = findings.and_warnings(sequence_warnings(given.filter("in_sequence")["row"]))
    outcomes, reasons = resolve(
        findings,
        frames.Questions(
            frames.Bases(given.select(list(frames.BASES))), frames.Assignments(given.select("row", "check"))
        ),
        frames.Answers(given.select(list(frames.ANSWERS))),
        DECLARED.values(),
        task.environment,
    )
    return outcomes, findings.warnings, reasons


def _of_buckets(task: DecideTask, path_of: Callable[[int], Path], schema: frames.Schema) -> pl.DataFrame:
    found = (read_frame(path_of(bucket), schema) for bucket in range(task.shared.bucket_count))
    return pl.concat([pl.DataFrame(schema=schema), *found])


def _slender(summary: Summary) -> Summary:
    """Return a summary without lists of rows, which would be too large for a data set."""
    slender = [count.model_copy(update={"every_row": []}) for count in summary.warning_codes]
    return summary.model_copy(update={"warning_codes": slender})


def _header(task: DecideTask) -> dict[str, Any]:
    """Return what a summary must state, although that of a part is only added up."""
    about_run = dict.fromkeys(("tool_version", "profile", "started", "finished", "next_step"), "")
    part = task.part
    file = InputFile(
        name=part.name,
        sha256=part.sha256,
        byte_count=part.byte_count,
        row_count=task.read.row_count,
        format=task.format,
        columns=task.read.columns,
        **dict(task.read.dialect),
    )
    return {**about_run, "environment": task.environment, "input": file, "routes": []}


def plan_bucket(task: BucketTask) -> BucketPlanned:
    """Find the distinct questions about a bucket's accounts, and warn about findings across parts."""
    shared, bucket, rows = task
    shared.require_alike()
    files, done = shared.files, shared.files.done("planned", bucket)
    if (earlier := read_document(BucketPlanned, done)) is not None:
        return earlier
    paid = _paid(task)
    accepted, references = frames.Accepted(paid.drop(*BESIDE)), paid["reference"]
    warnings = warnings_about(
        accepted, lambda some: references.gather(paid["row"].search_sorted(some)), rows.positions
    )
    for part, some in by_part(warnings.filter(IS_ACROSS), rows).items():
        write_frame(some, files.frame("warnings_across", part, bucket))
    planned = plan(accepted)
    # Numbers are unique in the data set, however many questions other buckets have.
    number = ((pl.col("check") - 1) * shared.bucket_count + bucket + 1).cast(pl.UInt32).alias("check")
    checks = planned.checks.with_columns(number)
    write_frame(planned.assignments.with_columns(number), files.frame("assignments", bucket))
    write_frame(checks, files.frame("questions", bucket))
    many, modulus = many_names(accepted, warnings), shared.routes.modulus
    found = BucketPlanned(
        question_counts=frames.question_counts(checks),
        uk_account_count=about_uk_accounts(checks)["account"].n_unique(),
        many_names_rows=many.rows,
        many_names_count=many.row_count,
        many_names_account_count=many.account_count,
        modulus=None if modulus is None else used(modulus, accepted),
    )
    write_document(found, done)
    return found


def _paid(task: BucketTask) -> pl.DataFrame:
    """Return the payments to the accounts of a bucket, numbered by the rows of the data set."""
    shared, bucket, rows = task
    files = shared.files
    parts = [
        read_frame(files.frame("accepted", bucket, part), IN_BUCKET).with_columns(pl.col("row") + start)
        for part, start in zip(rows.parts, rows.starts, strict=True)
    ]
    return pl.concat(parts).rechunk().cast(IN_BUCKET)  # type: ignore[arg-type]  # polars' stubs


def accepted_rows(shared: SetTask, rows: UsableRows) -> Iterator[tuple[frames.Accepted, pl.Series]]:
    """Yield the accepted payments of all buckets, in pieces of about 100,000, with their `payee_id`."""
    waiting = list[pl.DataFrame]()
    for bucket in range(shared.bucket_count):
        waiting.append(_paid(BucketTask(shared, bucket, rows)))
        if bucket + 1 == shared.bucket_count or sum(paid.height for paid in waiting) >= _ROWS_AT_ONCE:
            paid = pl.concat(waiting)
            yield frames.Accepted(paid.drop(*BESIDE)), paid["payee_id"]
            waiting.clear()


def divide_answers(task: BucketTask) -> int:
    """Assign the answers of a bucket to payments, by part; return the number of payments."""
    shared, bucket, rows = task
    shared.require_alike()
    files = shared.files
    asked = ["check", "api", "account", "name"]
    questions = read_frame(files.frame("questions", bucket), frames.CHECKS, asked)
    assignments = read_frame(files.frame("assignments", bucket), frames.ASSIGNMENTS)
    pieces = sorted(files.answers(bucket).glob("*.parquet"))
    kept = (read_frame(piece, frames.ANSWERS) for piece in pieces)
    answers = pl.concat([pl.DataFrame(schema=frames.ANSWERS), *kept])
    unknown = unknown_accounts(about_uk_accounts(questions), answers)
    suspects = unknown.join(read_frame(files.in_sequence, SUSPECTS), on="account")
    answered = (
        questions.select("check", "api", by_name=pl.col("name").is_not_null())
        .join(answers, on="check", how="inner", validate="1:1")
        .with_columns(in_sequence=pl.col("check").is_in(suspects["check"].implode()))
    )
    assert answered.height == questions.height == answers.height, f"bucket {bucket}: not one answer each"
    given = assignments.join(answered, on="check", how="inner")
    assert given.height == assignments.height
    for part, some in by_part(given.select(list(GIVEN)), rows).items():
        write_frame(some, files.frame("given", part, bucket))
    return given.height


def by_part(found: pl.DataFrame, rows: UsableRows) -> dict[int, pl.DataFrame]:
    """Renumber rows of the data set as rows of their parts."""
    starts = pl.Series(rows.starts, dtype=pl.UInt32)
    place = starts.search_sorted(found["row"] - 1, side="right") - 1
    local = (found["row"] - starts.gather(place)).alias("row")
    placed = found.with_columns(local, place.alias("part"))
    some = placed.partition_by("part", as_dict=True, include_key=False)
    return {rows.parts[int(number)]: frame for (number,), frame in some.items()}
