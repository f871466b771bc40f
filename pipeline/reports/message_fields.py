"""Print a payment file's fields on a terminal: their positions, and the file's own facts and totals."""

from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.reports.terminal import table_of, text_line
from pipeline.reports.wording import (
    controls_in_words,
    counted,
    facts_in_words,
    in_words,
    note_sentences,
    number,
    say,
    visible,
)
from pipeline.wording import Sentence
from schemas.columns import Column, ColumnsRead
from schemas.summary import StatedControl

COLUMNS_WIDTH_MIN = 110
"""Terminal width with room for header, field, sentence and IBAN next to each other."""
VALUE_CHARS_MAX = 34
"""Length of the longest IBAN."""
CONTROLS_LISTED_MAX = 20


def print_fields(read: ColumnsRead, console: Console) -> None:
    """Print the position of each field, the facts about the file, and whether its totals agree."""
    payments, spoken = counted(read.row_count or 0, "payment"), in_words(read.format or "")
    title = say("terminal.fields_title", file=read.file, format=spoken, payments=payments)
    console.print(Text(visible(title), style="bold"))
    console.print()
    console.print(_fields(read.columns, has_room=console.width >= COLUMNS_WIDTH_MIN))
    console.print()
    console.print(_facts(read.facts))
    if read.controls:
        console.print()
        for part in _controls(read):
            console.print(part)
    lines = [*(aside.sentence for aside in read.set_aside), *note_sentences(read.notes)]
    if lines:
        console.print()
    for line in lines:
        console.print(text_line(line))


def values_in_short(column: Column) -> str:
    """Return the shown values of a column, each no longer than an IBAN."""
    return "; ".join(
        value if len(value) <= VALUE_CHARS_MAX else f"{value[: VALUE_CHARS_MAX - 1]}…"
        for value in column.values
    )


def _fields(columns: list[Column], *, has_room: bool) -> Table:
    """Lay out four columns if there is room; otherwise put the values below the position."""
    table = (
        table_of("field", "stands in", ">rows", "values")
        if has_room
        else table_of("field", ">rows", "stands in")
    )
    table.columns[-1].no_wrap, table.columns[-1].overflow = False, "fold"
    for column in columns:
        field = Text(column.field or "-", style="bold")
        where, values = Text(visible(column.header)), Text(visible(values_in_short(column)), style="dim")
        count = number(column.row_count or 0)
        if has_room:
            table.add_row(field, where, count, values)
        else:
            table.add_row(field, count, Text("\n").join([where, values]))
    return table


def _facts(facts: Mapping[str, str]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, fact in facts_in_words(facts):
        table.add_row(Text(visible(name), style="dim"), Text(visible(fact)))
    return table


def _controls(read: ColumnsRead) -> Iterator[Text | Table]:
    """Yield the stated totals next to the actual ones; differing ones come first."""
    all_agree = all(control.agrees for control in read.controls)
    yield Text(
        controls_in_words(read.controls, read.control_count), style="green" if all_agree else "bold yellow"
    )
    table = table_of("control total", ">the file says", ">there is", "")
    table.columns[0].no_wrap = False
    for control in read.controls[:CONTROLS_LISTED_MAX]:
        table.add_row(
            Text(visible(in_words(control.where))),
            Text(visible(control.stated or say("terminal.not_known"))),
            Text(visible(control.found or say("terminal.not_known"))),
            _mark(control),
        )
    yield table
    if (more := read.control_count - CONTROLS_LISTED_MAX) > 0:
        yield text_line(Sentence("terminal.more_in_json", number=more))


def _mark(control: StatedControl) -> Text:
    verdict = Sentence("terminal.agrees" if control.agrees else "terminal.differs")
    return text_line(verdict, "green" if control.agrees else "bold yellow")
