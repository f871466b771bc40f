"""A run that has ended: the files in its folder, as listed in its manifest, and its payment file."""

import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Literal, NamedTuple

import polars as pl
from pydantic import SecretStr

from pipeline import frames
from pipeline.config.profiles import choose
from pipeline.errors import ConfigurationError, InputError, UsageError
from pipeline.files.atomic import write_atomically
from pipeline.files.disk_errors import with_own_errors
from pipeline.files.plain import plain_bytes
from pipeline.formats import pain001
from pipeline.formats.message import Message
from pipeline.formats.registry import MessageEntry, format_as_read
from pipeline.formats.table import Dialect, dialect_of
from pipeline.reports import documents
from pipeline.reports.changes import changes_of
from pipeline.reports.choices import warned_in
from pipeline.reports.wording import SaidReasons, said_reasons
from pipeline.runs.folder import (
    RUN_AGAIN,
    made_anew,
    outcome_files,
    read_summary,
    recorded_bytes,
    require_idle,
)
from pipeline.runs.manifest import identity_of, purged, read_manifest
from pipeline.runs.proof import opened_to_read
from pipeline.stages.read import PaymentSource, ReadingArguments, read
from pipeline.stages.read.messages import read_message
from pipeline.stages.read.opening import opened
from pipeline.stores.sqlite.reader import LedgerReader
from pipeline.wording import Moment, Sentence
from schemas import folder as run_files
from schemas.changes import Change
from schemas.manifest import Manifest
from schemas.review import Verdict
from schemas.summary import InputFile, PartTotal, Summary

Content = Callable[[str], bytes]  # returns the content of a file in the folder, by name


class RunPart(NamedTuple):
    """One outcome file of a run: a file's only one, or a data set's for one part."""

    name: str  # the name of the payment file or part
    path: Path
    sha256: str
    first_row: int
    row_count: int
    dialect: Dialect  # how the payment file or part is packed
    extra_column_count: int
    compression: Literal["gzip", "zip"] | None  # of the payment file or part
    input_sha256: str  # the hash of the payment file or part

    @property
    def encoding(self) -> str | None:
        """The encoding of the payment file or part; None if it is UTF-8."""
        return None if self.dialect.encoding == "utf-8" else self.dialect.encoding


def _part(of: InputFile | PartTotal, path: Path, sha256: str, first_row: int) -> RunPart:
    written = dialect_of(of), of.extra_column_count, of.compression, of.sha256
    return RunPart(of.name, path, sha256, first_row, of.row_count, *written)


