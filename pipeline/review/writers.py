"""Write a run's payments: rewrite all cells of a table, or edit the bytes of a message.

The writing methods return the payments as read from the written file. They raise InputError, OutputError or
DiskError if the file cannot be written, and AssertionError if it contains other payments.
"""

from collections.abc import Sequence
from typing import IO, NamedTuple

import polars as pl

from pipeline.errors import InputError, OutputError
from pipeline.formats import FormatEntry
from pipeline.formats.edits import Edit, edited, require_undone
from pipeline.formats.message import Role
from pipeline.frames import CORRECTIONS, Corrections, Payments
from pipeline.review.corrections import correct
from pipeline.runs.finished import FinishedRun
from pipeline.runs.input_file import MessageFile
from pipeline.stages.read import ReadingArguments, read_written
from pipeline.stages.read.messages import read_message
from pipeline.wording import Sentence


class TableWriter(NamedTuple):
    """Writes the rows of a table."""

    run: FinishedRun
    entry: FormatEntry  # the table's format

    def fitted(self, corrections: Corrections) -> Corrections:
        """Return the corrections unchanged: cells can contain any text."""
        return corrections

    def refuse_obstacle(self) -> None:
        """Refuse if the input's format cannot be reproduced exactly."""
        source = self.run.summary.input
        kept_as = self.run.source.format
        obstacle = self.entry.format.obstacle(self.run.part.dialect, kept_as=kept_as, name=source.name)
        if obstacle is not None:
            raise InputError(
                Sentence("review.obstacle", folder=self.run.folder, why=obstacle.reason),
                advice=obstacle.advice,
            )

    def corrected(self, corrections: Corrections, file: IO[bytes], name: str) -> Payments:
        """Write all rows, with corrections from `fitted` in their cells."""
        here = Corrections(corrections.with_columns(pl.col("row") - (self.run.part.first_row - 1)))
        return self._written(correct(self.run.source.original, here), file, name)

    def part(self, keep: pl.Series, role: Role, file: IO[bytes], name: str) -> Payments:  # noqa: ARG002 - no table says what it is for
        """Write some of the rows."""
        return self._written(self.run.source.original.filter(keep), file, name)

    def _written(self, table: pl.DataFrame, file: IO[bytes], name: str) -> Payments:
        self.refuse_obstacle()
        source, part = self.run.summary.input, self.run.part
        width, dialect = table.width - part.extra_column_count, part.dialect
        while table.width > width and table[:, -1].null_count() == table.height:
            table = table[:, :-1]
        if table.width > width:  # the excess cells of rows have no header
            dialect = dialect._replace(header_cells=dialect.header_cells or (*table.columns[:width],))
        data = self.entry.payments.rewrite(table, file, dialect, where=name)
        arguments = ReadingArguments(source.mapping, part.encoding, decided=source.decision)
        again = read_written(data, self.entry.payments, arguments, where=name)
        if not again.original.equals(table):
            raise AssertionError("the written payment file holds other cells than it was given")
        return again.payments


_DECIDE = "decide on the row in the workbook."
_NO_PLACE = f"{{}} has no place for it; {_DECIDE}"
_STANDS_THERE = f"As far as the file has room for it, this name stands there already; {_DECIDE}"


class _Text(NamedTuple):
    """A text for a field of a payment, or why it does not fit."""

    to: str | None
    obstacle: str | None


class MessageWriter(NamedTuple):
    """Writes the payments of a message."""

    file: MessageFile
    rows_before: int = 0  # in earlier parts of a data set

    def fitted(self, corrections: Corrections) -> Corrections:
        """Return names as the format writes them; it has no other fields to correct."""
        whole = self.file.entry.format.obstacle(self.file.message)
        texts = [
            self._fitted(row - self.rows_before, field, _Text(to, obstacle), whole)
            for row, field, to, obstacle in corrections.select("row", "field", "to", "obstacle").iter_rows()
        ]
        schema = {column: CORRECTIONS[column] for column in _Text._fields}
        return Corrections(corrections.with_columns(pl.DataFrame(texts, schema=schema, orient="row")))

    def _fitted(self, row: int, field: str | None, text: _Text, whole: Sentence | None) -> _Text:
        if text.obstacle is not None:
            return text
        if field != "name":
            return text._replace(obstacle=_NO_PLACE.format(self.file.entry.format.TITLE))
        assert text.to is not None
        if whole is not None:
            return text._replace(obstacle=f"{whole}.")
        obstacle = self.file.entry.format.name_obstacle(self.file.message, row, text.to)
        if obstacle is not None:
            return text._replace(obstacle=f"{str(obstacle)[0].upper()}{str(obstacle)[1:]}.")
        name = self.file.entry.format.fitted(text.to)
        stands_there = name == self.file.message.payments["name"][row - 1]
        return _Text(name, _STANDS_THERE if stands_there else None)

    def refuse_obstacle(self) -> None:
        """Refuse to make a copy that no bank should get."""
        obstacle = self.file.entry.format.obstacle(self.file.message)
        if obstacle is not None and obstacle == self.file.message.difference:
            obstacle = Sentence("review.copy_would_hide", difference=obstacle.having(file=self.file.name))
        self._refuse(obstacle)

    def corrected(self, corrections: Corrections, file: IO[bytes], name: str) -> Payments:
        """Write all payments, with new names."""
        self.refuse_obstacle()
        message = self.file.message
        rows, names = corrections["row"] - self.rows_before, corrections["to"]
        edits = self.file.entry.format.renamed(self.file.data, message, dict(zip(rows, names, strict=True)))
        column = message.payments["name"].clone().scatter(rows - 1, names)
        return self._written(edits, message.payments.with_columns(column), message.defects, file, name)

    def part(self, keep: pl.Series, role: Role, file: IO[bytes], name: str) -> Payments:
        """Write some of the payments, with their own counts and sums; `role` says what the file is for."""
        self.refuse_obstacle()
        message = self.file.message
        self._refuse(self.file.entry.format.split_obstacle(message))
        try:
            edits = self.file.entry.format.kept(self.file.data, message, keep, role)
        except OutputError as error:
            raise OutputError(Sentence("review.of_file", file=self.file.name, why=error.reason)) from error
        return self._written(edits, message.payments.filter(keep), message.defects.filter(keep), file, name)

    def _refuse(self, obstacle: Sentence | None) -> None:
        if obstacle is not None:
            raise InputError(obstacle.having(file=self.file.name))

    def _written(
        self, edits: Sequence[Edit], payments: pl.DataFrame, defects: pl.Series, file: IO[bytes], name: str
    ) -> Payments:
        """Write the file with edits, and check that it contains exactly these payments."""
        for piece in edited(self.file.data, edits):
            file.write(piece)
        file.seek(0)
        data = file.read()
        require_undone(data, self.file.data, edits)
        again = read_message(data, self.file.entry, self.file.arguments, where=name)
        assert again.message is not None
        if not (again.message.payments.equals(payments) and again.message.defects.equals(defects)):
            raise AssertionError("the written payment file holds other payments than it was given")
        if again.message.difference is not None:
            raise AssertionError(f"the written payment file: {again.message.difference}")
        return again.payments


PaymentsWriter = TableWriter | MessageWriter
"""Writes the payments of one run in the format of their file, and reads the result back."""
