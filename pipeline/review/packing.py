"""A payment file that is written as its input came: compressed in the same way, or not at all."""

from pathlib import PurePath
from typing import IO

from pipeline.files.compressed import Compression, pack
from schemas.summary import InputFile

_SUFFIXES = {None: "", Compression.GZIP: ".gz", Compression.ZIP: ".zip"}


def packed_suffix(source: InputFile) -> str:
    """What the name of a file ends in, after its own suffix, that is packed as the input was."""
    return _SUFFIXES[source.compression and Compression(source.compression)]


def write_packed(data: bytes, source: InputFile, file: IO[bytes], *, name: str) -> None:
    """Write the bytes of a payment file as its input came.

    Args:
        data: unpacked.
        source: the input.
        file: open for writing and reading.
        name: that the file gets, `packed_suffix` at its end.

    Raises:
        OSError: the file cannot take it.
        AssertionError: the file holds something else.
    """
    if source.compression is None:
        file.write(data)
    else:
        pack(data, Compression(source.compression), file, member=PurePath(name).stem)
