"""Comparing with an earlier run: what must hold whatever the files say."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.apis.payees import KEYED, each_once, keyed
from pipeline.frames import PAYEES
from pipeline.ledger.keyed import payee_hashes
from pipeline.stages.compare import Earlier, compare

IDS = st.none() | st.sampled_from("123")
NAMES = st.none() | st.sampled_from(["avery thornwood", "rowan blackmere", "imre vasko", "quinn lorimer"])
ACCOUNTS = st.integers(1, 6).map(lambda digit: str(digit) * 14)
FILES = st.lists(st.tuples(IDS, NAMES, ACCOUNTS), max_size=8)
KEYS = st.binary(min_size=32, max_size=32)


def payees(rows):
    told = [(number, *row, None) for number, row in enumerate(rows, start=1)]
    return pl.DataFrame(told, schema=PAYEES, orient="row")


def run_of(rows, key, folder="earlier"):
    frame, hashed = payees(rows), payee_hashes(key, KEYED)
    return Earlier(folder, each_once(keyed(frame, hashed)), hashed, lambda: frame["name"])


def found(new, *runs):
    frame = payees(new)
    return compare(frame, frame["name"], runs)


@settings(deadline=None)
@given(FILES, FILES, KEYS, KEYS, st.randoms(use_true_random=False))
def test_neither_the_order_of_a_file_nor_the_key_of_a_folder_changes_what_is_found(
    old, new, key, other, random
):
    shuffled = random.sample(old, len(old))
    order = random.sample(range(len(new)), len(new))
    expected = found(new, run_of(old, key))

    again = found([new[place] for place in order], run_of(shuffled, other))

    back = again.with_columns(row=pl.Series([order[row - 1] + 1 for row in again["row"]], dtype=pl.UInt32))
    assert back.sort("row", "code").equals(expected)


@settings(deadline=None)
@given(FILES, KEYS)
def test_nothing_has_changed_in_the_file_of_the_earlier_run_itself(rows, key):
    assert found(rows, run_of(rows, key)).is_empty()


@settings(deadline=None)
@given(FILES, FILES, KEYS)
def test_a_row_has_each_code_once_and_what_is_new_has_no_other(old, new, key):
    changes = found(new, run_of(old, key))
    assert not changes.select("row", "code").is_duplicated().any()
    is_new = changes.filter(code="PAYEE_NEW")["row"]
    assert changes.filter(pl.col("row").is_in(is_new.implode())).height == is_new.len()


@settings(deadline=None)
@given(FILES, KEYS)
def test_what_is_kept_has_no_name_and_no_account_in_its_bytes(rows, key):
    written = run_of(rows, key).keys.write_csv().lower()
    for _, name, account in rows:
        assert account not in written
        assert name is None or not any(word in written for word in name.split())
