"""The cells of a sheet as its XML states them, counted independently of the library that reads it.

Only this count shows numbers and their digits, errors, merged cells and formulas that were never calculated,
and how long the texts are that a million cells may share. Source: ECMA-376-1, 18.3.1 (worksheets): `row`,
`c`, `v`, `f`, `is` and `mergeCell`; 18.4 (shared strings): `si`, `t` and `rPh`; 18.8 (styles): `numFmt`,
`cellXfs` and `xf`.
"""

import re
import zipfile
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, NamedTuple

from pipeline.errors import InputError
from pipeline.files.expansion import RECORD_BYTES_MAX, SizeBudget, refuse_long_row
from pipeline.formats.excel.archive import parse
from pipeline.wording import Sentence

ROWS_MAX = 1_048_576
COLUMNS_MAX = 16_384
_MERGED_MAX = 250_000  # a row with merged cells cannot be paid, so a sheet of payments has few of them

_SHARED = "xl/sharedstrings.xml"  # the path where the library looks for shared texts, in any mix of capitals
_STYLES = "xl/styles.xml"
_CELL = re.compile("([A-Z]{1,3})([0-9]{1,7})")
_DIGITS = re.compile(r'(?:\[\$-[0-9A-Fa-f]+\])?((?:0|[- ]|\\[-./ ]|"[-./ ]+")*0)(?:;.*)?')
"""A number format of zeros and separators, such as `00-00-00` or `00000000;@`: all digits are shown."""


class Cell(NamedTuple):
    """One cell that is not text."""

    row: int  # counted from 1, as in the sheet
    column: int  # counted from 1
    written: str  # as in the file
    shape: str = ""  # the digits and separators that its number format shows, such as 00-00-00


@dataclass(slots=True)
class Cells:
    """The contents of a sheet."""

    numbers: list[Cell] = field(default_factory=list)
    """Number cells, dates included: a date is a number with a format."""
    booleans: list[Cell] = field(default_factory=list)
    errors: list[Cell] = field(default_factory=list)  # error cells, such as #N/A
    texts: Counter[int] = field(default_factory=Counter)  # column -> its number of text cells
    merged_rows: list[tuple[int, int]] = field(default_factory=list)
    """First and last row of each merged range."""
    hidden_rows: list[int] = field(default_factory=list)  # by hand or by a filter
    uncalculated_row: int | None = None
    """The first row with a formula that was never calculated: its value is unknown."""
    row_first: int = ROWS_MAX + 1
    row_last: int = 0
    column_first: int = COLUMNS_MAX + 1
    column_last: int = 0  # with the three above, the used range; none in an empty sheet

    @property
    def width(self) -> int:
        """The number of used columns; 0 or less in an empty sheet."""
        return self.column_last - self.column_first + 1

    @property
    def height(self) -> int:
        """The number of used rows; 0 or less in an empty sheet."""
        return self.row_last - self.row_first + 1

    @property
    def filled_count(self) -> int:
        """The number of cells with content."""
        return len(self.numbers) + len(self.booleans) + len(self.errors) + self.texts.total()

    @property
    def are_none(self) -> bool:
        """True if the sheet is empty."""
        return self.row_last == 0


class Shared(NamedTuple):
    """What the cells of all sheets share."""

    lengths: Sequence[int]  # the UTF-8 bytes of each text, in order; empty if the workbook has none
    shapes: Mapping[str, str]  # style -> the `Cell.shape` of numbers


def count_cells(sheet: IO[bytes], shared: Shared, budget: SizeBudget) -> Cells:
    """Count the XML of a sheet, in one pass; text in bytes, by the sizes of shared texts.

    Raises InputError: a row, or the whole text, is too large for payments, or there are too many merged
    ranges; ValueError, IndexError, expat.ExpatError: it is not a sheet.
    """
    reader = _Reader(shared, budget)
    parse(sheet, start=reader.start, end=reader.end, text=reader.text)
    reader.end_row()
    return reader.cells


def position(reference: str) -> tuple[int, int]:
    """Return row and column of a cell, counted from 1.

    >>> position("AB12")
    (12, 28)

    Raises ValueError: the reference is invalid.
    """
    found = _CELL.fullmatch(reference)
    if found is None:
        raise ValueError("not a cell")
    column = 0
    for letter in found[1]:
        column = column * 26 + ord(letter) - ord("A") + 1
    row = int(found[2])
    if not (1 <= row <= ROWS_MAX and column <= COLUMNS_MAX):
        raise ValueError("a cell beyond the sheet")
    return row, column


def shared_by_cells(archive: zipfile.ZipFile, budget: SizeBudget) -> Shared:
    """Measure the texts and read the number formats that cells share.

    Raises InputError: the texts are too large; ValueError, expat.ExpatError: it is not a table of texts.
    """
    reader, styles = _SharedTexts(budget), _Styles()
    for part in archive.infolist():
        if part.filename.casefold() == _SHARED:
            with archive.open(part) as file:
                parse(file, start=reader.start, end=reader.end, text=reader.text)
        elif part.filename.casefold() == _STYLES:
            with archive.open(part) as file:
                parse(file, start=styles.start, end=styles.end)
    return Shared(reader.lengths, styles.shapes)


