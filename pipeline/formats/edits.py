"""Edits of a file's bytes: everything outside an edit stays, byte for byte."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from mmap import mmap
from typing import NamedTuple

Bytes = bytes | mmap
"""The bytes of a file, in memory or mapped into it."""

_BLOCK_BYTES = 1024**2


class Edit(NamedTuple):
    """Replace the bytes from `start` up to `end` by `text`; an empty text deletes them."""

    start: int
    end: int
    text: bytes


def in_order(edits: Iterable[Edit]) -> list[Edit]:
    """Edits as they follow one another in the file; two that overlap are a mistake of the caller."""
    ordered = sorted(
        edits, key=lambda edit: (edit.start, edit.end)
    )  # of insertions at one place, as they come
    assert all(edit.start <= edit.end for edit in ordered), "an edit ends before it starts"
    assert all(a.end <= b.start for a, b in pairwise(ordered)), "two edits overlap"
    return ordered


def edited(data: Bytes, edits: Iterable[Edit]) -> Iterator[bytes | memoryview]:
    """The bytes of the changed file, piece by piece; what stays is not copied.

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
    """Compare what was written with what it was made of, and with the edits.

    Raises:
        AssertionError: it holds something else, so that it must not get its name.
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
