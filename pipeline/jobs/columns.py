"""Explain how payment files are read: the known formats, and which column or element becomes which field."""

import re
from collections.abc import Sequence
from pathlib import Path

from pipeline.config import ConfigurationFile
from pipeline.config.inputs import ReadAs, section_for
from pipeline.config.profiles import format_choice_of
from pipeline.errors import InputError
from pipeline.files.compressed import Compression
from pipeline.formats.layouts import LayoutFormat
from pipeline.formats.layouts.model import why_never_changed
from pipeline.formats.message import message_fields
from pipeline.formats.registry import Entry, FormatChoice, FormatEntry
from pipeline.formats.table import Dialect
from pipeline.headers.cells import VALUES_SHOWN
from pipeline.headers.columns import ColumnsError
from pipeline.headers.meaning import meaning
from pipeline.headers.readings import ColumnReading
from pipeline.stages.read import PaymentSource, read
from pipeline.wording import PLACE, Sentence
from schemas.columns import Column, ColumnsRead, KnownFormat, KnownFormats, NameInParts


def columns_of(
    file: Path, given: ReadAs, config: Path | None = None
) -> tuple[ColumnsRead, InputError | None]:
    """Read a file; return facts about its columns, and an error if it cannot be read as payments.

    Raises ConfigurationError, and UsageError: an option does not apply to the file's format.
    """
    configuration = ConfigurationFile(config)
    read_as = given.completed(file.name, configuration.inputs)
    section = section_for(file.name, configuration.inputs)
    notes = [] if section is None else [Sentence("config.read_by_section", section=section).recorded()]
    try:
        source = read(
            file,
            mapping=read_as.mapping,
            encoding=read_as.encoding,
            sheet=read_as.sheet,
            format_choice=format_choice_of(read_as.input_format, configuration),
            country=read_as.country,
        )
    except InputError as error:
        readings = error.readings if isinstance(error, ColumnsError) else ()
        return ColumnsRead(
            file=file.name, columns=_table(readings, None), refusal=error.messages[0].recorded(), notes=notes
        ), error
    found = _read(file.name, source)
    update = {"section": _section(file.name, source, read_as), "notes": [*notes, *found.notes]}
    return found.model_copy(update=update), None


def _section(name: str, source: PaymentSource, read_as: ReadAs) -> str:
    """Return a section for such files; it maps the sort code only if its header is not enough."""
    encoding = source.dialect.encoding
    mapping = {
        field: _by_header(column, source)
        for field, column in (source.decision.items() if source.message is None else ())
        if field != "sort_code"
        or field in read_as.mapping
        or meaning(_by_header(column, source)).what is None
    }
    read_as = read_as._replace(mapping=mapping, encoding=None if encoding == "utf-8" else encoding)
    return read_as.as_section(name)


def _by_header(column: str, source: PaymentSource) -> str:
    """Name columns by their headers, as for `--map`, or by position if a header could be misread."""
    headers = [reading.header for reading in source.columns]

    def named(place: re.Match[str]) -> str:
        header = headers[int(place[1]) - 1]
        is_plain = source.dialect.header_line and not re.search(r"^\s*#|[+|]|^\s|\s$", header)
        return header if is_plain else place[0]

    return re.sub(rf"{PLACE}([0-9]+)", named, column)


def _read(name: str, source: PaymentSource) -> ColumnsRead:
    message, notes = source.message, [note.recorded() for note in source.notes]
    columns = _table(source.columns, source.dialect)
    if message is None:
        return ColumnsRead(file=name, columns=columns, notes=notes, name_in_parts=_name_in_parts(source))
    payments = message.payments
    return ColumnsRead(
        file=name,
        columns=[
            column.model_copy(update={"row_count": payments[str(column.field)].count()}) for column in columns
        ],
        notes=notes,
        format=next((column.rule for column in columns), source.format),
        row_count=payments.height,
        **message_fields(message),
    )


def _name_in_parts(source: PaymentSource) -> NameInParts | None:
    """The columns of a name in parts, and the joined names."""
    for alternative in source.decision.get("name", "").split("|"):
        parts = alternative.split("+")
        if len(parts) > 1:
            headers = [source.columns[int(part.removeprefix(PLACE)) - 1].header for part in parts]
            values = source.payments["name"].drop_nulls().head(VALUES_SHOWN)
            return NameInParts(headers=headers, values=values.to_list())
    return None


def _table(readings: Sequence[ColumnReading], dialect: Dialect | None) -> list[Column]:
    """List a table's columns; the dialect is None if the table could not be read as payments."""
    has_headers = dialect is None or dialect.header_line
    return [
        Column(
            header=reading.header if has_headers else f"{PLACE}{number}",
            field=reading.field,
            rule=reading.how.recorded(),
            others=list(reading.others),
            values=list(reading.values),
            disputed=reading.is_disputed,
            map=reading.map,
        )
        for number, reading in enumerate(readings, start=1)
    ]


def known_formats(choice: FormatChoice) -> KnownFormats:
    """Return every format that a file can have, including the user's layouts."""
    return KnownFormats(
        formats=[_known(entry, choice) for entry in choice.entries],
        compressions=[compression.value for compression in Compression],
    )


def _known(entry: Entry, choice: FormatChoice) -> KnownFormat:
    file_format = entry.format
    why_not = why_never_changed(file_format.layout) if isinstance(file_format, LayoutFormat) else None
    written_as = entry.payments if isinstance(entry, FormatEntry) else file_format
    return KnownFormat(
        name=file_format.NAME,
        title=Sentence("column.of_format", title=file_format.TITLE).recorded(),
        suffixes=list(file_format.SUFFIXES),
        known_by=file_format.KNOWN_BY.recorded(),
        is_own=file_format.NAME in choice.layouts,
        written_as=None if why_not else written_as.NAME,
        why_not=why_not.recorded() if isinstance(why_not, Sentence) else why_not,
    )
