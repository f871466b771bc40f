"""Several files of one command on a terminal: what became of each, and of all of them together."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.reports.terminal import SIMULATED, counted, outcome_table, table_of, visible
from schemas.outcomes import Outcome
from schemas.summary import Money, OutcomeTotal, Summary


class FileEnd(NamedTuple):
    """What became of one file."""

    name: str
    exit_code: int | None
    """None where the command ended before the file was checked."""
    summary: Summary | None
    """None where there is no outcome file."""


def print_files(ends: Sequence[FileEnd], console: Console) -> None:
    """Show a line for each file, and the outcomes of all rows; nothing before the first has ended."""
    if all(end.exit_code is None for end in ends):
        return
    console.print(Text(f"\n{counted(len(ends), 'file')}:", style="bold"))
    console.print(_each(ends))
    summaries = [end.summary for end in ends if end.summary is not None]
    if summaries:
        console.print()
        console.print(outcome_table(merged([summary.outcomes for summary in summaries])))
    if any(summary.simulated for summary in summaries):
        console.print(Text(f"\n{SIMULATED}"))


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


def _each(ends: Sequence[FileEnd]) -> Table:
    table = table_of(">rows", ">match", ">to look at", ">left", ">status", "file")
    for end in ends:
        status = "-" if end.exit_code is None else str(end.exit_code)
        style = "green" if end.exit_code == 0 else "yellow"
        cells = ("", "", "", "") if end.summary is None else _counts(end.summary)
        table.add_row(*cells, Text(status, style=style), Text(visible(end.name)))
    return table


def _counts(summary: Summary) -> tuple[str, str, str, str]:
    rows, left, to_look_at = summary.input.row_count, summary.undecided_count, summary.to_look_at_count
    return f"{rows:,}", f"{rows - left - to_look_at:,}", f"{to_look_at:,}", f"{left:,}"
