"""What a sheet says of its cells, counted from its XML with nothing in common with the library that reads it.

The library gives every value as text. Which of them were numbers, and with which digits, which are errors,
what is merged and which formulas nobody has calculated, is only here. Source: ECMA-376-1, 18.3.1
(worksheets): `row`, `c`, `v`, `f`, `is` and `mergeCell`.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, NamedTuple
from xml.parsers import expat

from pipeline.errors import InputError

ROWS_MAX = 1_048_576
COLUMNS_MAX = 16_384

_NAMESPACES = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main",
)
"""Of the transitional and of the strict form."""
_ELEMENTS = ("c", "v", "row", "f", "is", "mergeCell", "sheet")
_BARE = {f"{namespace} {name}": name for namespace in _NAMESPACES for name in _ELEMENTS}
_CHUNK_BYTES = 256 * 1024
_CELL = re.compile("([A-Z]{1,3})([0-9]{1,7})")


class Cell(NamedTuple):
    """One cell that is not text."""

    row: int
    """Counted from 1, as the sheet does."""
    column: int
    """Counted from 1."""
    written: str
    """As it stands in the file."""


@dataclass(slots=True)
class Cells:
    """What is in a sheet."""

    numbers: list[Cell] = field(default_factory=list)
    """Dates among them: a date is a number with a format."""
    booleans: list[Cell] = field(default_factory=list)
    errors: list[Cell] = field(default_factory=list)
    """Such as #N/A."""
    texts: Counter[int] = field(default_factory=Counter)
    """Column -> how many cells of text."""
    merged_rows: list[tuple[int, int]] = field(default_factory=list)
    """First and last row of each merged range."""
    row_first: int = ROWS_MAX + 1
    row_last: int = 0
    column_first: int = COLUMNS_MAX + 1
    column_last: int = 0
    """The range in which there is anything; none in an empty sheet."""

    def include(self, row: int, column: int) -> None:
        """Let the range reach as far as this cell."""
        self.row_last = max(self.row_last, row)
        self.row_first = min(self.row_first, row)
        self.column_last = max(self.column_last, column)
        self.column_first = min(self.column_first, column)

    @property
    def filled_count(self) -> int:
        """How many cells have anything in them."""
        return len(self.numbers) + len(self.booleans) + len(self.errors) + self.texts.total()

    @property
    def are_none(self) -> bool:
        """Whether the sheet is empty."""
        return self.row_last == 0


def count_cells(sheet: IO[bytes]) -> Cells:
    """Count a sheet, in one pass.

    Raises:
        InputError: a formula was never calculated, so that nobody knows its value.
        ValueError, expat.ExpatError: it is no sheet.
    """
    reader = _Reader()
    parse(sheet, start=reader.start, end=reader.end, text=reader.text)
    return reader.cells


def parse(
    file: IO[bytes],
    *,
    start: Callable[[str, Mapping[str, str]], None],
    end: Callable[[str], None] = lambda _name: None,
    text: Callable[[str], None] = lambda _text: None,
) -> None:
    """Parse XML of a stranger: nothing is fetched, and no entity is defined.

    The elements that are known here come without their namespace.

    Raises:
        ValueError: it has a document type, where entities would be.
        expat.ExpatError: it is not XML.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise ValueError("a document type has no place in a workbook")

    def opened(name: str, attributes: Mapping[str, str]) -> None:
        start(_BARE.get(name, name), attributes)

    def closed(name: str) -> None:
        end(_BARE.get(name, name))

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = opened
    parser.EndElementHandler = closed
    parser.CharacterDataHandler = text
    while chunk := file.read(_CHUNK_BYTES):
        parser.Parse(chunk, False)
    parser.Parse(b"", True)


def position(reference: str) -> tuple[int, int]:
    """Row and column of a cell, counted from 1.

    >>> position("AB12")
    (12, 28)

    Raises:
        ValueError: there is no such cell.
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


class _Reader:
    """Follows the elements of a sheet."""

    def __init__(self) -> None:
        self.cells = Cells()
        self._row = 0
        self._column = 0
        self._kind = "n"
        self._has_formula = False
        self._has_inline_text = False
        self._value: list[str] | None = None  # None outside of <v>
        self._written = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        match name:
            case "c":
                self._open_cell(attributes)
            case "v":
                self._value = []
            case "row":
                # Neither a row nor a cell must say where it is; then it follows the one before.
                self._row = int(attributes.get("r", self._row + 1))
                self._column = 0
            case "f":
                self._has_formula = True
            case "is":
                self._has_inline_text = True
            case "mergeCell":
                first, _, last = attributes["ref"].partition(":")
                self.cells.merged_rows.append((position(first)[0], position(last or first)[0]))
            case _:
                pass

    def text(self, text: str) -> None:
        if self._value is not None:
            self._value.append(text)

    def end(self, name: str) -> None:
        if name == "v" and self._value is not None:
            self._written = "".join(self._value)
            self._value = None
        elif name == "c":
            self._close_cell()

    def _open_cell(self, attributes: Mapping[str, str]) -> None:
        if (reference := attributes.get("r")) is not None:
            self._row, self._column = position(reference)
        else:
            self._column += 1
            if self._row > ROWS_MAX or self._column > COLUMNS_MAX:
                raise ValueError("a cell beyond the sheet")
        self._kind = attributes.get("t", "n")
        self._has_formula = self._has_inline_text = False
        self._written = ""

    def _close_cell(self) -> None:
        if not self._written and not self._has_inline_text:
            if self._has_formula and self._kind != "str":
                raise InputError(
                    f"sheet row {self._row}: a formula that was never calculated; open the workbook in a "
                    "spreadsheet program, save it there, and run again"
                )
            return
        cell = Cell(self._row, self._column, self._written)
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
        self.cells.include(self._row, self._column)
