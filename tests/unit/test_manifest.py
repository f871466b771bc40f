"""The manifest of a folder: what is in it, and that renewing it never covers up a change."""

import hashlib
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from refusals import refused

from pipeline.apis.cop import Cop
from pipeline.apis.vop import VopStandard
from pipeline.config import Profile
from pipeline.errors import DiskError, InputError, UsageError
from pipeline.rules.totals import control_totals
from pipeline.runs.folder import keep_document
from pipeline.runs.manifest import (
    LedgerSummary,
    RunSettings,
    looks_payable,
    read_manifest,
    refresh_manifest,
    unrecorded,
    write_manifest,
)
from pipeline.stores.values import FinishRecord, LedgerCounts
from schemas.folder import SUMMARY
from schemas.outcomes import Environment, Outcome
from schemas.summary import InputFile, Money, OutcomeTotal, Summary

NOW = datetime(2030, 1, 2, tzinfo=UTC)
TIME = "2030-01-01T00:00:00.000Z"
APPROVAL = {
    "by": "J. Treasurer",
    "time": TIME,
    "what": "pay",
    "why": "known supplier",
    "rows": [3, 5],
    "approved_by": "A. Approver",
    "approved_at": TIME,
    "self_approved": False,
}
SERVER = {"server": "production", "base_url": "https://cop.example"}
PROFILE = Profile(
    cop=Cop(
        **SERVER,
        token_url="https://login.example/tenant-canary/token",
        client_id="canary-client-12345678",
        client_secret_env="CANARY_SECRET",
        scope="canary/.default",
    ),
    vop=VopStandard(
        **SERVER,
        api="standard",
        client_certificate=Path("canary.pem"),
        client_key=Path("canary.key"),
        client_key_password_env="CANARY_PASSWORD",
        requesting_bic="ABCDGB2LXXX",
        bic_table={"DE10010010": "PBNKDEFFXXX"},
    ),
)


def total(outcome, *amounts):
    totals = [Money(currency=currency, row_count=1, amount=Decimal(amount)) for currency, amount in amounts]
    return OutcomeTotal(outcome=outcome, row_count=len(amounts), totals=totals)


@pytest.fixture
def summary():
    return Summary(
        tool_version="1",
        profile="main",
        environment=Environment.PRODUCTION,
        simulated=False,
        started=TIME,
        finished=TIME,
        input=InputFile(
            name="x.csv",
            sha256="1f" * 32,
            byte_count=1,
            row_count=2,
            format="csv",
            encoding="utf-8",
            columns={},
        ),
        outcomes=[
            total(Outcome.MATCH, ("GBP", "1.10")),
            total(Outcome.NO_MATCH, ("GBP", "2.20"), (None, "3")),
        ],
        codes=[],
        routes=[],
        calls=[],
        saved_call_count=0,
        attention=[],
        attention_count=0,
        warnings=[],
        warning_count=0,
        complete=True,
        next_step=None,
    )


@pytest.fixture
def folder(tmp_path, summary):
    """The folder of a run, with its manifest."""
    files = [tmp_path / name for name in ("outcomes.csv", "summary.json", "attention.csv")]
    for path in files:
        path.write_bytes(path.name.encode())
    keep_document(tmp_path / SUMMARY, summary)
    sha256 = hashlib.sha256(b"outcomes.csv").hexdigest()
    recorded = LedgerSummary(FinishRecord(TIME, 2, 0, sha256), LedgerCounts(3, 1, 1), TIME, 1, {})
    settings = RunSettings("main", PROFILE, "2e" * 32, {"name": "Payee"}, "en")
    write_manifest(tmp_path, summary, settings, recorded, files)
    return tmp_path


def names(manifest):
    return [file.name for file in manifest.files]


def hash_in(manifest, name):
    return next(file.sha256 for file in manifest.files if file.name == name)


def test_no_credential_is_in_it_and_the_client_is_masked(folder):
    text = (folder / "manifest.json").read_text()
    assert "canary" not in text.lower()
    cop, vop = read_manifest(folder).profile.servers
    assert (cop.client, vop.client) == ("****5678", "****LXXX")
    assert vop.bic_table == {"DE10010010": "PBNKDEFFXXX"}


def test_limits_are_those_that_were_kept(folder):
    cop = read_manifest(folder).profile.servers[0]
    assert (cop.base_url, cop.rate_per_s, cop.in_flight_max, cop.daily_cap) == (
        "https://cop.example",
        20,
        64,
        None,
    )


def test_control_totals_are_over_all_outcomes_by_currency(folder):
    assert [(money.currency, money.row_count, money.amount) for money in read_manifest(folder).totals] == [
        ("GBP", 2, Decimal("3.30")),
        (None, 1, Decimal(3)),
    ]
    assert control_totals([]) == []


