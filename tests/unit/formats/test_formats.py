"""Which format a file is."""

from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.formats import NAMES, format_named, format_of, outcome_format


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
def test_the_suffix_says_the_format(name, expected):
    assert format_of(Path(name)) is format_named(expected)


@pytest.mark.parametrize("name", ["a.pdf", "a", ".csv", "csv", "a.csv.gz"])
def test_another_suffix_is_refused_and_says_which_there_are(name):
    with pytest.raises(InputError, match=r"\.csv, \.tsv, \.txt, \.parquet, \.pq"):
        format_of(Path(name))


@pytest.mark.parametrize("name", ["a.xls", "a.XLSB", "a.ods", "a.numbers"])
def test_workbooks_of_other_kinds_are_told_what_to_become(name):
    with pytest.raises(InputError, match="a kind of workbook that cannot be read; save it as"):
        format_of(Path(name))


@pytest.mark.parametrize(("name", "expected"), [("a.csv", "csv"), ("a.pq", "parquet"), ("a.XLSX", "csv")])
def test_outcomes_are_written_in_the_format_of_the_input_or_as_csv(name, expected):
    assert expected == outcome_format(format_of(Path(name))).NAME


def test_every_format_is_found_by_its_name():
    assert [format_named(name).NAME for name in NAMES] == ["csv", "parquet"]
