"""The files that a review writes: payments in the form of the input, and lists for people."""

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from fnmatch import fnmatch
from hashlib import file_digest
from pathlib import Path

import polars as pl

from pipeline.errors import InputError
from pipeline.files.atomic import write_atomically
from pipeline.formats import FormatEntry, MessageEntry, entry_named
from pipeline.formats.table import Dialect
from pipeline.reports import safe_csv as spreadsheet
from pipeline.reports.cells import visible_texts
from pipeline.rules.totals import added, totals, with_money
from pipeline.runs.finished import FinishedRun
from pipeline.runs.manifest import read_manifest, refresh_manifest
from pipeline.stages.read import ReadingArguments, read_written
from schemas.manifest import SplitMade
from schemas.review import ControlTotal, PaymentFile
from schemas.summary import InputFile


def write_payments(run: FinishedRun, table: pl.DataFrame, stem: str, files: ExitStack) -> PaymentFile:
    """A payment file in the manner of the input, read again as every payment file is.

    Args:
        run: whose payments they are.
        table: the rows, in the columns of the input.
        stem: of the file's name, which it gets when `files` is closed.
        files: what is being written.

    Raises:
        InputError: it is not known how the input was written, or that way cannot hold a text.
        OutputError, DiskError: as `write_atomically`.
    """
    _refuse_obstacle(run)
    source, path = run.summary.input, payment_path(run, stem)
    entry, encoding = entry_named(source.format), source.encoding
    assert isinstance(entry, FormatEntry)
    payments_format = entry.payments
    extra = table.columns[table.width - source.extra_column_count :]
    table = table.drop(name for name in extra if table[name].null_count() == table.height)
    file = files.enter_context(write_atomically(path))
    data = payments_format.rewrite(table, file, _dialect_of(source), where=path.name)
    said = ReadingArguments(
        source.mapping, None if encoding == "utf-8" else encoding, decided=source.decision
    )
    again = read_written(data, payments_format, said, where=path.name)
    if not again.original.equals(table):
        raise AssertionError("the written payment file holds other cells than it was given")
    file.seek(0)
    return PaymentFile(
        path=str(path),
        sha256=file_digest(file, "sha256").hexdigest(),
        row_count=again.payments.height,
        totals=totals(with_money(again.payments)),
    )


def payment_path(run: FinishedRun, stem: str) -> Path:
    """Where a payment file goes; its name says if the answers were simulated."""
    simulated = ".simulated" if run.summary.simulated else ""
    return run.folder / f"{stem}{simulated}{_suffix_of(run.summary.input)}"


def _suffix_of(source: InputFile) -> str:
    """Of a payment file: that of the input, if it is written in the same format."""
    entry = entry_named(source.format)
    if isinstance(entry, MessageEntry):
        return Path(source.name).suffix
    return Path(source.name).suffix if source.format == entry.payments.NAME else entry.payments.SUFFIX


def _dialect_of(source: InputFile) -> Dialect:
    return Dialect(**source.model_dump(include=set(Dialect._fields)))


def write_for_people(table: pl.DataFrame, run: FinishedRun, name: str, files: ExitStack) -> None:
    """Write a list for people, which a spreadsheet can open; it gets its name when `files` is closed.

    An invisible character, such as one that reverses the text, is written as its escape.
    """
    file = files.enter_context(write_atomically(run.folder / name))
    texts = [visible_texts(column) for column in table if column.dtype == pl.String]
    spreadsheet.write(table.with_columns(texts), file, delimiter=run.summary.input.delimiter)


def require_sums(run: FinishedRun, files: Sequence[PaymentFile]) -> ControlTotal:
    """The control totals of the input, which those of the files must add up to."""
    input_totals = totals(with_money(run.source.payments))
    assert input_totals == added([total.totals for total in run.summary.outcomes])
    if sum(file.row_count for file in files) != run.outcomes.height:
        raise AssertionError("the written files have more or fewer rows than the input")
    if added([file.totals for file in files]) != input_totals:
        raise AssertionError("the money in the written files is not the money in the input")
    return ControlTotal(row_count=run.outcomes.height, totals=input_totals)


def take_into_evidence(folder: Path, *patterns: str, now: datetime, split: SplitMade | None = None) -> None:
    """Put what was just written into the manifest, and what it replaced out of it."""
    there = [path.name for pattern in patterns for path in folder.glob(pattern)]
    gone = [
        file.name
        for file in read_manifest(folder).files
        if file.name not in there and any(fnmatch(file.name, pattern) for pattern in patterns)
    ]
    refresh_manifest(folder, now=now, written=there, removed=gone, split=split)


def _refuse_obstacle(run: FinishedRun) -> None:
    """Refuse to guess how the input was written."""
    source = run.summary.input
    entry = entry_named(source.format)
    assert isinstance(entry, FormatEntry)
    obstacle = entry.format.obstacle(_dialect_of(source), kept_as=run.source.format, name=source.name)
    if obstacle is not None:
        raise InputError(f"{run.folder}: {obstacle.reason}", advice=obstacle.advice)
