"""verify on frames: what agrees is said to, and what differs is named."""

from decimal import Decimal

import polars as pl
import pytest

from pipeline.frames import OUTCOMES, AnswerState
from pipeline.rules.totals import control_totals, outcome_totals, outcomes_with_money
from pipeline.runs.evidence import LedgerAnswers, LedgerContents, answers_agree, ledger_agrees, rows_agree
from pipeline.stages.plan import plan
from pipeline.stages.validate import Routes, validate
from pipeline.stores.values import FinalAnswer, FinishRecord, LedgerCounts, RunIdentity
from schemas.manifest import FileEvidence, LedgerEvidence, Manifest, ProfileUsed
from schemas.outcomes import ApiName, Environment
from schemas.summary import InputFile

TIME = "2030-01-01T00:00:00.000Z"
IDENTITY = RunIdentity("1f", "2e", "production", "1")
FINISH = FinishRecord(TIME, 2, 0, "0f")


@pytest.fixture
def payments(payments_of):
    return payments_of(
        {"amount": "1,000.10", "currency": "GBP"}, {"amount": "2", "currency": "GBP"}, {"amount": "x"}
    )


@pytest.fixture
def outcomes(outcomes_of):
    answered = {"id": "id-1", "time": TIME}
    return outcomes_of(
        answered, {"outcome": "rejected", "code": "X", "action": "correct_row", "api": None}, answered
    )


@pytest.fixture
def manifest(payments, outcomes):
    totals = outcome_totals(outcomes_with_money(payments, outcomes))
    return Manifest(
        tool_version="1",
        versions={},
        profile=ProfileUsed(
            name="main",
            sha256="2e",
            default_account_type="Personal",
            gb_iban_to="cop",
            ask_by="name",
            servers=[],
        ),
        environment=Environment.PRODUCTION,
        simulated=False,
        many_names_reason=None,
        started=TIME,
        finished=TIME,
        written=TIME,
        input=InputFile(
            name="x.csv", sha256="1f", byte_count=1, row_count=3, format="csv", encoding="utf-8", columns={}
        ),
        mapping={},
        outcome_file=FileEvidence(name="outcomes.csv", sha256="0f", byte_count=1),
        files=[],
        outcomes=totals,
        totals=control_totals(totals),
        ledger=LedgerEvidence(
            question_count=1,
            unanswered_count=0,
            answer_count=1,
            reused_count=0,
            attempt_count=2,
            created_at=TIME,
            finish_count=1,
            digests={"answer": "d1"},
        ),
        approvals=[],
    )


def kept(**changes):
    answer = FinalAnswer(b"q", AnswerState.ANSWERED, "MTCH", None, "id-1", TIME, 1)
    usual = {"run": IDENTITY, "counts": LedgerCounts(2, 1, 0), "finish": FINISH, "answers": [answer]}
    usual["digests"] = {"answer": "d1"}
    return LedgerContents(**{**usual, **changes})


def differing(findings):
    return {str(finding.what) for finding in findings if finding.exit_code}


def test_what_agrees_is_well(manifest, payments, outcomes):
    assert control_totals(manifest.outcomes)[0].amount == Decimal("1002.10")
    assert differing(rows_agree(manifest, [(payments, outcomes)])) == set()
    assert differing(ledger_agrees(manifest, kept(), [outcomes])) == set()


def test_another_amount_is_found(manifest, payments, outcomes):
    other = payments.with_columns(amount=pl.lit("1"))
    assert differing(rows_agree(manifest, [(other, outcomes)])) == {"totals"}


def test_an_amount_moved_from_one_outcome_to_another_is_found(manifest, payments, outcomes):
    swapped = payments.with_columns(pl.col("amount", "currency").gather([1, 0, 2]))
    assert differing(rows_agree(manifest, [(swapped, outcomes)])) == {"totals"}


def test_another_outcome_is_found(manifest, payments, outcomes):
    other = outcomes.with_columns(check_outcome=pl.lit("match", OUTCOMES["check_outcome"]))
    assert "rows" in differing(rows_agree(manifest, [(payments, other)]))


@pytest.mark.parametrize("field", ["input_sha256", "profile_sha256", "environment"])
def test_a_ledger_of_another_run_is_found(manifest, outcomes, field):
    other = kept(run=IDENTITY._replace(**{field: "another"}))
    assert differing(ledger_agrees(manifest, other, [outcomes])) == {"run"}


@pytest.mark.parametrize(
    "changes",
    [
        {"counts": LedgerCounts(3, 1, 0)},
        {"finish": FINISH._replace(outcome_sha256="another")},
        {"finish": None},
    ],
)
def test_a_ledger_that_went_on_is_found(manifest, outcomes, changes):
    assert differing(ledger_agrees(manifest, kept(**changes), [outcomes])) == {"ledger"}


@pytest.mark.parametrize("field", ["check_id", "check_code", "check_time"])
def test_an_answer_that_is_not_on_record_is_found(manifest, outcomes, field):
    changed = pl.when(pl.col("row") == 3).then(pl.lit("another")).otherwise(field)
    findings = ledger_agrees(manifest, kept(), [outcomes.with_columns(changed.alias(field))])
    assert differing(findings) == {"answers"}
    assert "row 3;" in str(findings[-1].detail)


@pytest.mark.parametrize(("outcome", "differs"), [("not_possible", set()), ("match", {"answers"})])
def test_a_row_that_nobody_was_to_ask_about_needs_no_answer(manifest, outcomes, outcome, differs):
    is_third = pl.col("row") == 3
    unasked = outcomes.with_columns(
        check_outcome=pl.when(is_third)
        .then(pl.lit(outcome, OUTCOMES["check_outcome"]))
        .otherwise("check_outcome"),
        check_code=pl.when(is_third).then(pl.lit("OUT_OF_REACH")).otherwise("check_code"),
        check_id=pl.when(~is_third).then("check_id"),
    )
    assert differing(ledger_agrees(manifest, kept(), [unasked])) == differs


def test_a_match_without_an_id_is_never_taken_for_an_answer(manifest, outcomes):
    absent = pl.lit(None, dtype=pl.String)
    findings = ledger_agrees(manifest, kept(), [outcomes.with_columns(check_id=absent, check_time=absent)])
    assert differing(findings) == {"answers"}


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({}, set()),
        ({"matched_name": None}, {"answers"}),
        ({"matched_name": "Eve Quillon"}, {"answers"}),
        ({"action": "pay"}, {"answers"}),
        ({"outcome": "match"}, {"answers"}),
    ],
)
def test_what_was_taken_out_of_a_row_or_changed_in_it_is_found(
    manifest, payments_of, outcomes_of, changes, differs
):
    payment = {"name": "Ada Quilon", "sort_code": "112233", "account_number": "00000001"}
    planned = plan(validate(payments_of(payment), Routes([ApiName.COP])).accepted)
    answer = FinalAnswer(b"q", AnswerState.ANSWERED, "MBAM", "Ada Quillon", "id-1", TIME, 1)
    row = {"outcome": "close_match", "code": "MBAM", "action": "fix_name", "matched_name": "Ada Quillon"}
    outcomes = outcomes_of({**row, "id": "id-1", "time": TIME, **changes})
    known = LedgerAnswers(lambda _check: b"q", lambda _keys: {b"q": answer}, has_names=True, purged_before="")
    assert differing(answers_agree(manifest, [(planned, outcomes)], known)) == differs
