"""A file that only grows: whatever is changed in it is found."""

import json

import pytest
from refusals import refused

from pipeline.desk.journal import ChainedJournal
from pipeline.errors import InputError
from schemas.desk import NOTHING_BEFORE, AuditEntry, Deed

TIME = "2030-01-02T03:04:05.678Z"


@pytest.fixture
def journal(tmp_path):
    """Three deeds."""
    found = ChainedJournal(tmp_path / "audit.jsonl", AuditEntry)
    for name in ("Ada", "Bram", "Cora"):
        add(found, name)
    return found


def add(journal, name):
    return journal.append(
        lambda previous: AuditEntry(previous=previous, time=TIME, by=name, deed=Deed.OPENED)
    )


def test_each_entry_names_the_one_before_it(journal):
    entries = journal.entries()
    assert [entry.by for entry in entries] == ["Ada", "Bram", "Cora"]
    assert entries[0].previous == NOTHING_BEFORE
    assert len({entry.previous for entry in entries} | {journal.head}) == 4
    assert journal.path.stat().st_mode & 0o777 == 0o600


def test_there_is_nothing_in_a_journal_that_is_not_there(tmp_path):
    journal = ChainedJournal(tmp_path / "none.jsonl", AuditEntry)
    assert (journal.entries(), journal.head) == ([], NOTHING_BEFORE)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [lines[0].replace("Ada", "Eve"), *lines[1:]],
        lambda lines: [lines[0], lines[2]],
        lambda lines: [lines[1], lines[0], lines[2]],
        lambda lines: [lines[0], lines[0], *lines[1:]],
        lambda lines: [lines[0], "{}", *lines[1:]],
        lambda lines: [lines[0], "no JSON", *lines[1:]],
        lambda lines: [*lines, lines[-1]],
    ],
    ids=["changed", "removed", "swapped", "doubled", "put in", "no document", "repeated"],
)
def test_a_change_is_found(journal, change):
    lines = journal.path.read_text().splitlines()
    journal.path.write_text("\n".join(change(lines)) + "\n")
    with refused(InputError, "desk.changed_by_another_program"):
        journal.entries()


def test_what_a_killed_process_had_begun_is_replaced(journal):
    with journal.path.open("a") as file:
        file.write('{"previous": "ab')
    assert len(journal.entries()) == 3
    add(journal, "Dora")
    assert [entry.by for entry in journal.entries()][3:] == ["Dora"]
    assert all(json.loads(line) for line in journal.path.read_text().splitlines())


def test_two_that_write_in_turn_keep_the_chain_whole(journal):
    other = ChainedJournal(journal.path, AuditEntry)
    for name in ("Dora", "Ebba"):
        add(other, name)
        add(journal, name)
    assert len(journal.entries()) == 7


def test_a_change_of_lines_that_were_read_before_is_found(journal):
    journal.entries()
    add(journal, "Dora")
    journal.path.write_text(journal.path.read_text().replace("Bram", "Eve."))
    with refused(InputError, "desk.changed_by_another_program"):
        journal.entries()


def test_lines_that_were_read_before_are_not_parsed_again(journal):
    before = journal.entries()
    add(journal, "Dora")
    after = journal.entries()
    assert all(one is other for one, other in zip(before, after, strict=False))
    assert [entry.by for entry in after[3:]] == ["Dora"]
