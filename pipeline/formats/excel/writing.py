"""Write workbooks: one sheet, each cell as text, amounts unchanged.

Text never becomes a formula, and keeps leading zeros when the file is edited. A cell is written as a number
only if the amount column had numbers and no digit is lost.
"""

import io
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import takewhile

import polars as pl
import xlsxwriter

from pipeline.errors import OutputError
from pipeline.formats.excel.cells import ROWS_MAX
from pipeline.formats.excel.grid import number_text
from pipeline.formats.table import Dialect, as_text
from pipeline.wording import Sentence

_CELL_CHARS_MAX = 32_767
_OPTIONS = {
    "constant_memory": True,
    **dict.fromkeys(("strings_to_formulas", "strings_to_urls", "strings_to_numbers"), False),
}
_SAME_FOR_ALL = datetime(2000, 1, 1, tzinfo=UTC).replace(tzinfo=None)
"""The creation date of all workbooks, so that the same rows give the same bytes."""
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,14})?")
_SHEET = "Payments"


def workbook(table: pl.DataFrame, dialect: Dialect, *, where: str) -> bytes:
    """Return a workbook of these rows (OutputError: a sheet cannot hold them)."""
    texts = as_text(table)
    if texts.height >= ROWS_MAX:
        raise OutputError(Sentence("excel.rows_too_many", where=where, rows_max=ROWS_MAX - 1))
    if texts.select(pl.any_horizontal(pl.all().str.len_chars() > _CELL_CHARS_MAX).any()).item():
        raise OutputError(Sentence("excel.cell_too_long", where=where, chars_max=_CELL_CHARS_MAX))
    made = io.BytesIO()
    with xlsxwriter.Workbook(made, _OPTIONS) as book:
        book.set_properties({"created": _SAME_FOR_ALL})
        sheet = book.add_worksheet(dialect.sheet_name or _SHEET)
        as_text_cell = book.add_format({"num_format": "@"})
        amounts = {index for index, header in enumerate(texts.columns) if header in dialect.numbers}
        if dialect.header_line:
            for index, header in enumerate(_header_row(texts, dialect.header_cells)):
                sheet.write(0, index, header, as_text_cell)
        for row, cells in enumerate(texts.iter_rows(), start=int(dialect.header_line)):
            for index, cell in enumerate(cells):
                is_amount = cell is not None and index in amounts and _NUMBER.fullmatch(cell)
                if is_amount and number_text(float(cell)) == cell:
                    sheet.write_number(row, index, float(cell))
                elif cell is not None:
                    sheet.write_string(row, index, cell, as_text_cell)
    return made.getvalue()


def _header_row(texts: pl.DataFrame, stated: Sequence[str]) -> list[str]:
    """Return the header row; readers skip empty columns at either side, so these get their names."""
    header_row = [*stated, *texts.columns[len(stated) :]]
    for side in (range(texts.width), range(texts.width - 1, -1, -1)):
        for index in takewhile(lambda index: not header_row[index], side):
            if texts[:, index].null_count() < texts.height:
                break
            header_row[index] = texts.columns[index]
    return header_row
