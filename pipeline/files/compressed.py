"""Read compressed files piece by piece, so that no zip bomb gets into memory, and write reproducible ones."""

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import IO, NamedTuple

from pipeline.errors import InputError
from pipeline.wording import Sentence

UNPACKED_BYTES_MAX = 8 * 1024**3
RATIO_MAX = 200  # limit of unpacked to packed size; it was 40 for the most repetitive pain.001 measured

DOCUMENTS_MAX = 1_000  # files in one ZIP; a bank may send a report for each message or batch
_SMALL_BYTES = 1024**2  # files up to this size are never bombs, regardless of their ratio
_PIECE_BYTES = 256 * 1024
_PACKED_PIECE_BYTES = 16 * 1024
_GZIP_MAGIC = b"\x1f\x8b\x08"
_GZIP_ZEROS = b"\0"  # padding that tapes and some transfers append to a gzip file
_GZIP_WITH_HEADER = 16 + zlib.MAX_WBITS
_ZIP_MAGIC = b"PK\x03\x04"
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_OF_WORKBOOKS = (b"[Content_Types].xml", b"_rels/", b"docProps/", b"xl/", b"mimetype")
_NAME_AT = 30  # offset of the first file's name in a ZIP
_NOBODYS = ("__MACOSX/", ".DS_Store")  # names of files that archivers add
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time of a ZIP, so that a copy does not reveal its own
_LEVEL = 6


class Compression(StrEnum):
    """A way to compress a file that this program reads and writes."""

    GZIP = "gzip"
    ZIP = "zip"


class UnpackedFile(NamedTuple):
    """The contents of a compressed file."""

    data: bytes
    compression: Compression
    member: str | None  # name of the file in the ZIP; None for gzip


def sniff(head: bytes) -> Compression | None:
    """Return the compression of a file by its first bytes; None for plain files and workbooks (also ZIPs)."""
    if head.startswith(_GZIP_MAGIC):
        return Compression.GZIP
    if head.startswith(_ZIP_MAGIC) and not head[_NAME_AT:].startswith(_OF_WORKBOOKS):
        return Compression.ZIP
    return None


def unpacked(
    data: bytes, compression: Compression, *, where: str, unpacked_bytes_max: int = UNPACKED_BYTES_MAX
) -> UnpackedFile:
    """Unpack a file under limits, compressed as `sniff` recognised it.

    Raises InputError: it is damaged or too large, has a password, or holds several files or a compressed one.
    """
    several = Sentence("files.archive_of_several_files", where=where)
    [found] = _contents(data, compression, where, unpacked_bytes_max, count_max=1, otherwise=several)
    return found


def unpacked_documents(
    data: bytes, compression: Compression, *, where: str, unpacked_bytes_max: int = UNPACKED_BYTES_MAX
) -> list[bytes]:
    """Unpack one to `DOCUMENTS_MAX` documents, under the limits of a single file (InputError)."""
    many = Sentence("files.zip_file_count_wrong", where=where, count_max=DOCUMENTS_MAX)
    found = _contents(data, compression, where, unpacked_bytes_max, count_max=DOCUMENTS_MAX, otherwise=many)
    return [document.data for document in found]


def _contents(  # noqa: PLR0913
    data: bytes, compression: Compression, where: str, bytes_max: int, *, count_max: int, otherwise: Sentence
) -> list[UnpackedFile]:
    """Unpack a gzip file or a ZIP of one to `count_max` files (InputError: `otherwise`)."""
    meter = _Meter(where, len(data), max(_SMALL_BYTES, min(bytes_max, RATIO_MAX * len(data))))
    if compression is Compression.GZIP:
        found = [UnpackedFile(meter.joined(_gunzipped(data, where)), compression, None)]
    else:
        with _archive(data, where) as archive:
            members = _members(archive)
            if not 0 < len(members) <= count_max:
                raise InputError(otherwise)
            found = [
                UnpackedFile(meter.joined(_unzipped(archive, _fit(each, where))), compression, each.filename)
                for each in members
            ]
    if any(sniff(each.data) is not None for each in found):
        raise InputError(Sentence("files.archive_of_several_files", where=where))
    return found


