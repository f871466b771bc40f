"""Files in every bank layout: read as they were made, split rightly, damaged in any byte."""

from contextlib import suppress

import polars as pl
import pytest
from bank_files import MAKERS, WRITABLE, Payee, bank_file
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.formats.edits import edited
from pipeline.formats.layouts import layout_formats
from pipeline.formats.table import ReadingOptions

FORMATS = layout_formats({})
DIGITS = "0123456789"
PAYEES = st.lists(
    st.builds(
        Payee,
        name=st.sampled_from(["ADA QUILLON", "Z MARROW & SONS", "TEASEL GARDENS LTD"]),
        sort_code=st.text(DIGITS, min_size=6, max_size=6),
        account=st.text(DIGITS, min_size=8, max_size=8),
        amount=st.integers(0, 10**9).map(lambda pence: f"{pence // 100}.{pence % 100:02d}"),
        reference=st.sampled_from(["INVOICE 1", "PAY/2", "X"]),
    ),
    min_size=1,
    max_size=8,
)
LINE_ENDS = st.sampled_from(["\r\n", "\n"])


def recognised(data):
    return [name for name, each in FORMATS.items() if each.sniff(data)]


def read(layout, data):
    return FORMATS[layout].read(data, ReadingOptions({}), where="pay.csv")


def changed(data, edits):
    return b"".join(edited(data, edits))


def rows_of(message):
    return message.payments.with_columns(defect=message.defects).rows()


@pytest.mark.parametrize("layout", MAKERS)
@examples(20, by_day=5)
@given(PAYEES, LINE_ENDS)
def test_what_was_made_is_recognised_and_read(layout, payees, line_end):
    data = bank_file(layout, payees, line_end=line_end)
    assert recognised(data) == [layout]
    message = read(layout, data)
    plain = message.payments.with_columns(pl.col("sort_code").str.replace_all("-", ""))
    assert plain.select("name", "sort_code", "account_number", "amount").rows() == [
        (each.name, each.sort_code, each.account, each.amount) for each in payees
    ]
    assert message.difference is None
    assert message.set_aside.is_empty()


@pytest.mark.parametrize("layout", WRITABLE)
@examples(20, by_day=5)
@given(PAYEES, LINE_ENDS, st.data())
def test_a_split_gives_two_files_whose_totals_are_right_and_loses_no_payment(
    layout, payees, line_end, chance
):
    data = bank_file(layout, payees, line_end=line_end)
    message = read(layout, data)
    flags = chance.draw(st.lists(st.booleans(), min_size=len(payees), max_size=len(payees)))
    keep = pl.Series(flags, dtype=pl.Boolean)
    found = 0
    for mine, role in ((keep, "release"), (~keep, "hold")):
        if mine.any():
            copy = changed(data, FORMATS[layout].kept(data, message, mine, role))
            again = read(layout, copy)
            assert again.difference is None
            assert again.payments.equals(message.payments.filter(mine))
            lines, copied = (
                [text[start:end] for start, end in each.locations.select("start", "end").iter_rows()]
                for text, each in ((data, message), (copy, again))
            )
            assert copied == [line for line, is_mine in zip(lines, mine, strict=True) if is_mine]
            assert recognised(copy) == [layout]
            found += again.payments.height
    assert found == len(payees)


@pytest.mark.parametrize("layout", WRITABLE)
@examples(20, by_day=5)
@given(PAYEES, st.text("ABCabc &,\"'.-", min_size=1), st.data())
def test_a_name_changes_its_own_row_only(layout, payees, name, chance):
    fmt = FORMATS[layout]
    text = fmt.fitted(name)
    if not text:
        return
    data = bank_file(layout, payees)
    message = read(layout, data)
    row = chance.draw(st.integers(1, len(payees)))
    again = read(layout, changed(data, fmt.renamed(data, message, {row: name})))
    names = message.payments["name"].to_list()
    names[row - 1] = text
    assert again.payments["name"].to_list() == names
    assert again.payments.drop("name").equals(message.payments.drop("name"))
    assert again.difference is None


@pytest.mark.parametrize("layout", MAKERS)
@examples(40, by_day=5)
@given(PAYEES, st.data())
def test_a_changed_byte_is_refused_or_told_or_changes_its_own_row_only(layout, payees, chance):
    data = bank_file(layout, payees)
    before = read(layout, data)
    at = chance.draw(st.integers(0, len(data) - 1))
    value = chance.draw(st.integers(0, 255).filter(lambda byte: byte != data[at]))
    try:
        after = read(layout, data[:at] + bytes([value]) + data[at + 1 :])
    except InputError:
        return
    spans = before.locations.select("start", "end").rows()
    owner = [row for row, (start, end) in enumerate(spans) if start <= at < end]
    if after.payments.height == before.payments.height:
        pairs = zip(rows_of(before), rows_of(after), strict=True)
        assert [row for row, (old, new) in enumerate(pairs) if old != new] in ([], owner)
    else:
        # A line became two, or two became one, or one is a payment no more: every other row is as it was.
        own = {*owner, *(row + 1 for row in owner)}
        others = [row for number, row in enumerate(rows_of(before)) if number not in own]
        assert set(others) <= set(rows_of(after))


@examples(150)
@given(
    st.sampled_from(sorted(MAKERS)),
    st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=6)), max_size=5),
    st.sampled_from([None, "utf-8", "cp1252", "latin-1"]),
)
def test_any_bytes_are_read_or_refused_in_a_sentence(layout, changes, encoding):
    data = bank_file(layout)
    for anywhere, text in changes:
        at = anywhere % (len(data) + 1)
        data = data[:at] + text + data[at + len(text) // 2 :]
    for fmt in FORMATS.values():
        fmt.sniff(data)
    with suppress(InputError):
        message = FORMATS[layout].read(data, ReadingOptions({}, encoding), where="pay.csv")
        assert message.payments.height == message.locations.height == message.defects.len()
        assert message.locations["start"].is_sorted()
