"""A payment that was turned to another account after the check, while everything else was made to fit."""

import hashlib
import json
from datetime import date
from decimal import Decimal

import polars as pl
import pytest
from forgers import fit_manifest, forge
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

UK = {"account_type": "Personal", "sort_code": "00-11-22", "account_number": "00012345", "currency": "GBP"}
MATCH = UK | {"payment_id": "P1", "name": "Avery Thornwood", "amount": "100.00"}
NO_MATCH = UK | {"payment_id": "P2", "name": "Rowan Blackmere", "amount": "25.50"}
CLOSE = UK | {"payment_id": "P3", "name": "Averi Thornwood", "amount": "9.00"}
REJECTED = UK | {"payment_id": "P4", "name": "Avery Thornwood", "sort_code": "1122", "amount": "9"}
ROWS = [MATCH, NO_MATCH, CLOSE, REJECTED]


@pytest.fixture
def file(desk):
    return desk.payments(ROWS)


@pytest.fixture
def folder(desk, sandbox, file):
    """The folder of a finished run."""
    assert desk.ran("run", file, *sandbox.using("sandbox"), "--quiet").status == 0
    return desk.folder / "payments.precheck"


def make_fit(folder, change):
    """Change the outcome file, and then ledger and manifest, seals and all, so that they fit it."""
    path = folder / "outcomes.csv"
    before = path.read_text("utf-8")
    after = change(before)
    assert after != before
    path.write_text(after, "utf-8")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    forge(folder / "ledger.db", f"UPDATE finish SET outcome_sha256 = '{sha256}'")
    fit_manifest(folder)


def problems(finished):
    """What verify says is not as it should be: what, and the sentence."""
    found = [line.removeprefix("PROBLEM ") for line in finished.out.splitlines() if line.startswith("PROB")]
    return dict(line.split(": ", 1) for line in found)


def test_a_redirected_account_is_found_by_the_question_that_was_asked(desk, folder):
    make_fit(folder, lambda text: text.replace("00012345", "87654321", 1))

    finished = desk("verify", folder)

    assert finished.status == 65
    found = problems(finished)
    assert set(found) == {"questions"}
    assert found["questions"].startswith(said("evidence.questions_differ"))
    assert "row 1 (line 2);" in found["questions"]
    assert "87654321" not in finished.out


def test_with_the_payment_file_each_cell_that_was_changed_is_found(desk, folder, file):
    make_fit(folder, lambda text: text.replace("00012345", "87654321", 1).replace("P4", "P5"))

    finished = desk("verify", folder, "--input", file)

    assert finished.status == 65
    found = problems(finished)
    assert "payment_id, account_number: rows 1, 4 (lines 2, 5);" in found["cells"]
    # The questions are those of the payment file, which has the right account.
    assert set(found) == {"cells"}


def test_with_the_payment_file_a_column_that_the_manifest_reads_otherwise_is_found(desk, folder, file):
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["input"]["decision"]["amount"]
    (folder / "manifest.json").write_text(json.dumps(manifest))

    found = problems(desk("verify", folder, "--input", file))

    assert found["columns"] == said("evidence.other_columns", fields="amount", file="payments.csv")


def test_an_answer_that_was_moved_to_another_row_is_found(desk, folder):
    def moved(text):
        lines = text.splitlines(keepends=True)
        told = lines[1][lines[1].index(",match,") :]
        lines[2] = lines[2][: lines[2].index(",no_match,")] + told
        return "".join(lines)

    make_fit(folder, moved)

    found = problems(desk("verify", folder))

    expected = said(
        "evidence.answers_differ", columns="check_outcome, check_code, check_action, check_id, check_time"
    )
    assert expected in found["answers"]
    assert "row 2 (line 3);" in found["answers"]


