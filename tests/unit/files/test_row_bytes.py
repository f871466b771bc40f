"""How many bytes the rows of a batch take."""

import pyarrow as pa
import pytest

from pipeline.files.row_bytes import row_bytes

TEXTS = ["Zo\u00eb", None, ""]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(TEXTS), [4, 0, 0]),
        (pa.array(TEXTS, pa.large_string()), [4, 0, 0]),
        (pa.array(TEXTS, pa.string_view()), [4, 0, 0]),
        (pa.array(TEXTS).dictionary_encode(), [4, 0, 0]),
        (pa.array([b"abc", None, b""]), [3, 0, 0]),
        (pa.array([b"abc", None, b"def"], pa.binary(3)), [3, 3, 3]),
        (pa.array([1, None, 3], pa.int32()), [4, 4, 4]),
        (pa.array([True, None, False]), [1, 1, 1]),
        (pa.nulls(3), [0, 0, 0]),
        (pa.array([None, 1, 2]).cast(pa.decimal128(38, 2)), [16, 16, 16]),
        (pa.array([["ab", "c"], None, []]), [5, 0, 0]),  # one more for each item
        (pa.array([[None, None], None, []], pa.list_(pa.null())), [2, 0, 0]),
        (pa.array([["ab", "c"], None, []], pa.large_list(pa.string())), [5, 0, 0]),
        (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int16(), 2)), [6, 0, 6]),
        (pa.array([{"a": "xy", "b": "z"}, None, {"a": None, "b": ""}]), [3, 0, 0]),
        (pa.array([[("a", "xy")], None, []], pa.map_(pa.string(), pa.string())), [4, 0, 0]),
        (pa.array([[["ab"], []], None, [["c"]]]), [5, 0, 3]),
    ],
)
def test_a_cell_counts_by_what_is_in_it(column, expected):
    batch = pa.record_batch({"cells": column})
    assert row_bytes(batch).to_pylist() == expected
    assert row_bytes(batch.slice(1)).to_pylist() == expected[1:]


def test_a_row_is_all_of_its_cells():
    batch = pa.record_batch({"name": pa.array(TEXTS), "note": pa.array(["x", "yy", None])})
    assert row_bytes(batch).to_pylist() == [5, 2, 0]
    assert row_bytes(pa.record_batch({"name": pa.array([], pa.string())})).to_pylist() == []
