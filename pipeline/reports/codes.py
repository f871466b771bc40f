"""Print codes and file formats on a terminal, readable at 60 columns, without colour and in a pipe."""

from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeline.reports.explanations import Case, CodesSection, Explanation, whole
from pipeline.reports.terminal import table_of, text_line
from pipeline.reports.wording import say, visible
from pipeline.wording import Sentence, SurfaceKind, rendered
from schemas.columns import KnownFormat, KnownFormats


def print_explanation(explanation: Explanation, console: Console) -> None:
    """Print every meaning of one code."""
    console.print(Text(explanation.code, style="bold"))
    for case in explanation.cases:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="dim")
        table.add_column()
        for name, text in _lines(case):
            table.add_row(f"  {rendered(name, SurfaceKind.COMMAND)}", Text(text))
        console.print(table, "")


def print_codes(explanations: Iterable[Explanation], console: Console, *, in_full: bool) -> None:
    """Print all codes by source; in full, each with its first meaning."""
    listed = list(explanations)
    for section in CodesSection:
        if not in_full:
            console.print(Text(rendered(_SECTIONS[section], SurfaceKind.COMMAND), style="bold"))
            codes = (explanation.code for explanation in listed if explanation.section is section)
            console.print(Padding(Text(" ".join(codes)), (0, 0, 1, 2)))
            continue
        table = table_of("code", "")  # the section is its heading
        table.columns[1].header = rendered(_SECTIONS[section], SurfaceKind.COMMAND)
        for explanation in listed:
            if explanation.section is section:
                says = whole(rendered(explanation.cases[0].says, SurfaceKind.COMMAND))
                table.add_row(explanation.code, says)
        console.print(table, "")
    console.print(Text(rendered(Sentence("explain.one_of_them"), SurfaceKind.COMMAND)))


_SECTIONS = {
    CodesSection.ANSWERS: Sentence("explain.answers"),
    CodesSection.NO_ANSWER: Sentence("explain.no_answer"),
    CodesSection.RULES: Sentence("explain.rules"),
    CodesSection.WARNINGS: Sentence("explain.warnings"),
}


def _lines(case: Case) -> Iterable[tuple[Sentence, str]]:
    def spoken(sentence: Sentence) -> str:
        return rendered(sentence, SurfaceKind.COMMAND)

    yield Sentence("explain.from"), spoken(case.where)
    if case.outcome is not None:
        yield Sentence("explain.outcome"), spoken(Sentence(f"outcome.{case.outcome}"))
    yield Sentence("explain.says"), whole(spoken(case.says))
    yield Sentence("explain.does_not_say"), spoken(case.not_said)
    yield Sentence("explain.to_do"), spoken(case.to_do)


def print_formats(known: KnownFormats, console: Console, *, in_full: bool) -> None:
    """Print one format per row; in full, with how it is recognised."""
    table = (
        table_of("format", "written as", "known by")
        if in_full
        else table_of("format", "written as", "description")
    )
    for each in known.formats:
        name = Text(visible(each.name), style="bold")
        table.add_row(
            name,
            Text(visible(each.written_as or "-")),
            Text(visible(_in_full(each) if in_full else rendered(each.title, SurfaceKind.COMMAND))),
        )
    console.print(table)
    console.print(text_line(Sentence("formats.written_as_listed")))
    console.print(text_line(Sentence("formats.may_be_compressed", compressions=known.compressions)))
    if not in_full:
        console.print(text_line(Sentence("formats.all_shows_more")))


def _in_full(each: KnownFormat) -> str:
    title, known_by = (rendered(text, SurfaceKind.COMMAND) for text in (each.title, each.known_by))
    if each.why_not is None:
        return say("formats.in_full", title=title, known_by=known_by)
    why = rendered(each.why_not, SurfaceKind.COMMAND)
    return say("formats.never_changed", title=title, known_by=known_by, why=why)
