"""What a parser's error means for the person who gave the file, as a sentence."""

from xml.parsers import expat

from pipeline.formats.edits import Bytes

TOO_LONG = (
    "has a tag, a comment or a text longer than 64 KiB at line {line}, which no payment has; export it again"
)
TOO_DEEP = "has elements more than {depth} deep at line {line}, which no payment has; export it again"
OTHER_ENCODING = "is written in another encoding than it says; export it as UTF-8"

_CUT = (
    expat.errors.XML_ERROR_NO_ELEMENTS,
    expat.errors.XML_ERROR_UNCLOSED_TOKEN,
    expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
)
_ENCODINGS = (
    expat.errors.XML_ERROR_INCORRECT_ENCODING,
    expat.errors.XML_ERROR_UNKNOWN_ENCODING,
)
_ENTITY = (expat.errors.XML_ERROR_UNDEFINED_ENTITY,)
_ASCII_MAX = 0x7F


def sentence_of(error: expat.ExpatError, data: Bytes, at: int) -> str:
    """What is wrong with a file, where, and what to do.

    Args:
        error: of the parser.
        data: the bytes of the file.
        at: where in them the parser stopped.
    """
    what = expat.ErrorString(error.code)
    place = f"at line {error.lineno}, column {error.offset + 1}"
    if what in _CUT:
        return f"ends {place}, before its end; it may have been cut: copy or export it again"
    if what in _ENCODINGS:
        return OTHER_ENCODING
    if what in _ENTITY:
        return f"has an entity {place} that is not defined; write the character itself"
    if data[at : at + 1] > bytes([_ASCII_MAX]):
        return f"has bytes {place} that are not in the encoding that it says; export it as UTF-8"
    return f"is not well-formed XML {place}; export it again"
