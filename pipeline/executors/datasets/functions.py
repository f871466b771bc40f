"""The four functions of a data set, whatever engine carries them out; each may be carried out twice.

    part   -read_part->      accepted payments by bucket, rejects, warnings
    bucket -plan_bucket->    distinct questions, which rows they are for, warnings across parts
    bucket -divide_answers-> answers by part
    part   -decide_part->    outcome file, summary of the part

A bucket has all payments to each of its accounts, so whatever is known of an account only beside its other
payments is found there.
"""

import polars as pl

from pipeline.apis.registry import APIS
from pipeline.errors import InputError, UsageError
from pipeline.executors.datasets.tasks import BucketTask, DecideTask, PartTask, SetTask
from pipeline.frames import (
    ACCEPTED,
    ANSWERS,
    ASSIGNMENTS,
    BASES,
    CHECKS,
    REJECTS,
    WARNINGS,
    Accepted,
    Answers,
    Assignments,
    Bases,
    Findings,
    Outcomes,
    Payments,
    Questions,
    Rejects,
    Schema,
    Warnings,
)
from pipeline.reports.data_sets import attention_of, candidates_of
from pipeline.reports.groups import sums_of
from pipeline.rules.currencies import currency_sources
from pipeline.rules.enumeration import many_names, sequence_warnings, unknown_accounts
from pipeline.rules.modulus import used
from pipeline.rules.warnings import ACROSS_ROWS, in_order, warnings_about
from pipeline.runs.data_set import DataPart
from pipeline.runs.part_files import read_document, read_frame, write_document, write_frame
from pipeline.stages.plan import plan
from pipeline.stages.read import PaymentSource, read
from pipeline.stages.resolve import resolve
from pipeline.stages.summarise import SummaryHeader, route_counts, summarise
from pipeline.stages.validate import validate
from pipeline.stages.write import write
from schemas.data_set import BucketPlanned, PartDecided, PartRead
from schemas.outcomes import ApiName
from schemas.summary import InputFile, Summary

_HASH_SEED = 7
_IN_BUCKET: Schema = {**ACCEPTED, "reference": pl.String()}
"""An accepted payment, as it lies in a bucket: `row` is that of its part."""
_GIVEN: Schema = {
    "row": pl.UInt32(),  # of the part
    **{name: kind for name, kind in (BASES | ANSWERS).items() if name != "check"},
    "in_sequence": pl.Boolean(),
}
"""The answer to one payment."""
SUSPECTS: Schema = {"account": pl.String()}


def read_part(task: PartTask) -> PartRead:
    """Read and validate a part, and put its accepted payments into buckets.

    Returns:
        What was found; also where the part cannot be used, which stops no other.
    """
    shared, part = task
    shared.require_alike()
    files = shared.files
    done = files.read_part(part.number)
    if (earlier := read_document(PartRead, done)) is not None:
        return earlier
    try:
        source = _source(shared, part)
    except (InputError, UsageError) as error:
        return PartRead(problem=str(error))
    valid = validate(source.payments, shared.routes, source.places)
    for bucket, some in _by_bucket(source, valid.accepted, shared.bucket_count).items():
        write_frame(some, files.accepted(bucket, part.number))
    write_frame(valid.rejects, files.rejects(part.number))
    is_across = pl.col("code").is_in([code.value for code in ACROSS_ROWS])
    own = pl.concat([source.warnings, valid.warnings.filter(~is_across)])
    write_frame(own, files.warnings(part.number))
    found = _found(source, valid.accepted)
    write_document(found, done)
    return found


def _source(shared: SetTask, part: DataPart) -> PaymentSource:
    """The payments of a part.

    Raises:
        InputError: it cannot be read as payments, or is not as it was when the run began.
    """
    source = read(part.file, mapping=shared.mapping, encoding=shared.encoding)
    if source.sha256 != part.sha256:
        raise InputError(f"{part.name}: changed while it was checked; run the same command again")
    return source


