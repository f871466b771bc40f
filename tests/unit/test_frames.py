"""What frames are made of."""

import polars as pl
import pytest

from pipeline.frames import ACCEPTED, slim

FRAME = pl.concat(
    [
        pl.DataFrame({"row": [1, 2], "name": ["Ada Quillon", None], "bic": [None, None]}),
        pl.DataFrame({"row": [3], "name": ["Bo Marrow of a longer name"], "bic": [None]}),
    ]
).cast({"bic": pl.String})


def test_a_slim_frame_is_the_same_in_one_piece():
    slimmed = slim(FRAME.clone())
    assert slimmed.equals(FRAME)
    assert slimmed.schema == FRAME.schema
    assert {column.n_chunks() for column in slimmed} == {1}


def test_what_was_given_is_emptied_so_that_nothing_is_there_twice():
    given = FRAME.clone()
    slim(given)
    assert given.columns == []


@pytest.mark.parametrize(
    "kind", [pl.Int8, pl.Enum(["a"]), pl.List(pl.Int8), pl.Struct({"a": pl.Int8}), pl.Categorical, pl.Null]
)
def test_a_column_without_values_keeps_its_type(kind):
    frame = pl.DataFrame({"row": [1, 2], "nothing": pl.Series([None, None], dtype=kind)})
    assert slim(frame.clone()).equals(frame)
    assert slim(frame.clone()).schema == frame.schema


def test_a_frame_without_rows_stays_one():
    assert slim(pl.DataFrame(schema=ACCEPTED)).schema == ACCEPTED
    assert slim(pl.DataFrame(schema=ACCEPTED)).height == 0


def test_frames_become_one_and_a_column_without_values_in_all_of_them_a_constant():
    parts = [FRAME.head(1), FRAME.slice(1, 1), FRAME.tail(1)]
    joined = slim(*(part.clone() for part in parts))
    assert joined.equals(FRAME)
    assert {column.n_chunks() for column in joined} == {1}
    assert slim(pl.DataFrame({"bic": [None, None]}), pl.DataFrame({"bic": [None]})).height == 3
