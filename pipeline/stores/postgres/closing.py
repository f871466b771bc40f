"""Closing a run that will not be gone on with, so that it is unfinished no longer."""

from uuid import UUID

import psycopg

from pipeline.errors import IncompleteError, UsageError
from pipeline.stores.postgres.connection import Database
from pipeline.stores.postgres.queries import STATEMENTS
from pipeline.stores.shared import ClosedRun

_RUN = STATEMENTS["closing.run"]
_AT_WORK = STATEMENTS["closing.at_work"]
_CLOSE = "UPDATE precheck.run SET finished_at = clock_timestamp() WHERE run = %s"


def close_run(database: Database, run_id: UUID) -> ClosedRun:
    """Have a run on record as one that has ended, with the answers that it has.

    Raises:
        UsageError: there is no such run in this ledger.
        IncompleteError: a process asks its questions now; or as `Database.run`.
        ConfigurationError: as `Database.run`.
    """

    def close(db: psycopg.Connection) -> ClosedRun:
        with db.transaction():
            row = db.execute(_RUN, (run_id,)).fetchone()
            if row is None:
                raise UsageError(
                    f"{database.address.place}: this ledger has no run {run_id}; `precheck status` has those "
                    "that are unfinished"
                )
            run, question_count, was_closed, answer_count = row
            at_work = db.execute(_AT_WORK, (run,)).fetchone()
            if at_work is not None:
                pid, host = at_work
                raise IncompleteError(
                    f"run {run_id}: process {pid} on {host} asks its questions; stop it, then close the run"
                )
            if not was_closed:
                db.execute(_CLOSE, (run,))
        return ClosedRun(question_count, answer_count, was_closed)

    return database.run(close)
