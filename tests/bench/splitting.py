"""Both files of a split of one payment file, written and compared; every third payment is held.

What it costs besides reading the file is measured by this process itself, and added to what it prints.
"""

import sys
import time
from pathlib import Path

import polars as pl

from pipeline.files.atomic import write_atomically
from pipeline.formats.edits import edited, require_undone
from pipeline.formats.registry import entry_of
from pipeline.formats.table import ReadingOptions


def main(path, folder):
    data = path.read_bytes()
    file_format = entry_of(path, lambda: data[: 64 * 1024]).format
    message = file_format.read(data, ReadingOptions({}), where=path.name)
    before = time.process_time()
    for role, keep in (("release", 0), ("hold", 1)):
        stays = message.locations.select((pl.col("row") % 3 == 0) == bool(keep)).to_series()
        edits = file_format.kept(data, message, stays, role)
        with write_atomically(folder / f"{role}{path.suffix}") as file:
            for piece in edited(data, edits):
                file.write(piece)
        require_undone((folder / f"{role}{path.suffix}").read_bytes(), data, edits)
    print(time.process_time() - before)


main(Path(sys.argv[1]), Path(sys.argv[2]))
