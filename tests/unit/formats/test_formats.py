"""Which format a file is."""

from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.formats import NAMES, format_named, format_of


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


@pytest.mark.parametrize("name", ["a.xlsx", "a", ".csv", "csv", "a.csv.gz"])
def test_another_suffix_is_refused_and_says_which_there_are(name):
    with pytest.raises(InputError, match=r"\.csv, \.tsv, \.txt, \.parquet, \.pq"):
        format_of(Path(name))


def test_every_format_is_found_by_its_name():
    assert [format_named(name).NAME for name in NAMES] == ["csv", "parquet"]
