"""Feed untrusted XML to the standard library's parser in pieces, for a format that follows its events.

Nothing is fetched, no entity is defined, and no token is longer than 64 KiB, so the cost of a file is
proportional to its length. XML features that no payment file needs are refused at the start.
"""

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import islice
from xml.parsers import expat

from pipeline.errors import InputError, UsageError
from pipeline.formats import encodings
from pipeline.formats.edits import Bytes
from pipeline.formats.message import FileIdentity
from pipeline.wording import Sentence

TOKEN_BYTES_MAX = 64 * 1024
DEPTH_MAX = 32
WIDE = ("utf-16", "utf-32")
_FIRST = {"<".encode(codec): codec for codec in ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")}
_TEXT_WITH_HIGH = re.compile(rb"(?<=>)[^<>\x80-\xff]{0,200}[\x80-\xff][^<>]*")
_TEXTS_MAX = 1_000


class Element(dict[str, "Element"]):
    """An element that is read, or leads to one that is: its children by local name."""

    __slots__ = ("column", "is_header", "is_supplement", "kind", "otherwise", "what")

    def __init__(self, kind: int = 0) -> None:
        super().__init__()
        self.kind = kind  # what a reader does there, as each format counts it; 0: nothing
        self.what = ""
        self.column = 0  # `what` is the name of the column for its text, `column` its index
        self.otherwise = self  # the element for children that are not named
        self.is_header = False  # True above the batches, where a hash or a signature covers the whole file
        self.is_supplement = False  # True if it is, or is within, another program's data

    def add_texts(
        self, columns: Mapping[str, str], kind: int, unread: "Element", index: Mapping[str, int]
    ) -> None:
        """Add elements by path, each with the column for its text; any other element there is `unread`."""
        self.otherwise = unread
        for path, what in columns.items():
            element = self
            for name in path.split("/"):
                element = element.setdefault(name, Element())
                element.otherwise = unread
            element.kind, element.what, element.column = kind, what, index.get(what, 0)


class XmlStream:
    """A document, its parser, and its encoding."""

    def __init__(self, data: Bytes) -> None:
        if not data:
            raise InputError(Sentence("pain001.file_empty"))
        self.identity = FileIdentity(sha256(data).hexdigest(), len(data))
        wide = wide_encoding_of(data)
        self.data = data = data if wide is None else _as_utf_8(data, wide)
        self.parser = parser = expat.ParserCreate(None if wide is None else "utf-8")
        parser.buffer_text = True
        parser.buffer_size = TOKEN_BYTES_MAX
        parser.ordered_attributes = True
        if hasattr(parser, "SetReparseDeferralEnabled"):
            parser.SetReparseDeferralEnabled(False)  # the limit on tokens already protects against long ones
        self.encoding = "utf-8" if wide is None else wide[:6]
        self.codec = "utf-8"  # encoding of the bytes that the parser gets
        self.text: list[str] = []  # the text of the current element, in pieces
        self._guard_the_beginning()
        self._guard_what_passes_unread()

    def steps(self) -> Iterator[None]:
        """Feed the parser in pieces no longer than the longest token.

        Raises InputError: it is not XML, or a token is too long.
        """
        understood = fed = 0
        try:
            while fed < len(self.data):
                until = min(understood + TOKEN_BYTES_MAX, len(self.data))
                if until == fed:
                    raise self._too_long()
                self.parser.Parse(self.data[fed:until], False)
                fed, understood = until, self.parser.CurrentByteIndex
                self.text_so_far()
                yield
            self.parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise InputError(_sentence_of(error, self.data, self.parser.CurrentByteIndex)) from None

    def text_so_far(self) -> str:
        """Return the text of the current element so far (InputError: longer than the longest token)."""
        if sum(map(len, self.text)) > TOKEN_BYTES_MAX:
            raise self._too_long()
        return "".join(self.text)

    def _too_long(self) -> InputError:
        return InputError(Sentence("pain001.token_too_long", line=self.parser.CurrentLineNumber))

    def _guard_the_beginning(self) -> None:
        """Refuse XML features that no payment file needs, before parsing."""

        def declared(version: str, encoding: str | None, _standalone: int) -> None:
            if version != "1.0":
                raise InputError(Sentence("pain001.xml_version_not_supported"))
            if encoding is None:
                return
            declared = encoding_of(encoding)
            if declared != self.encoding and (declared in WIDE or self.encoding in WIDE):
                raise InputError(OTHER_ENCODING)
            if declared != "utf-8" and declared not in WIDE:
                if encodings.has_utf_8_signs(self.data):
                    raise InputError(Sentence("pain001.is_utf_8_despite_declaration", declared=declared))
                texts = [text[0] for text in islice(_TEXT_WITH_HIGH.finditer(self.data), _TEXTS_MAX)]
                if (other := encodings.better_encoding(texts, declared)) is not None:
                    raise InputError(Sentence("pain001.encoding_misdeclared", declared=declared, other=other))
                self.codec = declared
            self.encoding = declared

        def doctype(*_: object) -> None:
            raise InputError(Sentence("pain001.has_doctype"))

        self.parser.XmlDeclHandler = declared
        self.parser.StartDoctypeDeclHandler = doctype

    def _guard_what_passes_unread(self) -> None:
        """Refuse comments, CDATA and the like if a damaged byte would make them hide payments."""
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
                key, line = "pain001.markup_not_closed", parser.CurrentLineNumber
                raise InputError(Sentence(key, currentlinenumber=line, decode=opening.decode()))

        parser.StartCdataSectionHandler = section_opened
        parser.EndCdataSectionHandler = section_closed
        parser.ProcessingInstructionHandler = instructed


def encoding_of(declared: str) -> str:
    """Return the usual name of the encoding in a declaration; the parser knows all of one byte per character.

    >>> encoding_of("ISO-8859-1"), encoding_of("latin1"), encoding_of("UTF-16LE"), encoding_of("cp1250")
    ('iso-8859-1', 'iso-8859-1', 'utf-16', 'windows-1250')

    Raises InputError: the encoding is not supported.
    """
    try:
        codec = encodings.codec_of(declared)
    except UsageError:
        codec = ""
    name = re.sub("^iso(?=8)", "iso-", codec.replace("cp125", "windows-125"))
    name = codec[:6] if codec[:6] in WIDE else name
    if name in (*WIDE, "utf-8") or (codec and encodings.has_one_byte_each(codec)):
        return name.replace("ascii", "us-ascii")
    raise InputError(Sentence("pain001.encoding_not_supported", declared=repr(declared[:40])))


def wide_encoding_of(head: Bytes) -> str | None:
    """Return the codec of a document with wide characters, by its mark or first character; else None.

    >>> [wide_encoding_of("<".encode(codec)) for codec in ("utf-16-be", "utf-32", "ascii")]
    ['utf-16-be', 'utf-32', None]
    """
    if (marked := encodings.marked_encoding(head)) is not None:
        return marked.removesuffix("-be")  # the codec without a byte order reads the mark
    start = bytes(head[:4])
    return next((codec for first, codec in _FIRST.items() if start.startswith(first)), None)


def _as_utf_8(data: Bytes, codec: str) -> bytes:
    """Convert text in wide characters to UTF-8 for the parser; offsets differ from the file's.

    Raises InputError: it is not text in this encoding.
    """
    try:
        return data[:].decode(codec).encode()
    except UnicodeDecodeError:
        raise InputError(OTHER_ENCODING) from None


OTHER_ENCODING = Sentence("pain001.not_in_declared_encoding")


def too_deep(line: int) -> InputError:
    """Return the refusal of elements nested deeper than in any payment."""
    return InputError(Sentence("pain001.nested_too_deep", depth=DEPTH_MAX, line=line))


_SAID = {
    expat.errors.XML_ERROR_MISPLACED_XML_PI: "pain001.outside_document",
    expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT: "pain001.outside_document",
    expat.errors.XML_ERROR_NO_ELEMENTS: "pain001.cut_short",
    expat.errors.XML_ERROR_UNCLOSED_TOKEN: "pain001.cut_short",
    expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION: "pain001.cut_short",
    expat.errors.XML_ERROR_UNDEFINED_ENTITY: "pain001.entity_not_defined",
}


def _sentence_of(error: expat.ExpatError, data: Bytes, offset: int) -> Sentence:
    """Return a sentence on the error that stopped the parser, and what to do."""
    what = expat.ErrorString(error.code)
    if what in (expat.errors.XML_ERROR_INCORRECT_ENCODING, expat.errors.XML_ERROR_UNKNOWN_ENCODING):
        return OTHER_ENCODING
    column = error.offset + 1
    if not data[offset : offset + 1].isascii():
        otherwise = "pain001.bytes_not_in_encoding"
    elif data[:offset].rstrip().endswith(b"Document>") and not data[offset:].strip(b"\0\x1a\r\n\t "):
        otherwise = "pain001.outside_document"
    elif bare := re.search(rb"&[\w.-]*$", data[max(0, offset - 80) : offset]):
        otherwise, column = "pain001.bare_ampersand", column - len(bare[0])
    else:
        otherwise = "pain001.not_well_formed_xml"
    place = Sentence("pain001.at_place", line=error.lineno, column=column)
    return Sentence(_SAID.get(what, otherwise), place=place)
