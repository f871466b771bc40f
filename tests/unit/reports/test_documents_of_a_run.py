"""The reports that are files; each has tests of its own for what is in it."""

import csv
import stat

import polars as pl
import pytest

from pipeline.reports.documents import Rows, reports
from pipeline.runs.folder import files_with_names
from schemas.folder import REPORTS

ORIGINAL = pl.DataFrame({"Payee": ["Quillon", "=Marrow", None], "IBAN": ["GB1", "GB2", "GB3"]})


@pytest.fixture
def rows_of(payments_of, outcomes_of):
    """Rows of three payments with these outcomes."""

    def build(*words):
        payments = payments_of(*({"name": name} for name in ORIGINAL["Payee"].head(len(words))))
        outcomes = outcomes_of(*({"outcome": word} for word in words))
        return Rows(payments, outcomes, ORIGINAL.head(len(words)))

    return build


@pytest.fixture
def summary_for(summary_of):
    """A summary of a file with so many rows, and what else is said of the file."""

    def build(rows, **said):
        summary = summary_of()
        said = {"row_count": rows.payments.height, **said}
        return summary.model_copy(update={"input": summary.input.model_copy(update=said)})

    return build


def cells_of(path, delimiter=","):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


def test_attention_has_the_rows_for_a_person_and_none_of_them_runs(tmp_path, summary_for, rows_of):
    rows = rows_of("match", "no_match", "not_possible")
    reports(tmp_path, summary_for(rows), rows, outcome_name="outcomes.csv")
    header, *found = cells_of(tmp_path / "attention.csv")
    assert header[:5] == ["Payee", "IBAN", "check_row", "check_place", "check_outcome"]
    assert [row[:5] for row in found] == [
        ["'=Marrow", "GB2", "2", "", "no_match"],
        ["", "GB3", "3", "", "not_possible"],
    ]


@pytest.mark.parametrize("word", ["match", "close_match", "rejected", "deferred", "unanswered"])
def test_attention_has_no_other_rows(tmp_path, summary_for, rows_of, word):
    rows = rows_of(word)
    reports(tmp_path, summary_for(rows), rows, outcome_name="outcomes.csv")
    assert len(cells_of(tmp_path / "attention.csv")) == 1


def test_attention_has_the_delimiter_of_the_input(tmp_path, summary_for, rows_of):
    rows = rows_of("no_match")
    reports(tmp_path, summary_for(rows, delimiter=";"), rows, outcome_name="outcomes.csv")
    assert cells_of(tmp_path / "attention.csv", ";")[0][:2] == ["Payee", "IBAN"]


def test_every_report_is_named_is_for_its_owner_only_and_is_known_to_hold_names(
    tmp_path, summary_for, rows_of
):
    rows = rows_of("match", "no_match")
    written = reports(tmp_path, summary_for(rows), rows, outcome_name="outcomes.csv")
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in written} == set(REPORTS)
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o600}
    assert set(written) <= set(files_with_names(tmp_path))
