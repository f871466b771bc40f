"""The smaller tables: the plan, the columns, the caps, the doctor's findings."""

from datetime import UTC, datetime

import pytest
from refusals import said

from pipeline.reports.listings import (
    REJECTS_SHOWN_MAX,
    print_columns,
    print_findings,
    print_forecast,
    print_quota,
)
from pipeline.wording import Sentence
from schemas.columns import Column, ColumnsRead
from schemas.forecast import ApiForecast, BrokenRule, Forecast, RejectedRow
from schemas.outcomes import ApiName, Environment
from schemas.prices import Price
from schemas.summary import WarningCount

HOSTILE = "[/x] [bold]\x1b[31m\u202e"
SEEN = "[/x] [bold]\\x1b[31m\\u202e"


def forecast_of(*, reject_count=0, day_count=1, duration_s=70.0, input_name="payroll.csv"):
    reject = RejectedRow(row=3, field="name", code="NAME_MISSING", message="no payee name; add it")
    kind = BrokenRule(
        **reject.model_dump(exclude={"row", "place"}), row_count=reject_count, rows=[3, 5, *range(8, 16)]
    )
    api = ApiForecast(
        api=ApiName.COP,
        row_count=1500,
        question_count=1400,
        call_count=1400,
        rate_per_s=20.0,
        duration_s=duration_s,
        daily_cap=50 if day_count > 1 else None,
        day_count=day_count,
    )
    return Forecast(
        environment=Environment.TEST,
        input_name=input_name,
        row_count=1500,
        accepted_count=1500,
        rejected_count=reject_count,
        apis=[api],
        saved_call_count=100,
        rejects=[reject] * min(reject_count, REJECTS_SHOWN_MAX),
        broken_rules=[] if not reject_count else [kind],
        warning_count=0,
    )


def test_plan_says_what_it_would_take_and_that_nothing_was_sent(shown):
    text = shown(lambda console: print_forecast(forecast_of(day_count=28), console))
    for part in (
        "1,500 payments",
        "1,400",
        "20 a second, 50 a day",
        "28 days",
        "100 calls saved",
        "Nothing was",
    ):
        assert part in " ".join(text.split())


DAYS = Sentence("counted.day", count=28)


@pytest.mark.parametrize(
    ("used_count", "days"),
    [
        (0, str(DAYS)),
        (20, said("terminal.days_some_used", days=DAYS, used=20)),
        (50, said("terminal.days_from_tomorrow", days=DAYS, cap=50)),
    ],
)
def test_plan_says_what_of_today_is_used(shown, used_count, days):
    forecast = forecast_of(day_count=28)
    [api] = forecast.apis
    used = forecast.model_copy(update={"apis": [api.model_copy(update={"used_count": used_count})]})
    assert days in " ".join(shown(lambda console: print_forecast(used, console), width=120).split())


def test_plan_says_which_calls_earlier_answers_save_and_that_nothing_is_left(shown):
    forecast = forecast_of(day_count=28)
    [api] = forecast.apis
    spared = {"answered_before_count": 1399, "reused_count": 1, "call_count": 0, "used_count": 50}
    left = {"apis": [api.model_copy(update={**spared, "duration_s": 0.0, "day_count": 1})]}
    text = shown(lambda console: print_forecast(forecast.model_copy(update=left), console), width=120)
    assert said("terminal.saved_by_answers", count=1399) in text
    assert said("terminal.saved_by_matches", count=1) in text
    assert "tomorrow" not in text


