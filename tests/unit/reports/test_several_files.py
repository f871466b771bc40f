"""The end of a command with several files."""

from decimal import Decimal

from pipeline.reports.listings import print_files
from pipeline.reports.metrics import FileEnd
from pipeline.rules.totals import added_outcomes
from schemas.outcomes import Outcome
from schemas.summary import Money, OutcomeTotal


def total(outcome, row_count, **amounts):
    totals = [
        Money(currency=currency, row_count=1, amount=Decimal(amount)) for currency, amount in amounts.items()
    ]
    return OutcomeTotal(outcome=outcome, row_count=row_count, totals=totals)


def test_rows_and_amounts_are_added_up_by_outcome_and_currency():
    january = [total(Outcome.MATCH, 2, GBP="1.10", EUR="5"), total(Outcome.REJECTED, 1)]
    february = [total(Outcome.MATCH, 3, GBP="2.20"), total(Outcome.NO_MATCH, 1, EUR="7")]

    added = {one.outcome: one for one in added_outcomes([january, february])}

    assert list(added) == list(Outcome)
    assert {outcome: one.row_count for outcome, one in added.items() if one.row_count} == {
        "match": 5,
        "no_match": 1,
        "rejected": 1,
    }
    match = {money.currency: (money.row_count, money.amount) for money in added[Outcome.MATCH].totals}
    assert match == {"EUR": (1, Decimal(5)), "GBP": (2, Decimal("3.30"))}


def test_every_file_has_its_line_and_its_status(summary_of, shown):
    ends = [
        FileEnd("jan.csv", 0, summary_of()),
        FileEnd("feb.csv", 65, None),
        FileEnd("\x1b[31mmar.csv", None, None),
    ]

    text = shown(lambda console: print_files(ends, console), width=60)

    lines = [line.split() for line in text.splitlines()]
    assert ["1,500", "0", "1,500", "0", "0", "jan.csv"] in lines
    assert ["65", "feb.csv"] in lines
    assert ["-", "\\x1b[31mmar.csv"] in lines
    assert "1,234.50 GBP" in text
    assert "SIMULATED" not in text


def test_simulated_answers_are_called_so_at_the_end_too(summary_of, shown):
    ends = [FileEnd("jan.csv", 0, summary_of()), FileEnd("feb.csv", 0, summary_of(simulated=True))]
    assert "SIMULATED" in shown(lambda console: print_files(ends, console))
