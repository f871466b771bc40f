"""Find the open questions when a run begins, and the known answers if it ends early."""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from pipeline.frames import CHECKS, Answer, AnswerState, Check, OwnCode
from pipeline.stages.ask.values import AnswerBuffer, AskingTally
from pipeline.stores.protocols import Ledger
from pipeline.stores.values import FruitlessQuestion, QuestionHistory
from schemas.outcomes import ApiName

RUNS_MAX = 3  # after this many runs got an unusable reply about the question itself, it is not asked again

_LOOKED_UP_AT_ONCE = 1_000  # questions, so that all answers of a ledger are in memory only as a frame
_NOTHING = QuestionHistory(None, 0, None)
_APIS = {api.value: api for api in ApiName}


class RemainingQuestions(NamedTuple):
    """The questions of a run, answered and open."""

    answers: pl.DataFrame  # `Answers` of closed questions: answered before, or given up
    todo: pl.DataFrame
    """`Checks` of open questions, in the order of the requests, with their `attempts` so far; `is_suspect` is
    true if an earlier run got no answer to them.
    """
    has_answered: Collection[ApiName]  # APIs that answered a question of this file before


async def remaining_questions(
    checks: pl.DataFrame, ledger: Ledger, tally: AskingTally, *, retry_unanswered: bool = False
) -> RemainingQuestions:
    """Find the open questions among `Checks` in the order of requests; the tally counts settled ones."""
    assert checks.schema == CHECKS
    answers, found = AnswerBuffer(), _LedgerState()
    if any(ledger.counts):
        left = await _open(checks, ledger, found, answers)
    else:
        left = checks.with_columns(attempts=pl.lit(0), is_suspect=pl.lit(value=False))
    if not retry_unanswered and (given_up := found.given_up):
        for number, known in given_up.items():
            answers.add(_unasked(number, AnswerState.UNANSWERED, known.code, known.attempts))
        left = left.filter(~pl.col("check").is_in(list(given_up)))
    tally.check_count += checks.height
    tally.done_count += answers.count
    tally.settled_count += answers.count
    for (api, state), count in found.answer_counts.items():
        counts = tally.reused if state == AnswerState.REUSED else tally.answered_before
        counts[api] += count
    return RemainingQuestions(answers.frame(), left, found.has_answered)


def within_limit(todo: pl.DataFrame, limit: int, tally: AskingTally) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the questions up to the limit, and `Answers` that defer the others, which the tally counts."""
    limit = min(limit, todo.height)  # polars accepts numbers up to 64 bits
    beyond, answers = todo[limit:], AnswerBuffer()
    for number, attempts in zip(beyond["check"], beyond["attempts"], strict=True):
        answers.add(_unasked(number, AnswerState.DEFERRED, OwnCode.LIMIT, attempts))
    tally.done_count += beyond.height
    tally.settled_count += beyond.height
    return todo.head(limit), answers.frame()


async def answers_so_far(checks: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Return `Answers` for a run that ends early, one per check, from its closed ledger."""
    answers = AnswerBuffer()
    async for some in _known(checks, ledger):
        for check, _, known in some:
            if known.answer is not None:
                answers.add(Answer(check.check, *known.answer[1:]))
            else:
                state = AnswerState.UNANSWERED if known.attempts else AnswerState.DEFERRED
                answers.add(_unasked(check.check, state, known.code or OwnCode.RUN_ENDED, known.attempts))
    return answers.frame()


async def count_given_up(checks: pl.DataFrame, ledger: Ledger) -> int:
    """Count the questions that are not asked again unless the user requests it."""
    found = _LedgerState(await ledger.fruitless())
    if any(fruitless.run_count >= RUNS_MAX for fruitless in found.fruitless.values()):
        async for some in _known(checks, ledger):
            for check, question, known in some:
                found.note(check, question, known)
    return len(found.given_up)


@dataclass(slots=True)
class _LedgerState:
    fruitless: Mapping[bytes, FruitlessQuestion] = field(default_factory=dict)
    """Questions of the whole run without an answer."""
    answer_counts: Counter[tuple[ApiName, AnswerState]] = field(default_factory=Counter)
    suspects: dict[int, tuple[ApiName, FruitlessQuestion]] = field(default_factory=dict)
    """Check -> the useless attempts of earlier runs, for checks without an answer."""

    def note(self, check: Check, question: bytes, known: QuestionHistory) -> None:
        if known.answer is not None:
            self.answer_counts[check.api, known.answer.state] += 1
        elif (fruitless := self.fruitless.get(question)) is not None:
            self.suspects[check.check] = check.api, fruitless

    @property
    def has_answered(self) -> Collection[ApiName]:
        return {api for api, state in self.answer_counts if state is AnswerState.ANSWERED}

    @property
    def given_up(self) -> dict[int, FruitlessQuestion]:
        """Return the checks given up after useless replies in several runs."""
        return {
            number: fruitless
            for number, (api, fruitless) in self.suspects.items()
            if fruitless.run_count >= RUNS_MAX
            # otherwise the server may refuse access to all of them
            and (fruitless.code == OwnCode.CONTRACT or api in self.has_answered)
        }


async def _open(
    checks: pl.DataFrame, ledger: Ledger, found: _LedgerState, answers: AnswerBuffer
) -> pl.DataFrame:
    """Return the questions without an answer in the order of the requests, and collect the answers.

    Questions asked before come last, the most often asked at the end, or they could use up the daily cap or
    the limit before others are asked. Among equals, suspects come last.
    """
    found.fruitless = await ledger.fruitless()
    is_open, attempts, is_suspect = [], [], []
    async for some in _known(checks, ledger):
        for check, question, known in some:
            found.note(check, question, known)
            is_open.append(known.answer is None)
            if known.answer is None:
                attempts.append(known.attempts)
                is_suspect.append(check.check in found.suspects)
            else:
                answers.add(Answer(check.check, *known.answer[1:]))
    left = checks.filter(pl.Series(is_open, dtype=pl.Boolean)).with_columns(
        pl.Series("attempts", attempts, pl.Int32), pl.Series("is_suspect", is_suspect, pl.Boolean)
    )
    return left.sort("attempts", "is_suspect", maintain_order=True)


async def _known(
    checks: pl.DataFrame, ledger: Ledger
) -> AsyncIterator[list[tuple[Check, bytes, QuestionHistory]]]:
    """Yield questions in order, in batches, each with its key and its history in the ledger."""
    for part in checks.iter_slices(_LOOKED_UP_AT_ONCE):
        numbers, apis, *fields = (column.to_list() for column in part.iter_columns())
        some = list(map(Check, numbers, map(_APIS.__getitem__, apis), *fields))
        keyed = [(check, ledger.question_key(check)) for check in some]
        known = await ledger.known([question for _, question in keyed])
        yield [(check, question, known.get(question, _NOTHING)) for check, question in keyed]


def _unasked(check: int, state: AnswerState, code: str, attempts: int) -> Answer:
    return Answer(check, state, code, None, None, None, attempts)
