"""Excel workbooks: one sheet of a .xlsx, read like a CSV. They are read and never written as outcomes.

Everything becomes the text that a person sees, as far as the cell still holds it: a number that Excel made
of a sort code stays the number it is, and the local rules call it damaged. Nothing is padded or guessed.

A workbook is a ZIP of XML. What it claims to unpack to is looked at here (`archive`); it is unpacked and
parsed in a child (`grid`), by one library for the values and by a count of its own for everything else
(`cells`).
"""

from collections.abc import Mapping

import polars as pl

from pipeline.errors import InputError
from pipeline.formats.confined import parse_confined
from pipeline.formats.excel.archive import refuse_bombs
from pipeline.formats.excel.grid import DEFECT
from pipeline.formats.layout import LINES_BEFORE_HEADER_MAX, header_at, header_line
from pipeline.formats.table import Table
from pipeline.formats.unfolding import table_bytes_max
from pipeline.headers.columns import is_sufficient, recognised

NAME = "excel"

_ZIP_MAGIC = b"PK\x03\x04"
_OLE_MAGIC = b"\xd0\xcf\x11\xe0"
"""Of the container around an encrypted workbook, which is also that of the older .xls."""


def read(
    data: bytes,
    *,
    where: str,
    mapping: Mapping[str, str],
    encoding: str | None,  # noqa: ARG001 - a workbook is Unicode
    sheet: str | None = None,
) -> Table:
    """Read one sheet of a workbook; all cells are text.

    Args:
        data: The bytes of the file.
        where: The file, for messages.
        mapping: From `--map FIELD=HEADER`: these headers help to find the header row.
        encoding: Not needed.
        sheet: The name of the sheet; None: the only visible one that has data.

    Raises:
        InputError: it is not a workbook, is protected or damaged, unpacks to too much, or has no such sheet
            or no rows in it.
    """
    if not data:
        raise InputError(f"{where}: the file is empty; give a file with payments")
    refuse_what_is_no_workbook(data, where=where)
    grid = parse_confined(
        f"{__name__}.grid",
        data,
        where=where,
        what="the workbook",
        options={"sheet": sheet, "bytes_max": table_bytes_max(len(data))},
    )
    return _table(grid, mapping, where)


def refuse_what_is_no_workbook(data: bytes, *, where: str) -> None:
    """Refuse what is no workbook, or none that can be read, or unpacks to too much. Nothing is unpacked yet.

    Raises:
        InputError: it is so.
    """
    if data.startswith(_OLE_MAGIC):
        raise InputError(
            f"{where}: protected by a password, or an old .xls under another name; "
            "save it without a password as .xlsx"
        )
    if not data.startswith(_ZIP_MAGIC):
        raise InputError(f"{where}: not an Excel workbook; give the file the suffix of what it is")
    refuse_bombs(data, where=where)


def _table(grid: pl.DataFrame, mapping: Mapping[str, str], where: str) -> Table:
    """The rows below the header row, under its names."""
    cells, defects = grid.drop(DEFECT), grid[DEFECT]
    first_rows = [[cell or "" for cell in row] for row in cells.head(LINES_BEFORE_HEADER_MAX + 1).iter_rows()]
    at = header_at(first_rows, mapping)
    header_cells = first_rows[at]
    headers = header_line(
        header_cells,
        sufficient=is_sufficient(recognised(header_cells, mapping)),
        where=where,
        at=f"{where}, header row",
    )
    body = cells.slice(at + 1)
    if body.height == 0:
        raise InputError(f"{where}: no payment rows after the header row; give a sheet with payments")
    body.columns = list(headers)
    return Table(body, defects.slice(at + 1), delimiter=None, encoding="utf-8")
