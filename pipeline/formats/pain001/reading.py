"""A pain.001 -> frames, in one pass of the standard library's parser, a block of payments at a time.

The parser is the standard library's: nothing is fetched, no entity is defined, and no token is longer than
64 KiB, so that it costs what its length says. Beside the texts it has where each element lies, so that a
change can be written into the bytes as they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from xml.parsers import expat

import polars as pl

from pipeline.errors import InputError
from pipeline.formats.edits import Bytes
from pipeline.formats.encodings import has_utf_8_signs
from pipeline.formats.message import FileIdentity
from pipeline.formats.pain001.elements import INDEX, TEXTS
from pipeline.formats.pain001.fields import IDS, SIGNS, fields
from pipeline.formats.pain001.levels import FACTS, LEVELS
from pipeline.formats.pain001.versions import encoding_of, wide_encoding_of
from pipeline.formats.pain001.walking import (
    OTHER_ENCODING,
    TOKEN_BYTES_MAX,
    Found,
    sentence_of,
    too_long,
    walk,
)
from pipeline.wording import Sentence
from schemas.payments import FIELDS

LOCATIONS = {
    "start": pl.Int64(),  # the end of what stands before the payment, so that comments go with it
    "end": pl.Int64(),
    "element": pl.Int64(),  # the start of the payment itself
    "line": pl.Int64(),
    "batch": pl.Int64(),  # counted from 1; 0 where it is in none
    "name_start": pl.Int64(),  # of what is between the tags; null where there is no name
    "name_end": pl.Int64(),
}
PARTS = {
    **dict.fromkeys(FIELDS, pl.String()),
    **SIGNS,
    **dict.fromkeys(("defect", *IDS), pl.String()),
    **LOCATIONS,
    "levels": pl.List(pl.Struct(LEVELS)),
    "facts": pl.List(pl.Struct(FACTS)),
}
"""The columns of what `parse` yields. The last row is no payment: it has the levels and the facts."""

_BLOCK_HEIGHT = 4096
"""Few enough to stay in the processor's cache: a sixth faster than sixteen times as many."""


def parse(data: Bytes) -> Iterator[pl.DataFrame]:
    """Read a message; what `files.confined` calls in its child.

    Returns:
        Parts of `PARTS`, in the order of the file.

    Raises:
        InputError: it is no credit transfer message, or not to be read safely or in one way only.
    """
    if not data:
        raise InputError(Sentence("pain001.file_empty_give"))
    reader = _Reader(data)
    try:
        for _ in reader.steps():
            if len(reader.found.rows) >= _BLOCK_HEIGHT:
                yield reader.part()
    except expat.ExpatError as error:
        raise InputError(sentence_of(error, data, reader.parser.CurrentByteIndex)) from None
    yield reader.part()
    yield reader.last()


