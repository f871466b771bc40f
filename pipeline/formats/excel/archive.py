"""The ZIP archive of a workbook: its size, its parts and their XML (ECMA-376-1).

Two parsers of one ZIP can see different files: sizes may be understated, names repeated, bytes hidden. So the
parts are copied once into a new ZIP, which every parser gets, and counted while they are unpacked.
"""

import io
import struct
import zipfile
from collections.abc import Callable, Mapping
from typing import IO
from xml.parsers import expat

from pipeline.errors import InputError
from pipeline.wording import Sentence

UNPACKED_BYTES_MAX = 512 * 1024**2
RATIO_MAX = 200  # limit of unpacked to packed size; it was 11 for a sheet of a hundred thousand rows
PARTS_MAX = 2_000

_SMALL_BYTES = 1024**2  # workbooks up to this size are never bombs, regardless of their ratio
_CHUNK_BYTES = 64 * 1024
_ENCRYPTED = 0x1
_NEEDED = ("[Content_Types].xml", "_rels/", "xl/")
_OF_OTHER_WORKBOOKS = {"content.xml", "xl/workbook.bin", "Index/Document.iwa"}
"""Parts of OpenDocument, of binary workbooks and of Numbers."""
_NOT_NEEDED = ("xl/media/", "xl/drawings/", "xl/embeddings/", "xl/vbaProject.bin", "xl/pivotCache/")


def refuse_bombs(data: bytes, *, where: str) -> None:
    """Refuse a workbook with a larger declared size than any payment file. Nothing is unpacked yet.

    Raises InputError: it is too large, not a ZIP, another kind of workbook, or protected by a password.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, struct.error, ValueError, NotImplementedError):
        raise InputError(Sentence("excel.workbook_damaged", where=where)) from None
    if len(parts) > PARTS_MAX:
        raise InputError(
            Sentence("excel.too_many_parts", where=where, parts_count=len(parts), parts_max=PARTS_MAX)
        )
    if not _OF_OTHER_WORKBOOKS.isdisjoint(part.filename for part in parts):
        raise InputError(Sentence("formats.workbook_kind_unreadable", where=where))
    sizes = {"data_count": len(data), "unpacked_bytes": sum(part.file_size for part in parts)}
    if sizes["unpacked_bytes"] > max(_SMALL_BYTES, min(UNPACKED_BYTES_MAX, RATIO_MAX * len(data))):
        limits = {"unpacked_bytes_max": UNPACKED_BYTES_MAX, "ratio_max": RATIO_MAX}
        raise InputError(Sentence("excel.unpacks_too_large", where=where, **sizes, **limits))
    if any(part.flag_bits & _ENCRYPTED for part in parts):
        raise InputError(Sentence("files.protected_by_password", where=where))


def copied(data: bytes) -> bytes:
    """Copy the parts that hold cells into a new ZIP with correct sizes.

    Raises ValueError, BadZipFile, zlib.error: a part is damaged or repeated, or has not its declared size.
    """
    copy = io.BytesIO()
    # Compressed lightly, so that half a gigabyte need not be held in memory.
    into = zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with zipfile.ZipFile(io.BytesIO(data)) as archive, into as target:
        parts = [part for part in archive.infolist() if part.filename.startswith(_NEEDED)]
        parts = [part for part in parts if not part.filename.startswith(_NOT_NEEDED)]
        if len({part.filename.casefold() for part in parts}) < len(parts):
            raise ValueError("a part stands twice in the archive")
        for part in parts:
            _copy_part(archive, part, target)
    return copy.getvalue()


def _copy_part(archive: zipfile.ZipFile, part: zipfile.ZipInfo, target: zipfile.ZipFile) -> None:
    """Copy a part. zipfile stops at the declared size and compares the checksum."""
    copied_bytes = 0
    with archive.open(part) as source, target.open(part.filename, "w") as into:
        while chunk := source.read(_CHUNK_BYTES):
            copied_bytes += len(chunk)
            into.write(chunk)
    if copied_bytes != part.file_size:
        raise ValueError("a part is shorter than the archive says")


_NAMESPACES = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main",
)
"""Namespaces of the transitional and the strict form."""
_ELEMENTS = ("c", "v", "row", "f", "is", "mergeCell", "sheet", "si", "t", "rPh", "numFmt", "cellXfs", "xf")
_BARE = {f"{namespace} {name}": name for namespace in _NAMESPACES for name in _ELEMENTS}
_XML_CHUNK_BYTES = 256 * 1024


def parse(
    file: IO[bytes],
    *,
    start: Callable[[str, Mapping[str, str]], None],
    end: Callable[[str], None] = lambda _name: None,
    text: Callable[[str], None] = lambda _text: None,
) -> None:
    """Parse untrusted XML, without fetching; names in the known namespaces are reported bare.

    Raises ValueError: it has a document type, which could define entities; expat.ExpatError: it is not XML.
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
    while chunk := file.read(_XML_CHUNK_BYTES):
        parser.Parse(chunk, False)
    parser.Parse(b"", True)
