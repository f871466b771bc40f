"""Erase what servers returned in a run: matched names, and the details of problems.

The answers stay final. What is erased is gone from the tables at once, and from the database's files when it
vacuums itself; backups and the archive of its log have it for as long as they are kept.
"""

from uuid import UUID

import psycopg

from pipeline.stores.postgres.connection import Database
from pipeline.stores.postgres.queries import STATEMENTS

# By way of the intents: they alone lie in the order of runs.
_NAMES = STATEMENTS["purge.names"]
_DETAILS_OF_ANSWERS = STATEMENTS["purge.details_of_answers"]
_DETAILS_OF_FAILURES = STATEMENTS["purge.details_of_failures"]
_PURGED = STATEMENTS["purge.purged"]


def purge_names(database: Database, run_id: UUID, *, answers_before: str, now: str) -> int:
    """Erase the names and details of a run that came before a time, and put it on record: how many names.

    Args:
        database: of the ledger; no key is needed.
        run_id: the run's; where the ledger has none, nothing is erased.
        answers_before: UTC, ISO 8601 with Z; what came from then on is kept.
        now: UTC, ISO 8601 with Z.

    Raises:
        ConfigurationError, IncompleteError: as `Database.run`; nothing was erased.
    """

    def purge(db: psycopg.Connection) -> int:
        said = {"id": run_id, "before": answers_before, "now": now}
        with db.transaction():
            name_count = db.execute(_NAMES, said).rowcount
            for query in (_DETAILS_OF_ANSWERS, _DETAILS_OF_FAILURES):
                db.execute(query, said)
            db.execute(_PURGED, {**said, "count": name_count})
        return name_count

    return database.run(purge)
