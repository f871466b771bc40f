"""The files that a review writes: payments in the form of the input, and lists for people."""

import codecs
import io
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path

import polars as pl

from pipeline.errors import InputError
from pipeline.files.atomic import write_whole
from pipeline.formats import csv as delimited
from pipeline.formats import parquet
from pipeline.formats.csv import DELIMITER
from pipeline.formats.styles import Style, style_of, write_in_style
from pipeline.reports import safe_csv as spreadsheet
from pipeline.reports.cells import visible_texts
from pipeline.rules.totals import added, totals, with_money
from pipeline.runs.finished import FinishedRun
from pipeline.runs.manifest import read_manifest, refresh_manifest
from pipeline.stages.read import Said, read_written
from schemas.manifest import SplitMade
from schemas.review import ControlTotal, PaymentFile


def write_payments(run: FinishedRun, table: pl.DataFrame, stem: str, files: ExitStack) -> PaymentFile:
    """A payment file in the style of the input, read again as every payment file is.

    Args:
        run: whose payments they are.
        table: the rows, in the columns of the input.
        stem: of the file's name, which it gets when `files` is closed.
        files: what is being written.

    Raises:
        InputError: it is not known how the input was written, or that way cannot hold a text.
        OutputError, DiskError: as `write_whole`.
    """
    _require_style(run)
    style, path = style_of(run.summary.input), payment_path(run, stem)
    extra = table.columns[table.width - run.summary.input.extra_column_count :]
    table = table.drop(name for name in extra if table[name].null_count() == table.height)
    file = files.enter_context(write_whole(path))
    write_in_style(table, file, style, where=path.name)
    file.seek(0)
    data = file.read()
    again = read_written(
        _with_header_line(data, table, style, where=path.name),
        style.format,
        Said(
            run.summary.input.mapping,
            None if style.encoding == "utf-8" else style.encoding,
            decided=run.summary.input.decision,
        ),
        where=path.name,
    )
    if not again.original.equals(table):
        raise AssertionError("the written payment file holds other cells than it was given")
    return PaymentFile(
        path=str(path),
        sha256=sha256(data).hexdigest(),
        row_count=again.payments.height,
        totals=totals(with_money(again.payments)),
    )


def _with_header_line(data: bytes, table: pl.DataFrame, style: Style, *, where: str) -> bytes:
    """A payment file as it would be with a header line, which one without headers must end like."""
    if style.header_line:
        return data
    named = io.BytesIO()
    write_in_style(table, named, style._replace(header_line=True), where=where)
    if not named.getvalue().endswith(data.removeprefix(codecs.BOM_UTF8)):
        raise AssertionError("the written payment file holds other rows than it was given")
    return named.getvalue()


def payment_path(run: FinishedRun, stem: str) -> Path:
    """Where a payment file goes; its name says if the answers were simulated."""
    simulated = ".simulated" if run.summary.simulated else ""
    return run.folder / f"{stem}{simulated}{style_of(run.summary.input).suffix}"


def write_for_people(table: pl.DataFrame, run: FinishedRun, name: str, files: ExitStack) -> None:
    """Write a list for people, which a spreadsheet can open; it gets its name when `files` is closed.

    What nobody would see, such as a character that turns the text around, is written as its escape.
    """
    file = files.enter_context(write_whole(run.folder / name))
    texts = [visible_texts(column) for column in table if column.dtype == pl.String]
    spreadsheet.write(table.with_columns(texts), file, delimiter=run.summary.input.delimiter or DELIMITER)


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


def _require_style(run: FinishedRun) -> None:
    """Refuse to guess how the input was written."""
    source = run.summary.input
    if source.format == parquet.NAME != run.source.format:
        raise InputError(
            f"{run.folder}: the outcome file is CSV, which does not know the types of {source.name}",
            advice="run the same command again with --format parquet, which asks nothing twice",
        )
    if source.format == delimited.NAME and source.delimiter is None:
        raise InputError(
            f"{run.folder}: the run was of an older version, which did not say how {source.name} is written; "
            "run the same command again, which asks nothing twice"
        )
