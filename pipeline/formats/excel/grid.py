"""Read one sheet as a grid of text in the child process; two readers must agree on all non-text cells.

fastexcel (calamine) reads the values; `cells` counts them from the XML. Text is taken from fastexcel; a
number is taken from the XML, digit by digit, if fastexcel sees the same number. Source of the choice of the
sheet: ECMA-376-1, 18.2 (workbook).
"""

import io
import math
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import NamedTuple

import polars as pl

from pipeline.errors import InputError
from pipeline.files.expansion import SizeBudget, refuse_long_row
from pipeline.formats.excel.archive import copied
from pipeline.formats.excel.archive import parse as parsed
from pipeline.formats.excel.cells import Cell, Cells, Shared, count_cells, shared_by_cells
from pipeline.formats.table import no_defects
from pipeline.headers.columns import is_sufficient, recognised
from pipeline.headers.heading import COLUMNS_MAX, LINES_LOOKED_AT, heading_of
from pipeline.rules.amounts import AMBIGUOUS
from pipeline.rules.unasked import ROW_MERGED
from pipeline.wording import Sentence

DEFECT, SHEET_ROW, DECIMALS = "defect", "sheet_row", "decimals"
SHEET_NAME, NUMBERS, ZEROS, HIDDEN = "sheet_name", "numbers", "zeros", "hidden"
BESIDE = (DEFECT, SHEET_ROW, DECIMALS, SHEET_NAME, NUMBERS, ZEROS, HIDDEN)
"""Extra columns: the defects of whole rows, their numbers in the sheet, the positions of decimals that
could be read as thousands, and true if hidden; in the first row only, the name of the sheet, the columns
with numbers, and those with leading zeros by a number format. Others are named by their position, from 1.
"""

_WORKBOOK = "xl/workbook.xml"
_RELATIONS = "xl/_rels/workbook.xml.rels"
_NAMES_QUOTED_MAX = 20
_NAME_QUOTED_LENGTH_MAX = 31  # the longest sheet name that spreadsheet programs allow
_HEADERS_QUOTED_LENGTH_MAX = 120
_EMPTY_CELLS_MAX = 1_000_000
_EMPTY_PER_FILLED_MAX = 20
"""Without this limit, a sheet with only its first and last corner filled would take gigabytes."""

_DATES_END = 2_958_466  # the first number after 31 December 9999, the last date of a spreadsheet
DIGITS_MAX = 15  # significant digits that spreadsheets keep and show; the rest is binary noise
_AMBIGUOUS = re.compile(AMBIGUOUS)
_WHOLE_MAX = 10.0**DIGITS_MAX
_DATE = re.compile(r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}) (?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)")


class Sheet(NamedTuple):
    """One sheet of a workbook."""

    name: str
    is_visible: bool
    part: str  # its XML in the archive


def parse(data: bytes, *, sheet: str | None, bytes_max: int) -> Iterator[pl.DataFrame]:
    """Parse one sheet of a workbook; without a name, the only visible one with data.

    Yield one part: the used range of the sheet as text, from the first to the last filled row, and the
    columns `BESIDE`; empty cells are null. `bytes_max` limits the cells, as in `expansion.table_bytes_max`.

    Raises InputError: a sentence for the user, without the name of the file; or any error of the libraries
    on a damaged file.
    """
    workbook = copied(data)
    with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
        meant, cells = chosen(archive, sheet, bytes_max=bytes_max, headers_of=partial(_headers, workbook))
    if cells.are_none:
        raise InputError(Sentence("excel.sheet_empty"), advice=Sentence("advice.name_sheet"))
    _refuse_sparse(cells)
    values = _with_undated(_values(workbook, meant.name), cells)
    _require_agreement(values, cells)
    _refuse_long_rows(values, cells.row_first)
    seen = _seen(values, cells)
    values = values.with_columns(
        values.to_series(column - cells.column_first).scatter(
            [row - cells.row_first for row in rows], list(rows.values())
        )
        for column, rows in seen.items()
    ).with_columns(pl.when(pl.all() != "").then(pl.all()))
    numbers = sorted({cell.column - cells.column_first + 1 for cell in cells.numbers})
    zeros = {
        cell.column - cells.column_first + 1
        for cell in cells.numbers  # only the number format shows the leading zeros
        if cell.shape
        and 0 < float(cell.written) < 10.0 ** (cell.shape.count("0") - 1)
        and float(cell.written).is_integer()
    }
    once = pl.int_range(pl.len()) == 0
    values = values.with_columns(
        _merged(cells).alias(DEFECT),
        pl.int_range(cells.row_first, cells.row_last + 1, dtype=pl.UInt32).alias(SHEET_ROW),
        _decimals(seen, cells).alias(DECIMALS),
        pl.when(once).then(pl.lit(meant.name)).alias(SHEET_NAME),
        pl.when(once).then(pl.lit(numbers, pl.List(pl.UInt32))).alias(NUMBERS),
        pl.when(once).then(pl.lit(sorted(zeros), pl.List(pl.UInt32))).alias(ZEROS),
    )
    yield _without_blank_end(values.with_columns(pl.col(SHEET_ROW).is_in(cells.hidden_rows).alias(HIDDEN)))


