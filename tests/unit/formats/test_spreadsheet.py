"""CSV that no spreadsheet runs."""

import csv
import io

import polars as pl
import pytest
from tables import for_each

from pipeline.reports import safe_csv as spreadsheet

SIGNS = ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
BEFORE = ["", " ", "\t", "\n", "\r", "\u00a0", "\u200b", "\ufeff", "\u202e", "\0", " \t "]


def cells_of(table, delimiter=","):
    file = io.BytesIO()
    spreadsheet.write(table, file, delimiter=delimiter)
    text = file.getvalue().decode("utf-8")
    assert text.startswith("\ufeff"), "spreadsheets know UTF-8 by its mark"
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=delimiter))


@for_each("before", BEFORE)
@for_each("sign", SIGNS)
def test_a_cell_that_would_run_gets_an_apostrophe(before, sign):
    cell = f"{before}{sign}1+1"
    assert cells_of(pl.DataFrame({"name": [cell]})) == [["name"], [f"'{cell}"]]


@pytest.mark.parametrize("cell", ["\tx", "\rx", "\nx", "\0x"])
def test_a_cell_that_starts_with_a_control_character_gets_an_apostrophe(cell):
    assert cells_of(pl.DataFrame({"name": [cell]}))[1] == [f"'{cell}"]


@pytest.mark.parametrize("cell", ["Quillon-Marrow", "a=b", " x", "001122", "", "1.50", "'=1", "\u00d8stby"])
def test_other_cells_are_left_alone(cell):
    assert cells_of(pl.DataFrame({"name": [cell]}))[1] == [cell]


def test_headers_are_escaped_too():
    assert cells_of(pl.DataFrame({"=1+1": ["a"]})) == [["'=1+1"], ["a"]]


def test_every_cell_is_quoted_so_that_no_other_delimiter_opens_a_cell():
    file = io.BytesIO()
    spreadsheet.write(pl.DataFrame({"name": ["x;=1+1"], "age": [3]}), file, delimiter=",")
    assert file.getvalue().splitlines()[1] == b'"x;=1+1","3"'


def test_a_table_without_rows_is_a_header_line():
    assert cells_of(pl.DataFrame({"name": [], "age": []})) == [["name", "age"]]
