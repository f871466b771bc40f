"""Write the files of a review: payments, in the input's format and compression, and lists for people."""

import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from fnmatch import fnmatch
from hashlib import file_digest
from pathlib import Path
from typing import IO, NamedTuple

import polars as pl

from pipeline.errors import InputError, OutputError, UsageError
from pipeline.files.atomic import delete, write_atomically, write_folder_atomically
from pipeline.files.compressed import Compression, pack
from pipeline.formats import excel, pain001
from pipeline.formats.edits import Edit, edited, require_undone
from pipeline.formats.message import Role
from pipeline.formats.registry import FormatEntry, MessageEntry, entry_before
from pipeline.frames import CORRECTIONS, Corrections, Payments
from pipeline.reports import safe_csv as spreadsheet
from pipeline.reports.sheets import visible_texts
from pipeline.review.corrections import correct
from pipeline.rules.totals import added, control_totals, totals, with_money
from pipeline.runs.ended import FinishedRun, MessageFile, read_again
from pipeline.runs.manifest import identity_of_parts, refresh_manifest
from pipeline.stages.read import ReadingArguments, read_written
from pipeline.stages.read.messages import read_message
from pipeline.wording import Sentence
from schemas.folder import PARTS
from schemas.localized import LocalizedText
from schemas.manifest import Manifest, SplitMade
from schemas.review import Approval, ControlTotal, PaymentFile
from schemas.summary import InputFile


class TableWriter(NamedTuple):
    """Writes the rows of a table."""

    run: FinishedRun
    entry: FormatEntry  # the table's format

    def fitted(self, corrections: Corrections) -> Corrections:
        """Return the corrections unchanged: cells can contain any text."""
        return corrections

    def refuse_obstacle(self) -> None:
        """Refuse if the input's format cannot be reproduced exactly."""
        if self.entry.format.HAS_TYPES and self.run.source.format != self.entry.format.NAME:
            lost = Sentence("parquet.types_lost", name=self.run.summary.input.name)
            raise InputError(
                Sentence("review.obstacle", folder=self.run.folder, why=lost),
                advice=Sentence("parquet.run_again_as_parquet"),
            )

    def corrected(self, corrections: Corrections, file: IO[bytes], name: str) -> Payments:
        """Write all rows, with corrections from `fitted` in their cells."""
        here = Corrections(corrections.with_columns(pl.col("row") - (self.run.part.first_row - 1)))
        return self._written(correct(self.run.source.original, here), file, name)

    def part(self, keep: pl.Series, role: Role, file: IO[bytes], name: str) -> Payments:  # noqa: ARG002 (a table does not name its role)
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
            return text._replace(
                obstacle=str(Sentence("review.format_has_no_place", format=self.file.entry.format.TITLE))
            )
        assert text.to is not None
        if whole is not None:
            return text._replace(obstacle=f"{whole}.")
        obstacle = self.file.entry.format.name_obstacle(self.file.message, row, text.to)
        if obstacle is not None:
            return text._replace(obstacle=str(obstacle))
        name = self.file.entry.format.fitted(text.to)
        is_there = name == self.file.message.payments["name"][row - 1]
        return _Text(name, str(Sentence("review.file_has_this_name")) if is_there else None)

    def refuse_obstacle(self) -> None:
        """Refuse to make a copy that no bank should get."""
        obstacle = self.file.entry.format.obstacle(self.file.message)
        if obstacle is not None and obstacle == self.file.message.difference:
            obstacle = Sentence("review.copy_hides_mismatch", difference=obstacle.having(file=self.file.name))
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
            raise OutputError(
                Sentence("review.file_and_reason", file=self.file.name, why=error.reason)
            ) from error
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


PaymentsWriter = TableWriter | MessageWriter  # writes a run's payments in their format, and reads them back


def payments_writer(run: FinishedRun, input_file: Path | None) -> PaymentsWriter:
    """Return the writer for the file's format (UsageError: the file is missing, or not needed)."""
    source = run.summary.input
    entry = entry_before(source)
    if isinstance(entry, MessageEntry):
        if run.is_data_set:
            found = {"name": f"{source.name}/{run.part.name}", "sha256": run.part.input_sha256}
            source = source.model_copy(update=found)
            input_file = None if input_file is None else input_file / run.part.name
        return MessageWriter(read_again(run.folder, source, input_file), run.part.first_row - 1)
    if input_file is not None:
        raise UsageError(Sentence("review.table_file_not_needed", source=source.name))
    return TableWriter(run, entry)


Write = Callable[[IO[bytes], str], Payments]  # writes to a file of this name, and returns what is read back


def write_payments(
    run: FinishedRun, stem: str, write_of: Callable[[FinishedRun], Write | None], files: ExitStack
) -> PaymentFile | None:
    """Write a payment file in the format of the input, and read it back (InputError, OutputError, DiskError).

    For a data set, it is a folder with a file for each part that has payments. It gets its final name when
    `files` closes. Without payments, returns None and deletes an earlier file of that name.
    """
    path = payment_path(run, stem)
    if not run.is_data_set:
        if (write := write_of(run)) is None:
            files.callback(delete, path)
            return None
        return payments_in(files.enter_context(write_atomically(path)), run, path, write)
    found, no_longer = [], list[Path]()
    files.callback(lambda: [*map(delete, no_longer)])  # once the folder has its final name
    folder = files.enter_context(write_folder_atomically(path))
    for part in run.each():
        if (write := write_of(part)) is not None:
            name = folder / part.part.name
            with write_atomically(name) as file:
                found.append(payments_in(file, part, name, write))
    if not found:
        no_longer.append(path)
        return None
    return in_one(found, path)


