"""Standard 18 files of any shape: read as they were made, split rightly, damaged in any byte."""

from contextlib import suppress

import polars as pl
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from standard_18 import any_file

from pipeline.errors import InputError
from pipeline.formats import bacs18
from pipeline.formats.edits import edited
from pipeline.formats.table import ReadingOptions

SEEDS = st.integers(0, 10**9)


def read(data):
    return bacs18.read(data, ReadingOptions({}), where="pay.bac")


def changed(data, edits):
    return b"".join(edited(data, edits))


def lines_of(data, message):
    return [data[start:end] for start, end in message.locations.select("start", "end").iter_rows()]


@examples(60)
@given(SEEDS)
def test_what_was_made_is_what_is_read(seed):
    file = any_file(seed)
    data = file.data()
    message = read(data)
    assert bacs18.sniff(data[:4096])
    assert message.payments.select("sort_code", "account_number", "name", "amount").rows() == [
        (each.sort_code, each.account, each.name, f"{each.pence // 100}.{each.pence % 100:02d}")
        for each in file.payments
    ]
    assert [line.strip(b"\r\n").decode()[:106].rstrip(" ") for line in lines_of(data, message)] == [
        each.record().rstrip(" ") for each in file.payments
    ]
    assert message.difference is None
    assert len(message.controls) >= 4 * file.labels


@examples(60, by_day=10)
@given(SEEDS, st.data())
def test_a_split_gives_two_files_whose_totals_are_right_and_loses_no_payment(seed, chance):
    file = any_file(seed)
    data = file.data()
    message = read(data)
    count = len(file.payments)
    keep = pl.Series(chance.draw(st.lists(st.booleans(), min_size=count, max_size=count)), dtype=pl.Boolean)
    found = []
    for mine, role in ((keep, "release"), (~keep, "hold")):
        if not mine.any():
            continue
        copy = changed(data, bacs18.kept(data, message, mine, role))
        again = read(copy)
        assert again.difference is None
        assert again.payments.equals(message.payments.filter(mine))
        assert len(again.set_aside) == 0
        ends = [line.rstrip(b"\r\n") for line in lines_of(copy, again)]
        assert ends == [
            line.rstrip(b"\r\n")
            for line, is_mine in zip(lines_of(data, message), mine, strict=True)
            if is_mine
        ]
        found += ends
    assert sorted(found) == sorted(line.rstrip(b"\r\n") for line in lines_of(data, message))


@examples(50)
@given(SEEDS)
def test_a_split_that_keeps_everything_changes_nothing(seed):
    data = any_file(seed).data()
    message = read(data)
    everything = pl.Series([True] * message.payments.height)
    assert changed(data, bacs18.kept(data, message, everything, "release")) == data


@examples(60)
@given(SEEDS, st.data())
def test_a_name_changes_its_own_row_only(seed, chance):
    data = any_file(seed).data()
    message = read(data)
    row = chance.draw(st.integers(1, message.payments.height))
    name = chance.draw(st.text("ABCZ &-./09", min_size=1).filter(bacs18.fitted))
    again = read(changed(data, bacs18.renamed(data, message, {row: name})))
    names = message.payments["name"].to_list()
    names[row - 1] = bacs18.fitted(name)
    assert again.payments["name"].to_list() == names
    assert again.payments.drop("name").equals(message.payments.drop("name"))
    assert again.controls.equals(message.controls)


@examples(200)
@given(SEEDS, st.data())
def test_a_changed_byte_is_refused_or_told_or_changes_its_own_row_only(seed, chance):
    data = any_file(seed, count_max=8).data()
    before = read(data)
    at = chance.draw(st.integers(0, len(data) - 1))
    value = chance.draw(st.integers(0, 255).filter(lambda byte: byte != data[at]))
    damaged = data[:at] + bytes([value]) + data[at + 1 :]
    try:
        after = read(damaged)
    except InputError:
        return
    if after.payments.height != before.payments.height:
        # A payment is a payment no more, or a contra is one: it is told.
        is_told = after.set_aside.height + after.differences.len()
        assert is_told
        return
    changed = (
        (before.payments.with_columns(defect=before.defects))
        .with_row_index("row", offset=1)
        .join(
            after.payments.with_columns(defect=after.defects).with_row_index("row", offset=1),
            on=[*before.payments.columns, "defect", "row"],
            how="anti",
            nulls_equal=True,
        )
    )
    owner = before.locations.filter(pl.col("start") <= at, pl.col("end") > at)["row"].to_list()
    assert changed["row"].to_list() in ([], owner)


@examples(150)
@given(SEEDS, st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=120)), max_size=5))
def test_any_bytes_are_read_or_refused_in_a_sentence(seed, changes):
    data = any_file(seed, count_max=6).data()
    for anywhere, text in changes:
        at = anywhere % (len(data) + 1)
        data = data[:at] + text + data[at + len(text) // 2 :]
    bacs18.sniff(data)
    with suppress(InputError):
        message = read(data)
        assert message.payments.height == message.locations.height == message.defects.len()
        assert message.locations["start"].is_sorted()
