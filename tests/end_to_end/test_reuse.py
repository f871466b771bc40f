"""--reuse-from: a match of an earlier run is used instead of a call, and nothing else is."""

import csv
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest
from forgers import fit_manifest, forge
from refusals import said
from signers import key_files

pytestmark = pytest.mark.usefixtures("in_this_process")

UK = {"account_type": "Personal", "sort_code": "001122", "account_number": "00012345", "currency": "GBP"}
MATCH = UK | {"payment_id": "P1", "name": "Avery Thornwood", "amount": "100.00"}
NO_MATCH = UK | {"payment_id": "P2", "name": "Rowan Blackmere", "amount": "25.50"}
UNKNOWN = MATCH | {"payment_id": "P3", "account_number": "99999999", "amount": "7"}
IBAN = {
    "payment_id": "P4",
    "name": "Solène Montferrand",
    "iban": "FR7630003012340000482100733",
    "amount": "4",
}


@pytest.fixture
def january(desk, sandbox):
    """The folder of a finished run with two matches, a no match and a not possible."""
    file = desk.payments([MATCH, NO_MATCH, UNKNOWN, IBAN], name="january.csv")
    assert desk.ran("run", file, *sandbox.using("sandbox")).status == 0
    return desk.folder / "january.precheck"


def summary_of(desk, folder):
    return json.loads((desk.folder / folder / "summary.json").read_text())


def ledger_of(folder):
    return closing(sqlite3.connect(f"file:{folder / 'ledger.db'}?mode=ro&immutable=1", uri=True))


def test_only_matches_are_used_again_and_every_row_says_so(desk, sandbox, january):
    file = desk.payments([NO_MATCH, MATCH, IBAN, UNKNOWN], name="february.csv")
    before = sandbox.call_count

    done = desk("run", file, *sandbox.using("sandbox"), "--reuse-from", january)

    assert done.status == 0
    assert len(sandbox.questions(before)) == 2, "the no match and the unknown account are asked again"
    rows = {row["payment_id"]: row for row in desk.outcomes("february.precheck")}
    earlier = {row["payment_id"]: row for row in desk.outcomes("january.precheck")}
    for payment_id in ("P1", "P4"):
        row = rows[payment_id]
        assert row["check_outcome"] == "match"
        assert said("answer.reused", "", day=datetime.now(UTC).date()) in row["check_reason"]
        assert row["check_id"] == earlier[payment_id]["check_id"]
        assert row["check_time"] == earlier[payment_id]["check_time"]
        assert row["check_attempts"] == "0"
    for payment_id in ("P2", "P3"):
        assert "earlier run" not in rows[payment_id]["check_reason"]
        assert rows[payment_id]["check_id"] != earlier[payment_id]["check_id"]
    calls = {call["api"]: call for call in summary_of(desk, "february.precheck")["calls"]}
    assert (calls["cop"]["question_count"], calls["cop"]["reused_count"]) == (3, 1)
    assert calls["vop_gateway"]["reused_count"] == 1
    assert said("terminal.answers_reused", count=2) in done.out


def test_without_the_option_everything_is_asked(desk, sandbox, january):
    file = desk.payments([MATCH], name="february.csv")
    before = sandbox.call_count

    desk("run", file, *sandbox.using("sandbox"))

    assert len(sandbox.questions(before)) == 1


def test_a_question_that_differs_in_anything_is_asked(desk, sandbox, january):
    other = [{"account_type": "Business"}, {"name": "Avery Thornwoods"}, {"account_number": "00012346"}]
    file = desk.payments([MATCH | change for change in other], name="february.csv")
    before = sandbox.call_count

    desk("run", file, *sandbox.using("sandbox"), "--reuse-from", january)

    assert len(sandbox.questions(before)) == 3


def test_an_answer_that_is_too_old_is_not_used(desk, sandbox, january):
    file = desk.payments([MATCH], name="february.csv")
    before = sandbox.call_count

    desk("run", file, *sandbox.using("sandbox"), "--reuse-from", january, "--reuse-max-age", "0d")

    assert len(sandbox.questions(before)) == 1


