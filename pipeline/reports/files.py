"""Several files of one command on a terminal: what became of each, and of all of them together."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from schemas.outcomes import Outcome
from schemas.summary import Money, OutcomeTotal, Summary


class FileEnd(NamedTuple):
    """What became of one file."""

    name: str
    exit_code: int | None
    """None where the command ended before the file was checked."""
    summary: Summary | None
    """None where there is no outcome file."""


def merged(outcomes: Sequence[Sequence[OutcomeTotal]]) -> list[OutcomeTotal]:
    """The rows and amounts of several files, added up by outcome and currency."""
    added = []
    for outcome in Outcome:
        mine = [total for file in outcomes for total in file if total.outcome is outcome]
        money: dict[str | None, list[Money]] = {}
        for amount in (amount for total in mine for amount in total.totals):
            money.setdefault(amount.currency, []).append(amount)
        totals = [
            Money(
                currency=currency,
                row_count=sum(part.row_count for part in parts),
                amount=sum((part.amount for part in parts), Decimal(0)),
            )
            for currency, parts in sorted(money.items(), key=lambda one: (one[0] is None, one[0] or ""))
        ]
        row_count = sum(total.row_count for total in mine)
        added.append(OutcomeTotal(outcome=outcome, row_count=row_count, totals=totals))
    return added
