"""The independent count."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from pipeline.errors import InputError
from pipeline.files.expansion import RECORD_BYTES_MAX
from pipeline.formats.csv.tally import BLOCK_BYTES, Body, CsvTally, long_line_at, tally
from pipeline.wording import Sentence


def count(body, column_count=2, delimiter=",", block_bytes=BLOCK_BYTES):
    body = Body(b"x\n" + body + b"\n", 2, 2 + len(body), block_bytes)
    return tally(body, delimiter=delimiter, column_count=column_count, where="f.csv", line_first=2)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"a,b", CsvTally(1, 2, regular=True)),
        (b"a,b\nc,dd", CsvTally(2, 5, regular=True)),
        (b"a,b\r\nc,d", CsvTally(2, 4, regular=True)),
        (b"a,b\r\nc,d\ne,f", CsvTally(3, 6, regular=True)),
        (b'"a,a","b\nb"\n"",d', CsvTally(2, 7, regular=True)),
        (b'"a""a",b', CsvTally(1, 4, regular=True)),
        (b'"""",b', CsvTally(1, 2, regular=True)),
        (b'"a,""b,",c', CsvTally(1, 6, regular=True)),
        (b"a,b\n\nc,d", CsvTally(3, 4, regular=False)),
        (b"a,b\nc", CsvTally(2, 3, regular=False)),
        (b"a,b\nc,d,e", CsvTally(2, 5, regular=False)),
        (b"a,b\rc,d", CsvTally(2, 4, regular=False)),
        (b"a,b\r\rc,d", CsvTally(3, 4, regular=False)),
        (b'a,b\r"c"\n', CsvTally(3, 3, regular=False)),
        (b'5" pipe,b\nc,d', CsvTally(2, 10, regular=False)),
        (b'5" pipe,"b,""\n"\nc,d', CsvTally(2, 13, regular=False)),
        (b'"a\rb",c', CsvTally(1, 4, regular=False)),
        (b' "a",b', CsvTally(1, 5, regular=False)),
    ],
)  # fmt: skip
def test_rows_and_text_are_counted_by_the_rules_of_the_format(body, expected):
    assert count(body) == expected


def test_the_delimiter_alone_separates():
    assert count(b"a,1;b\nc;d", delimiter=";") == CsvTally(2, 6, regular=True)
    assert count(b"a|b", delimiter="|") == CsvTally(1, 2, regular=True)
    assert count(b"a\tb", delimiter="\t") == CsvTally(1, 2, regular=True)


@pytest.mark.parametrize(
    ("body", "line"),
    [(b'a,b\n"c,d\ne,f', 3), (b'"a"x,b', 2), (b'a,b\r\n\r\n"', 4), (b'a,"b""', 2), (b'a,b\r"c" ,d', 3)],
)
def test_a_quote_that_does_not_close_is_refused_with_its_line(body, line):
    with refused(InputError, "csv.quoted_cell_malformed", where="f.csv", line=line):
        count(body)


def test_a_line_may_be_as_long_as_the_limit_and_no_longer():
    fits = b"x" * RECORD_BYTES_MAX
    assert long_line_at(fits + b"\n" + fits) is None
    assert long_line_at(b"a\nb\n" + fits + b"x") == 4


def test_lines_that_end_in_cr_are_lines():
    assert long_line_at(b"x" * 60_000 + b"\r" + b"x" * 60_000) is None


CELLS = st.text(st.sampled_from('ab",\n;'), max_size=6) | st.just("a\r\nb")


@given(
    rows=st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=8),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    line_end=st.sampled_from(["\n", "\r\n"]),
    block_bytes=st.integers(0, 12),
)
def test_wherever_the_text_is_cut_the_count_is_that_of_what_was_written(rows, quoting, line_end, block_bytes):
    text = io.StringIO(newline="")
    csv.writer(text, quoting=quoting, lineterminator=line_end).writerows(rows)
    body = text.getvalue().encode().removesuffix(line_end.encode())
    text_byte_count = sum(len(cell) for row in rows for cell in row)
    assert count(body, block_bytes=block_bytes) == CsvTally(len(rows), text_byte_count, regular=True)


@given(body=st.lists(st.sampled_from([b"a", b'"', b",", b"\n"]), min_size=1, max_size=14).map(b"".join))
def test_any_text_is_counted_alike_wherever_it_is_cut(body):
    seen = set()
    for block_bytes in (0, 1, 3, 7, 262_144):
        try:
            seen.add(count(body, block_bytes=block_bytes))
        except InputError as refusal:
            seen.add(str(refusal))
    assert len(seen) == 1


@pytest.mark.parametrize("rows_before", [0, 3, 20_000])
def test_a_row_of_many_lines_is_refused_before_it_is_parsed(rows_before):
    row = b'x,"' + b"many\nlines\n" * 100_000 + b'"\n'
    body = b"a,b\n" * rows_before + row + b"a,b\n" * 20_000
    with refused(
        InputError,
        Sentence("csv.row_too_long", record_bytes_max=65536),
        Sentence("places.rows", rows=[str(rows_before + 1)]),
    ):
        count(body)


def test_many_rows_in_quotes_are_no_long_row():
    body = b'"a\n","b"\n' * 100_000
    assert count(body.removesuffix(b"\n")).row_count == 100_000