def refuse_huge_sheets(workbook: bytes, *, bytes_max: int) -> None:
    """Refuse a workbook with a sheet too large for payments (InputError)."""
    with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
        for cells in all_counted(archive, bytes_max=bytes_max):
            if not cells.are_none:
                _refuse_sparse(cells)


def _headers(workbook: bytes, sheet: str) -> tuple[str, ...]:
    """Return the cells of the header row of a sheet."""
    first = _values(workbook, sheet).head(LINES_LOOKED_AT)
    return heading_of([[cell or "" for cell in row] for row in first.iter_rows()], {}).cells


def _values(workbook: bytes, sheet: str) -> pl.DataFrame:
    """Read the sheet with fastexcel: every cell as text, errors as null."""
    import fastexcel  # only the child process needs it

    read = fastexcel.read_excel(workbook).load_sheet(sheet, header_row=None, dtypes="string")
    values: pl.DataFrame = read.to_polars()
    values.columns = [str(number) for number in range(1, values.width + 1)]
    return values


def _with_undated(values: pl.DataFrame, cells: Cells) -> pl.DataFrame:
    """Return numbers that have the format of a date but are too large for one, such as account numbers."""
    found: dict[int, dict[int, str]] = {}
    for cell in cells.numbers:
        if len(cell.written) > 6 and float(cell.written) >= _DATES_END:
            found.setdefault(cell.column - cells.column_first, {})[cell.row - cells.row_first] = cell.written
    for index, written in found.items():
        column = values.to_series(index)
        undated = (column.is_null() | column.str.starts_with("+")).arg_true()
        rows = [row for row in undated if row in written]
        values = values.with_columns(column.scatter(rows, [written[row] for row in rows]))
    return values


def _refuse_sparse(cells: Cells) -> None:
    facts = {"filled_count": cells.filled_count, "height": cells.height, "width": cells.width}
    if cells.width > COLUMNS_MAX:
        raise InputError(Sentence("excel.too_many_columns", width=cells.width, columns_max=COLUMNS_MAX))
    if cells.width * cells.height > _EMPTY_CELLS_MAX + _EMPTY_PER_FILLED_MAX * cells.filled_count:
        raise InputError(Sentence("excel.cells_too_sparse", **facts))


def _require_agreement(values: pl.DataFrame, cells: Cells) -> None:
    """Require that both readers see the same range and number of values per column (ValueError)."""
    if (values.width, values.height) != (cells.width, cells.height):
        raise ValueError("two ways to count the rows and columns do not agree")
    counts = cells.texts.copy()
    counts.update(cell.column for cell in (*cells.numbers, *cells.booleans))
    for index, count in enumerate(values.null_count().row(0)):
        if values.height - count != counts[cells.column_first + index]:
            raise ValueError("two ways to count the cells do not agree")


def _refuse_long_rows(values: pl.DataFrame, row_first: int) -> None:
    """Refuse an oversized row; most are already found during the count, if their cells are adjacent."""
    lengths = values.select(pl.sum_horizontal(pl.all().str.len_bytes())).to_series()
    index = lengths.arg_max() or 0
    refuse_long_row(lengths[index] or 0, f"sheet row {row_first + index}")


