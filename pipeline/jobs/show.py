"""Show the whole history of one row, from the file to the next step. Sends nothing."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline import frames
from pipeline.errors import InputError, UsageError
from pipeline.reports.documents import Rows
from pipeline.rules.findings import finding_columns as finding
from pipeline.rules.identifiers import masked
from pipeline.rules.rules import MODULUS_RULES
from pipeline.rules.totals import currency_shown
from pipeline.runs.ended import EndedRun, ended_run
from pipeline.runs.families import identity, released_before
from pipeline.runs.manifest import routes_of
from pipeline.runs.proof import opened_to_read
from pipeline.stages.compare import warnings_of
from pipeline.stages.plan import plan
from pipeline.stages.read.messages import batches_in
from pipeline.stages.validate import validate
from pipeline.stores.values import RequestAttempt
from pipeline.wording import Sentence
from pipeline.wording.rows import positions_named
from schemas.folder import CORRECTIONS
from schemas.manifest import Manifest, SplitMade
from schemas.outcomes import COLUMNS, ApiName, Environment, Outcome, OutcomeColumns
from schemas.payments import FIELDS
from schemas.review import Approval
from schemas.row_positions import RowPositions, position_text
from schemas.story import (
    Story,
    StoryAttempt,
    StoryCorrection,
    StoryDecision,
    StoryFinding,
    StoryOrigin,
    StoryPayment,
    StoryQuestion,
    StoryRoute,
)
from schemas.strict import timestamp
from schemas.summary import InputFile

ROWS_LISTED_MAX = 100
_ACCOUNTS = ("account_number", "iban", "account")


class RowContext(NamedTuple):
    """All rows of a run as frames, and other facts, for the history of a row."""

    file: str
    environment: Environment
    payments: pl.DataFrame  # `Payments`
    findings: tuple[pl.DataFrame, pl.DataFrame]  # `Rejects` and `Warnings`
    accepted: pl.DataFrame  # `Accepted`, without rows that must not be asked about
    planned: tuple[pl.DataFrame, pl.DataFrame]  # `Checks` and `Assignments`
    outcomes: pl.DataFrame  # `Outcomes`
    positions: RowPositions | None = None  # positions of rows in the file; None if it has no positions
    batch: str | None = None  # the row's batch; None if the format has none


def story(folder: Path, row: int, *, now: datetime) -> Story:
    """Collect all facts about one row, counted from 1 (UsageError: no finished run, or no such row).

    Raises InputError if the outcome file was changed, LockedError if a run works there, or DiskError.
    """
    run = ended_run(folder)
    manifest = run.manifest
    if not 1 <= row <= manifest.input.row_count:
        raise UsageError(Sentence("jobs.no_such_row", row=row, extent=_extent(manifest.input)))
    with opened_to_read(folder, now=timestamp(now)) as record:
        rows, positions = _rows_with(row, run), manifest.input.positions
        batches = batches_in(rows.original)
        validated = validate(rows.payments, routes_of(manifest.profile), positions)
        # A rejected row with a damaged line looks sound in the outcome file, which rewrites it.
        asked = rows.outcomes.filter(pl.col("check_api").is_not_null())
        accepted = validated.accepted.join(asked, on="row", how="semi", maintain_order="left")
        changed = [] if rows.changes is None else [warnings_of(rows.changes, with_names=True)]
        findings = (
            pl.concat([validated.rejects, _by_tables(rows.outcomes)]),
            pl.concat([*changed, validated.warnings]),
        )
        context = RowContext(
            manifest.input.name,
            manifest.environment,
            rows.payments,
            findings,
            accepted,
            plan(frames.Accepted(accepted)),
            rows.outcomes,
            positions,
            None if batches is None else batches.item(),
        )
        built = assembled(row, context, partial(record.attempts, secret=run.key_of_names(record)))
        return built.model_copy(
            update={
                "decisions": _decisions(row, manifest.approvals),
                "corrections": _corrections(row, run),
                "payment_file": _payment_file(row, manifest.splits),
                "made_of": _origin(row, manifest),
                "released_before": released_before(folder).get(row),
            }
        )


def _rows_with(row: int, run: EndedRun) -> Rows:
    """Return all rows, or a data set's that may pay the same account; the original is that of the row."""
    parts = run.parts()
    own = next(part for part in reversed(parts) if part.first_row <= row)
    rows = run.rows(own)
    rows = rows._replace(original=frames.Original(rows.original[[row - own.first_row]]))
    if len(parts) == 1:
        return rows
    account = rows.payments.select(_LAST_OF_ACCOUNT)[row - own.first_row].item()
    payments, outcomes = [], []
    for some in (rows if part is own else run.rows(part) for part in parts):
        is_alike = some.payments.select((account == _LAST_OF_ACCOUNT) | (pl.col("row") == row)).to_series()
        payments.append(some.payments.filter(is_alike))
        outcomes.append(some.outcomes.filter(is_alike))
    return rows._replace(
        payments=frames.Payments(pl.concat(payments)), outcomes=frames.Outcomes(pl.concat(outcomes))
    )


_LAST_OF_ACCOUNT = (
    pl.coalesce("iban", pl.concat_str("sort_code", "account_number"))
    .str.replace_all("[^0-9A-Za-z]", "")
    .str.tail(14)
)
"""A pattern that matches every spelling of an account."""


def _decisions(row: int, approvals: Sequence[Approval]) -> list[StoryDecision]:
    return [
        StoryDecision(**approval.model_dump(include=set(StoryDecision.model_fields)))
        for approval in approvals
        if row in approval.rows
    ]


