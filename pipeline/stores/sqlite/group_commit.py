"""Group commit to a SQLite file: one transaction for the lines of many tasks."""

import sqlite3
from collections import defaultdict
from pathlib import Path

import anyio.to_thread

from pipeline.errors import DiskError
from pipeline.files.disk_errors import write_failed
from pipeline.stores.group_commit import Batch, GroupCommit
from pipeline.wording import Sentence

Row = tuple[str | bytes | int | None, ...]
Insert = tuple[str, Row]
"""An INSERT and its parameters."""


class FileCommit(GroupCommit[Insert, Batch[Insert]]):
    """Commits through one SQLite connection. Lines that joined a batch are written even if the run stops.

    `write` raises DiskError if this or an earlier write did not reach the disk; no more writes are accepted.
    """

    is_shielded = True

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        super().__init__()
        self._path = path
        self._db = connection

    def _new_batch(self) -> Batch[Insert]:
        return Batch()

    async def _commit(self, batch: Batch[Insert]) -> None:
        if self.refusal is not None:
            raise self.refusal
        try:
            await anyio.to_thread.run_sync(self._insert, batch)
        except sqlite3.DatabaseError as error:
            if not isinstance(error, sqlite3.IntegrityError):
                raise write_failed(self._path, error) from error
            batch.failure = self.refusal = DiskError(Sentence("stores.earlier_write_failed", path=self._path))
            raise  # a bug of ours, not a disk error

    def _insert(self, batch: Batch[Insert]) -> None:
        rows: defaultdict[str, list[Row]] = defaultdict(list)
        for statement, row in batch.lines:
            rows[statement].append(row)
        with self._db as db:
            db.execute("BEGIN IMMEDIATE")
            for statement, its_rows in rows.items():
                db.executemany(statement, its_rows)