@dataclass(frozen=True, slots=True)
class EndedRun:
    """The folder of a run that has ended, with its manifest."""

    folder: Path
    manifest: Manifest

    @property
    def outcome_file(self) -> Path:
        """Path of the outcome file, or of a data set's folder of them, even if it was purged."""
        return self.folder / self.manifest.outcome_file.name

    def parts(self) -> list[RunPart]:
        """The outcome files, in order; for a data set, same errors as `summary`."""
        recorded = self.manifest.outcome_file
        if recorded.name != run_files.OUTCOMES:
            return [_part(self.manifest.input, self.outcome_file, recorded.sha256, 1)]
        return [
            _part(part, self.folder / str(part.outcome_file), str(part.outcome_sha256), first)
            for part in self.summary().parts
            if (first := part.first_row) is not None
        ]

    def forgotten(self, name: str) -> Sentence | None:
        """Return when a purge deleted a file, for use in a sentence; None if none did."""
        time = None if (self.folder / name).exists() else purged(self.manifest, name)
        return None if time is None else Sentence("evidence.deleted", time=Moment(time))

    def summary(self) -> Summary:
        """The summary (InputError: it is missing or was changed)."""
        return read_summary(self.folder, self.sha256_of(run_files.SUMMARY))

    def warned(self, summary: Summary) -> frames.Warned:
        """Return the rows with each warning in this summary (InputError: a file was changed)."""
        if not summary.parts:
            return warned_in(summary)
        return frames.Warned(
            frames.cast_to(pl.read_parquet(io.BytesIO(self.content(run_files.WARNED))), frames.WARNED)
        )

    def content(self, name: str) -> bytes:
        """Read a file beside the outcome file (OSError: it is missing; InputError: it was changed)."""
        return recorded_bytes(self.folder / name, self.sha256_of(name))

    def require_unchanged(self, name: str) -> None:
        """Refuse a file beside the outcome file that was changed after the run (InputError)."""
        path = self.folder / name
        with suppress(OSError):
            if identity_of(path)[0] == self.sha256_of(name):
                return
        raise InputError(Sentence("runs.changed_since", path=path, remedy=made_anew(path)))

    def names(self, rows: pl.Series) -> pl.Series:
        """Return the names in these rows of the payment file; same errors as `source`."""
        wanted, found = rows.to_frame("row"), [pl.DataFrame(schema={"row": pl.UInt32, "name": pl.String})]
        for part in self.parts():
            some = rows.filter(rows.is_between(part.first_row, part.first_row + part.row_count - 1))
            if not some.is_empty():
                payments = self.source(part).payments
                found.append(payments.select("row", "name")[some.unique() - part.first_row])
        return wanted.join(pl.concat(found), on="row", how="left", maintain_order="left")["name"]

    def sha256_of(self, name: str) -> str:
        """Return the hash of a file in the manifest; empty if it is not listed."""
        return next((file.sha256 for file in self.manifest.files if file.name == name), "")

    def key_of_names(self, record: LedgerReader, config: Path | None = None) -> SecretStr | None:
        """Return the key of encrypted names, if the profile has it (ConfigurationError: `config` has not)."""
        if not record.is_encrypted:
            return None
        try:
            secret = choose(self.manifest.profile.name, config).settings.ledger_key()
            return secret if secret is not None and record.opens_with(secret) else None
        except ConfigurationError:
            if config is not None:
                raise
            return None

    def source(self, part: RunPart, *, changed: bool = False) -> PaymentSource:
        """Open an outcome file, unchanged unless `changed`, as a payment file with its rows (InputError)."""
        if (deleted := self.forgotten(self.outcome_file.name)) is not None:
            raise InputError(Sentence("runs.outcomes_deleted_rerun", path=part.path, deleted=deleted))
        written = self.manifest.input
        source = read(
            part.path, mapping=self.manifest.mapping, decided=written.decision, country=written.country
        )
        if not changed and source.sha256 != part.sha256:
            raise InputError(Sentence("runs.changed_since", path=part.path, remedy=made_anew(part.path)))
        if part.first_row == 1:
            return source
        payments = frames.Payments(source.payments.with_columns(pl.col("row") + (part.first_row - 1)))
        return source._replace(payments=payments)

    def original(self, part: RunPart, path: Path) -> PaymentSource:
        """Open the payment file at this path, or the part in a data set there, as the run read it."""
        recorded = self.manifest.input
        return read(
            path / part.name if path.is_dir() else path,
            mapping=self.manifest.mapping,
            encoding=part.encoding,
            sheet=recorded.sheet,
            format_choice=format_as_read(recorded),
            country=recorded.country,
        )

    def rows(self, part: RunPart | None = None) -> documents.Rows:
        """Return the payments of an outcome file or the only one (UsageError: several; as `source`)."""
        if part is None and self.manifest.outcome_file.name == run_files.OUTCOMES:
            raise UsageError(Sentence("runs.not_for_data_sets", folder=self.folder))
        part = part or self.parts()[0]
        return self._rows(self.source(part), part, self.content)

    def rows_of(self, source: PaymentSource, part: RunPart) -> documents.Rows:
        """Return the payments of an outcome file that may have changed (InputError: not an outcome file)."""
        return self._rows(source, part, lambda name: plain_bytes(self.folder / name))

    def _rows(self, source: PaymentSource, part: RunPart, content: Content) -> documents.Rows:
        changes, rows = changes_in(self.folder, content), source.payments["row"]
        if changes is not None:
            changes = frames.Changes(changes.filter(frames.is_row_in(rows)))
        outcomes = outcomes_in(source, part.path)
        # A data set may have millions of reasons; its reports read those that they show.
        is_part = self.manifest.outcome_file.name == run_files.OUTCOMES
        reasons = {} if is_part else reasons_in(self.folder, content)
        return documents.Rows(source.payments, outcomes, source.original, changes, reasons)


