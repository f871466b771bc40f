"""The copy of a shared run in the ledger of its folder: whatever came first, the latest request decides."""

import anyio
import polars as pl
import pytest

from pipeline.executors.with_others import FolderCopy
from pipeline.frames import CHECKS, AnswerState, Check
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import FinalAnswer, RecordedRequest, RunIdentity
from schemas.outcomes import ApiName

NOW, LATER = "2031-03-01T09:00:00.000Z", "2031-03-01T09:00:01.000Z"
CHECK = Check(1, ApiName.COP, "00112233445566", "Payee", "Personal", *[None] * 8)
CHECKS_OF_ONE = pl.DataFrame([CHECK], schema=CHECKS, orient="row")


class SharedKeys:
    """What a shared run knows a question by."""

    def question_key(self, _check):
        return b"q"


@pytest.fixture
def ledger(tmp_path):
    identity = RunIdentity("1f" * 32, "2e" * 32, "sandbox", "0.1.0")
    with SqliteLedger.open(tmp_path / "ledger.db", identity, now=NOW) as opened:
        yield opened


def answered(attempt, request_id):
    answer = FinalAnswer(b"q", AnswerState.ANSWERED, "MTCH", None, request_id, LATER, attempt)
    return RecordedRequest(b"q", attempt, request_id, NOW, None, None, answer, "")


def in_doubt(attempt, request_id):
    return RecordedRequest(b"q", attempt, request_id, NOW, None, None, None, "")


def test_an_answer_stays_known_when_an_earlier_request_of_another_process_is_copied_after_it(ledger):
    copy = FolderCopy(ledger)
    anyio.run(copy.add, CHECK, answered(2, "ours"))
    copy.flush()
    key = ledger.question_key(CHECK)
    known = [anyio.run(ledger.known, [key])[key]]

    copy.take_over([in_doubt(1, "theirs"), answered(2, "ours")], CHECKS_OF_ONE, SharedKeys())
    known.append(anyio.run(ledger.known, [key])[key])

    assert [(each.attempts, each.answer and each.answer.request_id) for each in known] == [(2, "ours")] * 2
    assert ledger.counts[:2] == (2, 1)


def test_requests_are_copied_together_while_they_are_asked(ledger):
    copy = FolderCopy(ledger)

    async def ask():
        for number in range(1_001):
            check = CHECK._replace(check=number, account=f"{number:014}")
            await copy.add(check, in_doubt(1, f"request {number}"))

    anyio.run(ask)

    assert ledger.counts.attempt_count == 1_000
    copy.flush()
    assert ledger.counts.attempt_count == 1_001
