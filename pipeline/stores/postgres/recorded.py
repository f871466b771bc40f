"""Read every line of a run, to copy it into a folder."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from pipeline.stores.postgres.connection import Database
from pipeline.stores.postgres.keys import StoreKeys
from pipeline.stores.postgres.lines import RunLines
from pipeline.stores.postgres.queries import STATEMENTS
from pipeline.stores.shared import StoredRun
from pipeline.stores.values import RecordedRequest, ReusedAnswer

_AT_ONCE = 5_000
_REQUESTS = STATEMENTS["recorded.requests"]
_REUSED = STATEMENTS["recorded.reused"]


def recorded(
    database: Database, keys: StoreKeys, run: StoredRun, *, at_once: int = _AT_ONCE
) -> Iterator[RecordedRequest]:
    """Yield a run's requests in the order of recording, then the answers of earlier runs."""
    lines = RunLines(keys, run, database.address.place)
    with database.another() as own:
        requests = _Requests(run.number, at_once)
        while some := own.run(requests.more):
            for row in some:
                yield _request(lines, row)
            requests.latest = some[-1][0]
        reused = own.run(lambda db: db.cursor(binary=True).execute(_REUSED, (run.number,)).fetchall())
        for row in reused:
            attempts, *fields, seal = row
            used = ReusedAnswer(*fields)
            lines.require_reused(used, seal)
            of_question = used.question, 0, used.request_id, used.time, None, None
            yield RecordedRequest(*of_question, used.as_answer(attempts), "", reused=used)


@dataclass(slots=True)
class _Requests:
    """A run's rows in batches, sorted once by the server; reading continues after a lost connection."""

    run: int
    at_once: int
    latest: int = 0  # number of the last row read
    _reading: psycopg.Connection | None = None  # the connection of the cursor

    def more(self, db: psycopg.Connection) -> list[tuple[Any, ...]]:
        if self._reading is not db:
            db.execute(_REQUESTS, (self.run, self.latest), prepare=False)
            self._reading = db
        fetch = f"FETCH {self.at_once} FROM requests".encode()
        return db.cursor(binary=True).execute(fetch, prepare=False).fetchall()


def _request(lines: RunLines, row: tuple[Any, ...]) -> RecordedRequest:
    _, question, attempt, request_id, time, seal, *ended = row
    round_, failed_with, failed_at, failure_detail, failure_seal, *answered = ended
    state, code, answered_at, is_named, name, answer_seal, answer_detail = answered
    lines.require_intent(question, attempt, request_id, time, seal)
    answer = None
    if failed_with is not None:
        lines.require_failure(question, attempt, round_, failed_with, failed_at, failure_seal)
    if state is not None:
        answer = lines.final_answer(
            question, attempt, request_id, state, code, answered_at, is_named, name, answer_seal
        )
    hidden = failure_detail if state is None else answer_detail
    detail = lines.shown(hidden, "problem", question, attempt) or ""
    return RecordedRequest(question, attempt, request_id, time, failed_with, failed_at, answer, detail)
