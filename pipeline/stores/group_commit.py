"""Group commit: many tasks share a few transactions; each task returns when its line is durable.

There is no separate writer task. The task that adds the first line to a batch commits the whole batch, once
earlier batches are done.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import anyio

from pipeline.errors import PrecheckError

BATCH_MAX = 1_024  # lines per transaction: an fsync costs next to nothing per line, but is still quick
LINGER_BELOW = 16
LINGER_S = 0.001  # how long a smaller batch waits for more lines: a commit costs as much as thirty of them

Line = TypeVar("Line")


class Batch(Generic[Line]):
    """Lines that become durable together."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.ended = anyio.Event()
        self.is_written = False
        self.failure: BaseException | None = None

    @property
    def is_over(self) -> bool:
        """True if it is committed, or has failed."""
        return self.is_written or self.failure is not None

    def require(self, lines: Sequence[Line]) -> None:  # noqa: ARG002
        """Raise an error if these lines of the batch were not written."""
        if self.failure is not None:
            raise self.failure


B = TypeVar("B", bound=Batch[Any])


class GroupCommit(Generic[Line, B]):
    """The transactions of one connection, made on behalf of the tasks of one event loop."""

    def __init__(
        self, new_batch: Callable[[], B], commit: Callable[[B], Awaitable[None]], *, is_shielded: bool
    ) -> None:
        """Accept no lines yet; `commit` makes a batch durable, or sets its failure.

        After a PrecheckError of `commit`, no more lines are accepted. With `is_shielded`, a commit that has
        begun, or is waiting for its turn, survives the cancellation of its task.
        """
        self.refusal: PrecheckError | None = None
        self._new_batch = new_batch
        self._commit = commit
        self._is_shielded = is_shielded
        self._joining: B | None = None

    @property
    def accepting(self) -> bool:
        """True if lines may be written now."""
        return self._joining is not None

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Accept lines during the block; when it ends, no write is in progress."""
        assert not self.accepting, "one block of writing at a time"
        self._commit_lock = anyio.Lock()
        self._joining = self._new_batch()
        try:
            yield
        finally:
            if self._is_shielded:
                with anyio.CancelScope(shield=True):
                    async with self._commit_lock:
                        pass
            self._joining = None

    async def write(self, *lines: Line) -> None:
        """Write lines in one transaction; they are durable when this returns (PrecheckError: not durable)."""
        assert self._joining is not None, "written to outside of writing()"
        if self.refusal is not None:
            raise self.refusal
        batch = self._joining
        is_first = not batch.lines
        batch.lines += lines
        if len(batch.lines) >= BATCH_MAX:
            self._joining = self._new_batch()
        if not is_first:
            await batch.ended.wait()
        if not batch.is_over:  # the first task of the batch commits, or the next one if that was cancelled
            await self._commit_in_turn(batch)
        batch.require(lines)

    async def _commit_in_turn(self, batch: B) -> None:
        """Commit a batch after earlier ones, on behalf of all tasks that joined it."""
        try:
            with anyio.CancelScope(shield=self._is_shielded):
                async with self._commit_lock:
                    if batch.is_over:
                        return
                    if len(batch.lines) < LINGER_BELOW:
                        await anyio.sleep(LINGER_S)
                    if self._joining is batch:
                        self._joining = self._new_batch()
                    await self._commit(batch)
                    batch.is_written = batch.failure is None
        except PrecheckError as error:
            batch.failure = self.refusal = error
        finally:
            batch.ended.set()
