"""A changed copy of a file: its bytes, with a few pieces taken out or put in the place of others."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polars as pl


class Edit(NamedTuple):
    """Put a text in the place of the bytes from `start` up to `end`."""

    start: int
    end: int
    text: bytes


def edited(data: bytes, edits: Sequence[Edit]) -> bytes:
    """The file with its edits.

    Args:
        data: The bytes of the file.
        edits: By their start; none touches another's bytes.

    Raises:
        AssertionError: undone, the edits would not give the file again.
    """
    copy = b"".join(_pieces(data, edits))
    _assert_undone(data, edits, copy)
    return copy


def removals(spans: pl.DataFrame) -> list[Edit]:
    """Edits that take these bytes out; neighbours go together.

    Args:
        spans: `start` and `end`, by their start, none within another.
    """
    begins = (pl.col("start") != pl.col("end").shift(1)).fill_null(value=True)
    runs = spans.group_by(begins.cum_sum(), maintain_order=True).agg(
        pl.col("start").first().alias("from"), pl.col("end").last().alias("until")
    )
    return [Edit(start, end, b"") for start, end in runs.select("from", "until").iter_rows()]


def _pieces(data: bytes, edits: Sequence[Edit]) -> Iterator[memoryview | bytes]:
    view = memoryview(data)
    position = 0
    for edit in edits:
        assert position <= edit.start <= edit.end <= len(data), "edits are in order and apart"
        yield view[position : edit.start]
        yield edit.text
        position = edit.end
    yield view[position:]


def _assert_undone(data: bytes, edits: Sequence[Edit], copy: bytes) -> None:
    """Assert that the copy is the file everywhere but where it was edited."""
    old, new = memoryview(data), memoryview(copy)
    read = written = 0
    for edit in edits:
        length = edit.start - read
        assert old[read : edit.start] == new[written : written + length]
        written += length
        assert new[written : written + len(edit.text)] == edit.text
        written += len(edit.text)
        read = edit.end
    assert old[read:] == new[written:]
