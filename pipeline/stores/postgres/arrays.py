"""Columns of lines as binary arrays of PostgreSQL; psycopg, value by value, takes several times as long."""

from collections.abc import Sequence
from struct import Struct, pack
from typing import NamedTuple

from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format

_HEAD = Struct("!iiIii").pack  # dimensions, whether there may be nulls, type, count, first index
_SIZE, _BIGINT = Struct("!i").pack, Struct("!q").pack
_NULL = _SIZE(-1)
_ASCII_COUNT = 128


class Array(NamedTuple):
    """An array, as its type and its bytes."""

    type: int
    packed: bytes


class ArrayDumper(Dumper):
    """Passes an `Array` to the server."""

    format = Format.BINARY

    def get_key(self, obj: Array, format: object) -> tuple[type, int]:  # type: ignore[override] # noqa: A002, ARG002
        """Return what arrays of one type have in common."""
        return Array, obj.type

    def upgrade(self, obj: Array, format: object) -> Dumper:  # noqa: A002, ARG002
        """Return a dumper for arrays of the same type."""
        dumper = type(self)(Array)
        dumper.oid = obj.type
        return dumper

    def dump(self, obj: Array) -> Buffer:
        """Return the bytes."""
        return obj.packed


def ints(values: Sequence[int]) -> Array:
    """Return a column of integer."""
    count = len(values)
    packed, body = pack(f"!{count}i", *values), bytearray(_SIZE(4) * 2 * count)
    for place in range(4):
        body[place + 4 :: 8] = packed[place::4]
    return _array(1007, 23, count, bytes(body))


def bigints(values: Sequence[int]) -> Array:
    """Return a column of bigint."""
    return _array(1016, 20, len(values), b"".join(_SIZE(8) + _BIGINT(value) for value in values))


def texts(values: Sequence[str]) -> Array:
    """Return a column of text."""
    sizes = set(map(len, values))
    if len(sizes) == 1 and (size := sizes.pop()) < _ASCII_COUNT:
        head = "\0\0\0" + chr(size)
        body = head + head.join(values)
        if body.isascii():  # all at once
            return _array(1009, 25, len(values), body.encode())
    return _array(1009, 25, len(values), _sized([*map(str.encode, values)]))


def blobs(values: Sequence[bytes]) -> Array:
    """Return a column of bytea."""
    sizes = set(map(len, values))
    head = _SIZE(sizes.pop()) if len(sizes) == 1 else None
    body = _sized(values) if head is None else head + head.join(values)
    return _array(1001, 17, len(values), body)


def blobs_or_none(values: Sequence[bytes | None]) -> Array:
    """Return a column of bytea, where values may be missing."""
    return _array(1001, 17, len(values), _sized(values))


def _sized(values: Sequence[bytes | None]) -> bytes:
    return b"".join([_NULL if value is None else _SIZE(len(value)) + value for value in values])


def _array(oid: int, of: int, count: int, body: bytes) -> Array:
    return Array(oid, _HEAD(1, 1, of, count, 1) + body)
