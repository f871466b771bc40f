"""List the formats of payment files: how each is recognised, and how its payments are written."""

from pipeline.files.compressed import Compression
from pipeline.formats import Entry, FormatChoice, FormatEntry
from pipeline.formats.layouts import LayoutFormat
from pipeline.formats.layouts.model import why_never_changed
from pipeline.wording import Sentence
from schemas.columns import KnownFormat, KnownFormats


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
