"""Any cells survive the way in and the way out, whichever road they take."""

import tempfile
from pathlib import Path

import polars as pl
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from pipeline.formats import csv as delimited
from pipeline.formats.table import ReadingOptions
from pipeline.frames import OUTCOMES
from pipeline.headers.columns import recognised
from pipeline.stages.read import read
from pipeline.stages.write import write
from schemas.outcomes import COLUMNS

TROUBLE = st.text(st.sampled_from("\"',;|\t\r\n \0=a0\u00e9\u200b\ufeff\u2028\U0001f600"), max_size=8)
CELLS = TROUBLE | st.text(max_size=12)
DELIMITERS = st.sampled_from([",", ";", "|", "\t"])
LINE_ENDS = st.sampled_from(["\n", "\r\n"])
HEADERS = ["name", "iban", "Note"]


def names_columns(row):
    """Whether a row is headers again, as a table may have below its headers: it is read as no payment."""
    return sum(bool(recognised([cell], {})) for cell in row) >= 2


@st.composite
def tables(draw):
    """Rows of three cells; the last is not blank, so that its line does not end the file."""
    payments = st.tuples(CELLS, CELLS, CELLS).filter(lambda row: not names_columns(row))
    rows = draw(st.lists(payments, min_size=1, max_size=6))
    return [*rows, ("z", "z", "z")]


def csv_of(rows, delimiter=",", line_end="\n", quote_all=False):
    """CSV by hand: the csv module leaves a CR unquoted where the line end is LF."""

    def written(cell):
        special = quote_all or any(character in cell for character in f'{delimiter}"\r\n')
        return '"' + cell.replace('"', '""') + '"' if special else cell

    return "".join(delimiter.join(map(written, row)) + line_end for row in [HEADERS, *rows]).encode()


def cells_of(data):
    table = delimited.read(data, ReadingOptions({}), where="f.csv")
    return [tuple(cell or "" for cell in row) for row in table.cells.rows()], table


@examples(400)
@given(rows=tables(), delimiter=DELIMITERS, line_end=LINE_ENDS, quote_all=st.booleans())
def test_any_cells_written_as_csv_are_read_as_the_same_cells(rows, delimiter, line_end, quote_all):
    cells, table = cells_of(csv_of(rows, delimiter, line_end, quote_all))
    assert cells == rows
    assert table.defects.null_count() == len(rows)


@examples(200)
@given(rows=tables(), delimiter=DELIMITERS, quote_all=st.booleans())
def test_the_fast_and_the_careful_road_agree(rows, delimiter, quote_all):
    data = csv_of(rows, delimiter, "\n", quote_all)
    # One blank line makes the file irregular, and sends it down the careful road.
    fast, careful = cells_of(data)[0], cells_of(data + b"\n" + b"z" + delimiter.encode())[0]
    assert careful == [*fast, ("", "", ""), ("z", "", "")]


@examples(200)
@given(rows=st.lists(st.lists(TROUBLE, max_size=5), min_size=1, max_size=6), line_end=LINE_ENDS)
def test_ragged_rows_lose_no_cell(rows, line_end):
    rows = [*rows, ["z"]]
    cells, table = cells_of(csv_of(rows, line_end=line_end))
    kept = [without_empty_end(row) for row in rows]
    assert [without_empty_end(row) for row in cells] == kept
    assert [defect is None for defect in table.defects] == [len(row) <= 3 for row in kept]


def without_empty_end(row):
    """The cells up to the last that is not empty: more of them, or fewer, say nothing."""
    while row and not row[-1]:
        row = row[:-1]
    return tuple(row)


@examples(50)
@given(rows=tables(), delimiter=DELIMITERS)
def test_what_is_read_and_written_is_read_again_as_the_same(rows, delimiter):
    require_kept(rows, delimiter, "csv")


@examples(50)  # a child process parses each Parquet file
@given(rows=tables(), delimiter=DELIMITERS)
def test_what_is_read_and_written_as_parquet_is_read_again_as_the_same(rows, delimiter):
    require_kept(rows, delimiter, "parquet")


def require_kept(rows, delimiter, format_name):
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "f.csv")
        path.write_bytes(csv_of(rows, delimiter))
        source = read(path, mapping={})
        outcomes = pl.DataFrame(
            {
                "row": source.payments["row"],
                **dict.fromkeys(COLUMNS, ["x"] * len(rows)),
                "check_outcome": ["match"] * len(rows),
                "check_action": ["pay"] * len(rows),
                "check_api": ["cop"] * len(rows),
                "check_environment": ["sandbox"] * len(rows),
                "check_attempts": [1] * len(rows),
            },
            schema=OUTCOMES,
        )
        written = write(
            source.original, outcomes, Path(name), format_name=format_name, dialect=source.dialect
        )
        again = read(written.path, mapping={})
    assert again.original.equals(source.original)
    assert again.payments.equals(source.payments)
    assert [tuple(cell or "" for cell in row) for row in again.original.rows()] == rows
