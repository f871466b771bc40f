"""Positions of payment rows for readers of the file: line, sheet row, batch or part."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal

from schemas.strict import OwnDocument

Unit = Literal["line", "sheet row", "PmtInf", "part"]
"""For pain.001, whose text may be a single line, the batch (`PmtInf`); for a data set, the file."""


class RowPositions(OwnDocument):
    """The position of every row: its line in a text file, its row in a sheet, its batch or its part."""

    unit: Unit
    stretches: list[tuple[int, int, int]]
    """First row, its position, and the distance from row to row, up to the next stretch. A file with one line
    per row has one stretch."""
    names: list[str] = []  # names of the parts of a data set

    def of(self, row: int) -> int:
        """Return the position of a row; rows are counted from 1.

        >>> RowPositions(unit="line", stretches=[(1, 2, 1), (3, 4, 2)]).of(4)
        6
        """
        first, place, step = self._stretch(row)
        return place + (row - first) * step

    def text(self, row: int) -> str:
        """Return the position of a row in words.

        >>> RowPositions(unit="sheet row", stretches=[(1, 5, 1)]).text(1)
        'sheet row 5'
        >>> RowPositions(unit="PmtInf", stretches=[(1, 1, 0), (18, 2, 0)]).text(20)
        'PmtInf[2]/CdtTrfTxInf[3]'
        >>> RowPositions(unit="part", stretches=[(1, 1, 0), (18, 2, 0)], names=["a.csv", "b.csv"]).text(20)
        'b.csv row 3'
        """
        match self.unit:
            case "PmtInf":
                return f"PmtInf[{self.of(row)}]/CdtTrfTxInf[{self.nth(row)}]"
            case "part":
                return f"{self.names[self.of(row) - 1]} row {self.nth(row)}"
            case _:
                return f"{self.unit} {self.of(row)}"

    def nth(self, row: int) -> int:
        """Return the number of a row within its batch or part, from 1."""
        return row - self._stretch(row)[0] + 1

    @property
    def headers(self) -> list[str]:
        """The headers of a table's position columns."""
        return ["PmtInf", "CdtTrfTxInf"] if self.unit == "PmtInf" else [self.unit]

    def numbers(self, row: int) -> list[int]:
        """Return the position of a row, for the columns of `headers`."""
        return [self.of(row), self.nth(row)] if self.unit == "PmtInf" else [self.of(row)]

    def _stretch(self, row: int) -> tuple[int, int, int]:
        return self.stretches[bisect_right(self.stretches, row, key=lambda stretch: stretch[0]) - 1]


def position_text(row: int, positions: RowPositions | None) -> str:
    """Return the position of a row in words; empty if the format has none.

    >>> position_text(1, RowPositions(unit="sheet row", stretches=[(1, 5, 1)])), position_text(1, None)
    ('sheet row 5', '')
    """
    return "" if positions is None else positions.text(row)


def batch_paths(rows: Sequence[int], positions: RowPositions) -> list[str]:
    """Return the paths of payments, each batch once; batches with the same payments are joined.

    >>> places = RowPositions(unit="PmtInf", stretches=[(1, 1, 0), (18, 2, 0), (20, 3, 0)])
    >>> batch_paths([1, 2, 18], places), batch_paths([18, 20], places)
    (['PmtInf[1]/CdtTrfTxInf[1, 2]', 'PmtInf[2]/CdtTrfTxInf[1]'], ['PmtInf[2, 3]/CdtTrfTxInf[1]'])
    """
    of_batch: dict[int, list[int]] = {}
    for row in rows:
        of_batch.setdefault(positions.of(row), []).append(positions.nth(row))
    alike: dict[tuple[int, ...], list[int]] = {}
    for batch, payments in of_batch.items():
        alike.setdefault(tuple(payments), []).append(batch)
    return [
        f"PmtInf[{', '.join(map(str, batches))}]/CdtTrfTxInf[{', '.join(map(str, payments))}]"
        for payments, batches in alike.items()
    ]


def in_brackets(rows: Sequence[int], positions: RowPositions | None) -> str:
    """Return in brackets the positions of rows that a sentence has just named."""
    if positions is None or not rows:
        return ""
    if positions.unit == "PmtInf":
        return f" ({', '.join(batch_paths(rows, positions))})"
    if positions.unit == "part":
        return f" ({', '.join(map(positions.text, rows))})"
    rows_of = ", ".join(str(positions.of(row)) for row in rows)
    return f" ({positions.unit}{'' if len(rows) == 1 else 's'} {rows_of})"
