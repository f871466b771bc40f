"""The cells of a file, used to find out what its columns hold."""

from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import islice

import polars as pl

VALUES_SHOWN = 3
SAMPLE_ROWS = 200  # number of rows that are examined to see what a column looks like
_LONG_WORD = r"[\p{L}]{3,}"


class ColumnCells:
    """Columns by header; results are computed on demand and cached."""

    def __init__(self, frame: pl.DataFrame, headers: Sequence[str] | None = None) -> None:
        self._frame = frame
        self.row_count = frame.height
        self.headers = tuple(frame.columns if headers is None else headers)
        self._texts: dict[str, pl.Series] = {}
        self._samples: dict[str, pl.Series] = {}

    def without(self, taken: Collection[str]) -> "ColumnCells":
        """Return the cells without these columns."""
        cells = ColumnCells(self._frame, [header for header in self.headers if header not in taken])
        cells._texts, cells._samples = self._texts, self._samples
        return cells

    def where(self, rows: pl.Series) -> "ColumnCells":
        """Return the columns with only these rows."""
        return ColumnCells(self._frame.filter(rows), self.headers)

    def text(self, header: str) -> pl.Series:
        """Return a column as text without surrounding blanks; null if it is blank."""
        if header not in self._texts and self.row_count <= SAMPLE_ROWS:
            # All columns together: for few rows, calling polars takes longer than the work itself.
            stripped = pl.col(pl.String).str.strip_chars().replace("", None)
            self._texts.update({column.name: column for column in self._frame.select(stripped)})
        if header not in self._texts:
            self._texts[header] = _text(self._frame[header])
        return self._texts[header]

    def sample(self, header: str) -> pl.Series:
        """Return the first filled cells of a column."""
        if header not in self._samples:
            filled = _filled(self._first.text(header))
            self._samples[header] = filled if len(filled) else _filled(self.text(header)).head(SAMPLE_ROWS)
        return self._samples[header]

    def is_filled(self, header: str) -> bool:
        """True if any row has a value in this column."""
        return len(self.sample(header)) > 0

    def are(self, header: str, look: str, *, without: str = "") -> bool:
        """True if all cells in a column's sample match this pattern once these characters are removed."""
        sample = self.sample(header)
        sample = sample.str.replace_all(without, "") if without else sample
        return len(sample) > 0 and bool(sample.str.contains(look).all())

    def first_values(self, header: str) -> tuple[str, ...]:
        """Return the first distinct values of a column, at most three."""
        return tuple(islice(dict.fromkeys(self.sample(header)), VALUES_SHOWN))

    def joined(self, headers: Sequence[str]) -> pl.Series:
        """Return the cells of some columns joined with blanks, row by row; null if all are empty."""
        if len(headers) == 1:
            return self.text(headers[0])
        parts = pl.select(
            pl.concat_str([self.text(header) for header in headers], separator=" ", ignore_nulls=True)
        )
        return _text(parts.to_series())

    def joined_values(self, headers: Sequence[str]) -> tuple[str, ...]:
        """Return the first distinct joined values of some columns, at most three."""
        return tuple(self.joined(headers).drop_nulls().unique(maintain_order=True).head(VALUES_SHOWN))

    def first_filled(self, sources: Sequence[Sequence[str]]) -> pl.Series:
        """Return the first filled value of these columns, row by row."""
        return pl.select(pl.coalesce(self.joined(headers) for headers in sources)).to_series()

    def differ(self, one: Sequence[str], other: Sequence[str]) -> bool:
        """True if any row has different values in these columns, ignoring case, blanks and punctuation."""
        first, second = self.joined(one), self.joined(other)
        unlike = (first != second).arg_true()
        # Most pairs of columns differ early or never, so only unequal rows are examined further.
        for rows in (unlike.head(SAMPLE_ROWS), unlike.slice(SAMPLE_ROWS)):
            if (comparable(first.gather(rows)) != comparable(second.gather(rows))).any():
                return True
        return False

    def share_words(self, one: Sequence[str], other: Sequence[str], *, share: float = 1) -> bool:
        """True if both share a word in this share of the rows, as two forms of a name do."""
        words = [
            self.joined(headers).str.to_lowercase().str.extract_all(_LONG_WORD).alias(side)
            for side, headers in (("one", one), ("other", other))
        ]
        common = pl.col("one").list.set_intersection("other").list.len()
        shared = pl.DataFrame(words).drop_nulls().select(common > 0).to_series()
        return int(shared.sum()) >= share * len(shared)

    def is_constant(self, headers: Sequence[str]) -> bool:
        """True if all rows, at least two, have the same values in these columns."""
        # Most columns vary early, and the other rows are then skipped.
        return self.row_count > 1 and all(_is_one(cells.joined(headers)) for cells in (self._first, self))

    def varies(self, headers: Sequence[str]) -> bool:
        """True if two rows differ in these columns."""
        return any(_are_several(cells.joined(headers)) for cells in (self._first, self))

    @cached_property
    def _first(self) -> "ColumnCells":
        """The first rows; all of them in a small file."""
        if self.row_count <= SAMPLE_ROWS:
            return self
        return ColumnCells(self._frame.head(SAMPLE_ROWS), self.headers)


def _is_one(values: pl.Series) -> bool:
    return not values.has_nulls() and bool((values == values[0]).all())


def _are_several(values: pl.Series) -> bool:
    filled = comparable(values.drop_nulls())
    return len(filled) > 1 and bool((filled != filled[0]).any())


def comparable(texts: pl.Series) -> pl.Series:
    """Remove differences in how people write: case, blanks, punctuation."""
    return texts.str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]", "")


def _filled(texts: pl.Series) -> pl.Series:
    return texts.drop_nulls() if texts.null_count() else texts


def _text(column: pl.Series) -> pl.Series:
    if column.dtype.is_nested() or column.dtype in (pl.Null, pl.Binary, pl.Duration, pl.Object):
        # Neither names nor accounts; if the user maps such a column, reading it adds a warning.
        return (
            pl.Series([None], dtype=pl.String).new_from_index(0, len(column))
            if column.null_count() == len(column)
            else column.is_not_null().cast(pl.String)
        )
    stripped = (column if column.dtype == pl.String else column.cast(pl.String)).str.strip_chars()
    return stripped.set(stripped == "", None)
