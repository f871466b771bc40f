"""The folder of a finished run, opened again; only files that are unchanged since the run are used."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import InputError, UsageError
from pipeline.frames import Outcomes, Warned
from pipeline.runs.ended import EndedRun, RunPart, outcomes_in
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
    """A finished run, read again: a whole file, or one part of a data set at a time."""

    folder: Path
    summary: Summary
    source: PaymentSource
    """An outcome file as a payment file: the file's own columns, and its payments."""
    outcomes: Outcomes
    manifest: Manifest
    """The verified manifest."""
    part: RunPart
    """The outcome file."""

    def require_unchanged(self) -> None:
        """Refuse the folder if its manifest is no longer the verified one (InputError)."""
        if read_manifest(self.folder) != self.manifest:
            raise InputError(Sentence("runs.changed_meanwhile", path=self.folder / MANIFEST))

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

    def warned(self) -> Warned:
        """See `EndedRun.warned`."""
        return EndedRun(self.folder, self.manifest).warned(self.summary)


@contextmanager
def finished_run(folder: Path, *, now: str) -> Iterator[FinishedRun]:
    """Open the folder of a run exclusively for this process during the block.

    Raises:
        UsageError: the folder contains no run, or a run without an outcome file.
        InputError: a file in it is missing, or was changed after the run.
        LockedError: a run, or another command that uses its files, works in the folder.
        OutputError, DiskError: see `opened_to_read`.
    """
    with opened_to_read(folder, now=now, alone=True) as record:
        finish = record.last_finish
        if finish is None:
            raise UsageError(Sentence("runs.not_ended", folder=folder))
        run = EndedRun(folder, read_manifest(folder))
        summary, part = run.summary(), run.parts()[0]
        if not summary.parts:
            part = part._replace(path=_outcome_file(folder))
        source = run.source(part, changed=True)
        if source.sha256 != part.sha256 or run.manifest.outcome_file.sha256 != finish.outcome_sha256:
            raise InputError(Sentence("runs.not_run_wrote", path=part.path, remedy=RUN_AGAIN))
        yield FinishedRun(folder, summary, source, outcomes_in(source, part.path), run.manifest, part)


def _outcome_file(folder: Path) -> Path:
    there = [path for path in outcome_files(folder).values() if path.exists()]
    if len(there) != 1:
        raise InputError(Sentence("runs.outcome_files_where", folder=folder, there_count=len(there)))
    return there[0]