def _corrections(row: int, run: EndedRun) -> list[StoryCorrection]:
    """Return a row's cells that the corrected file changed, from a list that is still as it was written."""
    try:
        text = run.content(CORRECTIONS).decode("utf-8-sig")
    except (OSError, InputError):
        return []
    return [
        StoryCorrection(field=line["field"], before=line["from"], now=line["to"])
        for line in csv.DictReader(io.StringIO(text), delimiter=run.manifest.input.delimiter or ",")
        if line["row"] == str(row) and line["applied"] == "yes"
    ]


def _payment_file(row: int, splits: Sequence[SplitMade]) -> StoryPayment | None:
    if not splits:
        return None
    last = splits[-1]
    is_held = row in last.held_rows
    file = last.hold if is_held else last.release
    assert file is not None, "a row is in one of both files"
    return StoryPayment(
        file=file.name,
        is_released=not is_held,
        approved_by=last.by,
        time=last.time,
        self_approved=last.self_approved,
    )


def _origin(row: int, manifest: Manifest) -> StoryOrigin | None:
    if (before := manifest.input.made_of) is None:
        return None
    _, rows = identity(manifest)
    return StoryOrigin(
        file=before.name,
        folder=before.folder,
        is_corrected=before.is_corrected,
        first_row=row if rows is None else rows[row - 1],
    )


def _by_tables(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Return `Rejects` by the user's modulus tables, from the rows' reasons: the tables are not kept."""
    rejected = outcomes.filter(pl.col("check_outcome") == Outcome.REJECTED)
    found = [
        rejected.filter(
            pl.col("check_reason").str.contains(f"{rule.field}: {rule.sentence}", literal=True)
        ).select("row", field=pl.lit(rule.field), code=pl.lit(rule.code), **finding(rule.sentence))
        for rule in MODULUS_RULES
    ]
    return pl.concat([pl.DataFrame(schema=frames.REJECTS), *found])


def _extent(file: InputFile) -> Sentence:
    rows = Sentence("jobs.rows_of_file", file=file.name, last=str(file.row_count))
    if file.positions is None:
        return rows
    first, last = (positions_named([row], file.positions) for row in (1, file.row_count))
    return Sentence("jobs.rows_of_file_at", rows=rows, first=first, last=last)


def assembled(
    row: int, context: RowContext, attempts_for: Callable[[frames.Check], Sequence[RequestAttempt]]
) -> Story:
    """Combine all facts about one row, and every request for its question, into its history."""
    assert context.payments.schema == frames.PAYMENTS
    assert context.accepted.schema == frames.ACCEPTED
    assert context.outcomes.schema == frames.OUTCOMES
    mine = context.payments.filter(pl.col("row") == row)
    [payment] = mine.with_columns(currency_shown(mine)).select(FIELDS).to_dicts()
    [outcome] = context.outcomes.filter(pl.col("row") == row).select(COLUMNS).to_dicts()
    check = _check_of(row, context.planned)
    attempts = [] if check is None else attempts_for(check)
    return Story(
        file=context.file,
        row=row,
        place=position_text(row, context.positions) or None,
        batch=context.batch,
        environment=context.environment,
        simulated=context.environment is Environment.SANDBOX,
        payment=_filled(payment),
        findings=_findings(row, context.findings),
        route=_route(context.accepted.filter(pl.col("row") == row)),
        question=None if check is None else _question(check, context.planned[1], context.positions),
        attempts=[StoryAttempt(**attempt._asdict()) for attempt in attempts],
        # The id belongs to no request of ours: another run sent it.
        answered_by_earlier_run=context.environment is not Environment.BANK
        and outcome["check_id"] is not None
        and outcome["check_id"] not in {attempt.request_id for attempt in attempts},
        outcome=OutcomeColumns(**outcome),
    )


def _filled(fields: dict[str, str | None]) -> dict[str, str]:
    """Return the non-blank fields, with account numbers masked."""
    return {
        field: masked(value) if field in _ACCOUNTS else value
        for field, value in fields.items()
        if value is not None
    }


def _findings(row: int, findings: tuple[pl.DataFrame, pl.DataFrame]) -> list[StoryFinding]:
    return [
        StoryFinding(
            field=field, code=code, message=message, is_warning=is_warning, sentence=json.loads(data)
        )
        for is_warning, frame in enumerate(findings)
        for _, field, code, message, data in frame.filter(pl.col("row") == row).iter_rows()
    ]


def _route(accepted: pl.DataFrame) -> StoryRoute | None:
    if accepted.is_empty():
        return None
    [(api, reason, bic_source)] = accepted.select("api", "route_reason", "bic_source").iter_rows()
    return StoryRoute(api=ApiName(api), reason=reason, bic_source=bic_source)


def _check_of(row: int, planned: tuple[pl.DataFrame, pl.DataFrame]) -> frames.Check | None:
    checks, assignments = planned
    assert checks.schema == frames.CHECKS
    assert assignments.schema == frames.ASSIGNMENTS
    found = checks.join(assignments.filter(pl.col("row") == row), on="check", how="semi")
    return next(frames.each_check(found), None)


def _question(
    check: frames.Check, assignments: pl.DataFrame, positions: RowPositions | None
) -> StoryQuestion:
    rows = assignments.filter(pl.col("check") == check.check)["row"].sort()
    fields = {field: value for field, value in check._asdict().items() if field in frames.QUESTION}
    listed = rows.head(ROWS_LISTED_MAX).to_list()
    return StoryQuestion(
        fields=_filled(fields),
        rows=listed,
        positions=[position_text(row, positions) for row in listed if positions is not None],
        row_count=rows.len(),
    )
