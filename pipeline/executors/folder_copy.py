"""Copy the shared run of a file into the ledger in the file's folder.

Requests of this process are copied at once, so that none are lost even if the database is. Requests of other
processes are copied when a run begins and when it ends.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

import anyio
import anyio.to_thread
import polars as pl

from pipeline.frames import AnswerState, Check
from pipeline.stores.shared import SharedRun
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import RecordedRequest
from schemas.outcomes import ApiName

_OWN_AT_ONCE = 1_000
_ALL_AT_ONCE = 5_000


class FolderCopy:
    """The copy in one folder's ledger."""

    def __init__(self, ledger: SqliteLedger) -> None:
        """Start with an empty batch; the folder's ledger has its own keys for questions."""
        self.ledger = ledger
        self._waiting: list[tuple[Check, RecordedRequest]] = []
        self._is_writing = False

    async def add(self, check: Check, request: RecordedRequest) -> None:
        """Copy a request of this process, as part of a batch.

        Raises:
            DiskError: the ledger of the folder cannot be written.
        """
        self._waiting.append((check, request))
        if len(self._waiting) < _OWN_AT_ONCE or self._is_writing:
            return
        self._is_writing = True
        try:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.flush)
        finally:
            self._is_writing = False

    def flush(self) -> None:
        """Copy the unfinished batch.

        Raises:
            DiskError: the ledger of the folder cannot be written.
        """
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.ledger.copy([self._own(check, request) for check, request in waiting])

    def take_over(self, lines: Iterable[RecordedRequest], checks: pl.DataFrame, shared: SharedRun) -> None:
        """Copy all lines of the shared run that are missing here.

        Args:
            lines: the shared ledger's lines, by all processes.
            checks: `Checks` of the run.
            shared: computes the keys that the lines use for questions.

        Raises:
            DiskError: the ledger of the folder cannot be written, or a line is corrupt.
            IncompleteError: the database is unavailable; all earlier lines are copied.
        """
        self.flush()
        indexes = {shared.question_key(check): index for index, check in enumerate(_rows(checks))}
        known = {answer.question for answer in self.ledger.answers() if answer.state is AnswerState.REUSED}
        for some in _batches(lines):
            requests, reused = [], []
            for line, check in zip(
                some, _rows(checks[[indexes[line.question] for line in some]]), strict=True
            ):
                own = self._own(check, line)
                if own.reused is None:
                    requests.append(own)
                elif own.question not in known:
                    reused.append(own.reused)
            self.ledger.copy(requests)
            self.ledger.reuse(reused)

    def _own(self, check: Check, request: RecordedRequest) -> RecordedRequest:
        """Return a request with the folder ledger's key for its question."""
        question = self.ledger.question_key(check)
        answer, reused = request.answer, request.reused
        return request._replace(
            question=question,
            answer=None if answer is None else answer._replace(question=question),
            reused=None if reused is None else reused._replace(question=question),
        )


def _rows(checks: pl.DataFrame) -> Iterator[Check]:
    return (Check(number, ApiName(api), *fields) for number, api, *fields in checks.iter_rows())


def _batches(lines: Iterable[RecordedRequest]) -> Iterator[list[RecordedRequest]]:
    iterator = iter(lines)
    while some := list(islice(iterator, _ALL_AT_ONCE)):
        yield some
