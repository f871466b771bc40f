"""read: file -> Payments. Read a payment file into payments, and keep its columns unchanged."""

from collections.abc import Mapping
from pathlib import Path

from pipeline.formats.protocols import TabularFormat
from pipeline.formats.registry import ANY_FORMAT, FormatChoice, MessageEntry
from pipeline.stages.read.messages import read_message
from pipeline.stages.read.opening import Packing, PaymentSource, ReadingArguments, opened
from pipeline.stages.read.tables import read_table

__all__ = ["Packing", "PaymentSource", "ReadingArguments", "read", "read_written"]


def read(  # noqa: PLR0913 (the options of a file)
    path: Path,
    *,
    mapping: Mapping[str, str],
    encoding: str | None = None,
    sheet: str | None = None,
    decided: Mapping[str, str] | None = None,
    format_choice: FormatChoice = ANY_FORMAT,
    country: str | None = None,
) -> PaymentSource:
    """Read a payment file, perhaps compressed (InputError; UsageError: an option does not apply to it).

    A row that is too long, too short or blank is a payment with a defect. Repeated headers below the header
    line, and footers such as totals below the payments, are not payments.
    """
    is_ours = decided is not None
    arguments = ReadingArguments(mapping, encoding, sheet, decided, is_ours, format_choice, country)
    content, entry, packed = opened(path, arguments, with_bytes=False)
    if isinstance(entry, MessageEntry):
        source = read_message(content, entry, arguments, where=path.name)
    else:
        assert isinstance(content, bytes)
        source = read_table(content, entry.format, arguments, where=path.name)
    if packed is None:
        return source
    packing, identity = packed
    return source._replace(packing=packing, sha256=identity.sha256, byte_count=identity.byte_count)


def read_written(
    data: bytes, file_format: TabularFormat, arguments: ReadingArguments, *, where: str
) -> PaymentSource:
    """Read a file that is being written, before it has its final name; otherwise like `read`."""
    return read_table(data, file_format, arguments._replace(is_ours=True), where=where)
