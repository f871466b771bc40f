"""File formats: each is a module, and a line of the one table here. How to add one: CONTRIBUTING.md.

All of them are tabular, with the protocol of `formats.tabular`. A format of messages has one of its own,
beside what `Format` says of both; it joins the type of `FormatEntry.format`, and the type checker then names
each place that must tell the two kinds apart.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import InputError
from pipeline.formats import csv as delimited
from pipeline.formats import excel, parquet
from pipeline.formats.tabular import OutcomeFormat, PaymentsFormat, TabularFormat


class FormatEntry(NamedTuple):
    """A line of the table of formats."""

    format: TabularFormat
    """How a file is read."""
    outcomes: OutcomeFormat
    """How its outcomes are written, unless `--format` says it."""
    payments: PaymentsFormat
    """How its payments are written again, corrected or split."""


FORMATS = (
    FormatEntry(delimited, outcomes=delimited, payments=delimited),
    FormatEntry(parquet, outcomes=parquet, payments=parquet),
    FormatEntry(excel, outcomes=delimited, payments=delimited),
)
"""Of formats that share a suffix, the first is meant where none knows the start of a file."""

HEAD_BYTES = 64 * 1024
"""Of the start of a file, by which formats know theirs."""

_OTHER_WORKBOOKS = (".xls", ".xlsb", ".ods", ".numbers")
_OUTCOME_FORMATS: Mapping[str, OutcomeFormat] = {entry.outcomes.NAME: entry.outcomes for entry in FORMATS}
NAMES = tuple(_OUTCOME_FORMATS)
"""Of the formats in which outcomes are written."""


def entry_of(path: Path, head: Callable[[], bytes]) -> FormatEntry:
    """The format of a file: by the suffix of its name, and by its start where formats share the suffix.

    Args:
        path: The file.
        head: Reads its first `HEAD_BYTES`.

    Raises:
        InputError: no format has this suffix, or several could be meant.
    """
    named = [entry for entry in FORMATS if path.suffix.lower() in entry.format.SUFFIXES]
    if len(named) > 1:
        start = head()
        named = [entry for entry in named if entry.format.sniff(start)] or named[:1]
    match named:
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
        case _:
            names = " and ".join(entry.format.NAME for entry in named)
            raise InputError(
                f"{path.name}: could be {names}; rename it to a suffix that only one of them has"
            )


def entry_named(name: str) -> FormatEntry:
    """The line of the format of a name; any other name is a mistake of the caller."""
    [entry] = [entry for entry in FORMATS if name == entry.format.NAME]
    return entry


def format_named(name: str) -> OutcomeFormat:
    """The format of a name of `NAMES`; any other name is a mistake of the caller (KeyError)."""
    return _OUTCOME_FORMATS[name]