@pytest.mark.parametrize(
    ("duration_s", "said"),
    [(0.2, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h 0 min")],
)
def test_duration_is_told_in_the_unit_that_people_would_use(shown, duration_s, said):
    assert said in shown(lambda console: print_forecast(forecast_of(duration_s=duration_s), console))


def test_plan_tells_what_is_odd_and_what_the_profile_leaves_unasked(shown):
    foreign = WarningCount(code="NAME_NOT_LATIN", row_count=1, rows=[7], every_row=[7])
    told = forecast_of().model_copy(update={"unasked_count": 3, "warning_codes": [foreign]})
    text = " ".join(shown(lambda console: print_forecast(told, console)).split())
    unasked = Sentence("terminal.left_unasked", number=3)
    assert said("terminal.plan_title", rejected=0, unasked=unasked) in text
    assert said("terminal.warned_rows", what=Sentence("warned.NAME_NOT_LATIN"), count=1, rows="7") in text


PRICED = {
    "price_per_call": Price(amount="0.15", currency="GBP"),
    "cost": Price(amount="210.00", currency="GBP"),
}


def priced(**changes):
    """A plan of which CoP has a price and Verification of Payee none."""
    forecast = forecast_of(day_count=28)
    cop = forecast.apis[0].model_copy(update=PRICED | changes)
    vop = cop.model_copy(update={"api": ApiName.VOP_STANDARD, "price_per_call": None, "cost": None})
    return forecast.model_copy(update={"apis": [cop, vop], "costs": [cop.cost]})


def test_plan_says_what_calls_cost_and_what_is_not_in_it(shown):
    lines = shown(lambda console: print_forecast(priced(), console), width=120).splitlines()
    assert lines[1].split()[:5] == ["API", "rows", "calls", "cost", "at"]
    assert lines[3].split()[:5] == ["cop", "1,500", "1,400", "210.00", "GBP"]
    assert lines[4].split()[:5] == ["vop_standard", "1,500", "1,400", "no", "price"]
    prices = [Sentence("terminal.price", api="cop", price="0.15 GBP")]
    cost = said("terminal.cost", total=["210.00 GBP"], prices=prices)
    assert f"{cost} {said('terminal.cost_without_apis', apis=['vop_standard'])}" in " ".join(lines)


def test_plan_without_a_price_says_nothing_of_cost(shown):
    text = shown(lambda console: print_forecast(forecast_of(day_count=28), console))
    assert "cost" not in text.lower()
    assert "price" not in text


def test_plan_with_a_price_has_every_figure_on_a_terminal_of_80_columns(shown):
    many = priced(
        row_count=10_000_000,
        call_count=10_000_000,
        cost=Price(amount="1500000.00", currency="GBP"),
        daily_cap=1_000_000,
    )
    text = shown(lambda console: print_forecast(many, console), width=80)
    assert all(len(line) <= 80 for line in text.splitlines())
    table = text.split("100 calls")[0]
    for figure in ("cop", "10,000,000", "1,500,000.00 GBP", "second,", "1,000,000", "28 days", "no price"):
        assert figure in table
    assert "\u2026" not in text


def test_few_broken_rules_are_listed_by_row_and_many_by_code(shown):
    few = shown(lambda console: print_forecast(forecast_of(reject_count=REJECTS_SHOWN_MAX), console))
    assert few.count("NAME_MISSING") == REJECTS_SHOWN_MAX
    many = shown(lambda console: print_forecast(forecast_of(reject_count=REJECTS_SHOWN_MAX + 5), console))
    assert many.count("NAME_MISSING") == 1
    assert str(REJECTS_SHOWN_MAX + 5) in many
    rows = Sentence("places.rows", count=25, rows="3, 5, 8, 9, 10, 11, 12, 13, 14, 15")
    listed = said("places.rows_and_more", rows=rows, more_count=15)
    missing = said("rule.name_missing").partition(" (")[0]  # without its examples
    assert f"{missing}: {listed}" in " ".join(many.split())


def column_of(header, field=None, rule="x", **more):
    return Column(header=header, field=field, rule=rule, **{"others": [], "values": [], **more})


def columns_of(*columns, notes=(), refusal=None):
    return ColumnsRead(file="x.csv", columns=columns, notes=list(notes), refusal=refusal)


def test_columns_show_how_each_header_was_read(shown):
    told = columns_of(
        column_of("Payee", "name", "the payee's role", others=["Firm"], values=["1.200,00", "45,10"]),
        column_of("Note", rule="header not known"),
        notes=["two differ"],
    )
    text = shown(lambda console: print_columns(told, console))
    for part in (
        said("column.instead_of", rule="the payee's role", others="Firm"),
        "1.200,00; 45,10",
        "header not known",
        said("terminal.columns_not_read"),
        said("terminal.note", note="two differ"),
    ):
        assert part in text
    assert "candidate" not in text


def test_columns_nobody_can_choose_between_are_candidates_and_a_guess_says_the_map(shown):
    subject, ibans = said("column.the_subject_of_the_list"), said("column.cells_look_like", kinds=["IBANs"])
    told = columns_of(
        column_of("Tenant", "name", subject, others=["Landlord"], disputed=True),
        column_of("Where", rule=f"header not known; {ibans}", map="iban=#2"),
        refusal="no",
    )
    text = shown(lambda console: print_columns(told, console), width=160)
    assert said("column.candidate_or", rule=subject, others=["Landlord"]) in text
    assert f"{ibans}; --map iban=#2" in text
    assert "come back" not in text  # nothing does


def test_on_a_narrow_terminal_headers_rules_and_ibans_are_whole(shown):
    ibans = ["GB10THRN30120000700700", "FR7630003012340000482100733"]
    rules = ("the_fields_name", "the_header_says_account", "header_not_known", "empty_in_every_row")
    own, account, unknown, empty = (said(f"column.{rule}") for rule in rules)
    told = columns_of(
        column_of("secondary_reference", "secondary_reference", own, values=["ROLL0042"]),
        column_of("Bank account", "iban", f"{account}, and each cell an IBAN", values=ibans),
        column_of("Building Society Roll No", rule=unknown, values=["a.thornwood@example.com"]),
        column_of("Empty", rule=empty),
    )
    text = shown(lambda console: print_columns(told, console), width=80)
    assert [" ".join(line.split()) for line in text.splitlines()][2:] == [
        f"secondary_reference secondary_reference {own}",
        "ROLL0042",
        f"Bank account iban {account}, and each cell an IBAN",
        f"{ibans[0]}; {ibans[1]}",
        f"Building Society Roll No - {unknown}",
        "a.thornwood@example.com",
        f"Empty - {empty}",
        said("terminal.columns_not_read"),
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_columns_lose_no_character_of_a_header_a_field_or_an_iban(shown, width):
    field = "organisation_id_scheme"
    told = columns_of(column_of("H" * 60, field, "a rule of several words " * 3, values=["M" * 34, "N" * 35]))
    text = shown(lambda console: print_columns(told, console), width=width)
    compact = "".join(text.split())
    assert (compact.count("H"), compact.count("M"), compact.count("N")) == (60, 34, 33)
    assert field in text


@pytest.mark.parametrize("markup", [True, False])
def test_headers_and_scopes_are_shown_as_text_on_any_console(shown, markup):
    columns = shown(
        lambda console: print_columns(
            columns_of(column_of(HOSTILE, "name", others=[HOSTILE], values=[HOSTILE]), notes=[HOSTILE]),
            console,
        ),
        width=200,
        markup=markup,
    )
    uses = [(HOSTILE, 1, 50, datetime(2030, 1, 2, tzinfo=UTC))]
    quota = shown(lambda console: print_quota(uses, console), width=200, markup=markup)
    findings = shown(
        lambda console: print_findings([("x", HOSTILE, False)], console), width=200, markup=markup
    )
    plan = forecast_of(input_name=HOSTILE)
    forecast = shown(lambda console: print_forecast(plan, console), width=200, markup=markup)
    for text in (columns, quota, findings, forecast):
        assert SEEN in text


def test_caps_show_what_is_used_and_when_they_begin_anew(shown):
    uses = [("cop.example|client", 49, 50, datetime(2030, 1, 2, tzinfo=UTC))]
    text = shown(lambda console: print_quota(uses, console))
    assert "cop.example|client" in text
    assert "2030-01-02 00:00 UTC" in text
    assert said("terminal.no_cap_used") in shown(lambda console: print_quota([], console))


def test_findings_are_one_line_each_and_a_problem_stands_out(shown):
    findings = [("TLS", "version 1.3", True), ("token", "x" * 200, False)]
    lines = shown(lambda console: print_findings(findings, console)).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("ok ")
    assert lines[1].startswith("PROBLEM ")