@pytest.mark.parametrize(
    ("old", "new", "column"),
    [
        ("Avery Thornwood,cop", "Mallory Thornwood,cop", "check_matched_name"),
        (",close_match,MBAM,", ",match,MBAM,", "check_outcome"),
        (",ask_payee,", ",pay,", "check_action"),
    ],
)
def test_another_matched_name_or_outcome_word_than_on_record_is_found(desk, folder, old, new, column):
    make_fit(folder, lambda text: text.replace(old, new))

    found = problems(desk("verify", folder))

    assert found["answers"].startswith(said("evidence.answers_differ", columns=column) + "row ")
    assert "Mallory" not in found["answers"]


def test_names_in_a_ledger_under_a_key_are_compared_once_the_key_is_there(desk, sandbox, file):
    secret = desk.file("ledger.key", "a key of some length")
    secret.chmod(0o600)
    config = desk.configuration(mine={"cop": sandbox.section("sandbox")})
    config.write_text('[profiles.mine]\nledger_key_file = "ledger.key"\n' + config.read_text())
    assert desk("run", file, "--config", config, "--profile", "mine", "--quiet").status == 0
    folder = desk.folder / "payments.precheck"

    without, with_key = desk("verify", folder), desk("verify", folder, "--config", config)

    assert (without.status, with_key.status) == (0, 0)
    assert said("evidence.names_encrypted", name_count=1) in without.out
    assert "not compared" not in with_key.out
    make_fit(folder, lambda text: text.replace("Avery Thornwood,cop", "Mallory Thornwood,cop"))
    assert desk("verify", folder).status == 0
    assert set(problems(desk("verify", folder, "--config", config))) == {"answers"}


def test_purged_names_are_not_missed(desk, folder, file):
    assert desk("purge", folder).status == 0

    finished = desk("verify", folder, "--input", file)

    assert finished.status == 0
    assert said("evidence.names_purged", name_count=1) in finished.out


@pytest.mark.nightly
def test_other_formats_and_files_with_torn_rows_are_compared_as_well(desk, sandbox):
    text = "name;sort code;account number;amount;note\n"
    text += (
        'Avery Thornwood;001122;00012345;10,50;"two\nlines"\nRowan Blackmere;001122;00012345;1;;too;long\n\n'
    )
    text += "Avery Thornwood;001122\nTotal;;;11,50;\n"
    file = desk.file("torn.csv", text)
    for form in ("csv", "parquet"):
        words = ("run", file, *sandbox.using("sandbox"), "--quiet", "--format", form, "--out", form)
        assert desk(*words).status == 0
        finished = desk("verify", form, "--input", file)
        assert finished.status == 0, finished.err
        assert "cells: " + said("evidence.same_cells", file="torn.csv") in finished.out
        assert desk("verify", form).status == 0


@pytest.mark.nightly
def test_typed_columns_and_files_without_headers_are_compared_as_well(desk, sandbox):
    typed = pl.DataFrame(
        {
            **{field: [MATCH[field], NO_MATCH[field]] for field in ("name", "sort_code", "account_number")},
            "amount": [Decimal("10.50"), None],
            "day": [date(2030, 1, 31), None],
            "tags": [["a", "b"], []],
            "raw": [b"\x01", None],
        }
    )
    typed.write_parquet(desk.folder / "typed.parquet")
    desk.file("bare.csv", "Avery Thornwood,001122,00012345,10.00\n")
    places = [f"{field}=#{place}" for place, field in enumerate(("name", "sort_code", "account_number"), 1)]
    mapped = [word for place in places for word in ("--map", place)]
    for name, words in (("typed.parquet", ("--format", "csv")), ("bare.csv", mapped)):
        run = desk("run", name, *sandbox.using("sandbox"), "--quiet", "--out", "out", "--fresh", *words)
        assert run.status == 0, run.err
        finished = desk("verify", "out", "--input", name)
        assert finished.status == 0, finished.err
        assert "cells: " + said("evidence.same_cells", file=name) in finished.out
