"""write: Outcomes -> outcome file. Write the payments back with their outcomes."""

import hashlib
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.files.atomic import write_atomically
from pipeline.formats.registry import format_named
from pipeline.formats.table import Dialect
from pipeline.frames import OUTCOMES, Original, Outcomes
from schemas.folder import outcome_name
from schemas.outcomes import COLUMNS


class WrittenOutcomes(NamedTuple):
    """The outcome file."""

    path: Path  # has every payment of the input in order, with its outcome
    sha256: str  # hexadecimal digest of the file


def write(  # noqa: PLR0913 (what to write, where and how)
    original: Original,
    outcomes: Outcomes,
    folder: Path,
    *,
    format_name: str,
    dialect: Dialect,
    name: str | None = None,
) -> WrittenOutcomes:
    """Write the outcome file, with every input cell unchanged; `name` replaces `outcomes` in its name."""
    row_numbers = pl.int_range(1, original.height + 1, dtype=pl.UInt32, eager=True)
    if not outcomes["row"].equals(row_numbers):
        raise AssertionError("the outcomes are not one per payment, in the order of the file")
    if outcomes.schema != OUTCOMES or outcomes["check_outcome"].has_nulls():
        raise AssertionError("a payment has no outcome, or one that does not exist")
    table = original.hstack(outcomes.select(COLUMNS).get_columns())
    file_format = format_named(format_name)
    path = folder / (f"{name}{file_format.SUFFIX}" if name else outcome_name(file_format.SUFFIX))
    with write_atomically(path) as file:
        file_format.write(table, file, column="check_outcome", dialect=dialect)
        file.seek(0)
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return WrittenOutcomes(path, sha256)
