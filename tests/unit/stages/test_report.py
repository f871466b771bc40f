"""Counts and money: the totals of the summary are those of the file."""

from decimal import Decimal

import polars as pl
import pytest

from pipeline.frames import ACCEPTED, ASSIGNMENTS, OUTCOMES, REJECTS, WARNINGS
from pipeline.rules.totals import plain
from pipeline.stages.forecast import ApiLimits, QuestionCounts, SparedChecks, counts_by_api, forecast
from pipeline.stages.summarise import route_counts, summarise
from schemas.outcomes import ApiName, Environment, Outcome
from schemas.prices import Price
from schemas.row_positions import RowPositions
from schemas.summary import ROWS_LISTED_MAX, ApiCalls, InputFile, Summary

TIME = "2030-01-02T03:04:05.678Z"
NO_WARNINGS = pl.DataFrame(schema=WARNINGS)
SAID = '["rule.name_missing",{}]'
NO_MATCH = {"outcome": "no_match", "code": "ANNM", "reason": "The name is another.", "action": "ask_payee"}
REJECTED = {"outcome": "rejected", "code": "IBAN_FORMAT", "reason": "iban: not an IBAN.", "api": None} | {
    "action": "correct_row",
    "attempts": 0,
}
DEFERRED = {"outcome": "deferred", "code": "DAILY_CAP", "reason": "Used up.", "action": "retry_later"}


def header_of(environment=Environment.PRODUCTION):
    source = InputFile(
        name="x.csv", sha256="0", byte_count=1, row_count=1, format="csv", encoding="utf-8", columns={}
    )
    run = {"tool_version": "0", "profile": "production", "environment": environment, "routes": []}
    return run | {"started": TIME, "finished": TIME, "input": source, "next_step": "run again"}


def calls_of(question_count):
    return [
        ApiCalls(api=ApiName.COP, question_count=question_count, answered_before_count=0, request_count=1)
    ]


@pytest.fixture
def summary_of(payments_of, outcomes_of):
    """Pairs of (fields of a payment, its outcome) -> a summary."""

    def build(*rows, warnings=NO_WARNINGS, question_count=0, environment=Environment.PRODUCTION):
        payments = payments_of(*(payment for payment, _ in rows))
        outcomes = outcomes_of(*(outcome for _, outcome in rows)) if rows else pl.DataFrame(schema=OUTCOMES)
        calls = calls_of(question_count)
        return summarise(header_of(environment), payments, outcomes, warnings, calls)

    return build


def totals(summary, outcome):
    (total,) = (total for total in summary.outcomes if total.outcome is outcome)
    return total.row_count, [(money.currency, money.row_count, str(money.amount)) for money in total.totals]


def test_a_repeated_payment_names_the_earlier_row_as_data_and_no_other_warning_does(summary_of):
    said = [("PAYMENT_REPEATED", '["rule.payment_repeated",{"row":1}]'), ("MANY_NAMES", '["x.y",{"row":1}]')]
    warnings = pl.DataFrame(
        [(2, "row", code, "in any words", sentence) for code, sentence in said], schema=WARNINGS, orient="row"
    )
    summary = summary_of(({"name": "Ada"}, {}), ({"name": "Ada"}, {}), warnings=warnings)
    assert [warning.repeats for warning in summary.warnings] == [1, None]


def test_money_is_added_up_by_outcome_and_currency(summary_of):
    summary = summary_of(
        ({"amount": "1,234.50", "currency": "GBP"}, {}),
        ({"amount": "0.50", "currency": "gbp"}, {}),
        ({"amount": "5", "currency": "EUR"}, {}),
        ({"amount": "7"}, {}),
        ({}, {}),
        ({"amount": "1.234", "currency": "GBP"}, {}),
        ({"amount": "9.99", "currency": "GBP"}, NO_MATCH),
        ({"amount": "1.00", "currency": "GBP"}, REJECTED),
    )
    assert totals(summary, Outcome.MATCH) == (
        6,
        [("EUR", 1, "5.00"), ("GBP", 2, "1235.00"), (None, 1, "7.00")],
    )
    assert totals(summary, Outcome.NO_MATCH) == (1, [("GBP", 1, "9.99")])
    assert totals(summary, Outcome.REJECTED) == (1, [("GBP", 1, "1.00")])


def test_currency_is_read_as_the_rules_read_it(summary_of):
    summary = summary_of(({"amount": "1", "currency": "g b p"}, {}), ({"amount": "2", "currency": "GBP"}, {}))
    assert totals(summary, Outcome.MATCH) == (2, [("GBP", 2, "3.00")])