def _by_bucket(source: PaymentSource, accepted: Accepted, bucket_count: int) -> dict[int, pl.DataFrame]:
    references = source.payments["reference"].gather(accepted["row"] - 1)
    bucket = (accepted["account"].hash(_HASH_SEED) % bucket_count).alias("bucket")
    parts = accepted.with_columns(references, bucket).partition_by("bucket", as_dict=True, include_key=False)
    return {int(number): some for (number,), some in parts.items()}


def _found(source: PaymentSource, accepted: Accepted) -> PartRead:
    header_count = len(source.original.columns) - source.extra_column_count
    return PartRead(
        row_count=source.payments.height,
        accepted_count=accepted.height,
        headers=source.original.columns[:header_count],
        decision=dict(source.decision),
        columns=source.read_as,
        notes=list(source.notes),
        **source.dialect._asdict(),
        not_payments=source.not_payments,
        currency_sources=currency_sources(source.payments),
        routes=route_counts(accepted),
    )


def plan_bucket(task: BucketTask) -> BucketPlanned:
    """Find the distinct questions about the accounts of a bucket, and warn across parts."""
    shared, bucket, rows = task
    shared.require_alike()
    files, done = shared.files, shared.files.planned_bucket(bucket)
    if (earlier := read_document(BucketPlanned, done)) is not None:
        return earlier
    paid = _paid(task)
    accepted = Accepted(paid.drop("reference"))
    warnings = warnings_about(
        accepted, lambda some: paid["reference"].gather(paid["row"].search_sorted(some)), rows.places
    )
    across = warnings.filter(pl.col("code").is_in([code.value for code in ACROSS_ROWS]))
    for part, some in _by_part(across, task).items():
        write_frame(some, files.warnings_across(part, bucket))
    planned = plan(accepted)
    # No number is given twice in the data set, however many questions the other buckets have.
    number = ((pl.col("check") - 1) * shared.bucket_count + bucket + 1).cast(pl.UInt32).alias("check")
    checks = planned.checks.with_columns(number)
    write_frame(planned.assignments.with_columns(number), files.assignments(bucket))
    write_frame(checks, files.questions(bucket))
    many, modulus = many_names(accepted, warnings), shared.routes.modulus
    counts = checks.group_by("api", maintain_order=True).len()
    found = BucketPlanned(
        question_counts={ApiName(api): count for api, count in counts.iter_rows()},
        cop_account_count=checks.filter(pl.col("api") == ApiName.COP)["account"].n_unique(),
        many_names_rows=many.rows,
        many_names_count=many.row_count,
        many_names_account_count=many.account_count,
        modulus=None if modulus is None else used(modulus, accepted),
    )
    write_document(found, done)
    return found


def _paid(task: BucketTask) -> pl.DataFrame:
    """The payments to the accounts of a bucket, by the rows of the data set."""
    shared, bucket, rows = task
    parts = [
        read_frame(shared.files.accepted(bucket, part), _IN_BUCKET).with_columns(pl.col("row") + start)
        for part, start in zip(rows.parts, rows.starts, strict=True)
    ]
    return pl.concat(parts).rechunk().cast(_IN_BUCKET)  # type: ignore[arg-type]  # polars' stubs


def _by_part(found: pl.DataFrame, task: BucketTask) -> dict[int, pl.DataFrame]:
    """Rows of the data set as rows of their parts, by the numbers of these."""
    starts = pl.Series(task.rows.starts, dtype=pl.UInt32)
    place = starts.search_sorted(found["row"] - 1, side="right") - 1
    local = (found["row"] - starts.gather(place)).alias("row")
    some = found.with_columns(local, place.alias("part")).partition_by(
        "part", as_dict=True, include_key=False
    )
    return {task.rows.parts[int(number)]: frame for (number,), frame in some.items()}