def reports_again(  # noqa: PLR0913 (all that reports say)
    run: EndedRun,
    summary: Summary,
    *,
    changes: frames.Changes | None,
    warned: frames.Warned,
    rows_of: Callable[[RunPart], documents.Rows],
    policy: Mapping[str, Verdict] | None,
) -> tuple[list[Change], list[Path]]:
    """Rewrite the reports of a run; also return the changes listed. Same errors as `reports` and `rows`."""
    folder = run.folder
    if not summary.parts:
        rows = rows_of(run.parts()[0])._replace(changes=changes)
        written = documents.reports(folder, summary, rows, outcome_name=run.outcome_file.name, policy=policy)
        return changes_of(summary, rows.payments, changes), written
    all_rows = (rows_of(part)._replace(changes=changes) for part in run.parts())
    every = documents.of_all(documents.part_report(summary, rows) for rows in all_rows)
    reasons = reasons_in(folder, run.content, of=documents.shown_reasons(summary, every))
    return documents.data_set_reports(folder, summary, every, reasons, warned, policy=policy)


def ended_run(folder: Path) -> EndedRun:
    """Open a folder that no run is using (LockedError); other errors as in `read_manifest`."""
    require_idle(folder)
    return EndedRun(folder, read_manifest(folder))


def outcomes_in(source: PaymentSource, path: Path) -> frames.Outcomes:
    """Return the `Outcomes` in a file read as a payment file (InputError: not an outcome file)."""
    try:
        numbered = source.earlier.with_columns(source.payments["row"])
        return frames.Outcomes(frames.cast_to(numbered, frames.OUTCOMES))
    except pl.exceptions.PolarsError:
        raise InputError(Sentence("runs.lacks_outcome_columns", path=path, remedy=made_anew(path))) from None


def changes_in(folder: Path, content: Content | None = None) -> frames.Changes | None:
    """Return a run's `Changes` (InputError: unreadable); None if it compared nothing or they were purged."""
    found = _frame_in(folder / run_files.CHANGES, content, frames.CHANGES)
    return None if found is None else frames.Changes(found)


def keep_changes(changes: frames.Changes, folder: Path) -> Path:
    """Write the changes since earlier runs, and where the bank's report disagrees."""
    path = folder / run_files.CHANGES
    with write_atomically(path) as file, with_own_errors(file) as through:
        changes.write_ndjson(through)
    return path


def reasons_in(
    folder: Path, content: Content | None = None, *, of: Collection[str] | None = None
) -> SaidReasons:
    """Return the sentences of a run's reasons, or of some (InputError: unreadable).

    Empty if they were purged. A data set may have millions of reasons.
    """
    found = _frame_in(folder / run_files.REASONS, content, frames.REASONS)
    if found is None:
        return {}
    return said_reasons(
        frames.Reasons(found if of is None else found.filter(pl.col("reason").is_in(list(of))))
    )


def _frame_in(path: Path, content: Content | None, schema: frames.Schema) -> pl.DataFrame | None:
    try:
        return pl.read_ndjson(plain_bytes(path) if content is None else content(path.name), schema=schema)
    except FileNotFoundError:
        return None
    except (OSError, pl.exceptions.PolarsError):
        raise InputError(Sentence("runs.result_file_unreadable", path=path, remedy=made_anew(path))) from None


class FinishedRun(NamedTuple):
    """A finished run, read again: a whole file, or one part of a data set at a time."""

    folder: Path
    summary: Summary
    source: PaymentSource  # an outcome file as a payment file: the file's own columns, and its payments
    outcomes: frames.Outcomes
    manifest: Manifest  # the verified manifest
    part: RunPart  # the outcome file

    def require_unchanged(self) -> None:
        """Refuse the folder if its manifest is no longer the verified one (InputError)."""
        if read_manifest(self.folder) != self.manifest:
            raise InputError(Sentence("runs.changed_meanwhile", path=self.folder / run_files.MANIFEST))

    def each(self) -> Iterator["FinishedRun"]:
        """Yield this run with each of its outcome files in turn; same errors as `EndedRun.source`."""
        run = EndedRun(self.folder, self.manifest)
        for part in run.parts():
            if part == self.part:
                yield self
            else:
                source = run.source(part)
                yield self._replace(source=source, outcomes=outcomes_in(source, part.path), part=part)

    @property
    def is_data_set(self) -> bool:
        """True if the run may have several outcome files."""
        return bool(self.summary.parts)

    @property
    def headers(self) -> dict[str, Sequence[str]]:
        """Map each field to the headers of its columns, in file order."""
        headers: dict[str, list[str]] = {}
        for reading in self.source.columns:
            if reading.field is not None:
                headers.setdefault(reading.field, []).append(reading.header)
        return dict(headers)

    def warned(self) -> frames.Warned:
        """See `EndedRun.warned`."""
        return EndedRun(self.folder, self.manifest).warned(self.summary)