def test_every_outcome_is_listed_in_order_even_without_rows(summary_of):
    summary = summary_of()
    assert [total.outcome for total in summary.outcomes] == list(Outcome)
    assert {total.row_count for total in summary.outcomes} == {0}
    assert summary.codes == []
    assert summary.complete


def test_cents_are_never_lost(summary_of):
    rows = [({"amount": "0.01", "currency": "GBP"}, {})] * 1000 + [({"amount": "99999999999999.99"}, {})]
    summary = summary_of(*rows)
    assert totals(summary, Outcome.MATCH)[1] == [("GBP", 1000, "10.00"), (None, 1, "99999999999999.99")]


def test_codes_are_counted_the_most_frequent_first(summary_of):
    summary = summary_of(
        ({}, NO_MATCH), ({}, REJECTED), ({}, NO_MATCH), ({}, {}), ({}, {**NO_MATCH, "code": "AC01"})
    )
    assert [(code.code, code.row_count) for code in summary.codes] == [
        ("ANNM", 2),
        ("AC01", 1),
        ("IBAN_FORMAT", 1),
        ("MTCH", 1),
    ]


def test_code_has_its_own_sentence_and_not_the_notes_of_one_row(summary_of):
    noted = {**NO_MATCH, "reason": f"{NO_MATCH['reason']} Note: the same payment as row 1."}
    summary = summary_of(({}, noted), ({}, NO_MATCH), ({}, noted))
    assert [code.reason for code in summary.codes] == [NO_MATCH["reason"]]
    every_row_is_noted = summary_of(({}, noted), ({}, noted))
    assert [code.reason for code in every_row_is_noted.codes] == [NO_MATCH["reason"]]


def test_same_code_under_two_outcomes_is_counted_apart(summary_of):
    summary = summary_of(
        ({}, {**REJECTED, "code": "SERVER_ERROR"}), ({}, {**DEFERRED, "code": "SERVER_ERROR"})
    )
    assert [(code.code, code.outcome) for code in summary.codes] == [
        ("SERVER_ERROR", Outcome.DEFERRED),
        ("SERVER_ERROR", Outcome.REJECTED),
    ]


def test_attention_has_the_largest_amounts_first_and_those_without_last(summary_of):
    summary = summary_of(
        ({"payment_id": "none"}, NO_MATCH),
        ({"payment_id": "small", "amount": "5"}, NO_MATCH),
        ({"payment_id": "matched", "amount": "900"}, {}),
        ({"payment_id": "rejected", "amount": "900"}, REJECTED),
        (
            {"payment_id": "large", "amount": "100", "currency": "eur"},
            {**NO_MATCH, "outcome": "not_possible"},
        ),
        ({"payment_id": "tie", "amount": "5.00"}, NO_MATCH),
    )
    assert [row.payment_id for row in summary.attention] == ["large", "small", "tie", "none"]
    assert [row.row for row in summary.attention] == [5, 2, 6, 1]
    assert summary.attention_count == 4
    assert (summary.attention[0].amount, summary.attention[0].currency) == (Decimal("100.00"), "EUR")


def test_warnings_are_counted_by_code_in_rows_and_not_in_sentences(summary_of):
    said = [(3, "PAYMENT_REPEATED"), (2, "PAYMENT_REPEATED"), (3, "MANY_NAMES"), (3, "MANY_NAMES")]
    warnings = pl.DataFrame([(row, "name", code, "odd", SAID) for row, code in said], WARNINGS, orient="row")
    summary = summary_of(*[({}, NO_MATCH)] * 3, warnings=warnings)
    counts = [(count.code.value, count.row_count, count.rows) for count in summary.warning_codes]
    assert counts == [("PAYMENT_REPEATED", 2, [2, 3]), ("MANY_NAMES", 1, [3])]


def test_lists_have_an_end_and_counts_do_not(summary_of):
    count = ROWS_LISTED_MAX + 1
    warnings = pl.DataFrame(
        [(row, "row", "MIXED_SCRIPTS", "odd", SAID) for row in range(1, count + 1)], WARNINGS, orient="row"
    )
    summary = summary_of(*[({}, NO_MATCH)] * count, warnings=warnings)
    assert (len(summary.attention), summary.attention_count) == (ROWS_LISTED_MAX, count)
    assert (len(summary.warnings), summary.warning_count) == (ROWS_LISTED_MAX, count)


@pytest.mark.parametrize("code", ["deferred", "unanswered"])
def test_rows_for_a_later_run_make_a_run_incomplete_and_say_how_to_go_on(summary_of, code):
    summary = summary_of(({}, {}), ({}, {**DEFERRED, "outcome": code}))
    assert not summary.complete
    assert summary.next_step == "run again"
    finished = summary_of(({}, {}), ({}, REJECTED), ({}, NO_MATCH))
    assert finished.complete
    assert finished.next_step is None


