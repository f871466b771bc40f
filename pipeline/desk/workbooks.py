"""Export decisions into a workbook, and import decisions from one."""

import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import polars as pl

from pipeline.desk.people import Person, folded
from pipeline.desk.refusals import Conflict
from pipeline.desk.releasing import Decided, decide
from pipeline.desk.review import Review, frame_of
from pipeline.desk.states import FileStatus
from pipeline.formats.excel import decisions as workbook
from pipeline.reports.choices import warned_in
from pipeline.reports.groups import ListedRows
from pipeline.reports.workbook import write_workbook
from pipeline.review.corrections import by_hand, fix
from pipeline.wording import Sentence
from schemas.desk import RowsDecided
from schemas.review import Decision

NAME = "decisions.xlsx"


def exported(review: Review, latest: Mapping[int, RowsDecided], outcome_name: str) -> bytes:
    """Return the run's workbook, with the decisions so far in its decision columns."""
    decided = frame_of(latest).select("row", "decision", "reason", claimed_by="by")
    rows = review.rows.payments.hstack(review.rows.outcomes.drop("row").get_columns())
    shown = rows.join(decided, on="row", how="left", maintain_order="left")
    if any(last.decision is Decision.FIX for last in latest.values()):
        shown = shown.join(_corrected(review, latest), on="row", how="left", maintain_order="left")
    listed = ListedRows(shown, (), review.policy, warned_in(review.summary))
    with tempfile.TemporaryDirectory(prefix="precheck-desk-") as folder:  # readable by its owner only
        return write_workbook(review.summary, listed, Path(folder), outcome_name=outcome_name).read_bytes()


def _corrected(review: Review, latest: Mapping[int, RowsDecided]) -> pl.DataFrame:
    """The old and new value of each cell corrected by a decision, by row."""
    texts = {row: text for row, last in latest.items() if (text := review.text_of(last))}
    known = by_hand(fix(review.rows.payments, review.rows.outcomes, {}), texts, {})
    fixed = [row for row, last in latest.items() if last.decision is Decision.FIX]
    due = known.filter(pl.col("row").is_in(fixed) & pl.col("to").is_not_null())
    cell = pl.format("{} → {}", pl.col("from").fill_null(""), "to").str.strip_chars_start(" ")
    return due.group_by("row").agg(corrected=cell.str.join("; "))


def taken_over(  # noqa: PLR0913, PLR0917 (what a decision needs, and the workbook)
    current: FileStatus,
    review: Review,
    latest: Mapping[int, RowsDecided],
    path: Path,
    person: Person,
    now: datetime,
    *,
    may_void: bool,
) -> int:
    """Record a workbook's decisions as the uploader's; return the number of rows.

    Names in the workbook are kept as claims. A decision that is already recorded keeps its author; a later,
    different decision is not overwritten. `latest` holds the decisions that count, by row.

    Raises InputError as `workbook.read`; Conflict: the file accepts no decisions now, or the workbook has
    none or is older than a recorded one.
    """
    summary = review.summary
    found = workbook.read(
        path, run_id=summary.run_id, row_count=summary.input.row_count, positions=summary.input.positions
    )
    known = {row: (last.decision, last.reason) for row, last in latest.items()}
    is_new = [known.get(row) != (decision, reason) for row, decision, reason, _ in found.iter_rows()]
    new = found.filter(is_new)
    if new.is_empty():
        raise Conflict(Sentence("desk.no_new_decision"))
    for row, _, _, claimed_by in new.iter_rows():
        last = latest.get(row)
        # Decisions as of the export keep the author that the workbook names.
        if last is not None and folded(last.by) not in {folded(person.name), folded(claimed_by or "")}:
            raise Conflict(Sentence("desk.decided_meanwhile", name=last.by, row=row))
    said_before = {
        (row, entry.decision, entry.reason)
        for entry in current.folder.decisions.entries()
        if entry.run_id == summary.run_id
        for row in entry.rows
    }
    if any((row, decision, reason) in said_before for row, decision, reason, _ in new.iter_rows()):
        raise Conflict(Sentence("desk.changed_since_shown", what=[Sentence("desk.shown_decisions")]))
    texts = {row: last.written for row, last in latest.items()}  # a workbook has no column for them
    written = pl.col("row").replace_strict(texts, default=None, return_dtype=pl.String)
    new = new.with_columns(written=pl.when(pl.col("decision") == Decision.FIX).then(written))
    made = new.group_by("decision", "reason", "claimed_by", "written", maintain_order=True).agg(pl.col("row"))
    for decision, reason, claimed_by, kept, rows in made.iter_rows():
        wanted = Decided(rows, Decision(decision), reason or "", claimed_by, kept, may_void=may_void)
        decide(current, review, wanted, person, now)
    return new.height
