"""The UK modulus check, from the user's tables to what a run rejects, warns of and counts."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

TODAY = datetime.now(UTC).date()
LAST_DIGIT = "010203 010203 MOD10 0 0 0 0 0 0 0 0 0 0 0 0 0 1\n"
"""Of the sort code of the network's payments, what ends in 0 passes."""
ANYTHING = "010203 010203 MOD10 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"


@pytest.fixture
def checking(desk, sandbox):
    """`checking(weights)`: the words for a profile with these tables."""

    def using(weights, day=TODAY):
        desk.file("weights.txt", weights)
        desk.file("substitutions.txt", "938600 938611\n")
        config = desk.configuration(mine={"cop": sandbox.section("production", "cop")})
        keys = (
            "[profiles.mine]",
            'modulus_weights = "weights.txt"',
            'modulus_substitutions = "substitutions.txt"',
            f"modulus_weights_date = {day}",
        )
        config.write_text("\n".join(keys) + "\n" + config.read_text())
        return "--config", config, "--profile", "mine"

    return using


@pytest.fixture
def file(desk, network_payments):
    """Accounts that end in 1 to 9 and 0, and one on another sort code."""
    rows = network_payments(11)
    return desk.payments([*rows[:10], {**rows[10], "sort_code": "010204"}])


def test_accounts_that_fail_cost_no_call(desk, sandbox, file, checking):
    before = sandbox.call_count

    run = desk("run", file, *checking(LAST_DIGIT), "--json")

    outcomes = desk.outcomes()
    assert run.status == 0
    assert [row["check_code"] for row in outcomes[:9]] == ["MODULUS"] * 9
    assert {row["check_outcome"] for row in outcomes[:9]} == {"rejected"}
    assert "rejected" not in {row["check_outcome"] for row in outcomes[9:]}
    assert len(sandbox.questions(before)) == 2
    told = json.loads(run.out)["modulus"]
    assert (told["uncovered_count"], told["is_old"], told["valid_from"]) == (1, False, TODAY.isoformat())


def test_accounts_that_are_not_covered_are_told(desk, file, checking):
    run = desk("run", file, *checking(LAST_DIGIT))
    assert said("terminal.not_covered_by_modulus", count=1) in run.out


def test_plan_counts_the_accounts_that_fail(desk, file, checking):
    planned = desk("plan", file, *checking(LAST_DIGIT))
    assert said("terminal.plan_title", payments="11 payments", accepted=2, rejected=9) in planned.out
    assert "MODULUS" in planned.out


def test_tables_older_than_a_year_warn_and_reject_nothing(desk, sandbox, file, checking):
    before = sandbox.call_count
    words = checking(LAST_DIGIT, TODAY - timedelta(days=400))

    run = desk("run", file, *words, "--fail-on", "MODULUS_OLD_TABLES")

    assert run.status == 1
    assert "rejected" not in {row["check_outcome"] for row in desk.outcomes()}
    assert len(sandbox.questions(before)) == 11
    assert said("warned.MODULUS_OLD_TABLES") + ": 9 rows" in run.out
    assert "Note: " + said("rule.modulus_old_tables", "") in desk.outcomes()[0]["check_reason"]
    for form in ("text", "json"):
        assert said("terminal.old_modulus_tables") in desk("run", file, *words, "--quiet", "--log", form).err


@pytest.mark.nightly
def test_other_tables_judge_the_rows_anew_and_forget_no_answer(desk, sandbox, file, checking):
    desk("run", file, *checking(LAST_DIGIT))
    before = sandbox.call_count

    again = desk("run", file, *checking(LAST_DIGIT))
    assert "Finished already" in again.out
    assert sandbox.call_count == before

    wider = desk("run", file, *checking(ANYTHING))
    assert wider.status == 0
    assert len(sandbox.questions(before)) == 9
    assert "rejected" not in {row["check_outcome"] for row in desk.outcomes()}

    asked = sandbox.call_count
    narrower = desk("run", file, *checking(LAST_DIGIT))
    assert narrower.status == 0
    assert sandbox.call_count == asked
    assert [row["check_code"] for row in desk.outcomes()[:9]] == ["MODULUS"] * 9


def test_a_damaged_table_ends_the_run_before_anything_is_sent_or_made(desk, sandbox, file, checking):
    before = sandbox.call_count

    run = desk("run", file, *checking("010203 010203\n"))

    assert run.status == 78
    assert "weights.txt line 1: " + said("rules.field_count_wrong", fields_count=2) in run.sentences[0]
    assert sandbox.call_count == before
    assert not (desk.folder / "payments.precheck").exists()


@pytest.mark.nightly
def test_show_tells_of_a_row_that_the_tables_rejected(desk, file, checking):
    desk("run", file, *checking(LAST_DIGIT))

    shown = desk("show", "payments.precheck", "--row", "1", "--json")

    story = json.loads(shown.out)
    assert [finding["code"] for finding in story["findings"]] == ["MODULUS"]
    assert story["question"] is None
    assert json.loads(desk("show", "payments.precheck", "--row", "10", "--json").out)["findings"] == []