def test_saved_calls_are_the_payments_that_shared_a_question(summary_of):
    summary = summary_of(({}, {}), ({}, {}), ({}, NO_MATCH), ({}, REJECTED), question_count=2)
    assert summary.saved_call_count == 1


@pytest.mark.parametrize("environment", Environment)
def test_only_a_sandbox_is_simulated(summary_of, environment):
    assert summary_of(environment=environment).simulated is (environment is Environment.SANDBOX)


def test_summary_holds_no_name_and_no_account(summary_of):
    secret = {"name": "Ada Quillon", "account_number": "12345678", "iban": "DE89370400440532013000"}
    secret |= {
        "sort_code": "998877",
        "secondary_reference": "ROLL 7",
        "reference": "for Ada",
        "lei": "LEILEI",
    }
    outcome = {**NO_MATCH, "outcome": "close_match", "matched_name": "ADA QUILLON"}
    text = summary_of((secret, NO_MATCH), (secret, outcome), (secret, REJECTED)).model_dump_json()
    for value in (*secret.values(), "ADA QUILLON"):
        assert value not in text


def test_summary_is_the_same_after_writing_and_reading(summary_of):
    summary = summary_of(({"amount": "0.10", "currency": "GBP"}, NO_MATCH), ({}, DEFERRED))
    assert Summary.model_validate_json(summary.model_dump_json()) == summary


@pytest.mark.parametrize("payment_count", [0, 2])
def test_outcomes_of_another_file_are_a_mistake_of_ours(payments_of, outcomes_of, payment_count):
    with pytest.raises(AssertionError):
        summarise(header_of(), payments_of(*[{}] * payment_count), outcomes_of({}), NO_WARNINGS, [])


@pytest.mark.parametrize(
    ("amount", "written"),
    [("5.000", "5.00"), ("5.120", "5.12"), ("5.123", "5.123"), ("-0.100", "-0.10"), ("0", "0.00")],
)
def test_amount_has_two_decimals_or_the_third_that_it_needs(amount, written):
    assert str(plain(Decimal(amount))) == written


# The forecast


@pytest.fixture
def forecast_of(checks_of, check_of):
    def build(question_count, row_count, limits, rejects=(), spared=SparedChecks(), places=None):  # noqa: B008 (it is frozen)
        checks = checks_of(*(check_of(check=number) for number in range(1, question_count + 1)))
        rows = [(row, (row - 1) % question_count + 1) for row in range(1, row_count + 1)]
        assignments = pl.DataFrame(rows, schema=ASSIGNMENTS, orient="row")
        findings = (
            pl.DataFrame([(*one, SAID) for one in rejects], schema=REJECTS, orient="row"),
            NO_WARNINGS,
        )
        counts = counts_by_api(checks, assignments, spared)
        why = spared.why_uncounted
        return forecast(
            "x.csv", Environment.TEST, findings, counts, limits, positions=places, why_uncounted=why
        )

    return build


def test_forecast_counts_questions_time_and_days(forecast_of):
    rejects = [(11, "name", "NAME_MISSING", "no name"), (11, "iban", "IBAN_FORMAT", "not an IBAN")]
    limits = {ApiName.COP: ApiLimits(2.0, 3), ApiName.VOP_GATEWAY: ApiLimits(2.0, None)}
    found = forecast_of(7, 10, limits, rejects)
    assert (found.row_count, found.accepted_count, found.rejected_count) == (11, 10, 1)
    assert found.saved_call_count == 3
    assert len(found.rejects) == 2
    (api,) = found.apis
    assert (api.api, api.row_count, api.question_count) == (ApiName.COP, 10, 7)
    assert (api.duration_s, api.day_count) == (3.5, 3)


def test_each_reject_says_where_its_row_stands_in_the_file(forecast_of):
    rejects = [(11, "name", "NAME_MISSING", "no name"), (12, "name", "NAME_MISSING", "no name")]
    places = RowPositions(unit="sheet row", stretches=[(1, 5, 1), (12, 40, 1)])

    limits = {ApiName.COP: ApiLimits(2.0, None)}
    assert [told.place for told in forecast_of(1, 1, limits, rejects, places=places).rejects] == [
        *("sheet row 15", "sheet row 40")
    ]
    assert [told.place for told in forecast_of(1, 1, limits, rejects).rejects] == [None, None]


def test_what_the_profile_leaves_unasked_is_no_broken_row(forecast_of):
    rejects = [
        (11, "iban", "OUT_OF_REACH", "not asked"),
        (12, "name", "NAME_MISSING", "no name"),
        (12, "iban", "OUT_OF_REACH", "not asked"),
    ]
    found = forecast_of(7, 10, {ApiName.COP: ApiLimits(2.0, 3)}, rejects)
    assert (found.row_count, found.accepted_count) == (12, 10)
    assert (found.rejected_count, found.unasked_count) == (1, 1)