def test_a_run_taken_up_again_needs_no_reminder_and_a_reused_answer_stays_final(desk, sandbox, january):
    file = desk.payments([MATCH, NO_MATCH], name="february.csv")
    words = ("run", file, *sandbox.using("sandbox"))
    assert desk(*words, "--reuse-from", january, "--limit", "0").status == 75
    before = sandbox.call_count

    assert desk(*words).status == 0

    assert len(sandbox.questions(before)) == 1
    assert summary_of(desk, "february.precheck")["calls"][0]["reused_count"] == 1
    after = sandbox.call_count
    again = desk(*words, "--json")
    assert (again.status, sandbox.call_count) == (0, after)
    [call] = json.loads(again.out)["calls"]
    assert (call["answered_before_count"], call["reused_count"]) == (1, 1)


@pytest.mark.nightly
def test_an_answer_used_twice_keeps_the_time_of_the_first_run(desk, sandbox, january):
    february = desk.payments([MATCH], name="february.csv")
    march = desk.payments([MATCH | {"payment_id": "P9"}], name="march.csv")
    desk("run", february, *sandbox.using("sandbox"), "--reuse-from", january)
    before = sandbox.call_count

    desk("run", march, *sandbox.using("sandbox"), "--reuse-from", "february.precheck")

    assert sandbox.questions(before) == []
    [original] = [row for row in desk.outcomes("january.precheck") if row["payment_id"] == "P1"]
    with ledger_of(desk.folder / "march.precheck") as ledger:
        recorded = ledger.execute("SELECT time, request_id FROM reuse").fetchall()
    assert recorded == [(original["check_time"], original["check_id"])]


@pytest.mark.nightly
def test_several_earlier_runs_are_looked_at(desk, sandbox, january):
    other = desk.payments([NO_MATCH, MATCH | {"account_type": "Business"}, IBAN], name="other.csv")
    desk("run", other, *sandbox.using("sandbox"))
    file = desk.payments([MATCH, IBAN], name="february.csv")
    before = sandbox.call_count

    words = ("--reuse-from", "other.precheck", "--reuse-from", january)
    desk("run", file, *sandbox.using("sandbox"), *words)

    assert sandbox.questions(before) == []


@pytest.mark.parametrize(
    ("first", "then"),
    [("sandbox", "production"), pytest.param("production", "sandbox", marks=pytest.mark.nightly)],
)
def test_simulated_answers_never_stand_for_real_ones_nor_the_other_way_round(desk, sandbox, first, then):
    sections = {
        role: {"cop": sandbox.section("sandbox", "cop", server=role)} for role in ("sandbox", "production")
    }
    using = lambda role: ("--config", desk.configuration(**sections), "--profile", role)  # noqa: E731
    desk("run", desk.payments([MATCH], name="old.csv"), *using(first))
    before = sandbox.call_count

    done = desk("run", desk.payments([MATCH], name="new.csv"), *using(then), "--reuse-from", "old.precheck")

    assert done.status == 2
    assert sandbox.call_count == before
    assert said("jobs.reuse_mixes_simulated") in done.err


def test_answers_of_another_provider_are_refused(desk, sandbox, january):
    section = sandbox.section("sandbox", "cop", client_id="somebody-else")
    words = ("--config", desk.configuration(mine={"cop": section}), "--profile", "mine")

    done = desk("run", desk.payments([MATCH], name="new.csv"), *words, "--reuse-from", january)

    assert done.status == 2
    assert said("jobs.reuse_from_other_settings", where=january) in done.err


def test_a_folder_without_a_run_and_the_runs_own_folder_are_refused(desk, sandbox):
    file = desk.payments([MATCH])
    (desk.folder / "empty").mkdir()

    nothing = desk("run", file, *sandbox.using("sandbox"), "--reuse-from", "empty")
    own = desk("run", file, *sandbox.using("sandbox"), "--reuse-from", "payments.precheck", "--fresh")

    assert (nothing.status, own.status) == (2, 2)
    assert said("stores.no_ledger_in_folder", parent="empty") in nothing.err
    assert said("jobs.reuse_from_own_folder") in own.err