def divide_answers(task: BucketTask) -> int:
    """Give the answers of a bucket to the payments that they are for, by part; return how many."""
    shared, bucket, _ = task
    shared.require_alike()
    files = shared.files
    questions = read_frame(files.questions(bucket), CHECKS, ["check", "api", "account", "name"])
    assignments = read_frame(files.assignments(bucket), ASSIGNMENTS)
    pieces = sorted(files.answers(bucket).glob("*.parquet"))
    answers = pl.concat([pl.DataFrame(schema=ANSWERS), *(read_frame(piece, ANSWERS) for piece in pieces)])
    asked = questions.select("check", "api", "account", by_name=pl.col("name").is_not_null())
    to_cop = asked.filter(pl.col("api") == ApiName.COP)
    suspects = unknown_accounts(to_cop, answers).join(read_frame(files.in_sequence, SUSPECTS), on="account")
    answered = asked.join(answers, on="check", how="inner", validate="1:1").with_columns(
        in_sequence=pl.col("check").is_in(suspects["check"].implode())
    )
    assert answered.height == questions.height == answers.height, f"bucket {bucket}: not one answer each"
    given = assignments.join(answered, on="check", how="inner")
    assert given.height == assignments.height
    for part, some in _by_part(given.select(list(_GIVEN)), task).items():
        write_frame(some, files.given(part, bucket))
    return given.height


def decide_part(task: DecideTask) -> PartDecided:
    """Decide every payment of a part, and write its outcome file."""
    shared, part, files = task.shared, task.part, task.shared.files
    shared.require_alike()
    source = _source(shared, part)
    given = pl.concat(
        [
            pl.DataFrame(schema=_GIVEN),
            *(read_frame(files.given(part.number, bucket), _GIVEN) for bucket in range(shared.bucket_count)),
        ]
    ).with_row_index("check", offset=1)
    across = pl.concat(
        [
            pl.DataFrame(schema=WARNINGS),
            *(
                read_frame(files.warnings_across(part.number, bucket), WARNINGS)
                for bucket in range(shared.bucket_count)
            ),
        ]
    )
    warnings = in_order(read_frame(files.warnings(part.number), WARNINGS), across)
    in_sequence = sequence_warnings(given.filter("in_sequence")["row"])
    findings = Findings(Rejects(read_frame(files.rejects(part.number), REJECTS)), Warnings(warnings))
    findings = findings.and_warnings(in_sequence)
    outcomes = resolve(
        findings,
        Questions(Bases(given.select(list(BASES))), Assignments(given.select("row", "check"))),
        Answers(given.select(list(ANSWERS))),
        APIS.values(),
        task.environment,
    )
    del given
    written = write(
        source.original,
        outcomes,
        task.out,
        format_name=task.format,
        dialect=source.dialect,
        name=part.outcome_name,
    )
    payments = Payments(source.payments.with_columns(pl.col("row") + task.row_start))
    outcomes = Outcomes(outcomes.with_columns(pl.col("row") + task.row_start))
    all_warnings = Warnings(findings.warnings.with_columns(pl.col("row") + task.row_start))
    summary = summarise(_header(task, source), payments, outcomes, all_warnings, calls=())
    rows = payments.hstack(outcomes.drop("row").get_columns())
    write_frame(attention_of(source.original, payments, outcomes), files.attention(part.number))
    write_frame(candidates_of(rows), files.shown(part.number))
    write_frame(sums_of(rows), files.sums(part.number))
    decided = PartDecided(
        answers=task.answers,
        basis=task.basis,
        outcome_name=written.path.name,
        outcome_sha256=written.sha256,
        outcome_byte_count=written.path.stat().st_size,
        summary=_slender(summary),
    )
    write_document(decided, files.decided_part(part.number))
    return decided


def _slender(summary: Summary) -> Summary:
    """A summary without the lists of all rows, which no data set has room for."""
    slender = [count.model_copy(update={"every_row": []}) for count in summary.warning_codes]
    return summary.model_copy(update={"warning_codes": slender})


def _header(task: DecideTask, source: PaymentSource) -> SummaryHeader:
    part = task.part
    return SummaryHeader(
        tool_version=task.tool_version,
        profile=task.profile,
        environment=task.environment,
        started="",
        finished="",
        input=InputFile(
            name=part.name,
            sha256=part.sha256,
            byte_count=part.byte_count,
            row_count=source.payments.height,
            format=source.format,
            columns=source.read_as,
            places=None,
            **source.dialect._asdict(),
        ),
        routes=[],
        next_step="",
    )