def test_what_is_answered_already_takes_no_call_no_time_and_no_day(forecast_of):
    spared = SparedChecks(frozenset({1, 2}), frozenset({3}), "the folder: why")
    found = forecast_of(7, 10, {ApiName.COP: ApiLimits(2.0, 2)}, spared=spared)
    (api,) = found.apis
    assert (api.question_count, api.answered_before_count, api.reused_count, api.call_count) == (7, 2, 1, 4)
    assert (api.duration_s, api.day_count) == (2.0, 2)
    assert found.why_uncounted == "the folder: why"


@pytest.mark.parametrize(("question_count", "day_count"), [(1, 1), (50, 1), (51, 2), (100, 2), (101, 3)])
def test_cap_decides_on_how_many_days(forecast_of, question_count, day_count):
    (api,) = forecast_of(question_count, question_count, {ApiName.COP: ApiLimits(20, 50)}).apis
    assert api.day_count == day_count


def test_without_a_cap_one_day_will_do(forecast_of):
    (api,) = forecast_of(1000, 1000, {ApiName.COP: ApiLimits(20, None)}).apis
    assert api.day_count == 1


def test_ways_are_counted_with_their_reason_and_where_the_bic_came_from():
    rows = [
        {"row": 1, "api": "cop", "route_reason": "sort code and account number"},
        {"row": 2, "api": "vop_standard", "route_reason": "IBAN", "bic_source": "file"},
        {"row": 3, "api": "vop_standard", "route_reason": "IBAN", "bic_source": "registry"},
        {"row": 4, "api": "vop_standard", "route_reason": "IBAN", "bic_source": "registry"},
    ]
    counts = route_counts(pl.DataFrame(rows, schema=ACCEPTED))
    assert [(count.api, count.bic_source, count.row_count) for count in counts] == [
        ("cop", None, 1),
        ("vop_standard", "file", 1),
        ("vop_standard", "registry", 2),
    ]


@pytest.mark.parametrize(("used_count", "day_count"), [(0, 2), (30, 3), (50, 2), (70, 2)])
def test_what_is_used_of_today_takes_a_later_day(forecast_of, used_count, day_count):
    (api,) = forecast_of(100, 100, {ApiName.COP: ApiLimits(20, 50, used_count)}).apis
    assert (api.used_count, api.day_count) == (used_count, day_count)


def price(text, currency="GBP"):
    return Price(amount=Decimal(text), currency=currency)


def test_calls_cost_what_each_costs_to_the_last_decimal(forecast_of):
    spared = SparedChecks(frozenset({1, 2}), frozenset({3}))
    limits = {ApiName.COP: ApiLimits(20, None, price=price("0.000001"))}
    found = forecast_of(100, 150, limits, spared=spared)
    (api,) = found.apis
    assert (api.call_count, api.price_per_call, api.cost) == (97, price("0.000001"), price("0.000097"))
    assert found.costs == [price("0.000097")]
    assert '"costs":[{"amount":"0.000097","currency":"GBP"}]' in found.model_dump_json()


def test_what_is_answered_already_costs_nothing(forecast_of):
    limits = {ApiName.COP: ApiLimits(20, None, price=price("0.15"))}
    (api,) = forecast_of(2, 2, limits, spared=SparedChecks(frozenset({1, 2}))).apis
    assert api.cost == price("0.00")


def test_without_a_price_there_is_no_cost(forecast_of):
    found = forecast_of(7, 10, {ApiName.COP: ApiLimits(20, None)})
    assert (found.apis[0].price_per_call, found.apis[0].cost, found.costs) == (None, None, [])


@pytest.mark.parametrize(
    ("prices", "costs"),
    [
        ((price("0.15"), price("0.2"), price("1")), [price("4.35")]),
        (
            (price("0.15"), price("0.1", "EUR"), price("0.0015")),
            [price("0.7545"), price("0.3", "EUR")],
        ),
        ((price("0.15"), None, None), [price("0.75")]),
    ],
)
def test_a_plan_has_one_total_for_each_currency(prices, costs):
    counts = {
        ApiName.COP: QuestionCounts(6, 5),
        ApiName.VOP_GATEWAY: QuestionCounts(3, 3),
        ApiName.VOP_STANDARD: QuestionCounts(4, 3),
    }
    limits = {api: ApiLimits(20, None, price=each) for api, each in zip(counts, prices, strict=True)}
    findings = (pl.DataFrame(schema=REJECTS), NO_WARNINGS)
    found = forecast("x.csv", Environment.TEST, findings, counts, limits)
    assert found.costs == costs
