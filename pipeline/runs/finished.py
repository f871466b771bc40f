"""The folder of a finished run, opened again: only files that are as the run wrote them are used."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.errors import InputError, UsageError
from pipeline.frames import Outcomes
from pipeline.runs.ended import outcomes_in
from pipeline.runs.folder import opened_to_read, outcome_files, read_summary
from pipeline.stages.read import PaymentSource, read
from pipeline.wording import Sentence
from schemas.folder import RUN_AGAIN, SUMMARY
from schemas.summary import Summary


class FinishedRun(NamedTuple):
    """What a run left behind, read again."""

    folder: Path
    summary: Summary
    source: PaymentSource
    """The outcome file as a payment file: its own columns, and the payments in them."""
    outcomes: Outcomes

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
        identity, finish = record.run, record.last_finish
        if finish is None:
            raise UsageError(Sentence("runs.not_ended", folder=folder))
        summary = read_summary(folder)
        path = _outcome_file(folder)
        source = read(path, mapping=summary.input.mapping, decided=summary.input.decision)
        _require_unchanged(path, source.sha256, finish.outcome_sha256)
        outcomes = outcomes_in(source, path)
        told = (summary.input.sha256, summary.environment, summary.input.row_count, _counts(summary))
        if told != (identity.input_sha256, identity.environment, outcomes.height, _counted(outcomes)):
            raise _changed(folder / SUMMARY)
        yield FinishedRun(folder, summary, source, outcomes)


def _outcome_file(folder: Path) -> Path:
    there = [path for path in outcome_files(folder).values() if path.exists()]
    if len(there) != 1:
        raise InputError(Sentence("runs.outcome_files_where", folder=folder, there_count=len(there)))
    return there[0]


def _counts(summary: Summary) -> dict[str, int]:
    return {total.outcome.value: total.row_count for total in summary.outcomes if total.row_count}


def _counted(outcomes: pl.DataFrame) -> dict[str, int]:
    return dict(outcomes.group_by("check_outcome").len().iter_rows())


def _require_unchanged(path: Path, found: str, recorded: str) -> None:
    if found != recorded:
        raise _changed(path)


def _changed(path: Path) -> InputError:
    return InputError(Sentence("runs.not_run_wrote", path=path, run_again=RUN_AGAIN))
