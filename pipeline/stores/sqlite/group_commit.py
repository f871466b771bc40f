"""Group commit: many tasks write, few transactions are made, and each task knows when its write is safe."""

import sqlite3
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from pipeline.errors import DiskError
from pipeline.files.disk_errors import write_failed

BATCH_MAX = 512
"""Writes in one transaction: enough that fsync costs nothing per write, few enough to stay quick."""
LINGER_BELOW = 16
LINGER_S = 0.001
"""A smaller batch waits this long for more writes: a commit costs as much CPU as thirty writes."""

Row = tuple[str | bytes | int | None, ...]
Insert = tuple[str, Row]
"""An INSERT and its parameters."""


class _Batch:
    """Writes that become durable together, in one transaction."""

    def __init__(self) -> None:
        self.rows: defaultdict[str, list[Row]] = defaultdict(list)  # by statement
        self.size = 0
        self.ended = anyio.Event()
        self.durable = False


class GroupCommit:
    """The transactions of one SQLite connection, made on behalf of the tasks of one event loop.

    There is no writer to start, to feed or to drain. The first write of a batch commits the batch,
    for all that joined it, as soon as the batches before it are done.

    Attributes:
        refusal: why nothing more is accepted, once a write has failed; None while all is well.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.refusal: str | None = None
        self._path = path
        self._db = connection
        self._joining: _Batch | None = None

    @property
    def accepting(self) -> bool:
        """Whether the writing tasks own the connection."""
        return self._joining is not None

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Accept writes until the block ends; when it has ended, none is under way."""
        assert not self.accepting, "one block of writing at a time"
        self._commit_lock = anyio.Lock()
        self._joining = _Batch()
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                async with self._commit_lock:
                    self._joining = None

    async def write(self, *inserts: Insert) -> None:
        """Run an INSERT, or several that belong together; they are on disk when this returns.

        Raises:
            DiskError: this or an earlier write did not reach the disk; nothing more is accepted.
        """
        batch = self._joining
        assert batch is not None, f"{self._path}: written to outside of writing()"
        is_first = batch.size == 0
        for statement, row in inserts:
            batch.rows[statement].append(row)
        batch.size += len(inserts)
        if batch.size >= BATCH_MAX:
            self._joining = _Batch()
        if is_first:
            await self._commit_in_turn(batch)
        else:
            await batch.ended.wait()
        if not batch.durable:
            assert self.refusal is not None, "a write failed without a reason"
            raise DiskError(self.refusal)

    async def _commit_in_turn(self, batch: _Batch) -> None:
        """Commit a batch after the earlier ones. Not to be cancelled: others wait for it."""
        try:
            with anyio.CancelScope(shield=True):
                async with self._commit_lock:
                    if batch.size < LINGER_BELOW:
                        await anyio.sleep(LINGER_S)
                    if self._joining is batch:
                        self._joining = _Batch()
                    if self.refusal is None:
                        await anyio.to_thread.run_sync(self._commit, batch)
                        batch.durable = True
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.IntegrityError):
                raise  # a mistake of ours, not the disk's
            self.refusal = str(write_failed(self._path, error))
        finally:
            if not batch.durable and self.refusal is None:
                self.refusal = f"{self._path}: an earlier write failed; run the same command again to go on"
            batch.ended.set()

    def _commit(self, batch: _Batch) -> None:
        with self._db as db:
            db.execute("BEGIN IMMEDIATE")
            for statement, rows in batch.rows.items():
                db.executemany(statement, rows)
