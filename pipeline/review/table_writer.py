"""Payments of a table, written again: all its cells anew, from what the run kept of them."""

from typing import IO, NamedTuple

import polars as pl

from pipeline.errors import InputError
from pipeline.formats import FormatEntry
from pipeline.formats.message import Role
from pipeline.formats.table import Dialect
from pipeline.frames import Corrections, Payments
from pipeline.review.corrections import correct
from pipeline.runs.finished import FinishedRun
from pipeline.stages.read import ReadingArguments, read_written


class TableWriter(NamedTuple):
    """Of a run whose payments are rows of a table; as `PaymentsWriter`."""

    run: FinishedRun
    entry: FormatEntry
    """Of the format that the table has."""

    def fitted(self, corrections: Corrections) -> Corrections:
        """A cell holds any text."""
        return corrections

    def refuse_obstacle(self) -> None:
        """Refuse to guess how the input was written."""
        source = self.run.summary.input
        kept_as = self.run.source.format
        obstacle = self.entry.format.obstacle(self._dialect, kept_as=kept_as, name=source.name)
        if obstacle is not None:
            raise InputError(f"{self.run.folder}: {obstacle.reason}", advice=obstacle.advice)

    def corrected(self, corrections: Corrections, file: IO[bytes], name: str) -> Payments:
        """Write all rows, with corrections in their cells."""
        return self._written(correct(self.run.source.original, corrections), file, name)

    def part(self, keep: pl.Series, role: Role, file: IO[bytes], name: str) -> Payments:  # noqa: ARG002 - no table says what it is for
        """Write some of the rows."""
        return self._written(self.run.source.original.filter(keep), file, name)

    def _written(self, table: pl.DataFrame, file: IO[bytes], name: str) -> Payments:
        self.refuse_obstacle()
        source, encoding = self.run.summary.input, self.run.summary.input.encoding
        extra = table.columns[table.width - source.extra_column_count :]
        table = table.drop(column for column in extra if table[column].null_count() == table.height)
        data = self.entry.payments.rewrite(table, file, self._dialect, where=name)
        arguments = ReadingArguments(
            source.mapping, None if encoding == "utf-8" else encoding, decided=source.decision
        )
        again = read_written(data, self.entry.payments, arguments, where=name)
        if not again.original.equals(table):
            raise AssertionError("the written payment file holds other cells than it was given")
        return again.payments

    @property
    def _dialect(self) -> Dialect:
        return Dialect(**self.run.summary.input.model_dump(include=set(Dialect._fields)))
