"""Rows and money by outcome: the picture of the report page."""

from decimal import Decimal

from pipeline.reports.page import CURRENCIES_DRAWN_MAX, CURRENCIES_NAMED_MAX, Total, overview
from schemas.outcomes import Outcome
from schemas.summary import Money, OutcomeTotal


def total(outcome, row_count, **amounts):
    """Amounts by currency; each stands for one row."""
    money = [Money(currency=code, row_count=1, amount=Decimal(amount)) for code, amount in amounts.items()]
    return OutcomeTotal(outcome=outcome, row_count=row_count, totals=money)


def test_totals_of_the_file_are_the_sums_of_the_outcomes():
    found = overview([
        total(Outcome.MATCH, 2, GBP="0.10", EUR="5"),
        total(Outcome.NO_MATCH, 1, GBP="0.20"),
    ])  # fmt: skip
    assert found.headers == ("Rows", "GBP", "EUR")
    assert found.totals == ("3", "0.30", "5.00")
    assert found.without_amount_count == 0


def test_outcome_without_rows_is_not_drawn():
    found = overview([total(Outcome.MATCH, 0), total(Outcome.NO_MATCH, 1, GBP="1")])
    assert [line.outcome for line in found.lines] == [Outcome.NO_MATCH]


def test_a_bar_is_a_share_of_the_whole_and_never_vanishes():
    found = overview([
        total(Outcome.MATCH, 8, GBP="750000"),
        total(Outcome.CLOSE_MATCH, 11, GBP="249999"),
        total(Outcome.NO_MATCH, 4, GBP="1"),
        total(Outcome.REJECTED, 1),
    ])  # fmt: skip
    assert [[bar.share for bar in line.bars] for line in found.lines] == [[33, 75], [45, 24], [16, 1], [4, 0]]
    assert found.lines[3].bars[1].text == ""
    assert found.without_amount_count == 21


def test_currencies_are_drawn_while_there_is_room_for_their_totals():
    def drawn(amount, *currencies):
        return overview([total(Outcome.MATCH, 9, **dict.fromkeys(currencies, amount))]).headers[1:]

    assert drawn("4800000", "CHF", "EUR", "GBP") == ("CHF", "EUR", "GBP")
    assert drawn("1234567890.12", "CHF", "EUR", "GBP") == ("CHF", "EUR")
    assert drawn("1" * 26, "CHF", "EUR") == ("CHF",)


def test_many_currencies_are_named_or_counted_and_not_drawn():
    codes = {f"X{number:03}": "1" for number in range(CURRENCIES_DRAWN_MAX + CURRENCIES_NAMED_MAX + 4)}
    found = overview([total(Outcome.REJECTED, 50, **codes)])
    assert len(found.headers) == 1 + CURRENCIES_DRAWN_MAX
    assert len(found.more) == CURRENCIES_NAMED_MAX
    assert found.unnamed_count == 4


def test_a_currency_that_is_not_drawn_says_how_much_of_it_is_no_match():
    drawn = {"CHF": "1", "EUR": "1", "GBP": "1"}
    found = overview([
        total(Outcome.MATCH, 9, **drawn, PLN="2.50", SEK="7"),
        total(Outcome.NO_MATCH, 9, **drawn, PLN="1000"),
    ])  # fmt: skip
    assert found.headers[1:] == ("CHF", "EUR", "GBP")
    assert found.more == (Total("PLN", "1,002.50", "1,000.00"), Total("SEK", "7.00", ""))


def test_file_in_which_no_row_has_an_amount_has_a_picture_of_rows():
    found = overview([total(Outcome.MATCH, 3)])
    assert found.headers == ("Rows",)
    assert found.without_amount_count == 3
