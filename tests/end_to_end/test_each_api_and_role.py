"""Each API and each role of server: what a row says is what the responder said."""

import pytest

from pipeline.sandbox.accounts import describe_accounts

pytestmark = pytest.mark.usefixtures("in_this_process")

OUTCOMES = {
    "MATCHED": ("match", "pay"),
    "MTCH": ("match", "pay"),
    "MBAM": ("close_match", "fix_name"),
    "CMTC": ("close_match", "fix_name"),
    "BAMM": ("close_match", "fix_name_and_account_type"),
    "PAMM": ("close_match", "fix_name_and_account_type"),
    "ANNM": ("no_match", "ask_payee"),
    "NMTC": ("no_match", "ask_payee"),
    "BANM": ("no_match", "fix_account_type"),
    "PANM": ("no_match", "fix_account_type"),
    "AC01": ("not_possible", "check_account_details"),
    "NOAP": ("not_possible", "ask_payee"),
}
"""DESIGN: the table of outcomes, for the codes that the sandbox server gives."""

GB_IBAN, FR_IBAN, DE_IBAN = (
    "GB10THRN30120000700700",
    "FR7630003012340000482100733",
    "DE35370400440084210077",
)
IDENTIFICATIONS = {"LEI": "lei", "BIC": "organisation_bic", "TXID": "organisation_id"}
HEADER = (
    "name", "account_type", "sort_code", "account_number", "iban", "bic",
    "lei", "organisation_bic", "organisation_id", "organisation_id_scheme",
)  # fmt: skip


def row_of(answer):
    if answer.api == "cop":
        account = {"sort_code": answer.account[:6], "account_number": answer.account[6:]}
        return {**account, "account_type": answer.account_type.value, "name": answer.asked}
    kind, _, value = answer.asked.partition(" ")
    if kind not in IDENTIFICATIONS:
        return {"iban": answer.account, "name": answer.asked}
    scheme = {"organisation_id_scheme": kind} if kind == "TXID" else {}
    return {"iban": answer.account, IDENTIFICATIONS[kind]: value, **scheme}


@pytest.mark.parametrize(
    ("profile", "api", "answer_api"),
    [
        ("sandbox", "cop", "cop"),
        ("sandbox", "vop_gateway", "vop_gateway"),
        ("sandbox-standard", "vop_standard", "vop_gateway"),
    ],
)
def test_every_dummy_account_gives_the_outcome_of_the_table(desk, sandbox, profile, api, answer_api):
    answers = [answer for answer in describe_accounts() if answer.api == answer_api]
    file = desk.payments(map(row_of, answers), header=HEADER)

    # The fixed accounts are there to be asked about by every name that they know.
    words = (*sandbox.using(profile), "--allow-many-names", "every name of the dummy accounts", "--quiet")
    assert desk("run", file, *words).status == 0

    rows = desk.outcomes()
    assert len(rows) == len(answers)
    for row, answer in zip(rows, answers, strict=True):
        code = "MTCH" if answer.code == "MATCHED" else answer.code
        assert (row["check_code"], row["check_outcome"], row["check_action"]) == (
            code,
            *OUTCOMES[answer.code],
        )
        assert row["check_matched_name"] == (answer.matched_name or "")
        assert (row["check_api"], row["check_environment"]) == (api, "sandbox")
        assert row["check_attempts"] == "1"
        assert row["check_id"]
        assert row["check_time"].endswith("Z")
    named = {answer.code for answer in answers if answer.api == "cop"}
    if api == "cop":
        assert named == {"MATCHED", "MBAM", "ANNM", "AC01", "BANM", "BAMM", "PANM", "PAMM"}


@pytest.mark.nightly
def test_correlation_ids_are_those_that_the_server_saw(desk, sandbox):
    answers = [answer for answer in describe_accounts() if answer.api == "cop"]
    file = desk.payments(map(row_of, answers), header=HEADER)
    before = sandbox.call_count

    desk("run", file, *sandbox.using("sandbox"), "--quiet")

    seen = {call["request_id"] for call in sandbox.questions(before)}
    assert {row["check_id"] for row in desk.outcomes()} == seen


@pytest.mark.parametrize(
    "profile",
    [
        "production",
        *(
            pytest.param(profile, marks=pytest.mark.nightly)
            for profile in ("sandbox", "sandbox-standard", "production-standard")
        ),
    ],
)
def test_whatever_role_a_sandbox_plays_its_answers_are_called_simulated(desk, sandbox, profile):
    file = desk.payments([{"name": "Solène Montferrand", "iban": FR_IBAN}])

    finished = desk("run", file, *sandbox.using(profile))

    assert finished.status == 0
    assert "SIMULATED" in finished.out
    assert [row["check_environment"] for row in desk.outcomes()] == ["sandbox"]


def test_answers_of_a_production_server_are_not_called_simulated(desk, sandbox, network_payments):
    file = desk.payments(network_payments(3))
    section = sandbox.section("production", "cop", server="production")
    config = desk.configuration(real={"cop": section})

    finished = desk("run", file, "--config", config, "--profile", "real")

    assert finished.status == 0
    assert "SIMULATED" not in finished.err.upper()
    rows = desk.outcomes()
    assert {row["check_environment"] for row in rows} == {"production"}


@pytest.mark.parametrize(
    ("profile", "api"),
    [
        pytest.param("production", "vop_gateway", marks=pytest.mark.nightly),
        ("production-standard", "vop_standard"),
    ],
)
def test_the_network_answers_for_accounts_it_was_never_told_of(desk, sandbox, profile, api):
    file = desk.payments([{"name": "Nobody Known", "iban": iban} for iban in (FR_IBAN, DE_IBAN)])

    assert desk("run", file, *sandbox.using(profile), "--quiet").status == 0

    rows = desk.outcomes()
    assert {row["check_api"] for row in rows} == {api}
    assert {row["check_code"] for row in rows} <= {"MTCH", "CMTC", "NMTC", "NOAP"}


def test_a_gb_iban_is_checked_by_the_account_in_it(desk, sandbox):
    file = desk.payments([{"name": "Rookwater & Sons Ltd", "account_type": "Business", "iban": GB_IBAN}])

    desk("run", file, *sandbox.using("sandbox"), "--quiet")

    [row] = desk.outcomes()
    assert (row["check_api"], row["check_outcome"], row["iban"]) == ("cop", "match", GB_IBAN)