def test_a_file_that_was_added_is_taken_in_and_a_changed_one_keeps_its_hash(folder):
    before = read_manifest(folder)
    (folder / "corrections.csv").write_bytes(b"new")
    (folder / "attention.csv").write_bytes(b"changed by hand")

    after = refresh_manifest(folder, read_manifest(folder), now=NOW, written=["corrections.csv"])

    assert read_manifest(folder) == after
    assert names(after) == ["summary.json", "attention.csv", "corrections.csv"]
    assert hash_in(after, "attention.csv") == hash_in(before, "attention.csv")
    assert hash_in(after, "corrections.csv") == hashlib.sha256(b"new").hexdigest()
    assert after.written == "2030-01-02T00:00:00.000Z"


def test_a_file_that_its_command_wrote_anew_gets_its_new_hash(folder):
    (folder / "attention.csv").write_bytes(b"anew")
    (folder / "stray.txt").write_bytes(b"not named")

    after = refresh_manifest(folder, read_manifest(folder), now=NOW, written=["attention.csv"])

    assert hash_in(after, "attention.csv") == hashlib.sha256(b"anew").hexdigest()
    assert names(after) == ["summary.json", "attention.csv"]


def test_only_a_run_changes_what_the_outcome_file_is_known_by(folder):
    with pytest.raises(AssertionError):
        refresh_manifest(folder, read_manifest(folder), now=NOW, written=["outcomes.csv"])


def test_approvals_are_taken_in_and_only_ever_grow(folder):
    approvals = folder / "approvals.json"
    approvals.write_text(json.dumps([APPROVAL]))
    refresh_manifest(folder, read_manifest(folder), now=NOW, written=[])
    approvals.write_text(json.dumps([APPROVAL, {**APPROVAL, "what": "hold"}]))

    after = refresh_manifest(folder, read_manifest(folder), now=NOW, written=[])

    assert [(one.by, one.what, one.rows) for one in after.approvals] == [
        ("J. Treasurer", "pay", [3, 5]),
        ("J. Treasurer", "hold", [3, 5]),
    ]
    assert "approvals.json" not in names(after)
    other = {**APPROVAL, "by": "Somebody Else"}
    for changed in ([], [other], [other, {**APPROVAL, "what": "hold"}]):
        approvals.write_text(json.dumps(changed))
        with refused(InputError, "runs.approval_missing_or_changed"):
            refresh_manifest(folder, read_manifest(folder), now=NOW, written=[])
    assert read_manifest(folder) == after


@pytest.mark.parametrize("content", ["{", "{}", '[{"by": "x"}]'])
def test_approvals_that_cannot_be_read_are_not_passed_over(folder, content):
    (folder / "approvals.json").write_text(content)
    with refused(InputError, "runs.decisions_unreadable", path="approvals.json"):
        refresh_manifest(folder, read_manifest(folder), now=NOW, written=[])


@pytest.mark.parametrize("content", ["", "{}", '{"tool_version": 1, "tool_version": 2}'])
def test_a_manifest_that_cannot_be_read_is_an_input_error(folder, content):
    (folder / "manifest.json").write_text(content)
    with refused(InputError, "runs.manifest_unreadable"):
        read_manifest(folder)


def test_a_folder_without_a_manifest_is_a_usage_error(tmp_path):
    with refused(UsageError, "runs.no_manifest_in_folder"):
        read_manifest(tmp_path)


def test_a_file_that_is_not_there_cannot_be_recorded(folder):
    with refused(DiskError, "runs.evidence_unreadable", path="gone.csv"):
        refresh_manifest(folder, read_manifest(folder), now=NOW, written=["gone.csv"])


def test_whatever_is_not_in_the_manifest_is_found_but_for_the_ledger_and_the_lock(folder):
    for name in ("ledger.db", "ledger.db-wal", ".lock", "extra.csv"):
        (folder / name).write_bytes(b"x")
    (folder / "link.csv").symlink_to(folder / "extra.csv")
    (folder / ".hidden").touch()
    (folder / "ledger.db.csv").touch()
    (folder / "more").mkdir()
    others = {"extra.csv", "link.csv", ".hidden", "ledger.db.csv", "more"}
    assert unrecorded(folder, read_manifest(folder)) == others


@pytest.mark.parametrize(
    ("name", "is_payable"),
    [
        ("release.csv", True),
        (".Release.simulated.xml", True),
        ("\uff32elease.csv", True),
        ("corrected", True),
        ("payments.xlsx", True),
        ("rel\u200bease.csv", True),
        ("r\u00e9lease.csv", True),
        ("rel\u0435ase.csv", True),
        ("hold.csv", True),
        ("Zahlungen.csv", True),
        ("notes.txt", False),
        ("threshold.txt", False),
        ("\u043e\u0442\u0447\u0435\u0442.txt", False),
        ("report.changed-1.xlsx", False),
    ],
)
def test_names_under_which_someone_would_look_for_payments(name, is_payable):
    assert looks_payable(name) is is_payable
