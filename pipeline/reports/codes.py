"""The codes and the file formats, on a terminal: readable at 60 columns, without colour, and in a pipe."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.reports.explanations import Case, CodesSection, Explanation
from pipeline.reports.terminal import table_of
from pipeline.reports.wording import visible
from schemas.columns import KnownFormat, KnownFormats


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


def print_formats(known: KnownFormats, console: Console) -> None:
    """Show each format, one a row."""
    table = table_of("format", "written as", "known by")
    for each in known.formats:
        name = Text(visible(each.name), style="bold")
        table.add_row(name, Text(visible(each.written_as or "-")), Text(visible(_sentence(each))))
    console.print(table)
    console.print(Text("fix and split write payments again as the second column says."))
    console.print(Text(f"Each may come compressed: {' or '.join(known.compressions)}, with one file in it."))


def _sentence(each: KnownFormat) -> str:
    title = "" if each.title == each.name else f"{each.title}: "
    return f"{title}{each.known_by}{f'; never changed, as {each.why_not}' if each.why_not else ''}"