def test_a_changed_line_of_the_earlier_ledger_is_never_used(desk, sandbox, january):
    ledger = january / "ledger.db"
    ledger.write_bytes(ledger.read_bytes().replace(b"ANNM", b"MTCH"))
    before = sandbox.call_count

    file = desk.payments([NO_MATCH], name="february.csv")
    done = desk("run", file, *sandbox.using("sandbox"), "--reuse-from", january)

    assert done.status == 65
    assert sandbox.questions(before) == []


FORGED = "UPDATE answer SET code = 'MTCH', matched_name = NULL, name_salt = NULL"


def test_a_forged_ledger_gives_no_answer_whose_seals_are_whole(desk, sandbox, january):
    forge(january / "ledger.db", FORGED)
    before = sandbox.call_count
    file = desk.payments([NO_MATCH, MATCH], name="february.csv")

    refused = desk("run", file, *sandbox.using("sandbox"), "--reuse-from", january)

    assert (refused.status, sandbox.call_count) == (65, before)
    assert said("stores.ledger_not_recorded", path=january / "ledger.db") in refused.err
    assert not (desk.folder / "february.precheck" / "outcomes.csv").exists()


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        (["manifest.json.sig"], "january.precheck: not signed: there is no manifest.json.sig"),
        (["manifest.json.sig", "manifest.json"], "that the signing key has not sealed: "),
    ],
)
def test_where_the_profile_signs_only_signed_or_sealed_answers_are_used(desk, sandbox, attack, said):
    """With the signature, or if a run was killed before its manifest; not after a forgery of either."""
    key, _ = key_files(desk, "signing")
    january, words = desk.folder / "january.precheck", (*sandbox.using("sandbox"), "--sign-with", key)
    assert desk("run", desk.payments([NO_MATCH, MATCH], name="january.csv"), *words).status == 0
    file = desk.payments([MATCH], name="february.csv")
    again = ("run", file, *words, "--reuse-from", january)
    calls = sandbox.call_count
    assert (desk(*again, "--out", "signed").status, sandbox.call_count) == (0, calls)
    for name in attack:
        (january / name).unlink()
    if len(attack) == 2:
        assert (desk(*again, "--out", "unfinished").status, sandbox.call_count) == (0, calls)
    forge(january / "ledger.db", FORGED)
    if len(attack) == 1:
        fit_manifest(january)

    refused = desk(*again)

    assert (refused.status, sandbox.call_count, said in refused.err) == (65, calls, True), refused.err


def test_a_list_of_payees_asks_what_is_new_and_lists_the_names_that_are_others_at_the_bank(desk, sandbox):
    header = ("Vendor ID", "Vendor Name", "Account Type", "Sort Code", "Account Number")
    rows = [
        ("V-1", "Avery Thornwood", "Personal", "001122", "00012345"),
        ("V-2", "Averi Thornwood", "Personal", "001122", "00012345"),
    ]
    may = desk.payments([dict(zip(header, row, strict=True)) for row in rows], "may.csv", header)
    run = desk("run", may, *sandbox.using("sandbox"))
    assert (run.status, said("stages.list_of_payees") in " ".join(run.out.split())) == (0, True)
    assert said("terminal.no_amount_column") not in " ".join(run.out.split())
    with (desk.folder / "may.precheck" / "changes.csv").open(encoding="utf-8-sig") as file:
        [change] = csv.DictReader(file)
    assert (change["payee_key"], change["account"]) == ("V-2", "00012345")
    assert (change["name_now"], change["name_at_bank"]) == ("Averi Thornwood", "Avery Thornwood")

    rows[1] = ("V-2", "Avery Thornwood", *rows[1][2:])
    rows.append(("V-3", "Rookwater & Sons Ltd", "Business", "301200", "00700700"))
    june = desk.payments([dict(zip(header, row, strict=True)) for row in rows], "june.csv", header)
    before = sandbox.call_count
    assert desk("run", june, *sandbox.using("sandbox"), "--reuse-from", "may.precheck").status == 0
    assert len(sandbox.questions(before)) == 1
    assert desk("verify", "june.precheck").status == 0
    reason = ("--reason", "no longer needed")
    assert desk("purge", "june.precheck", "--payments", "--by", "Noor", *reason).status == 0
    assert not (desk.folder / "june.precheck" / "changes.csv").exists()
