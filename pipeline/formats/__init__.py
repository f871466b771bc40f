"""File formats: each is a module, and a line of the one table here. How to add one: CONTRIBUTING.md."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import InputError
from pipeline.formats import bacs18, excel, pain001, parquet
from pipeline.formats import csv as delimited
from pipeline.formats.layouts import layout_formats
from pipeline.formats.protocols import MessageFormat, OutcomeFormat, PaymentsFormat, TabularFormat


class FormatEntry(NamedTuple):
    """A line of the table of formats: one of tables."""

    format: TabularFormat
    """How a file is read."""
    outcomes: OutcomeFormat
    """How its outcomes are written, unless `--format` says it."""
    payments: PaymentsFormat
    """How its payments are written again, corrected or split."""


class MessageEntry(NamedTuple):
    """A line of the table of formats: one of messages. Its payments are written again by edits."""

    format: MessageFormat
    outcomes: OutcomeFormat


FORMATS: tuple[FormatEntry | MessageEntry, ...] = (
    FormatEntry(delimited, outcomes=delimited, payments=delimited),
    FormatEntry(parquet, outcomes=parquet, payments=parquet),
    FormatEntry(excel, outcomes=delimited, payments=delimited),
    MessageEntry(pain001, outcomes=delimited),
    MessageEntry(bacs18, outcomes=delimited),
    *(MessageEntry(layout, outcomes=delimited) for layout in layout_formats({}).values()),
)
"""A message is known by its start, whatever its name; a table by the suffix of its name. Of tables that share
a suffix, the first is meant where none knows the start of a file."""

HEAD_BYTES = 64 * 1024
"""Of the start of a file, by which formats know theirs."""

_OTHER_WORKBOOKS = (".xls", ".xlsb", ".ods", ".numbers")
_OUTCOME_FORMATS: Mapping[str, OutcomeFormat] = {entry.outcomes.NAME: entry.outcomes for entry in FORMATS}
NAMES = tuple(_OUTCOME_FORMATS)
"""Of the formats in which outcomes are written."""


def entry_of(path: Path, head: Callable[[], bytes], *, is_table: bool = False) -> FormatEntry | MessageEntry:
    """The format of a file: by its start where that is a message's, else by the suffix of its name.

    Args:
        path: The file.
        head: Reads its first `HEAD_BYTES`.
        is_table: It is known to have columns, so that it has no layout that it could be mistaken for.

    Raises:
        InputError: no format has this suffix, or several could be meant.
    """
    named = [entry for entry in FORMATS if path.suffix.lower() in entry.format.SUFFIXES]
    tables = [entry for entry in named if isinstance(entry, FormatEntry)]
    start = head()
    messages = [
        entry
        for entry in FORMATS
        if isinstance(entry, MessageEntry) and not (is_table and tables) and entry.format.sniff(start)
    ]
    if len(tables) > 1:
        tables = [entry for entry in tables if entry.format.sniff(start)] or tables[:1]
    match messages or tables or named[:1]:
        case [entry]:
            return entry
        case [] if path.suffix.lower() in _OTHER_WORKBOOKS:
            raise InputError(
                f"{path.name}: a kind of workbook that cannot be read; save it as .xlsx, or the sheet as CSV"
            )
        case []:
            suffixes = dict.fromkeys(suffix for entry in FORMATS for suffix in entry.format.SUFFIXES)
            raise InputError(
                f"{path.name}: not a format that can be read; give a file whose name ends in "
                f"{', '.join(suffixes)}"
            )
        case several:
            names = " and ".join(entry.format.NAME for entry in several)
            raise InputError(f"{path.name}: could be {names}", advice="choose one with --input-format NAME")


def entry_named(name: str) -> FormatEntry | MessageEntry:
    """The line of the format of a name; any other name is a mistake of the caller."""
    [entry] = [entry for entry in FORMATS if name == entry.format.NAME]
    return entry


def format_named(name: str) -> OutcomeFormat:
    """The format of a name of `NAMES`; any other name is a mistake of the caller (KeyError)."""
    return _OUTCOME_FORMATS[name]
