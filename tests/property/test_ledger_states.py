"""The ledger against a model of it: what was acknowledged is there, and what was settled never changes."""

import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from examples import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from ledgers import open_attempts

from pipeline.frames import Answer, AnswerState
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import FinalAnswer, RunIdentity

IDENTITY = RunIdentity("1f" * 32, "2e" * 32, "sandbox", "0.1.0")
TIME = "2031-03-01T09:00:00.000Z"

questions = st.integers(0, 7).map(lambda number: number.to_bytes(32))
answers = st.builds(
    Answer,
    check=st.just(1),
    state=st.sampled_from([AnswerState.ANSWERED, AnswerState.REFUSED]),
    code=st.sampled_from(["MTCH", "MBAM", "ANNM", "FORMAT_ERROR"]),
    matched_name=st.none() | st.text(st.characters(codec="utf-8"), max_size=10),
    request_id=st.none() | st.just("id"),
    time=st.none() | st.just(TIME),
    attempts=st.just(0),
)
endings = st.none() | st.just("failed") | answers


class LedgerMachine(RuleBasedStateMachine):
    """Attempts with every ending, closed, copied as a crash leaves them, and opened again."""

    @initialize()
    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.crash_count = 0
        self.attempts: dict[bytes, int] = {}
        self.settled: dict[bytes, Answer] = {}
        self.ledger = self.opened(self.root / "0")

    def opened(self, folder: Path) -> SqliteLedger:
        return SqliteLedger.open(folder / "ledger.db", IDENTITY, now=TIME)

    def write(self, work: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            async with self.ledger.writing():
                await work()

        anyio.run(main)

    @rule(batch=st.dictionaries(questions, endings, max_size=8))
    def attempt_together(self, batch: dict[bytes, Answer | str | None]) -> None:
        todo = {question: ending for question, ending in batch.items() if question not in self.settled}

        async def attempt(question: bytes, ending: Answer | str | None) -> None:
            number = self.attempts.get(question, 0) + 1
            await self.ledger.intend(question, attempt=number, request_id="id", time=TIME)
            self.attempts[question] = number
            if ending == "failed":
                await self.ledger.fail(question, attempt=number, code="TIMEOUT_ERROR", time=TIME)
            elif isinstance(ending, Answer):
                answer = ending._replace(attempts=number)
                await self.ledger.settle(question, answer)
                self.settled[question] = answer
                del self.attempts[question]

        async def work() -> None:
            async with anyio.create_task_group() as tasks:
                for question, ending in todo.items():
                    tasks.start_soon(attempt, question, ending)

        self.write(work)

    @precondition(lambda self: self.settled)
    @rule(data=st.data(), answer=answers)
    def settle_again(self, data: st.DataObject, answer: Answer) -> None:
        question = data.draw(st.sampled_from(sorted(self.settled)))
        with pytest.raises(AssertionError):
            self.write(lambda: self.ledger.settle(question, answer._replace(attempts=1)))

    @rule()
    def close_and_reopen(self) -> None:
        self.ledger.close()
        self.ledger = self.opened(self.root / str(self.crash_count))

    @rule()
    def crash_and_reopen(self) -> None:
        """What a kill leaves behind is what lies on the disk at that moment."""
        before = self.root / str(self.crash_count)
        self.crash_count += 1
        shutil.copytree(before, self.root / str(self.crash_count))
        self.ledger.close()
        self.ledger = self.opened(self.root / str(self.crash_count))

    @invariant()
    def holds_what_was_acknowledged(self) -> None:
        assert {final.question: final for final in self.ledger.answers()} == {
            question: FinalAnswer(question, *answer[1:]) for question, answer in self.settled.items()
        }
        assert open_attempts(self.ledger, [number.to_bytes(32) for number in range(8)]) == self.attempts

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()
            shutil.rmtree(self.root)


TestLedgerStates = LedgerMachine.TestCase
TestLedgerStates.settings = settings(examples(30), stateful_step_count=20)
