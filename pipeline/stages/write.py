"""Write the payments back with their outcomes.

Outcomes -write-> outcome file
"""

import hashlib
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.formats import NAMES, format_named, spreadsheet
from pipeline.formats.delimited import DELIMITER
from pipeline.formats.whole import write_whole
from schemas.folder import files_with_returned_names
from schemas.outcomes import COLUMNS, Outcome

ATTENTION_NAME = "attention.csv"
_NEEDS_A_PERSON = (Outcome.NO_MATCH, Outcome.NOT_POSSIBLE)


def files_with_names(folder: Path) -> list[Path]:
    """The files of a folder that may hold names, also those that banks returned."""
    outcome_files = (folder / f"outcomes{format_named(name).SUFFIX}" for name in NAMES)
    return [*outcome_files, folder / ATTENTION_NAME, *files_with_returned_names(folder)]


class WrittenFiles(NamedTuple):
    """What was written."""

    outcomes: Path
    """Every payment of the input, in order, with its outcome."""
    outcomes_sha256: str
    """Of the bytes of that file, as hexadecimal digits."""
    attention: Path
    """The payments that a person must look at."""
    attention_row_count: int


def write(
    original: pl.DataFrame, outcomes: pl.DataFrame, folder: Path, *, format_name: str, delimiter: str | None
) -> WrittenFiles:
    """Write `outcomes.csv` or `outcomes.parquet`, and `attention.csv`.

    The outcome file is for programs: every cell is as it was in the input. The attention file is
    for people: cells that a spreadsheet would run are escaped.

    Args:
        original: The columns of the input, untouched.
        outcomes: `frames.OUTCOMES`, one row for each row of the original, in its order.
        folder: Where to write; must exist.
        format_name: csv or parquet.
        delimiter: Between the cells of CSV; None means a comma.

    Raises:
        OutputError: a file cannot be created.
        DiskError: the disk is full or failed.
    """
    _assert_conserved(original, outcomes)
    delimiter = delimiter or DELIMITER
    table = original.hstack(outcomes.select(COLUMNS).get_columns())
    attention = table.filter(pl.col("check_outcome").is_in(_NEEDS_A_PERSON))

    file_format = format_named(format_name)
    outcomes_path = folder / f"outcomes{file_format.SUFFIX}"
    with write_whole(outcomes_path) as file:
        file_format.write(table, file, column="check_outcome", delimiter=delimiter)
        file.seek(0)
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    attention_path = folder / ATTENTION_NAME
    with write_whole(attention_path) as file:
        spreadsheet.write(attention, file, delimiter=delimiter)
    return WrittenFiles(outcomes_path, sha256, attention_path, attention.height)


def _assert_conserved(original: pl.DataFrame, outcomes: pl.DataFrame) -> None:
    """One outcome per payment, in the order of the file."""
    row_numbers = pl.int_range(1, original.height + 1, dtype=pl.UInt32, eager=True)
    if not outcomes["row"].equals(row_numbers):
        raise AssertionError("the outcomes are not one per payment, in the order of the file")
    if not outcomes["check_outcome"].is_in(list(Outcome)).fill_null(value=False).all():
        raise AssertionError("a payment has no outcome, or one that does not exist")
