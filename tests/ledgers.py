"""What a ledger on disk knows, as a run that takes it up reads it."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import anyio

from pipeline.stores.sqlite.ledger import SqliteLedger


def open_attempts(ledger: SqliteLedger, questions: Iterable[bytes]) -> dict[bytes, int]:
    """Of those of the questions that were asked and have no final answer, how often."""
    histories = anyio.run(ledger.known, list(questions))
    return {question: history.attempts for question, history in histories.items() if history.answer is None}


def asked(path: Path) -> list[bytes]:
    """Every question that was asked, or about to be, in a ledger that nobody writes to."""
    with closing(sqlite3.connect(path)) as db:
        return [question for (question,) in db.execute("SELECT DISTINCT question FROM intent")]
