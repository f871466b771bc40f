"""Where rows stand in their file, as lines and as sheet rows."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.formats import csv as delimited
from pipeline.formats.table import ReadingOptions
from pipeline.rules.row_positions import STRETCHES_MAX, lines_of, position_texts
from schemas.row_positions import RowPositions


@given(st.lists(st.integers(1, 3), min_size=1, max_size=30), st.integers(2, 21))
def test_the_place_of_a_row_is_the_sum_of_the_lines_above_it(heights, first):
    places = lines_of(pl.Series(heights), first=first)
    rows = range(1, len(heights) + 1)
    lines = [first + sum(heights[: row - 1]) for row in rows]
    assert [places.of(row) for row in rows] == lines
    texts = position_texts(pl.Series(rows, dtype=pl.UInt32).reverse(), places)
    assert texts.to_list() == [f"line {line}" for line in reversed(lines)]


def test_rows_of_one_height_take_one_stretch():
    assert lines_of(pl.Series([2] * 1000), first=2).stretches == [(1, 2, 2)]


def test_a_file_of_too_many_stretches_has_no_places():
    assert lines_of(pl.Series([1, 2] * (STRETCHES_MAX // 2 + 1)), first=2) is None


def test_a_file_without_lines_has_no_places():
    assert position_texts(pl.Series([1, 2]), None).to_list() == [None, None]


@given(
    st.lists(st.tuples(*[st.text('ab,"\r\n ', max_size=4)] * 2), min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "Title\n\n", '"Title\nof two lines"\n']),
)
def test_the_line_of_a_row_is_the_one_that_an_editor_shows(cells, end, title):
    rows = [*cells, ("z", "z")]
    text = f"{title}name,iban{end}"
    lines = []
    for row in rows:
        # Every line end of a quoted cell is one to an editor too.
        lines.append(len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n")))
        text += ",".join('"{}"'.format(cell.replace('"', '""')) for cell in row) + end
    table = delimited.read(text.encode(), ReadingOptions({}), where="f.csv")
    assert [table.positions.of(row) for row in range(1, len(rows) + 1)] == lines


def test_places_are_told_once_for_all_regular_rows():
    text = "name,iban\n" + 'a,"b, c"\n' * 1000
    table = delimited.read(text.encode(), ReadingOptions({}), where="f.csv")
    assert table.positions == RowPositions(unit="line", stretches=[(1, 2, 1)])


@pytest.mark.parametrize(("row", "line"), [(1, 2), (2, 4), (3, 6), (4, 7)])
def test_the_place_is_found_within_its_stretch(row, line):
    assert RowPositions(unit="line", stretches=[(1, 2, 2), (3, 6, 1)]).of(row) == line
