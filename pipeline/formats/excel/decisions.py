"""Read people's decisions on rows from the columns Decision and Reason of a workbook.

A child process parses the workbook, like any untrusted file; it is used only if it names its run.
"""

import json
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import polars as pl

from pipeline.errors import InputError, UsageError
from pipeline.files.confined import parse_confined
from pipeline.files.expansion import table_bytes_max
from pipeline.formats.excel import refuse_what_is_no_workbook
from pipeline.formats.excel.archive import copied
from pipeline.formats.excel.grid import refuse_huge_sheets
from pipeline.frames import DECISIONS, cast_to
from pipeline.wording import LANGUAGES, Sentence, SurfaceKind, words
from pipeline.wording.rows import rows_named
from schemas.review import Decision
from schemas.row_positions import RowPositions

RUN_ID = "Run id"  # the label of the run ID, in the first column of a sheet; the ID is next to it
ROW, DECISION, REASON = "Row", "Decision", "Reason"  # the headers of the columns that are read back
DECIDED_BY = "Decided by"  # the header of an optional column, whose names are unverified claims
CLAIM_CHARS_MAX = 120


def key_of(header: str) -> str:
    """Return the key of a header in any language."""
    return "sheet." + "_".join(re.findall("[a-z0-9]+", header.lower()))


def _in_every_language() -> dict[str, str]:
    """Return the words of a workbook in each language -> English."""
    headers = (RUN_ID, ROW, DECISION, REASON, DECIDED_BY)
    every = product(headers, LANGUAGES)
    return {words(Sentence(key_of(header)), SurfaceKind.ANY, code): header for header, code in every}


_BYTES_MAX = 64 * 1024**2
_HEADER_LINE_MAX = 10
_CELLS = ("row", "decision", "reason", "claimed_by")
_DECIDED = {column: DECISIONS[column] for column in _CELLS}
_SCHEMA = dict.fromkeys(("sheet", *_CELLS, "run_id"), pl.String())


def read(path: Path, *, run_id: str, row_count: int, positions: RowPositions | None = None) -> pl.DataFrame:
    """Read the decisions about a run from a workbook: `Decisions` by row; names are claims, not signatures.

    Raises InputError: the workbook cannot be read, is about another run, or has an invalid decision.
    """
    where = path.name
    data = _bytes(path)
    refuse_what_is_no_workbook(data, where=where)
    cells = parse_confined(
        __name__,
        data,
        where=where,
        what=Sentence("files.the_workbook"),
        options={"bytes_max": table_bytes_max(len(data)), "headers": json.dumps(_in_every_language())},
    )
    if run_id not in cells["run_id"]:
        raise InputError(Sentence("excel.not_workbook_of_current_answers", where=where))
    decided = cells.filter(pl.col("decision").is_not_null() | pl.col("reason").is_not_null())
    for sheet, *cells_of_row in decided.select("sheet", "row", "decision", "reason").iter_rows():
        place = Sentence("excel.on_sheet", file=where, sheet=sheet)
        _require_sense(place, cells_of_row, row_count, positions)
    words = decided.with_columns(pl.col("row").cast(pl.UInt32), pl.col("decision").str.to_lowercase())
    # Equal decisions on two sheets count as one, even if only one names its author.
    decisions = words.group_by("row", "decision", "reason", maintain_order=True).agg(
        pl.col("claimed_by").drop_nulls().first()
    )
    if not decisions["row"].is_unique().all():
        row = decisions.filter(pl.col("row").is_duplicated())["row"][0]
        rows = rows_named([row], positions)
        raise InputError(Sentence("excel.row_decided_differently", where=where, rows=rows))
    return cast_to(decisions.sort("row"), _DECIDED)


def parse(data: bytes, *, bytes_max: int, headers: str) -> Iterator[pl.DataFrame]:
    """Parse a workbook in the child process, with the checks for payment workbooks.

    Yield one part: one row per row of a sheet with the three columns, and one per run ID. `bytes_max` limits
    the cells of a sheet, as in `expansion.table_bytes_max`. The JSON object maps header names to English.

    Raises InputError: a sheet holds more than a person would write; or any error of the library on a damaged
    file.
    """
    import fastexcel  # only the child process needs it

    copy = copied(data)
    refuse_huge_sheets(copy, bytes_max=bytes_max)
    workbook = fastexcel.read_excel(copy)
    parts, known = [pl.DataFrame(schema=_SCHEMA)], json.loads(headers)
    for name in workbook.sheet_names:
        sheet = workbook.load_sheet(name, header_row=None, skip_rows=0, dtypes="string").to_polars()
        rows = [[(cell or "").strip() or None for cell in row] for row in sheet.rows()]
        parts.append(_sheet(name, rows, known))
    yield pl.concat(parts)


def _sheet(name: str, rows: Sequence[Sequence[str | None]], headers: Mapping[str, str]) -> pl.DataFrame:
    run_ids = [row[1] for row in rows if len(row) > 1 and headers.get(row[0] or "") == RUN_ID]
    found: list[tuple[str | None, ...]] = [(name, *[None] * len(_CELLS), run_id) for run_id in run_ids]
    for position, cells in enumerate(rows[:_HEADER_LINE_MAX]):
        row = [headers.get(cell or "") for cell in cells]
        if {ROW, DECISION, REASON} <= set(row):
            columns = [row.index(header) for header in (ROW, DECISION, REASON)]
            claims = row.index(DECIDED_BY) if DECIDED_BY in row else None
            for line in rows[position + 1 :]:
                claimed_by = None if claims is None else _name(line[claims])
                found.append((name, *(line[index] for index in columns), claimed_by, None))
            break
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")


def _name(cell: str | None) -> str | None:
    """Clean a name of characters that look like others or control a terminal."""
    kept = "".join(one for one in cell or "" if one.isprintable())
    return " ".join(kept.split())[:CLAIM_CHARS_MAX] or None


def _bytes(path: Path) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(Sentence("excel.decisions_not_a_file", path=path))
        if status.st_size > _BYTES_MAX:
            raise InputError(Sentence("excel.decisions_too_large", path=path.name, bytes_max=_BYTES_MAX))
        return path.read_bytes()
    except OSError as error:
        raise UsageError(Sentence("excel.decisions_unreadable", path=path, why=error)) from error


def _require_sense(
    where: Sentence, cells: Sequence[str | None], row_count: int, positions: RowPositions | None
) -> None:
    row, decision, reason = cells
    if row is None or not row.isascii() or not row.isdigit() or not 1 <= int(row) <= row_count:
        raise InputError(Sentence("excel.decision_without_row_number", where=where))
    words, rows = list(Decision), rows_named([int(row)], positions)
    if decision is None:
        raise InputError(Sentence("excel.reason_without_decision", where=where, rows=rows, words=words))
    if decision.lower() not in set(Decision):
        raise InputError(Sentence("excel.not_a_decision", where=where, rows=rows, words=words))
    if reason is None and decision.lower() != Decision.HOLD:
        raise InputError(Sentence("excel.decision_without_reason", where=where, rows=rows))
