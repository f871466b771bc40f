"""Rows in a sentence: their numbers, and their positions in the file."""

from collections.abc import Sequence

from pipeline.wording.sentences import Sentence, Value
from schemas.row_positions import RowPositions, batch_paths


def rows_named(
    rows: Sequence[int], positions: RowPositions | None, *, row_count: int | None = None
) -> Sentence:
    """Name `row_count` rows by the first numbers or all, such as `rows 1, 2 (lines 2, 3) and 4 more`."""
    count = len(rows) if row_count is None else row_count
    named = Sentence("places.rows", count=count, rows=list(map(str, rows)))
    if positions is not None and rows:
        named = Sentence("places.rows_at", rows=named, places=positions_named(rows, positions))
    if count == len(rows):
        return named
    return Sentence("places.rows_and_more", rows=named, more_count=count - len(rows))


def positions_named(rows: Sequence[int], positions: RowPositions) -> Value:
    """Return the positions of rows, such as `lines 2, 4`."""
    match positions.unit:
        case "PmtInf":
            return batch_paths(rows, positions)
        case "part":
            return [
                Sentence(
                    "places.in_part", part=positions.names[positions.of(row) - 1], row=positions.nth(row)
                )
                for row in rows
            ]
        case unit:
            key = "places.lines" if unit == "line" else "places.sheet_rows"
            return Sentence(key, count=len(rows), places=[str(positions.of(row)) for row in rows])
