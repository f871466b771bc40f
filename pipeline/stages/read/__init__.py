"""Read a payment file into payments, and keep what stands in it as it is.

file -read-> Payments
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.formats import FormatEntry, MessageEntry, entry_of
from pipeline.formats.protocols import TabularFormat
from pipeline.stages.read.messages import read_message
from pipeline.stages.read.opening import bytes_of, head_of, refuse_what_is_no_file
from pipeline.stages.read.source import PaymentSource, ReadingArguments
from pipeline.stages.read.tables import read_table

__all__ = ["PaymentSource", "ReadingArguments", "read", "read_written"]


def read(
    path: Path,
    *,
    mapping: Mapping[str, str],
    encoding: str | None = None,
    sheet: str | None = None,
    decided: Mapping[str, str] | None = None,
) -> PaymentSource:
    """Read a payment file.

    A row that is too long, too short or blank is data: it is in the payments, with its defect. Headers again
    below the header line, and totals and the like below the payments, are not.

    Args:
        path: The file; its start says the format, or the suffix of its name.
        mapping: Field -> header, as the user mapped them.
        encoding: The encoding of a CSV file; None means UTF-8.
        sheet: The sheet of a workbook; None means the only one that has data.
        decided: The `decision` of an earlier reading of the same columns: fewer rows must not decide again.

    Raises:
        InputError: the file cannot be read as payments.
        UsageError: the encoding is not supported, or a file that is no workbook has no sheets.
    """
    refuse_what_is_no_file(path)
    entry = entry_of(path, partial(head_of, path), is_table=bool(mapping))
    said = ReadingArguments(mapping, encoding, sheet, decided, is_ours=decided is not None)
    _refuse_ineffective(entry, said, where=path.name)
    data = bytes_of(path, entry.format, said.options)
    if isinstance(entry, MessageEntry):
        return read_message(data, entry.format, said, where=path.name)
    return read_table(data, entry.format, said, where=path.name)


def read_written(
    data: bytes, file_format: TabularFormat, said: ReadingArguments, *, where: str
) -> PaymentSource:
    """Read a file that is being written, before it has a name of its own; else as `read`."""
    return read_table(data, file_format, said._replace(is_ours=True), where=where)


def _refuse_ineffective(entry: FormatEntry | MessageEntry, said: ReadingArguments, *, where: str) -> None:
    """Refuse arguments that have no effect on a file of this format."""
    if said.sheet is not None and "sheet" not in entry.format.OPTIONS:
        raise UsageError(f"{where}: --sheet is for workbooks, and this file has no sheets; leave it out")
    if isinstance(entry, MessageEntry) and said.mapping:
        raise UsageError(
            f"{where}: --map is for columns, and where everything stands in {entry.format.TITLE} is fixed; "
            "leave it out"
        )
