"""From outcomes to files."""

import csv
import hashlib
import stat

import polars as pl
import pytest
from refusals import refused

from pipeline.errors import OutputError
from pipeline.formats.table import Dialect
from pipeline.frames import OUTCOMES
from pipeline.stages.read import read
from pipeline.stages.write import write
from schemas.outcomes import COLUMNS

ORIGINAL = pl.DataFrame({"Payee": ["Quillon", "=Marrow", None], "IBAN": ["GB1", "GB2", "GB3"]})


def outcomes_of(*words):
    return pl.DataFrame(
        {
            "row": range(1, len(words) + 1),
            **dict.fromkeys(COLUMNS, ["x"] * len(words)),
            "check_outcome": words,
            "check_action": ["pay"] * len(words),
            "check_api": ["cop"] * len(words),
            "check_environment": ["sandbox"] * len(words),
            "check_matched_name": [None] * len(words),
            "check_attempts": [1] * len(words),
        },
        schema=OUTCOMES,
    )


OUTCOMES_OF_ORIGINAL = outcomes_of("match", "no_match", "not_possible")


def cells_of(path, delimiter=","):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


def test_csv_has_the_original_columns_and_then_the_outcome(tmp_path):
    written = write(ORIGINAL, OUTCOMES_OF_ORIGINAL, tmp_path, format_name="csv", dialect=Dialect(";"))
    assert written.path == tmp_path / "outcomes.csv"
    header, *rows = cells_of(written.path, ";")
    assert header == ["Payee", "IBAN", *COLUMNS]
    assert [row[:3] for row in rows] == [
        ["Quillon", "GB1", "match"],
        ["=Marrow", "GB2", "no_match"],
        ["", "GB3", "not_possible"],
    ]
    assert rows[0][-1] == "1"


def test_parquet_keeps_the_types_of_the_original(tmp_path):
    original = ORIGINAL.with_columns(n=pl.Series([1, 2, 3], dtype=pl.Int16), tags=[["a"], [], None])
    written = write(original, OUTCOMES_OF_ORIGINAL, tmp_path, format_name="parquet", dialect=Dialect())
    assert written.path == tmp_path / "outcomes.parquet"
    again = pl.read_parquet(written.path)
    assert again.select(original.columns).equals(original)
    assert again.columns == [*original.columns, *COLUMNS]


def test_the_file_is_for_its_owner_only_and_no_part_is_left(tmp_path):
    written = write(ORIGINAL, OUTCOMES_OF_ORIGINAL, tmp_path, format_name="csv", dialect=Dialect())
    assert list(tmp_path.iterdir()) == [written.path]
    assert stat.S_IMODE(written.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("format_name", ["csv", "parquet"])
def test_the_hash_is_of_the_file(tmp_path, format_name):
    written = write(ORIGINAL, OUTCOMES_OF_ORIGINAL, tmp_path, format_name=format_name, dialect=Dialect())
    assert written.sha256 == hashlib.sha256(written.path.read_bytes()).hexdigest()


def test_a_file_larger_than_one_part_is_written_in_order(tmp_path):
    count = 60_000
    original = pl.DataFrame({"name": [f"Payee {n}" for n in range(count)], "iban": ["GB1"] * count})
    written = write(original, outcomes_of(*["match"] * count), tmp_path, format_name="csv", dialect=Dialect())
    again = read(written.path, mapping={})
    assert again.original.equals(original)


@pytest.mark.parametrize(
    "outcomes",
    [
        OUTCOMES_OF_ORIGINAL.head(2),
        OUTCOMES_OF_ORIGINAL.reverse(),
        OUTCOMES_OF_ORIGINAL.with_columns(row=pl.lit(1, pl.UInt32)),
        OUTCOMES_OF_ORIGINAL.with_columns(check_outcome=pl.Series(["match", "match", "matched"])),
        outcomes_of("match", "match", None),
    ],
)
def test_outcomes_that_are_not_one_per_payment_are_a_mistake_of_ours(tmp_path, outcomes):
    with pytest.raises(AssertionError):
        write(ORIGINAL, outcomes, tmp_path, format_name="csv", dialect=Dialect())
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_an_output_error(tmp_path):
    with refused(OutputError, "files.not_writable", path="outcomes.csv"):
        write(ORIGINAL, OUTCOMES_OF_ORIGINAL, tmp_path / "missing", format_name="csv", dialect=Dialect())
