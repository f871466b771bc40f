"""The decisions that people wrote into a workbook: in its columns Decision and Reason, by row.

A workbook has been through other people's hands and programs, so that it is parsed in a child, like
everything that strangers made, and believed only if it names the run that it was written for.
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
from pipeline.frames import DECISIONS
from pipeline.wording import LANGUAGES, Sentence, SurfaceKind, words
from pipeline.wording.rows import rows_named
from schemas.review import Decision
from schemas.row_positions import RowPositions

RUN_ID = "Run id"
"""In the first column of a sheet, with the id beside it."""
ROW, DECISION, REASON = "Row", "Decision", "Reason"
"""The headers of the columns that are read back."""
DECIDED_BY = "Decided by"
"""That of a column that may be there too: a name in it is a claim, kept as such."""
CLAIM_CHARS_MAX = 120


def key_of(header: str) -> str:
    """The key of a header in every language.

    >>> key_of("Decided by")
    'sheet.decided_by'
    """
    return "sheet." + "_".join(re.findall("[a-z0-9]+", header.lower()))


def _in_every_language() -> dict[str, str]:
    """Words of a workbook in each language -> English."""
    headers = (RUN_ID, ROW, DECISION, REASON, DECIDED_BY)
    every = product(headers, LANGUAGES)
    return {words(Sentence(key_of(header)), SurfaceKind.ANY, code): header for header, code in every}


_BYTES_MAX = 64 * 1024**2
_HEADER_LINE_MAX = 10
_CELLS = ("row", "decision", "reason", "claimed_by")
_DECIDED = {column: DECISIONS[column] for column in _CELLS}
_SCHEMA = dict.fromkeys(("sheet", *_CELLS, "run_id"), pl.String())


def read(path: Path, *, run_id: str, row_count: int, positions: RowPositions | None = None) -> pl.DataFrame:
    """Read the decisions of a workbook about a run: `Decisions` by row, without who decided and when.

    A name in a workbook is no signature, but a claim.

    Raises:
        InputError: it cannot be read, is of another run, or says something that cannot be meant.
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
        raise InputError(Sentence("excel.not_workbook_present", where=where))
    decided = cells.filter(pl.col("decision").is_not_null() | pl.col("reason").is_not_null())
    for sheet, *cells_of_row in decided.select("sheet", "row", "decision", "reason").iter_rows():
        _require_sense(
            Sentence("excel.on_sheet", file=where, sheet=sheet), cells_of_row, row_count, positions
        )
    words = decided.with_columns(pl.col("row").cast(pl.UInt32), pl.col("decision").str.to_lowercase())
    # The same on two sheets is one decision, whether or not both name who made it.
    decisions = words.group_by("row", "decision", "reason", maintain_order=True).agg(
        pl.col("claimed_by").drop_nulls().first()
    )
    if not decisions["row"].is_unique().all():
        row = decisions.filter(pl.col("row").is_duplicated())["row"][0]
        raise InputError(
            Sentence("excel.row_decided_differently", where=where, rows=rows_named([row], positions))
        )
    return decisions.sort("row").select(pl.col(column).cast(kind) for column, kind in _DECIDED.items())


def parse(data: bytes, *, bytes_max: int, headers: str) -> Iterator[pl.DataFrame]:
    """Parse a workbook, in the child, under the guards of a workbook of payments.

    It is one part: one row per row of a sheet that has the three columns, and one per run id. The cells of a
    sheet may take `bytes_max`, as `expansion.table_bytes_max` gives it. The headers are known by the names
    in this JSON object, each with its English one.

    Raises:
        InputError: a sheet has more in it than a person writes.
        Exception, PanicException: as the library does; on a damaged file that may be anything.
    """
    import fastexcel  # only the child needs it

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
            found += [
                (
                    name,
                    *(line[index] for index in columns),
                    None if claims is None else _name(line[claims]),
                    None,
                )
                for line in rows[position + 1 :]
            ]
            break
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")


def _name(cell: str | None) -> str | None:
    """A name as it is put on record: nothing in it that could look like another, or steer a terminal."""
    kept = "".join(one for one in cell or "" if one.isprintable())
    return " ".join(kept.split())[:CLAIM_CHARS_MAX] or None


def _bytes(path: Path) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(Sentence("excel.not_file_give", path=path))
        if status.st_size > _BYTES_MAX:
            raise InputError(Sentence("excel.larger_than_bytes", path=path.name, bytes_max=_BYTES_MAX))
        return path.read_bytes()
    except OSError as error:
        raise UsageError(Sentence("excel.cannot_read_give", path=path, why=error)) from error


def _require_sense(
    where: Sentence, cells: Sequence[str | None], row_count: int, positions: RowPositions | None
) -> None:
    row, decision, reason = cells
    if row is None or not row.isascii() or not row.isdigit() or not 1 <= int(row) <= row_count:
        raise InputError(Sentence("excel.decision_not_beside", where=where))
    words, rows = list(Decision), rows_named([int(row)], positions)
    if decision is None:
        raise InputError(Sentence("excel.row_reason_without", where=where, rows=rows, words=words))
    if decision.lower() not in set(Decision):
        raise InputError(Sentence("excel.row_not_decision", where=where, rows=rows, words=words))
    if reason is None and decision.lower() != Decision.HOLD:
        raise InputError(Sentence("excel.row_decision_without", where=where, rows=rows))