@contextmanager
def finished_run(folder: Path, *, now: str) -> Iterator[FinishedRun]:
    """Open the folder of a run exclusively for this process during the block.

    Raises UsageError without a run or an outcome file, InputError for a missing or changed file, and the
    errors of `opened_to_read`.
    """
    with opened_to_read(folder, now=now, alone=True) as record:
        finish = record.last_finish
        if finish is None:
            raise UsageError(Sentence("runs.not_ended", folder=folder))
        run = EndedRun(folder, read_manifest(folder))
        summary, part = run.summary(), run.parts()[0]
        if not summary.parts:
            there = [path for path in outcome_files(folder).values() if path.exists()]
            if len(there) != 1:
                raise InputError(Sentence("runs.not_one_outcome_file", folder=folder, there_count=len(there)))
            part = part._replace(path=there[0])
        source = run.source(part, changed=True)
        if source.sha256 != part.sha256 or run.manifest.outcome_file.sha256 != finish.outcome_sha256:
            raise InputError(Sentence("runs.differs_from_run", path=part.path, remedy=RUN_AGAIN))
        yield FinishedRun(folder, summary, source, outcomes_in(source, part.path), run.manifest, part)


class MessageFile(NamedTuple):
    """The payment file of a run, read again, if it is a message."""

    name: str
    data: bytes  # decompressed
    entry: MessageEntry
    message: Message
    arguments: ReadingArguments  # how it was read


def read_again(folder: Path, file: InputFile, given: Path | None) -> MessageFile:
    """Read a run's message file again, in its format; arguments and errors as in `input_path`."""
    path = input_path(folder, file, given)
    arguments = ReadingArguments(
        {}, None if file.encoding == "utf-8" else file.encoding, format_choice=format_as_read(file)
    )
    data, entry, packed = opened(path, arguments)
    assert isinstance(entry, MessageEntry)
    assert isinstance(data, bytes)
    source = read_message(data, entry, arguments, where=path.name)
    if file.sha256 != (source.sha256 if packed is None else packed[1].sha256):
        raise _another(path)
    return MessageFile(path.name, data, entry, source.as_message(), arguments)


def require_pain001(format_name: str, *, name: str) -> None:
    """Refuse an option that needs a pain.001, for any other file (UsageError)."""
    if format_name != pain001.NAME:
        raise UsageError(Sentence("jobs.pain002_needs_pain001", name=name))


def pain001_of(folder: Path, summary: Summary, given: Path | None) -> Message:
    """Return a run's payment file; as `input_path`, and a UsageError if it is not a pain.001."""
    if summary.parts:
        raise UsageError(Sentence("runs.not_for_data_sets", folder=folder))
    require_pain001(summary.input.format, name=summary.input.name)
    return read_again(folder, summary.input, given).message


def input_path(folder: Path, file: InputFile, given: Path | None) -> Path:
    """Return the current path of a run's payment file (UsageError: missing; InputError: not the same file).

    Without `given`, search by name and hash beside the run's folder and in folders there, and in the working
    folder.
    """
    beside = folder.absolute().parent
    searched = (beside / file.name, Path(file.name), *sorted(beside.glob(f"*/{escape(file.name)}")))
    there = [path for path in (searched if given is None else (given,)) if path.is_file()]
    if not there:
        raise UsageError(
            Sentence("runs.no_input_file", path=given or searched[0]), advice=Sentence("advice.name_input")
        )
    for path in there:
        try:
            if identity_of(path)[0] == file.sha256:
                return path
        except OSError as error:
            raise InputError(Sentence("runs.file_unreadable", path=path, why=error)) from error
    raise _another(there[0])


def _another(path: Path) -> InputError:
    return InputError(Sentence("runs.not_the_checked_file", path=path), advice=Sentence("advice.name_input"))
