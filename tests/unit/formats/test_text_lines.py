"""The lines of a text stand in the bytes of its file without a gap."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.formats.edits import Edit, edited, removals
from pipeline.formats.text_lines import text_lines

TEXTS = st.text(st.sampled_from("ab\r\né€\u2028"), max_size=40)


@given(TEXTS, st.sampled_from(["utf-8", "cp1252"]), st.integers(1, 50), st.sampled_from([0, 3]))
def test_lines_are_the_file_without_a_gap(text, encoding, block_length, start):
    text = text.replace("\u2028", "" if encoding == "cp1252" else "\u2028")
    data = b"!" * start + text.encode(encoding)
    lines = text_lines(text, start=start, one_byte_each=encoding != "utf-8", block_length=block_length)
    spans = [data[begin:end] for begin, end in lines.select("start", "end").iter_rows()]
    assert b"".join(spans) == data[start:]
    assert [span.decode(encoding).removesuffix("\n").removesuffix("\r") for span in spans] == lines[
        "text"
    ].to_list()
    assert lines["line"].to_list() == list(range(1, lines.height + 1))
    assert all(span.count(b"\n") <= 1 for span in spans)


@given(TEXTS, st.data())
def test_lines_that_are_taken_out_leave_the_others(text, chance):
    data = text.encode()
    lines = text_lines(text)
    gone = [chance.draw(st.booleans()) for _ in range(lines.height)]
    left = lines.filter(pl.Series(gone, dtype=pl.Boolean).not_())
    copy = b"".join(edited(data, removals(lines.filter(pl.Series(gone, dtype=pl.Boolean)))))
    assert copy == b"".join(data[start:end] for start, end in left.select("start", "end").iter_rows())


@pytest.mark.parametrize(
    ("lines", "edits"),
    [([0, 1], [Edit(0, 4, b"")]), ([0, 2], [Edit(0, 2, b""), Edit(4, 6, b"")]), ([], [])],
)
def test_neighbours_go_together(lines, edits):
    assert removals(text_lines("a\nb\nc\n")[lines]) == edits
