"""Which format a file is."""

from pathlib import Path

import pytest
from refusals import refused

from pipeline.cli.run import run
from pipeline.errors import InputError
from pipeline.formats.registry import FORMATS, NAMES, entry_named, entry_of, format_named


def entry_by_suffix(name):
    return entry_of(Path(name), lambda: b"name,iban\n")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.csv", "csv"),
        ("a.TXT", "csv"),
        ("a.tsv", "csv"),
        ("a.b.parquet", "parquet"),
        ("a.PQ", "parquet"),
    ],
)
def test_the_suffix_says_the_format_of_a_file_that_starts_as_none(name, expected):
    assert entry_by_suffix(name) is entry_named(expected)


@pytest.mark.parametrize("name", ["a.pdf", "a", ".csv", "csv", "a.csv.gz"])
def test_another_suffix_is_refused_and_says_which_there_are(name):
    suffixes = list(dict.fromkeys(suffix for each in FORMATS for suffix in each.format.SUFFIXES))
    with refused(
        InputError, "formats.not_a_readable_format", "formats.give_file_with_suffix", suffixes=suffixes
    ):
        entry_by_suffix(name)


@pytest.mark.parametrize("name", ["a.xls", "a.XLSB", "a.ods", "a.numbers"])
def test_workbooks_of_other_kinds_are_told_what_to_become(name):
    start = b"\xd0\xcf\x11\xe0" if name.endswith("s") and "x" in name else b"PK\x03\x04"
    with refused(InputError, "formats.workbook_kind_unreadable"):
        entry_of(Path(name), lambda: start)


@pytest.mark.parametrize(
    ("start", "key"),
    [
        (b"name,iban\n", "formats.not_a_readable_format"),
        (b"<html><body><table>", "formats.is_web_page"),
        (b"\r\n <table border=1><tr><td>name", "formats.is_web_page"),
        (b"< div >\r\n\t<table>", "formats.is_web_page"),
    ],
)
def test_other_files_under_the_name_of_an_old_workbook_are_named(start, key):
    with refused(InputError, key, where="a.xls"):
        entry_of(Path("a.xls"), lambda: start)


@pytest.mark.parametrize(("name", "expected"), [("a.csv", "csv"), ("a.pq", "parquet"), ("a.XLSX", "csv")])
def test_outcomes_are_written_in_the_format_of_the_input_or_as_csv(name, expected):
    assert expected == entry_by_suffix(name).outcomes.NAME


def test_every_format_is_found_by_its_name():
    assert [entry_named(entry.format.NAME) for entry in FORMATS] == list(FORMATS)
    assert [format_named(name).NAME for name in NAMES] == ["csv", "parquet", "excel"]


def test_the_command_offers_the_formats_of_outcomes():
    [option] = [option for option in run.params if option.name == "format"]
    assert tuple(option.type.choices) == NAMES


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"PAR1", ["parquet"]),
        (b"PARE", ["parquet"]),
        (b"PK\x03\x04", ["excel"]),
        (b"\xd0\xcf\x11\xe0", ["excel"]),
        (b"name,iban\n", []),
        (b"", []),
    ],
)
def test_a_format_knows_its_files_by_their_start(head, expected):
    assert [entry.format.NAME for entry in FORMATS if entry.format.sniff(head)] == expected