def in_one(parts: Sequence[PaymentFile], path: Path) -> PaymentFile:
    """Describe the payment files of a data set's parts as one folder."""
    return PaymentFile(
        path=str(path),
        sha256=identity_of_parts((Path(part.path).name, part.sha256) for part in parts),
        row_count=sum(part.row_count for part in parts),
        totals=added([part.totals for part in parts]),
    )


def payments_in(
    file: io.BytesIO | io.BufferedRandom, run: FinishedRun, path: Path, write: Write
) -> PaymentFile:
    """Like `write_payments`, but into an open file; the path only provides the name."""
    unpacked, compression = io.BytesIO(), run.part.compression
    payments = write(file if compression is None else unpacked, path.name)
    if compression is not None:
        pack(unpacked.getvalue(), Compression(compression), file, member=path.stem)
    file.seek(0)
    return PaymentFile(
        path=str(path),
        sha256=file_digest(file, "sha256").hexdigest(),
        row_count=payments.height,
        totals=totals(with_money(payments)),
    )


def payment_path(run: FinishedRun, stem: str) -> Path:
    """Return the path of a payment file, whose name shows if answers were simulated."""
    simulated = ".simulated" if run.summary.simulated else ""
    suffix = PARTS if run.is_data_set else _suffix_of(run.summary.input)
    return run.folder / f"{stem}{simulated}{suffix}"


_PACKED_SUFFIXES = {None: "", "gzip": ".gz", "zip": ".zip"}


def _suffix_of(source: InputFile) -> str:
    """Return the suffix of a payment file: the input's, if the format is the same."""
    entry = entry_before(source)
    own = Path(source.unpacked_name or source.name).suffix
    if isinstance(entry, MessageEntry):
        suffix = own or entry.format.SUFFIXES[0]
    else:
        # A workbook with macros is written without them, so its suffix changes.
        is_same = source.format == entry.payments.NAME and own.lower() != ".xlsm"
        suffix = own if own and is_same else entry.payments.SUFFIX
    return suffix + _PACKED_SUFFIXES[source.compression]


def write_for_people(table: pl.DataFrame, run: FinishedRun, name: str, files: ExitStack) -> None:
    """Write a list for spreadsheets, renamed when `files` closes; invisible characters are escaped."""
    file = files.enter_context(write_atomically(run.folder / name))
    texts = [visible_texts(column) for column in table if column.dtype == pl.String]
    spreadsheet.write(table.with_columns(texts), file, delimiter=run.summary.input.delimiter)


def require_sums(run: FinishedRun, files: Sequence[PaymentFile]) -> ControlTotal:
    """Return the control totals of the input, which must equal the sum of the files' totals."""
    input_totals, row_count = control_totals(run.summary.outcomes), run.summary.input.row_count
    if sum(file.row_count for file in files) != row_count:
        raise AssertionError("the written files have more or fewer rows than the input")
    if added([file.totals for file in files]) != input_totals:
        raise AssertionError("the money in the written files is not the money in the input")
    return ControlTotal(row_count=row_count, totals=input_totals)


def take_into_evidence(  # noqa: PLR0913 (everything that is new)
    run: FinishedRun,
    *patterns: str,
    now: datetime,
    written: Collection[str],
    payments: Sequence[PaymentFile],
    decided: Sequence[Approval] | None,
    split: SplitMade | None = None,
) -> Manifest:
    """Add files just written to the manifest, and remove a review's missing ones; see `refresh_manifest`."""
    run.require_unchanged()
    folder = run.folder
    of_review = (file.name for file in run.manifest.files if any(fnmatch(file.name, one) for one in patterns))
    gone = [name for name in of_review if not (folder / name).exists()]
    names = [*written, *(Path(file.path).name for file in payments)]
    made = refresh_manifest(
        folder, run.manifest, now=now, written=names, removed=gone, made=split, decided=decided
    )
    hashes = {file.name: file.sha256 for file in made.files}
    for file in payments:
        if hashes[Path(file.path).name] != file.sha256:
            raise InputError(Sentence("runs.changed_meanwhile", path=file.path))
    return made


def row_counts(files: Iterable[PaymentFile]) -> dict[str, int]:
    """Return the number of payments in each file, by its name."""
    return {Path(file.path).name: file.row_count for file in files}


def notes_on(source: InputFile, row_counts: Mapping[str, int]) -> list[LocalizedText]:
    """Return what a bank may object to in written files (name -> rows), and what they lack of the input."""
    notes = [Sentence("review.only_payment_sheet_written")] if source.format == excel.NAME else []
    if source.lines_above and not isinstance(entry_before(source), MessageEntry):
        notes.append(Sentence("review.lines_above_not_written"))
    if source.format == pain001.NAME and source.row_count > 1:
        single = [name for name, count in row_counts.items() if count == 1]
        notes += [Sentence("review.single_payment", file=name) for name in single]
    return [note.recorded() for note in notes]