class _Meter:
    """Joins pieces up to the limits."""

    def __init__(self, where: str, packed_bytes: int, limit: int) -> None:
        self._where, self._packed_bytes, self._limit = where, packed_bytes, limit
        self._byte_count = 0

    def joined(self, pieces: Iterator[bytes]) -> bytes:
        found = []
        for piece in pieces:
            self._byte_count += len(piece)
            if self._byte_count > self._limit:
                where, packed, limit = self._where, self._packed_bytes, self._limit
                raise InputError(
                    Sentence("files.unpacks_too_large", where=where, packed_bytes=packed, limit=limit)
                )
            found.append(piece)
        return b"".join(found)


def _gunzipped(data: bytes, where: str) -> Iterator[bytes]:
    """Yield the pieces of a gzip file, which may be several joined ones."""
    position = 0
    while position < len(data):
        if not data.startswith(_GZIP_MAGIC, position):
            if data[position:].strip(_GZIP_ZEROS):
                raise InputError(Sentence("files.archive_of_several_files", where=where))
            return
        stream = zlib.decompressobj(_GZIP_WITH_HEADER)
        while not stream.eof:
            # Each time only the rest of a small piece is copied, not the rest of the file.
            packed = stream.unconsumed_tail
            if not packed:
                packed = data[position : position + _PACKED_PIECE_BYTES]
                position += len(packed)
            if not packed:
                raise _damaged(where)
            try:
                yield stream.decompress(packed, _PIECE_BYTES)
            except zlib.error:
                raise _damaged(where) from None
        position -= len(stream.unused_data)


def _damaged(where: str) -> InputError:
    return InputError(Sentence("files.compressed_file_damaged", where=where))


@contextmanager
def _archive(data: bytes, where: str) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield archive
    # zipfile's errors for damage, depending on the damaged part.
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, OverflowError):
        raise _damaged(where) from None


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the files in a ZIP, without those that archivers add."""
    files = (
        each for each in archive.infolist() if not each.is_dir() and not each.filename.endswith(_NOBODYS)
    )
    return [each for each in files if not each.filename.startswith(_NOBODYS)]


def _fit(member: zipfile.ZipInfo, where: str) -> zipfile.ZipInfo:
    """Return a member if it can be unpacked here (InputError: it cannot)."""
    if member.compress_type not in _METHODS:
        raise InputError(Sentence("files.archive_of_several_files", where=where))
    if member.flag_bits & _ENCRYPTED:
        raise InputError(Sentence("files.protected_by_password", where=where))
    return member


def _unzipped(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the pieces of a member. zipfile stops at the declared size and compares the checksum."""
    byte_count = 0
    with archive.open(member) as file:
        while piece := file.read(_PIECE_BYTES):
            byte_count += len(piece)
            yield piece
    if byte_count != member.file_size:
        raise zipfile.BadZipFile


def pack(data: bytes, compression: Compression, file: IO[bytes], *, member: str) -> None:
    """Compress into an empty file and read it back (OSError); `member` names the content in a ZIP."""
    _write(data, compression, file, member)
    file.seek(0)
    written = file.read()
    if compression is Compression.GZIP:
        found = b"".join(_gunzipped(written, member))
    else:
        with _archive(written, member) as archive:
            found = archive.read(member)
    if found != data:
        raise AssertionError("the compressed file does not hold what was packed")


def _write(data: bytes, compression: Compression, file: IO[bytes], member: str) -> None:
    if compression is Compression.GZIP:
        stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WITH_HEADER)
        file.write(stream.compress(data))
        file.write(stream.flush())
        return
    entry = zipfile.ZipInfo(member, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix, on any system
    entry.external_attr = 0o600 << 16
    # Through memory, so that a ZIP is the same whether or not its file is seekable.
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", compresslevel=_LEVEL) as target:
        target.writestr(entry, data, compresslevel=_LEVEL)
    file.write(archive.getbuffer())
