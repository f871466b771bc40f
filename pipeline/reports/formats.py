"""The formats of payment files, for a terminal."""

from rich.console import Console
from rich.text import Text

from pipeline.reports.terminal import table_of
from pipeline.reports.wording import visible
from schemas.formats import KnownFormat, KnownFormats


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
