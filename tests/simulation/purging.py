"""A person purges the folder of a run: by the product's job, of what the run's ledger had then."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from simulation.books import Book
from simulation.dialects import NAME

from pipeline.errors import IncompleteError
from pipeline.jobs.purge import PurgeJob, purge
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import FinalAnswer, RecordedRequest, RunIdentity
from schemas.strict import timestamp

_RUN = RunIdentity("0" * 64, "profile", "test", "1")
_BEGUN = "2030-01-01T09:00:00.000Z"


def purged(book: Book, folder: Path, job: PurgeJob, now: datetime) -> list[str]:
    """Purge what a book has, as if it lay in this folder; it has the answers from then on that are left.

    Returns:
        What of it was other than it must be.
    """
    path, before, limit = folder / "ledger.db", book.final_now(), timestamp(now - job.older_than)
    with SqliteLedger.open(path, _RUN, now=_BEGUN) as ledger:
        ledger.copy(list(_requests(book)))
        open_count = len(book.rows) - len(before)
        ledger.finish(
            timestamp(now), question_count=len(book.rows), unanswered_count=open_count, outcome_sha256=""
        )
    is_refused = False
    try:
        purge(folder, job, now=now)
    except IncompleteError:
        is_refused = True
    with SqliteLedger.open(path, _RUN, now=timestamp(now)) as ledger:
        after = list(ledger.answers())
    book.go_by_answers(after)
    if is_refused != (bool(job.older_than) and open_count > 0 and limit > _BEGUN):
        return [f"it was {'' if is_refused else 'not '}refused, with {open_count} rows left"]
    expected = before if is_refused else [_without_name(answer, limit) for answer in before]
    if sorted(after) != sorted(expected):
        wrong = next(iter({*after} ^ {*expected}))
        return [f"of what came before {limit}, row {book.rows[wrong.question]} is {wrong[1:]}"]
    is_named = any(answer.matched_name for answer in expected)
    if not is_named and NAME.encode() in path.read_bytes():
        return ["a name is left in the bytes of the ledger"]
    return []


def older_than(seconds: float) -> PurgeJob:
    """Names of younger answers are kept."""
    return PurgeJob(older_than=timedelta(seconds=seconds))


def _without_name(answer: FinalAnswer, limit: str) -> FinalAnswer:
    return answer._replace(matched_name=None) if (answer.time or "") < limit else answer


def _requests(book: Book) -> Iterator[RecordedRequest]:
    """Every request on record, in the order in which they left."""
    for question, attempt, request_id, answer, code in book.requests():
        yield RecordedRequest(question, attempt, request_id, _BEGUN, code, code and _BEGUN, answer, "")