class _Reader:
    """The parser, what it is fed and what becomes of what it finds."""

    def __init__(self, data: Bytes) -> None:
        self.identity = FileIdentity(sha256(data).hexdigest(), len(data))
        wide = wide_encoding_of(data)
        self.data = data = data if wide is None else _as_utf_8(data, wide)
        self.parser = parser = expat.ParserCreate(None if wide is None else "utf-8")
        parser.buffer_text = True
        parser.buffer_size = TOKEN_BYTES_MAX
        parser.ordered_attributes = True
        if hasattr(parser, "SetReparseDeferralEnabled"):
            parser.SetReparseDeferralEnabled(False)  # what it guards against, the length of tokens does
        self.found = Found(parser, data)
        self.encoding = "utf-8" if wide is None else "utf-16"
        self._guard_the_beginning()
        self._guard_what_passes_unread()
        walk(self.found, parser, data)

    def steps(self) -> Iterator[None]:
        """Feed the parser, never further than the longest token reaches."""
        understood = fed = 0
        while fed < len(self.data):
            until = min(understood + TOKEN_BYTES_MAX, len(self.data))
            if until == fed:
                raise InputError(too_long(self.parser.CurrentLineNumber))
            self.parser.Parse(self.data[fed:until], False)
            fed, understood = until, self.parser.CurrentByteIndex
            self.found.text_so_far()
            yield
        self.parser.Parse(b"", True)
        if not self.found.levels.facts:
            raise InputError(Sentence("pain001.xml_but_holds"))

    def part(self) -> pl.DataFrame:
        """The payments since the last part."""
        texts = _columns(self.found.rows, dict.fromkeys(INDEX, pl.String()))
        locations = _columns(self.found.spans, LOCATIONS)
        self.found.rows.clear()
        self.found.spans.clear()
        nothing = (pl.lit(None, PARTS[column]).alias(column) for column in ("levels", "facts"))
        return pl.concat([fields(texts.select(TEXTS)), locations], how="horizontal").with_columns(*nothing)

    def last(self) -> pl.DataFrame:
        """The row that is no payment."""
        levels = self.found.levels.whole(*self.found.message)
        facts = self.found.levels.facts | {"encoding": self.encoding}
        facts["data_payments"] = str(self.found.data_payment_count)
        facts |= {"sha256": self.identity.sha256, "byte_count": str(self.identity.byte_count)}
        if self.found.is_sealed:
            facts["sealed"] = "yes"
        whole = {
            "levels": [levels.to_struct()],
            "facts": [[{"name": name, "fact": fact} for name, fact in facts.items()]],
        }
        return pl.DataFrame({column: whole.get(column, [None]) for column in PARTS}, schema=PARTS)

    def _guard_the_beginning(self) -> None:
        """Refuse what no payment file needs, before it costs anything."""

        def declared(version: str, encoding: str | None, _standalone: int) -> None:
            if version != "1.0":
                raise InputError(Sentence("pain001.not_xml_which"))
            if encoding is None:
                return
            declared = encoding_of(encoding)
            if (declared == "utf-16") != (self.encoding == "utf-16"):
                raise InputError(OTHER_ENCODING)
            if declared not in ("utf-8", "utf-16"):
                if has_utf_8_signs(self.data):
                    raise InputError(Sentence("pain001.declaration_false", declared=declared))
                self.found.codec = declared
            self.encoding = declared

        def doctype(*_: object) -> None:
            raise InputError(Sentence("pain001.doctype_which_payment"))

        self.parser.XmlDeclHandler = declared
        self.parser.StartDoctypeDeclHandler = doctype

    def _guard_what_passes_unread(self) -> None:
        """Refuse what a damaged byte has made swallow the payments up to the next of its kind."""
        parser, data = self.parser, self.data
        section = 0

        def section_opened() -> None:
            nonlocal section
            section = parser.CurrentByteIndex

        def section_closed() -> None:
            refuse(data[section + 1 : parser.CurrentByteIndex], b"<![CDATA[")

        def instructed(_target: str, text: str) -> None:
            refuse(text.encode(), b"<?")

        def refuse(inside: bytes, opening: bytes) -> None:
            if opening in inside:
                raise InputError(
                    Sentence(
                        "pain001.damaged_before_line",
                        currentlinenumber=parser.CurrentLineNumber,
                        decode=opening.decode(),
                    )
                )

        parser.StartCdataSectionHandler = section_opened
        parser.EndCdataSectionHandler = section_closed
        parser.ProcessingInstructionHandler = instructed


def _as_utf_8(data: Bytes, codec: str) -> bytes:
    """A text in two-byte characters as the parser reads it; the places in it are not those of the file.

    Raises:
        InputError: it is no text.
    """
    try:
        return data[:].decode(codec).encode()
    except UnicodeDecodeError:
        raise InputError(OTHER_ENCODING) from None


def _columns(rows: Sequence[Sequence[object]], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Rows as a frame; by columns, which is faster, and those without any value as constants."""
    columns = dict(zip(schema, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(schema, ())
    absent = [name for name, values in columns.items() if values.count(None) == len(values)]
    present = [pl.Series(name, columns[name], schema[name]) for name in columns if name not in absent]
    frame = pl.DataFrame(present) if present else pl.DataFrame(height=len(rows))
    return frame.with_columns(pl.lit(None, schema[name]).alias(name) for name in absent).select(list(schema))