def _seen(values: pl.DataFrame, cells: Cells) -> dict[int, dict[int, str]]:
    """Return numbers, booleans and errors as a person sees them, by column and row of the sheet."""
    seen: dict[int, dict[int, str]] = {}
    for cell in cells.errors:
        seen.setdefault(cell.column, {})[cell.row] = cell.written
    for cell in cells.booleans:
        seen.setdefault(cell.column, {})[cell.row] = "TRUE" if cell.written == "1" else "FALSE"
    read: dict[int, list[str | None]] = {}
    for cell in cells.numbers:
        if cell.column not in read:
            read[cell.column] = values.to_series(cell.column - cells.column_first).to_list()
        shown = _shown(cell, read[cell.column][cell.row - cells.row_first])
        seen.setdefault(cell.column, {})[cell.row] = shown
    return seen


def _decimals(seen: Mapping[int, Mapping[int, str]], cells: Cells) -> pl.Series:
    """Return the positions, per row, of numbers that could be read as thousands, such as 1.500."""
    found: dict[int, list[int]] = {}
    for column, rows in seen.items():
        for row, text in rows.items():
            if _AMBIGUOUS.match(text):
                found.setdefault(row - cells.row_first, []).append(column - cells.column_first + 1)
    return pl.Series([*map(found.get, range(cells.height))], dtype=pl.List(pl.UInt32))


def _shown(cell: Cell, read: str | None) -> str:
    """Return a number or a date as text (ValueError: the readers disagree)."""
    if read is not None and (date := _DATE.fullmatch(read)) is not None:
        # ISO 8601; a date without a time is stored as midnight.
        return date["date"] if date["time"] == "00:00:00" else f"{date['date']}T{date['time']}"
    number = float(cell.written)
    # The library's text has at most nine decimals.
    if read is None or not math.isclose(number, float(read), rel_tol=1e-12, abs_tol=1e-9):
        raise ValueError("two ways to read a number do not agree")
    text = number_text(number)
    return _with_zeros(text, cell.shape) if cell.shape and text.isdigit() else text


def _with_zeros(text: str, shape: str) -> str:
    """Write a whole number as its number format shows it, unless that has fewer digits.

    >>> _with_zeros("40127", "00-00-00"), _with_zeros("123456789", "00000000")
    ('04-01-27', '123456789')
    """
    count = shape.count("0")
    digits = iter(text.zfill(count))
    return text if len(text) > count else "".join(next(digits) if at == "0" else at for at in shape)


def number_text(number: float) -> str:
    """Write a number as exact decimal text, with the digits that a spreadsheet shows.

    A number that lost digits after the fifteenth is written as a spreadsheet shows it, so that it cannot be
    mistaken for an identifier.

    >>> number_text(0.1 + 0.2), number_text(1500.0), number_text(12345.0), number_text(8.93e19)
    ('0.3', '1500', '12345', '8.93E+19')

    Raises ValueError: it is not a number.
    """
    if not math.isfinite(number):
        raise ValueError("a number without end")
    digits = f"{number:.{DIGITS_MAX}g}"
    if abs(number) >= _WHOLE_MAX:
        mantissa, _, exponent = f"{number:.{DIGITS_MAX - 1}E}".partition("E")
        whole, _, fraction = mantissa.partition(".")
        return f"{whole}.{fraction.rstrip('0') or '0'}E{exponent}"
    return f"{Decimal(digits):f}" if number else "0"


def _merged(cells: Cells) -> pl.Series:
    """Return the defect of rows with merged cells, because only the first cell has the value."""
    rows: list[int] = []
    row_next = cells.row_first
    # Each row is visited once, however many ranges it is in.
    for first, last in sorted(cells.merged_rows):
        rows += range(max(first, row_next), min(last, cells.row_last) + 1)
        row_next = max(row_next, last + 1)
    return no_defects(cells.height).scatter([row - cells.row_first for row in rows], ROW_MERGED)


def _without_blank_end(values: pl.DataFrame) -> pl.DataFrame:
    """Drop trailing rows of empty formulas and blanks."""
    has_text = pl.any_horizontal(pl.exclude(BESIDE).str.strip_chars() != "").fill_null(value=False)
    filled = values.select(has_text).to_series().arg_true()
    return values.head(0 if filled.is_empty() else int(filled[-1]) + 1)


