"""Divide a large Parquet file into parts, in a child process with limited memory and no secrets."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import DiskError, InputError
from pipeline.files import child_process as children
from pipeline.files.child_process import forbid_core_dumps
from pipeline.files.memory import GIB, memory_max_bytes
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

_MEMORY_BYTES = 4 * GIB  # limit of address space, for some pages of every column and the libraries
_ROWS_AT_ONCE = 65_536
_CHILD = (*children.INTERPRETER, "-c", "from pipeline.files.dividing import main; main()")


def divide_parquet(path: Path, folder: Path, *, rows_max: int) -> None:
    """Write a Parquet file's rows, in order, to `part-00000.parquet` and so on (InputError, DiskError)."""
    limit_bytes = min(memory_max_bytes(), _MEMORY_BYTES)
    arguments = json.dumps({"folder": str(folder), "rows_max": rows_max, "memory_max_bytes": limit_bytes})
    with path.open("rb") as file:
        ended = subprocess.run(  # noqa: S603 (our own interpreter and module)
            [*_CHILD, arguments],
            stdin=file,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=children.environment() | {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"},
            check=False,
        )
    if ended.returncode == DiskError.exit_code:
        raise DiskError(Sentence("files.parts_not_writable", folder=folder, path=path.name))
    if ended.returncode:
        raise InputError(
            Sentence("files.parquet_damaged_or_too_large", path=path.name, limit_bytes=limit_bytes / GIB)
        )


def main() -> None:
    """Run the child process: read a file from standard input, write parts to a folder."""
    from pyarrow import parquet

    request = json.loads(sys.argv[1])
    limit_bytes = request["memory_max_bytes"]
    resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
    forbid_core_dumps()
    os.umask(0o077)
    try:
        _divide(
            parquet.ParquetFile(sys.stdin.buffer, page_checksum_verification=True, pre_buffer=False), request
        )
    except OSError as error:  # a disk error has a number; damage has none
        sys.exit(DiskError.exit_code if error.errno else InputError.exit_code)
    except Exception:  # noqa: BLE001 (a foreign file may raise anything, and the status reports it)
        sys.exit(InputError.exit_code)


def _divide(file: "ParquetFile", request: Mapping[str, Any]) -> None:
    from pyarrow import parquet

    folder, rows_max = Path(request["folder"]), request["rows_max"]
    number, row_count, writer = 0, 0, None
    for batch in file.iter_batches(_ROWS_AT_ONCE, use_threads=False):
        left = batch
        while left.num_rows:
            if writer is None:
                path = folder / f"part-{number:05}.parquet"
                writer = parquet.ParquetWriter(path, file.schema_arrow, compression="lz4")
            some = left.slice(0, rows_max - row_count)
            writer.write_batch(some)
            row_count, left = row_count + some.num_rows, left.slice(some.num_rows)
            if row_count == rows_max:
                writer.close()
                number, row_count, writer = number + 1, 0, None
    if writer is not None:
        writer.close()
    if number * rows_max + row_count != file.metadata.num_rows:
        raise ValueError("the file does not have as many rows as it says")
