"""XML of a stranger, element by element. Source: ECMA-376-1, of worksheets, workbooks and shared strings."""

from collections.abc import Callable, Mapping
from typing import IO
from xml.parsers import expat

_NAMESPACES = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main",
)
"""Of the transitional and of the strict form."""
_ELEMENTS = ("c", "v", "row", "f", "is", "mergeCell", "sheet", "si", "t", "rPh")
_BARE = {f"{namespace} {name}": name for namespace in _NAMESPACES for name in _ELEMENTS}
_CHUNK_BYTES = 256 * 1024


def parse(
    file: IO[bytes],
    *,
    start: Callable[[str, Mapping[str, str]], None],
    end: Callable[[str], None] = lambda _name: None,
    text: Callable[[str], None] = lambda _text: None,
) -> None:
    """Parse XML of a stranger: nothing is fetched, and no entity is defined.

    The elements that are known here come without their namespace.

    Raises:
        ValueError: it has a document type, where entities would be.
        expat.ExpatError: it is not XML.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise ValueError("a document type has no place in a workbook")

    def opened(name: str, attributes: Mapping[str, str]) -> None:
        start(_BARE.get(name, name), attributes)

    def closed(name: str) -> None:
        end(_BARE.get(name, name))

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = opened
    parser.EndElementHandler = closed
    parser.CharacterDataHandler = text
    while chunk := file.read(_CHUNK_BYTES):
        parser.Parse(chunk, False)
    parser.Parse(b"", True)
