"""Columns that are packed whole arrive as they were, whatever is in them."""

import psycopg
import pytest
from postgres import RUNNER

from pipeline.stores.postgres.arrays import Array, ArrayDumper, bigints, blobs, blobs_or_none, ints, texts

COLUMNS = {
    "integer": (ints, [0, 1, -1, 2**31 - 1, -(2**31)]),
    "bigint": (bigints, [0, -1, 2**63 - 1]),
    "ASCII, equally long": (texts, ["MTCH", "NMTC"]),
    "text of any length": (texts, ["", "a", "Zoë Łuk 李", "x" * 300]),
    "not ASCII, equally long": (texts, ["ö" * 4, "abcd"]),
    "long, equally long": (texts, ["x" * 128, "y" * 128]),
    "bytea, equally long": (blobs, [bytes(16), b"\xff" * 16]),
    "bytea of any length": (blobs, [b"", b"a", bytes(300)]),
    "bytea, some missing": (blobs_or_none, [None, b"", b"a"]),
    "bytea, all missing": (blobs_or_none, [None, None]),
    **{f"no {pack.__name__}": (pack, []) for pack in (ints, bigints, texts, blobs, blobs_or_none)},
}


@pytest.mark.parametrize("what", COLUMNS)
def test_a_column_arrives_as_it_was(postgres, what):
    pack, values = COLUMNS[what]
    with psycopg.connect(postgres.url("postgres", RUNNER)) as db:
        db.adapters.register_dumper(Array, ArrayDumper)
        assert db.cursor(binary=True).execute("SELECT %b", [pack(values)]).fetchone() == (values,)
