"""A payment file that is written as its input came: compressed in the same way, or not at all."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import IO

from pipeline.files.compressed import Compression, pack
from schemas.summary import InputFile

_SUFFIXES = {None: "", "gzip": ".gz", "zip": ".zip"}


def packed_suffix(source: InputFile) -> str:
    """What the name of a file ends in, after its own suffix, that is packed as the input was."""
    return _SUFFIXES[source.compression]


@contextmanager
def packed_like(source: InputFile, file: IO[bytes], *, name: str) -> Iterator[IO[bytes]]:
    """A place for the bytes of a payment file, which are in the file once the block ends.

    Args:
        source: the input.
        file: open for writing and reading, and empty.
        name: that the file gets, `packed_suffix` at its end.

    Raises:
        OSError: the file cannot take it.
        AssertionError: the file holds something else.
    """
    if source.compression is None:
        yield file
        return
    unpacked = io.BytesIO()
    yield unpacked
    pack(unpacked.getvalue(), Compression(source.compression), file, member=PurePath(name).stem)
