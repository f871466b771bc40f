"""Cells that say that there is nothing are empty; words in the place of an account reject their own row."""

from pathlib import Path

import pytest

from pipeline.stages.read import read
from pipeline.stages.validate import Routes, validate
from pipeline.wording import Sentence
from schemas.outcomes import ApiName

CASES = Path(__file__).parents[2] / "cases"
ROUTES = Routes([ApiName.COP, ApiName.VOP_GATEWAY])


def rejected(path):
    """Row -> codes of the rules that it breaks; and the notes of the reading."""
    source = read(path, mapping={})
    rejects = validate(source.payments, ROUTES).rejects
    return dict(rejects.group_by("row", maintain_order=True).agg("code").iter_rows()), tuple(source.notes)


def empty(**numbers):
    """What is said of this many placeholders in these fields."""
    fields = [
        Sentence("stages.field_and_number", field=FIELD_WORDS[field], number=number)
        for field, number in numbers.items()
    ]
    return (Sentence("stages.placeholders_read_as_empty", fields=fields),)


FIELD_WORDS = {
    "sort_code": Sentence("field.sort_code"),
    "account_number": Sentence("field.account_number"),
    "iban": Sentence("field.iban"),
    "bic": Sentence("field.bic"),
}


@pytest.mark.parametrize(
    ("name", "codes", "numbers"),
    [
        ("k02_dash_realistic.csv", {}, {"sort_code": 1, "account_number": 1, "iban": 1}),
        (
            "c06_ph_iban.csv",
            {row: ["IBAN_FORMAT"] for row in (13, 14, 17, 25)} | {24: ["CELL_ERROR"]},
            {"iban": 20},
        ),
        ("k06_notprovided_csv.csv", {}, {"bic": 2}),
    ],
)
def test_placeholders_of_real_files(name, codes, numbers):
    assert rejected(CASES / name) == (codes, empty(**numbers))


def test_account_types_of_real_files_never_reject_an_iban():
    assert rejected(CASES / "a02_types_iban.csv") == ({}, ())


@pytest.mark.parametrize(
    "cell", ["-", "\u2014", "...", "( )", "N.A.", "<null>", r"\N", "Not provided", "0", "00-00-00"]
)
def test_a_placeholder_is_no_second_account_and_none_alone(tmp_path, cell):
    path = tmp_path / "pay.csv"
    path.write_text(
        "Name,Sort code,Account number,IBAN\n"
        f"Ada Quillon,112233,12345678,{cell}\n"
        f"Bo,{cell},{cell},DE89370400440532013000\nCy,{cell},{cell},{cell}\n",
        encoding="utf-8",
    )
    codes, notes = rejected(path)
    assert codes == {3: ["ACCOUNT_MISSING"]}
    assert notes == empty(sort_code=2, account_number=2, iban=2)
    assert read(path, mapping={}).original["IBAN"].to_list()[0] == cell


def test_a_null_of_a_database_is_no_name(tmp_path):
    path = tmp_path / "pay.csv"
    rows = "".join(f"{name},DE89370400440532013000\n" for name in ("<NA>", "<null>", "[NULL]", r"\N", "N N"))
    path.write_text(f"Name,IBAN\n{rows}", encoding="utf-8")
    assert rejected(path) == ({row: ["NAME_MISSING"] for row in range(1, 5)}, ())


@pytest.mark.parametrize("cell", ["TBC", "see below", "x", "keine"])
def test_a_word_is_an_account_of_no_kind(tmp_path, cell):
    path = tmp_path / "pay.csv"
    path.write_text(f"Name,Sort code,Account number,IBAN\nAda,112233,12345678,{cell}\n", encoding="utf-8")
    assert rejected(path) == ({1: ["IBAN_FORMAT"]}, ())
