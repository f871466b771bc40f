"""Edits to a file's bytes; all other bytes are unchanged."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from mmap import mmap
from typing import NamedTuple

import polars as pl

Bytes = bytes | mmap  # the bytes of a file, in memory or memory-mapped

_BLOCK_BYTES = 1024**2


class Edit(NamedTuple):
    """Replace the bytes from `start` up to `end` by `text`; an empty text deletes them."""

    start: int
    end: int
    text: bytes


def in_order(edits: Iterable[Edit]) -> list[Edit]:
    """Sort edits in file order; overlapping edits are a bug in the caller."""
    ordered = sorted(edits, key=lambda edit: edit[:2])  # insertions at one place keep their order
    assert all(edit.start <= edit.end for edit in ordered), "an edit ends before it starts"
    assert all(a.end <= b.start for a, b in pairwise(ordered)), "two edits overlap"
    return ordered


def removals(pieces: pl.DataFrame) -> list[Edit]:
    """Return edits that remove these pieces, given in file order; one edit removes adjacent pieces."""
    begins = (pl.col("start") != pl.col("end").shift(1)).fill_null(value=True)
    runs = pieces.group_by(begins.cum_sum().alias("run"), maintain_order=True).agg(
        pl.col("start").first(), pl.col("end").last()
    )
    return [Edit(start, end, b"") for start, end in runs.select("start", "end").iter_rows()]


def edited(data: Bytes, edits: Iterable[Edit]) -> Iterator[bytes | memoryview]:
    """Yield the bytes of the changed file in pieces; unchanged bytes are not copied.

    >>> b"".join(edited(b"seven payments", [Edit(0, 5, b"two")]))
    b'two payments'
    """
    position = 0
    with memoryview(data) as view:
        for edit in in_order(edits):
            yield view[position : edit.start]
            yield edit.text
            position = edit.end
        yield view[position:]


def require_undone(changed: Bytes, data: Bytes, edits: Sequence[Edit]) -> None:
    """Assert that a written file is the original with just these edits.

    Raises AssertionError: it is not; the file must not get its final name.
    """
    position = written = 0
    for start, end, text in (*in_order(edits), Edit(len(data), len(data), b"")):
        for kept in range(position, start, _BLOCK_BYTES):
            block = data[kept : min(kept + _BLOCK_BYTES, start)]
            if changed[written : written + len(block)] != block:
                raise AssertionError("the changed file differs from its original in more than was to change")
            written += len(block)
        if changed[written : written + len(text)] != text:
            raise AssertionError("the changed file does not hold what was to be changed in it")
        position, written = end, written + len(text)
    if written != len(changed):
        raise AssertionError("the changed file is not as long as its changes make it")
