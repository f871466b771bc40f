"""The folder of a finished run, opened again: only files that are as the run wrote them are used."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import InputError, UsageError
from pipeline.frames import Outcomes
from pipeline.runs.ended import EndedRun, outcomes_in
from pipeline.runs.folder import outcome_files
from pipeline.runs.manifest import read_manifest
from pipeline.runs.proof import opened_to_read
from pipeline.runs.remedies import RUN_AGAIN
from pipeline.stages.read import PaymentSource
from pipeline.wording import Sentence
from schemas.folder import MANIFEST
from schemas.manifest import Manifest
from schemas.summary import Summary


class FinishedRun(NamedTuple):
    """The outputs of a finished run, read again."""

    folder: Path
    summary: Summary
    source: PaymentSource  # the outcome file as a payment file: its own columns, and the payments in them
    outcomes: Outcomes
    manifest: Manifest  # as it was proven

    def require_unchanged(self) -> None:
        """Refuse another manifest than the one that was proven: an InputError."""
        if read_manifest(self.folder) != self.manifest:
            raise InputError(Sentence("runs.changed_meanwhile", path=self.folder / MANIFEST))

    @property
    def headers(self) -> dict[str, Sequence[str]]:
        """Field -> the headers that it is read from, in file order."""
        headers: dict[str, list[str]] = {}
        for reading in self.source.columns:
            if reading.field is not None:
                headers.setdefault(reading.field, []).append(reading.header)
        return dict(headers)


@contextmanager
def finished_run(folder: Path, *, now: str) -> Iterator[FinishedRun]:
    """Open the folder of a run, for this process alone until the block ends.

    Raises:
        UsageError: the folder holds no run, or one that has written no outcome file yet.
        InputError: a file in it is missing, or was changed since the run wrote it.
        LockedError: a run works in the folder, or another command that reads or writes its files.
        OutputError, DiskError: as `opened_to_read`.
    """
    with opened_to_read(folder, now=now, alone=True) as record:
        finish = record.last_finish
        if finish is None:
            raise UsageError(Sentence("runs.not_ended", folder=folder))
        run = EndedRun(folder, read_manifest(folder))
        summary = run.summary()
        part = run.only_part
        path = _outcome_file(folder)
        source = run.source(part._replace(path=path), changed=True)
        if {source.sha256, finish.outcome_sha256} != {run.manifest.outcome_file.sha256}:
            raise InputError(Sentence("runs.not_run_wrote", path=path, remedy=RUN_AGAIN))
        outcomes = outcomes_in(source, path)
        yield FinishedRun(folder, summary, source, outcomes, run.manifest)


def _outcome_file(folder: Path) -> Path:
    there = [path for path in outcome_files(folder).values() if path.exists()]
    if len(there) != 1:
        raise InputError(Sentence("runs.outcome_files_where", folder=folder, there_count=len(there)))
    return there[0]
