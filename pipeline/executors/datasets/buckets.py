"""The two functions of a data set that work on a bucket.

    bucket -plan_bucket->    distinct questions, which rows they are for, warnings across parts
    bucket -divide_answers-> answers by part

A bucket contains all payments to each of its accounts, so findings that need all payments to an account are
made here.
"""

from collections.abc import Iterator

import polars as pl

from pipeline.apis.registry import about_uk_accounts
from pipeline.executors.datasets.tasks import BucketTask, SetTask, UsableRows
from pipeline.frames import ACCEPTED, ANSWERS, ASSIGNMENTS, BASES, CHECKS, Accepted, Schema
from pipeline.rules.enumeration import many_names, unknown_accounts
from pipeline.rules.modulus import used
from pipeline.rules.warnings import ACROSS_ROWS, warnings_about
from pipeline.runs.part_files import read_document, read_frame, write_document, write_frame
from pipeline.stages.plan import plan
from schemas.data_set import BucketPlanned
from schemas.outcomes import ApiName

_ROWS_AT_ONCE = 200_000
HASH_SEED = 7
"""Seed of the hash that assigns accounts to buckets."""
BESIDE: Schema = {
    "reference": pl.String(),
    "payee_id": pl.String(),  # the payee's id in the payer's own system
}
IN_BUCKET: Schema = {**ACCEPTED, **BESIDE}
"""An accepted payment in a bucket; `row` is its row within its part."""
GIVEN: Schema = {
    "row": pl.UInt32(),  # within its part
    **{name: kind for name, kind in (BASES | ANSWERS).items() if name != "check"},
    "in_sequence": pl.Boolean(),  # True for one of several unknown accounts with consecutive numbers
}
"""The answer to one payment."""
SUSPECTS: Schema = {"account": pl.String()}
"""Unknown accounts with consecutive numbers."""
IS_ACROSS = pl.col("code").is_in([code.value for code in ACROSS_ROWS])


def plan_bucket(task: BucketTask) -> BucketPlanned:
    """Find the distinct questions about a bucket's accounts, and warn about findings across parts."""
    shared, bucket, rows = task
    shared.require_alike()
    files, done = shared.files, shared.files.done("planned", bucket)
    if (earlier := read_document(BucketPlanned, done)) is not None:
        return earlier
    paid = _paid(task)
    accepted, references = Accepted(paid.drop(*BESIDE)), paid["reference"]
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
    counts = checks.group_by("api", maintain_order=True).len()
    found = BucketPlanned(
        question_counts={ApiName(api): count for api, count in counts.iter_rows()},
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


def accepted_rows(shared: SetTask, rows: UsableRows) -> Iterator[tuple[Accepted, pl.Series]]:
    """Yield the accepted payments of all buckets, in pieces of about 100,000, with their `payee_id`."""
    waiting = list[pl.DataFrame]()
    for bucket in range(shared.bucket_count):
        waiting.append(_paid(BucketTask(shared, bucket, rows)))
        if bucket + 1 == shared.bucket_count or sum(paid.height for paid in waiting) >= _ROWS_AT_ONCE:
            paid = pl.concat(waiting)
            yield Accepted(paid.drop(*BESIDE)), paid["payee_id"]
            waiting.clear()


def divide_answers(task: BucketTask) -> int:
    """Assign the answers of a bucket to payments, by part; return the number of payments."""
    shared, bucket, rows = task
    shared.require_alike()
    files = shared.files
    questions = read_frame(files.frame("questions", bucket), CHECKS, ["check", "api", "account", "name"])
    assignments = read_frame(files.frame("assignments", bucket), ASSIGNMENTS)
    pieces = sorted(files.answers(bucket).glob("*.parquet"))
    answers = pl.concat([pl.DataFrame(schema=ANSWERS), *(read_frame(piece, ANSWERS) for piece in pieces)])
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
