"""The table of all file formats; a new one gets an entry here, as CONTRIBUTING.md says."""

from collections.abc import Callable, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import NamedTuple

from pydantic import ValidationError

from pipeline.errors import InputError, UsageError
from pipeline.formats import bacs18, excel, pain001, parquet
from pipeline.formats import csv as delimited
from pipeline.formats.foreign import what_else_it_is
from pipeline.formats.layouts import LAYOUTS, BankLayout, layout_formats
from pipeline.formats.protocols import MessageFormat, OutcomeFormat, PaymentsFormat, TabularFormat
from pipeline.wording import Sentence
from schemas.summary import InputFile


class FormatEntry(NamedTuple):
    """A tabular format in the table of formats."""

    format: TabularFormat  # reads a file
    outcomes: OutcomeFormat  # writes its outcomes, unless `--format` names another
    payments: PaymentsFormat  # writes corrected or split payment files


class MessageEntry(NamedTuple):
    """A message format in the table of formats. Its payment files are changed by edits."""

    format: MessageFormat
    outcomes: OutcomeFormat


Entry = FormatEntry | MessageEntry

FORMATS: tuple[Entry, ...] = (
    FormatEntry(delimited, outcomes=delimited, payments=delimited),
    FormatEntry(parquet, outcomes=parquet, payments=parquet),
    FormatEntry(excel, outcomes=delimited, payments=excel),
    MessageEntry(pain001, outcomes=delimited),
    MessageEntry(bacs18, outcomes=delimited),
    *(MessageEntry(layout, outcomes=delimited) for layout in layout_formats({}).values()),
)
"""A message is recognised by its content, a table by its file name's suffix. If tables share a suffix and
none recognises the start of a file, the first one is used.
"""

HEAD_BYTES = 64 * 1024  # number of bytes at the start of a file that identify its format

INPUT_NAMES = tuple(entry.format.NAME for entry in FORMATS)
"""Names of the built-in formats, for `--input-format`."""

_OTHER_WORKBOOKS = {".xls": b"\xd0\xcf\x11\xe0", ".xlsb": b"PK", ".ods": b"PK", ".numbers": b"PK"}
"""Suffix of workbooks that cannot be read -> first bytes; others under such a name are something else."""
_OUTCOME_FORMATS: Mapping[str, OutcomeFormat] = {
    **{entry.outcomes.NAME: entry.outcomes for entry in FORMATS}, "xlsx": excel
}  # fmt: skip
PART_NAMES = (delimited.NAME, parquet.NAME, pain001.NAME)
"""The names of the formats that parts of a data set may have."""
NAMES = tuple(_OUTCOME_FORMATS)  # the names of the formats for outcome files


class FormatChoice(NamedTuple):
    """The user's choice of format, and the candidate layouts."""

    name: str | None = None  # from `--input-format`; None: recognised from the file
    layouts: Mapping[str, BankLayout] = MappingProxyType({})  # the user's own, by name

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return every format that a file can have."""
        own = list(layout_formats(self.layouts).values())[len(LAYOUTS) :]
        return (*FORMATS, *(MessageEntry(layout, outcomes=delimited) for layout in own))


ANY_FORMAT = FormatChoice()


def format_as_read(file: InputFile) -> FormatChoice:
    """Return the format of a file from an earlier run, with the layout recorded then."""
    layout = layout_before(file)
    return FormatChoice(file.format, {} if layout is None else {file.format: layout})


def layout_before(file: InputFile) -> BankLayout | None:
    """Return the user's layout recorded for a file, None for built-in formats; raises InputError."""
    try:
        return None if file.layout is None else BankLayout.model_validate(file.layout)
    except ValidationError:
        raise InputError(Sentence("formats.recorded_layout_unreadable", file=file.name)) from None


def entry_of(
    name: PurePath,
    head: Callable[[], bytes],
    choice: FormatChoice = ANY_FORMAT,
    *,
    is_table: bool = False,
    where: str = "",
) -> Entry:
    """Find the format of a file: the chosen one, else by its start, else by its name's suffix.

    `name` is the unpacked file's name, `where` its name in messages. `head` reads the first `HEAD_BYTES`.
    With `is_table`, no layout is considered.

    Raises UsageError: no format has the chosen name; InputError: the format is unknown or ambiguous.
    """
    if choice.name is not None:
        return _chosen_entry(choice)
    where = where or name.name
    start = head()
    if start.startswith(_OTHER_WORKBOOKS.get(name.suffix.lower(), ())):
        raise InputError(Sentence("formats.workbook_kind_unreadable", where=where))
    named = [entry for entry in choice.entries if name.suffix.lower() in entry.format.SUFFIXES]
    is_no_message = is_table and any(isinstance(entry, FormatEntry) for entry in named)
    kinds = FormatEntry if is_no_message else Entry
    found = [entry for entry in choice.entries if isinstance(entry, kinds) and entry.format.sniff(start)]
    if not found:
        return _by_suffix(where, start, named, choice)
    if len(found) > 1:
        names = [entry.format.NAME for entry in found]
        raise InputError(
            Sentence("formats.could_be_several", where=where, names=names),
            advice=Sentence("advice.choose_format", choices=names),
        )
    return found[0]


def _chosen_entry(choice: FormatChoice) -> Entry:
    for entry in choice.entries:
        if choice.name == entry.format.NAME:
            return entry
    raise UsageError(
        Sentence("formats.unknown_format", choice=repr(choice.name)),
        advice=(
            Sentence("advice.choose_format", choices=[entry.format.NAME for entry in choice.entries]),
            Sentence("formats.describe_as_layout", choice=choice.name),
        ),
    )


def _by_suffix(where: str, start: bytes, named: list[Entry], choice: FormatChoice) -> Entry:
    """Return the table format of a suffix, for files that no format recognises, even empty ones."""
    if (what := what_else_it_is(start)) is not None:
        raise InputError(Sentence("formats.is_something_else", where=where, what=what))
    if not named:
        suffixes = dict.fromkeys(suffix for entry in choice.entries for suffix in entry.format.SUFFIXES)
        give = Sentence("formats.give_file_with_suffix", suffixes=list(suffixes))
        raise InputError(
            Sentence("formats.not_a_readable_format", where=where),
            advice=(give, Sentence("advice.name_format")),
        )
    if isinstance(named[0], MessageEntry) and start:
        facts = {"title": named[0].format.TITLE, "known_by": named[0].format.KNOWN_BY}
        raise InputError(
            Sentence("formats.not_what_name_says", where=where, **facts),
            advice=(Sentence("formats.export_again"), Sentence("advice.name_format")),
        )
    return named[0]


def entry_before(file: InputFile) -> Entry:
    """Return the table entry of the format that a file was read in."""
    return _chosen_entry(format_as_read(file))


def entry_named(name: str) -> Entry:
    """Return the table entry of a built-in format; any other name is a bug in the caller."""
    return next(entry for entry in FORMATS if name == entry.format.NAME)


def format_named(name: str) -> OutcomeFormat:
    """Return the format with a name in `NAMES`; any other name is a bug in the caller (KeyError)."""
    return _OUTCOME_FORMATS[name]
