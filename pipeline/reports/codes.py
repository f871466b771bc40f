"""Codes and their meanings, on a terminal: readable at 60 columns, without colour, and in a pipe."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.reports.explanations import Case, CodesSection, Explanation
from pipeline.reports.terminal import table_of


def print_explanation(explanation: Explanation, console: Console) -> None:
    """Show every meaning of one code."""
    console.print(Text(explanation.code, style="bold"))
    for case in explanation.cases:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="dim")
        table.add_column()
        for name, text in _lines(case):
            table.add_row(f"  {name}", Text(text))
        console.print(table, "")


def print_codes(explanations: Iterable[Explanation], console: Console) -> None:
    """List all codes by where they come from, each with its first meaning."""
    listed = list(explanations)
    for section in CodesSection:
        table = table_of("code", section.value)
        for explanation in listed:
            if explanation.section is section:
                table.add_row(explanation.code, explanation.cases[0].says)
        console.print(table, "")
    console.print(Text("precheck explain CODE explains one of them."))


def _lines(case: Case) -> Iterable[tuple[str, str]]:
    yield "from", case.where
    if case.outcome is not None:
        yield "outcome", case.outcome.replace("_", " ")
    yield "says", case.says
    yield "does not say", case.not_said
    yield "to do", case.to_do
