"""Comparing with an earlier run: what must hold whatever the files say."""

import polars as pl
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from pipeline.frames import PAYEE_KEYS, PAYEES
from pipeline.jobs.comparing import RunOrigin, carried_on, own_payees, runs_of
from pipeline.rules.known_payees import DecidedRows, kept_once, payee_statuses
from pipeline.rules.payees import KEYED, keyed
from pipeline.stages.compare import EarlierPayees, compare
from pipeline.stores.ledger_keys import payee_hashes

IDS = st.none() | st.sampled_from("123")
NAMES = st.none() | st.sampled_from(["avery thornwood", "rowan blackmere", "imre vasko", "quinn lorimer"])
ACCOUNTS = st.integers(1, 6).map(lambda digit: str(digit) * 14)
FILES = st.lists(st.tuples(IDS, NAMES, ACCOUNTS), max_size=8)
NOTHING = pl.DataFrame(schema=PAYEE_KEYS)
KEYS = st.binary(min_size=32, max_size=32)


def payees(rows):
    told = [(number, *row, None) for number, row in enumerate(rows, start=1)]
    return pl.DataFrame(told, schema=PAYEES, orient="row")


def names_of(frame):
    return lambda rows: frame["name"].gather(rows - 1)


def run_of(rows, key, folder="earlier"):
    frame, hashed = payees(rows), payee_hashes(key, KEYED)
    return EarlierPayees(folder, keyed(frame, hashed), NOTHING, hashed, names_of(frame))


def found(new, *runs):
    frame = payees(new)
    return compare(frame, names_of(frame), runs).changes


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


@given(FILES, KEYS)
def test_nothing_has_changed_in_the_file_of_the_earlier_run_itself(rows, key):
    assert found(rows, run_of(rows, key)).is_empty()


@given(FILES, FILES, KEYS)
def test_a_row_has_each_code_once_and_what_is_new_has_no_other(old, new, key):
    changes = found(new, run_of(old, key))
    assert not changes.select("row", "code").is_duplicated().any()
    is_new = changes.filter(code="PAYEE_NEW")["row"]
    assert changes.filter(pl.col("row").is_in(is_new.implode())).height == is_new.len()


@given(FILES, FILES, KEYS)
def test_what_a_run_is_unsure_of_never_silences_what_would_be_told_without_it(old, new, key):
    earlier, frame = run_of(old, key), payees(new)
    silent = earlier._replace(known=NOTHING)
    unsure = silent._replace(unsure=earlier.known)
    told = [set(compare(frame, names_of(frame), [run]).changes["row"]) for run in (silent, unsure)]
    assert told[0] == told[1] == set(frame["row"])


@examples(100, by_day=10)
@given(FILES, st.lists(FILES, min_size=1, max_size=4), st.data())
def test_nothing_but_the_word_of_a_person_ends_what_is_told_of_a_changed_account(first, months, data):
    """Each month is compared with the one before alone, and everything is answered by a match."""
    runs = known_after([], first, b"\x00" * 32, released=None)
    for number, rows in enumerate(months, start=1):
        found = compared(rows, runs)
        told = rows_changed(rows, found)
        released = data.draw(st.sets(st.sampled_from(sorted(told)))) if told else set()
        runs = known_after(runs, rows, bytes([number]) * 32, released=released, found=found)
        again = changed_in(rows, runs)
        approved = {rows[row - 1][2] for row in released}
        assert all(row in again for row in told if rows[row - 1][2] not in approved)


def test_a_row_without_an_id_makes_the_account_of_an_id_known_to_nobody():
    runs = known_after([], [("2", None, "2" * 14)], b"\x00" * 32, released=None)
    rows = [(None, "avery thornwood", "1" * 14), ("2", "avery thornwood", "1" * 14)]
    assert changed_in(rows, runs) == {2}
    for month in (1, 2, 3):
        runs = known_after(runs, rows, bytes([month]) * 32, released=None)
        assert changed_in(rows, runs) == {2}


def test_a_row_without_an_id_ends_nothing_that_is_told_of_another_id():
    first = [(None, "imre vasko", "3" * 14), ("2", "imre vasko", "6" * 14)]
    rows = [(None, "imre vasko", "6" * 14), ("1", "imre vasko", "6" * 14)]
    runs = known_after([], first, b"\x00" * 32, released=None)
    assert changed_in(rows, runs) == {2}, "it is told of once"
    for month in (1, 2, 3):
        runs = known_after(runs, rows, bytes([month]) * 32, released=None)
        assert changed_in(rows, runs) == {2}


def test_a_name_stays_known_beside_the_id_of_a_payee_whose_account_has_changed():
    runs = known_after([], [(None, "imre vasko", "3" * 14)], b"\x00" * 32, released=None)
    rows = [("1", "imre vasko", "6" * 14)]
    for month in (1, 2, 3):
        runs = known_after(runs, rows, bytes([month]) * 32, released=None)
        assert changed_in([*rows, ("2", "imre vasko", "5" * 14)], runs) == {1, 2}


def compared(rows, runs):
    frame = payees(rows)
    return compare(frame, names_of(frame), [run.earlier for run in runs])


def changed_in(rows, runs):
    return rows_changed(rows, compared(rows, runs))


def rows_changed(rows, found):
    """The rows whose payee, who has an id and is in the file once, is to be paid to another account."""
    ids = [row[0] for row in rows]
    changed = found.changes.filter(code="ACCOUNT_CHANGED")["row"]
    return {row for row in changed if ids[row - 1] is not None and ids.count(ids[row - 1]) == 1}


def known_after(runs, rows, key, *, released, found=None):
    """What the run after `rows` knows, and carries of `runs`; `found` is what comparing them has found."""
    frame = payees(rows)
    found = found or compared(rows, runs)
    outcomes = frame.select("row", check_outcome=pl.lit("match"))
    statuses = payee_statuses(frame["row"], outcomes, found.changes if runs else None)
    kept = kept_once(pl.concat([own_payees(frame, statuses, key), carried_on(runs, found.contradicted)]))
    month = RunOrigin("month", f"2030-{key[0]:02}", key)
    known = runs_of(month, kept, DecidedRows(released or ()))
    return sorted(known, key=lambda run: run.origin.finished, reverse=True)


@given(FILES, KEYS)
def test_what_is_kept_has_no_name_and_no_account_in_its_bytes(rows, key):
    written = run_of(rows, key).known.write_csv().lower()
    for _, name, account in rows:
        assert account not in written
        assert name is None or not any(word in written for word in name.split())
