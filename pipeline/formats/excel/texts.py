"""The shared texts of a workbook: their lengths, and how much text a sheet shows.

A text shared by a million cells is in the file only once, so its length is added up per cell before a library
makes a table of it. Source: ECMA-376-1, 18.4 (shared strings): `si`, `t` and `rPh`.
"""

import zipfile
from array import array
from collections.abc import Mapping, Sequence

from pipeline.files.expansion import RECORD_BYTES_MAX, SizeBudget, refuse_long_row
from pipeline.formats.excel.archive import parse

_PART = "xl/sharedstrings.xml"
"""The path where the library looks for shared texts, in any mix of capitals."""


def shared_lengths(archive: zipfile.ZipFile, budget: SizeBudget) -> Sequence[int]:
    """Return the UTF-8 bytes of each shared text, in order; empty if the workbook has none.

    Raises:
        InputError: the texts are too large. ValueError, expat.ExpatError: the part is not a table of texts.
    """
    reader = _Reader(budget)
    for part in archive.infolist():
        if part.filename.casefold() == _PART:
            with archive.open(part) as file:
                parse(file, start=reader.start, end=reader.end, text=reader.text)
    return reader.lengths


class _Reader:
    """Handles the parser's events for the table of texts."""

    def __init__(self, budget: SizeBudget) -> None:
        self.lengths = array("Q")
        self._budget = budget
        self._length = 0
        self._is_text = False
        self._is_reading_aid = False  # pronunciation aids are not part of a text

    def start(self, name: str, _attributes: Mapping[str, str]) -> None:
        match name:
            case "si":
                self._length = 0
            case "rPh":
                self._is_reading_aid = True
            case "t":
                self._is_text = not self._is_reading_aid
            case _:
                pass

    def text(self, text: str) -> None:
        if self._is_text:
            self._length += len(text.encode())

    def end(self, name: str) -> None:
        match name:
            case "t":
                self._is_text = False
            case "rPh":
                self._is_reading_aid = False
            case "si":
                self.lengths.append(self._length)
                self._budget.add(text_bytes=self._length, cell_count=1)
            case _:
                pass


class RowBytes:
    """Adds up the texts of a sheet, row by row."""

    def __init__(self, budget: SizeBudget) -> None:
        self._budget = budget
        self._row = 0
        self._row_bytes = 0
        self._cell_count = 0

    def add(self, row: int, byte_count: int) -> None:
        """Count a cell.

        Raises:
            InputError: its row exceeds `RECORD_BYTES_MAX`, or all rows together their limit.
        """
        if row != self._row:
            self.end_row()
            self._row = row
        self._row_bytes += byte_count
        self._cell_count += 1
        if self._row_bytes > RECORD_BYTES_MAX:
            refuse_long_row(self._row_bytes, f"sheet row {row}")

    def end_row(self) -> None:
        """Add the row to the total."""
        self._budget.add(text_bytes=self._row_bytes, cell_count=self._cell_count)
        self._row_bytes = self._cell_count = 0