class _Styles:
    """Handles the parser's events for the styles; number formats precede the cells' styles."""

    def __init__(self) -> None:
        self.shapes: dict[str, str] = {}
        self._by_format: dict[str, str] = {}
        self._style_count: int | None = None  # None outside of the cells' styles

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "cellXfs":
            self._style_count = 0
        elif name == "numFmt":
            if (digits := _DIGITS.fullmatch(attributes["formatCode"])) is not None:
                self._by_format[attributes["numFmtId"]] = re.sub(r'[\\"]', "", digits[1])
        elif name == "xf" and self._style_count is not None:
            if (shape := self._by_format.get(attributes.get("numFmtId", ""))) is not None:
                self.shapes[str(self._style_count)] = shape
            self._style_count += 1

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._style_count = None


class _SharedTexts:
    """Handles the parser's events for the table of texts."""

    def __init__(self, budget: SizeBudget) -> None:
        self.lengths = array("Q")
        self._budget = budget
        self._length = 0
        self._is_text = False
        self._is_reading_aid = False  # pronunciation aids are not part of a text

    def start(self, name: str, _attributes: Mapping[str, str]) -> None:
        if name == "si":
            self._length = 0
        elif name == "rPh":
            self._is_reading_aid = True
        elif name == "t":
            self._is_text = not self._is_reading_aid

    def text(self, text: str) -> None:
        if self._is_text:
            self._length += len(text.encode())

    def end(self, name: str) -> None:
        if name == "t":
            self._is_text = False
        elif name == "rPh":
            self._is_reading_aid = False
        elif name == "si":
            self.lengths.append(self._length)
            self._budget.add(text_bytes=self._length, cell_count=1)


class _Reader:
    """Handles the parser's events for a sheet."""

    def __init__(self, shared: Shared, budget: SizeBudget) -> None:
        self.cells = Cells()
        self._budget = budget
        self._counted_row = self._row_bytes = self._cell_count = 0
        self._lengths, self._shapes = shared
        self._row = 0
        self._column = 0
        self._kind, self._style = "n", ""
        self._has_formula = False
        self._has_inline_text = False
        self._value: list[str] | None = None  # None outside of <v>
        self._written = ""
        self._text_bytes = 0  # in <v> and in <is>

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        match name:
            case "c":
                self._open_cell(attributes)
            case "v":
                self._value = []
            case "row":
                # The position of rows and cells is optional; by default each follows the one before.
                self._row = int(attributes.get("r", self._row + 1))
                self._column = 0
                if attributes.get("hidden") in ("1", "true"):
                    self.cells.hidden_rows.append(self._row)
            case "f":
                self._has_formula = True
            case "is":
                self._has_inline_text = True
            case "mergeCell":
                self._merge(attributes["ref"])
            case _:
                pass

    def text(self, text: str) -> None:
        if self._value is not None:
            self._value.append(text)
        elif not self._has_inline_text:
            return
        self._text_bytes += len(text.encode())
        if self._text_bytes > RECORD_BYTES_MAX:
            refuse_long_row(self._text_bytes, f"sheet row {self._row}")

    def end(self, name: str) -> None:
        if name == "v" and self._value is not None:
            self._written = "".join(self._value)
            self._value = None
        elif name == "c":
            self._close_cell()
            self._has_inline_text = False

    def end_row(self) -> None:
        """Add the row to the total."""
        self._budget.add(text_bytes=self._row_bytes, cell_count=self._cell_count)
        self._row_bytes = self._cell_count = 0

    def _add(self, byte_count: int) -> None:
        """Count a cell of the row (InputError: the row, or all rows together, exceed their limit)."""
        if self._row != self._counted_row:
            self.end_row()
            self._counted_row = self._row
        self._row_bytes += byte_count
        self._cell_count += 1
        if self._row_bytes > RECORD_BYTES_MAX:
            refuse_long_row(self._row_bytes, f"sheet row {self._row}")

    def _open_cell(self, attributes: Mapping[str, str]) -> None:
        if (reference := attributes.get("r")) is not None:
            self._row, self._column = position(reference)
        else:
            self._column += 1
            if self._row > ROWS_MAX or self._column > COLUMNS_MAX:
                raise ValueError("a cell beyond the sheet")
        self._kind, self._style = attributes.get("t", "n"), attributes.get("s", "0")
        self._has_formula = self._has_inline_text = False
        self._written = ""
        self._text_bytes = 0

    def _merge(self, reference: str) -> None:
        if len(self.cells.merged_rows) == _MERGED_MAX:
            raise InputError(Sentence("excel.too_many_merged_ranges", merged_max=_MERGED_MAX))
        first, _, last = reference.partition(":")
        self.cells.merged_rows.append((position(first)[0], position(last or first)[0]))

    def _close_cell(self) -> None:
        if not self._written and not self._has_inline_text:
            if self._has_formula and self._kind != "str":
                self.cells.uncalculated_row = self.cells.uncalculated_row or self._row
            return
        shape = self._shapes.get(self._style, "") if self._shapes else ""
        cell = Cell(self._row, self._column, self._written, shape)
        is_shared = self._kind == "s" and not self._has_inline_text
        self._add(self._lengths[int(self._written)] if is_shared else self._text_bytes)
        match self._kind:
            case "s" | "str" | "inlineStr" | "d":
                self.cells.texts[self._column] += 1
            case "n":
                self.cells.numbers.append(cell)
            case "b":
                self.cells.booleans.append(cell)
            case "e":
                self.cells.errors.append(cell)
            case _:
                raise ValueError("a cell of a kind that does not exist")
        cells, row, column = self.cells, self._row, self._column
        cells.row_first, cells.row_last = min(cells.row_first, row), max(cells.row_last, row)
        cells.column_first = min(cells.column_first, column)
        cells.column_last = max(cells.column_last, column)
