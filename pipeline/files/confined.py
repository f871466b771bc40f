"""Parse risky files in a child process with a limit on its memory; at worst it dies, and the file is refused.

The table comes back through a pipe as Arrow IPC in parts, so that no process holds it twice. Nothing is
written to disk, and the child's environment has no secrets.
"""

import importlib
import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from threading import Thread
from typing import IO, NamedTuple, Self

import polars as pl
from polars.exceptions import PanicException, PolarsError

from pipeline.errors import InputError
from pipeline.files import child_process as children
from pipeline.files.child_process import forbid_core_dumps
from pipeline.files.memory import GIB, memory_max_bytes
from pipeline.wording import Sentence, require_words

MEMORY_MIN_BYTES = 2 * GIB  # for a small file, compressed a thousandfold; libraries take a sixth of it
MEMORY_PER_BYTE = 32  # more per byte of the file: columns may be compressed, and are held twice
CPU_MAX_S = 600  # a file of 8 GiB takes a few minutes; a longer parse would never end
REFUSAL_BYTES_MAX = 4_000  # limit of a child's refusal; a hostile file may control the child
NO_OPTIONS: Mapping[str, str | int | None] = {}

_LENGTH_BYTES = 8
_REFUSED = 3  # the exit status of a child that sends a `RefusedFile`
# The limit is on address space; by default, allocators reserve gigabytes of it that they never use.
_FRUGAL = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "_RJEM_MALLOC_CONF": "background_thread:false,narenas:2",
}
_CHILD = (*children.INTERPRETER, "-c", "from pipeline.files.confined import main; main()")


class RefusedFile(NamedTuple):
    """A parser's refusal of a file, sent from the child as a JSON array."""

    reason: Sentence
    advice: tuple[Sentence, ...]

    @classmethod
    def received(cls, data: bytes) -> Self:
        """Read the child's refusal (ValueError: it is not in the catalogues)."""
        match json.loads(data):
            case [reason, *advice]:
                refusal = cls(Sentence.of_data(reason), tuple(map(Sentence.of_data, advice)))
                require_words(refusal.reason, *refusal.advice)
                return refusal
            case _:
                raise ValueError("no reason with advice")


def parse_confined(
    module: str,
    data: bytes | IO[bytes],
    *,
    where: str,
    what: Sentence,
    options: Mapping[str, str | int | None] = NO_OPTIONS,
) -> pl.DataFrame:
    """Parse a file in a child process; only the child holds the content of an open file.

    The module's `parse(data: bytes, **options) -> Iterator[pl.DataFrame]` yields one or more parts with the
    same columns. Its InputError is passed on, with `where` before the reason. Any other error is an
    InputError about damage; `what` names the kind of file.
    """
    byte_count = len(data) if isinstance(data, bytes) else os.fstat(data.fileno()).st_size
    limit_bytes = min(memory_max_bytes(), MEMORY_MIN_BYTES + MEMORY_PER_BYTE * byte_count)
    request = json.dumps({"module": module, "options": dict(options), "memory_max_bytes": limit_bytes})
    # The child's error output quotes cells, so it is dropped.
    with subprocess.Popen(  # noqa: S603 (our own interpreter and module)
        [*_CHILD, request],
        stdin=subprocess.PIPE if isinstance(data, bytes) else data,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=children.environment() | _FRUGAL,
    ) as child:
        assert child.stdout is not None
        feeding = None
        if isinstance(data, bytes):
            assert child.stdin is not None
            feeding = Thread(target=_feed, args=(child.stdin, data))
            feeding.start()
        try:
            received = received_table(child.stdout, table_bytes_max=limit_bytes)
        except MemoryError:
            child.kill()
            received = None
        if feeding is not None:
            feeding.join()
    if child.returncode == 0 and isinstance(received, pl.DataFrame):
        return received
    if child.returncode == _REFUSED and isinstance(received, RefusedFile):
        message = Sentence("files.refused_because", where=where, why=received.reason)
        raise InputError(message, advice=received.advice)
    if child.returncode == InputError.exit_code:
        raise InputError(Sentence("files.is_damaged", where=where, what=what))
    raise InputError(
        Sentence("files.damaged_or_needs_memory", where=where, what=what, limit_bytes=limit_bytes / GIB)
    )


def _feed(pipe: IO[bytes], data: bytes) -> None:
    # A child that dies does not read its input to the end; its exit status shows the cause.
    with suppress(BrokenPipeError), pipe:
        pipe.write(data)


def received_table(pipe: IO[bytes], *, table_bytes_max: int) -> pl.DataFrame | RefusedFile | None:
    """Read the table that a child sends in parts, or its refusal; None if it sends neither.

    Each part is preceded by its length, a refusal by 0 (MemoryError: the parts exceed the limit).
    """
    parts, table_bytes = [], 0
    try:
        while length := pipe.read(_LENGTH_BYTES):
            part_bytes = int.from_bytes(length)
            table_bytes += part_bytes
            if part_bytes == 0:
                return RefusedFile.received(pipe.read(REFUSAL_BYTES_MAX))
            if table_bytes > table_bytes_max:
                raise MemoryError
            part = pipe.read(part_bytes)
            if len(part) < part_bytes:
                return None
            parts.append(pl.read_ipc_stream(io.BytesIO(part)))
        return pl.concat(parts)
    except (PolarsError, PanicException, OSError, ValueError, RecursionError):
        return None
    finally:
        pipe.close()  # the child must not block on a full pipe; its other output is useless


def main() -> None:
    """Run the child process: read bytes from standard input, write a table in parts to standard output."""
    request = json.loads(sys.argv[1])
    limit_bytes = request["memory_max_bytes"]
    resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_MAX_S, CPU_MAX_S))
    forbid_core_dumps()
    parser = importlib.import_module(request["module"])
    try:
        # Complete or not at all: the parent uses the parts only if the exit status is 0.
        for cells in parser.parse(sys.stdin.buffer.read(), **request["options"]):
            part = io.BytesIO()
            cells.write_ipc_stream(part)
            _send(part.getbuffer())
    except MemoryError:
        sys.exit(1)
    except InputError as refusal:
        _send(b"")
        sentences = [sentence.as_data() for sentence in (refusal.reason, *refusal.advice)]
        sys.stdout.buffer.write(json.dumps(sentences, ensure_ascii=False).encode())
        sys.stdout.flush()
        sys.exit(_REFUSED)
    except (Exception, PanicException):  # noqa: BLE001 (a foreign file may raise anything, and the status reports it)
        sys.exit(InputError.exit_code)


def _send(part: bytes | memoryview) -> None:
    sys.stdout.buffer.write(len(part).to_bytes(_LENGTH_BYTES))
    sys.stdout.buffer.write(part)
    sys.stdout.flush()