def sheets_of(archive: zipfile.ZipFile) -> list[Sheet]:
    """Return the sheets with cells, in order; chart sheets have none.

    Raises KeyError, ValueError, ExpatError: it is not a workbook.
    """
    parts: dict[str, str] = {}
    found: list[tuple[str, str, str]] = []

    def relation(name: str, attributes: Mapping[str, str]) -> None:
        if name.endswith(" Relationship") and attributes["Type"].endswith("/worksheet"):
            # Relative to the workbook's folder, or, with a leading slash, to the root.
            path = posixpath.normpath(posixpath.join("/xl", attributes["Target"]))
            parts[attributes["Id"]] = path.removeprefix("/")

    def sheet(name: str, attributes: Mapping[str, str]) -> None:
        if name == "sheet":
            [key] = [value for key, value in attributes.items() if key.endswith("/relationships id")]
            found.append((attributes["name"], attributes.get("state", "visible"), key))

    with archive.open(_RELATIONS) as file:
        parsed(file, start=relation)
    with archive.open(_WORKBOOK) as file:
        parsed(file, start=sheet)
    return [Sheet(name, state == "visible", parts[key]) for name, state, key in found if key in parts]


def chosen(
    archive: zipfile.ZipFile, name: str | None, *, bytes_max: int, headers_of: Callable[[str], Sequence[str]]
) -> tuple[Sheet, Cells]:
    """Choose the sheet of this name, even hidden; else the only visible one with data, or payments.

    `bytes_max` limits the cells, as in `expansion.table_bytes_max`. Raises InputError: the sheet does not
    exist, the choice is ambiguous, or a sheet is too large for payments.
    """
    sheets = sheets_of(archive)
    shared = shared_by_cells(archive, SizeBudget(bytes_max))
    if name is not None:
        named = next((sheet for sheet in sheets if sheet.name == name), None)
        if named is None:
            raise InputError(_refusal("excel.no_such_sheet", sheets), advice=Sentence("advice.name_sheet"))
        return named, _calculated(archive, named, shared, bytes_max)
    counted = [
        (sheet, _calculated(archive, sheet, shared, bytes_max)) for sheet in sheets if sheet.is_visible
    ]
    with_data = [(sheet, cells) for sheet, cells in counted if not cells.are_none]
    if len(with_data) == 1:
        return with_data[0]
    refusal = _refusal("excel.no_visible_sheet_with_data", sheets)
    if with_data:
        headers = [headers_of(sheet.name) for sheet, _ in with_data]
        able = [is_sufficient(recognised(cells, {})) for cells in headers]
        if sum(able) == 1:
            return with_data[able.index(True)]
        firsts = [", ".join(filter(None, cells))[:_HEADERS_QUOTED_LENGTH_MAX] for cells in headers]
        refusal = _refusal("excel.several_sheets_with_data", [sheet for sheet, _ in with_data], firsts)
    raise InputError(refusal, advice=Sentence("advice.name_sheet"))


def all_counted(archive: zipfile.ZipFile, *, bytes_max: int) -> Iterator[Cells]:
    """Count all sheets, even hidden ones (InputError: larger than any payment file)."""
    shared = shared_by_cells(archive, SizeBudget(bytes_max))
    for sheet in sheets_of(archive):
        yield _counted(archive, sheet, shared, bytes_max)


def _calculated(archive: zipfile.ZipFile, sheet: Sheet, shared: Shared, bytes_max: int) -> Cells:
    cells = _counted(archive, sheet, shared, bytes_max)
    if cells.uncalculated_row is not None:
        raise InputError(Sentence("excel.formula_never_calculated", uncalculated_row=cells.uncalculated_row))
    return cells


def _counted(archive: zipfile.ZipFile, sheet: Sheet, shared: Shared, bytes_max: int) -> Cells:
    with archive.open(sheet.part) as file:
        return count_cells(file, shared, SizeBudget(bytes_max))


def _refusal(key: str, sheets: list[Sheet], headers: Sequence[str] = ()) -> Sentence:
    """Return a sentence with the sheets' names as `sheets` and their headers as `headers`."""
    names = [sheet.name[:_NAME_QUOTED_LENGTH_MAX] for sheet in sheets[:_NAMES_QUOTED_MAX]]
    shown = [
        Sentence("excel.sheet" if sheet.is_visible else "excel.hidden_sheet", name=name)
        for sheet, name in zip(sheets, names, strict=False)
    ]
    more_count = len(sheets) - len(names)
    if not names:
        listed = Sentence("excel.no_sheets")
    elif more_count:
        listed = Sentence("excel.sheets_and_more", sheets=shown, more_count=more_count)
    else:
        listed = Sentence("excel.sheets", sheets=shown)
    return Sentence(key, listed=listed, sheets=names, headers=[*headers[:_NAMES_QUOTED_MAX]])
