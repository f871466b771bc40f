"""Excel workbooks: one sheet of a .xlsx, read like a CSV, and written with each identifier as text.

Each cell becomes the text that a person sees, if the file still holds it; nothing is padded or guessed. A
child process unpacks and parses it (`grid`): a library reads the values, `cells` counts everything else.
"""

from collections.abc import Mapping
from typing import IO

import polars as pl

from pipeline.errors import InputError
from pipeline.files.confined import parse_confined
from pipeline.files.expansion import table_bytes_max
from pipeline.formats.excel import grid as sheet
from pipeline.formats.excel.archive import refuse_bombs
from pipeline.formats.table import Dialect, ReadingOptions, Table, as_text
from pipeline.formats.table import load as load
from pipeline.headers.heading import LINES_LOOKED_AT, column_names, heading_of
from pipeline.wording import Sentence
from schemas.row_positions import RowPositions

NAME = "excel"
TITLE = Sentence("formats.title_excel")
KNOWN_BY = Sentence("formats.known_excel")
SUFFIX = ".xlsx"
SUFFIXES = (SUFFIX, ".xlsm")
BUCKET_BYTES = 4 * 1024**2
MEMORY_PER_BYTE = 32  # as for Parquet, which is compressed too
OPTIONS = ("sheet",)
HAS_TYPES = False

_ZIP_MAGIC = b"PK\x03\x04"
_OLE_MAGIC = b"\xd0\xcf\x11\xe0"  # first bytes of the container of encrypted workbooks and of old .xls files


def sniff(head: bytes) -> bool:
    """True if a file starts like a workbook."""
    return head.startswith((_ZIP_MAGIC, _OLE_MAGIC))


def read(data: bytes, options: ReadingOptions, *, where: str) -> Table:
    """Read one sheet of a workbook; all cells are text.

    Raises InputError: it is no workbook, is protected or damaged, is too large, or lacks the sheet or rows.
    """
    if not data:
        raise InputError(Sentence("formats.file_empty", where=where))
    refuse_what_is_no_workbook(data, where=where)
    grid = parse_confined(
        f"{__name__}.grid",
        data,
        where=where,
        what=Sentence("files.the_workbook"),
        options={"sheet": options.sheet, "bytes_max": table_bytes_max(len(data))},
    )
    return table_of(grid, options.mapping, where)


def refuse_what_is_no_workbook(data: bytes, *, where: str) -> None:
    """Refuse a file that is not a readable workbook or unpacks to too much (InputError)."""
    if data.startswith(_OLE_MAGIC):
        raise InputError(Sentence("excel.password_or_old_xls", where=where))
    if not data.startswith(_ZIP_MAGIC):
        raise InputError(Sentence("excel.not_a_workbook", where=where))
    refuse_bombs(data, where=where)


def table_of(grid: pl.DataFrame, mapping: Mapping[str, str] | None, where: str) -> Table:
    """Return the rows below the header row (InputError: none); by default it is the first row."""
    cells, numbers = grid.drop(sheet.BESIDE), grid[sheet.SHEET_ROW].head(LINES_LOOKED_AT + 1).to_list()
    first_rows = [[cell or "" for cell in row] for row in cells.head(LINES_LOOKED_AT).iter_rows()]
    heading = heading_of(first_rows, mapping)
    title = grid[sheet.SHEET_NAME][0]
    headers = column_names(heading, first_rows, numbers, mapping, where=where, unit="sheet row", title=title)
    body = cells.slice(heading.end)
    if body.height == 0:
        raise InputError(Sentence("excel.no_payment_rows", where=where))
    body.columns = list(headers)
    has_line, header_cells = heading.stated(headers)
    decimals = grid[sheet.DECIMALS].slice(heading.end)
    return Table(
        body,
        grid[sheet.DEFECT].slice(heading.end),
        Dialect(
            header_line=has_line,
            header_cells=header_cells,
            sheet_name=title,
            numbers=tuple(headers[position - 1] for position in grid[sheet.NUMBERS][0]),
        ),
        positions=RowPositions(unit="sheet row", stretches=[(1, numbers[heading.end], 1)]),
        repeated_headers=tuple(numbers[index] for index in heading.repeated),
        decimals={
            header: rows
            for position, header in enumerate(headers, start=1)
            if (rows := decimals.list.contains(position).arg_true().to_list())
        },
        zeros=tuple(headers[position - 1] for position in grid[sheet.ZEROS][0]),
        hidden=grid[sheet.HIDDEN].slice(heading.end).arg_true().to_list(),
    )


def write(table: pl.DataFrame, file: IO[bytes], *, column: str, dialect: Dialect) -> None:  # noqa: ARG001 - every column is read back
    """Write a table as a workbook, and read all of it back.

    Raises OSError; OutputError: a sheet cannot hold it; AssertionError: the file does not hold the table.
    """
    table = as_text(table)
    data = rewrite(table, file, dialect._replace(header_line=True, header_cells=()), where="the outcome file")
    cells = read(data, ReadingOptions(None), where="the written file").cells
    if not cells.equals(table.with_columns(pl.when(pl.all() != "").then(pl.all()))):
        raise AssertionError("the written file does not hold the cells that it was given")


def rewrite(table: pl.DataFrame, file: IO[bytes], dialect: Dialect, *, where: str) -> bytes:
    """Write a payment file, and return a workbook of its rows under a header row, for the caller to check.

    Raises OSError: the file cannot be written; OutputError: a sheet cannot hold it.
    """
    from pipeline.formats.excel.writing import workbook  # a library that reading does not need

    file.write(workbook(table, dialect, where=where))
    file.seek(0)
    data = file.read()
    return data if dialect.header_line else workbook(table, dialect._replace(header_line=True), where=where)
