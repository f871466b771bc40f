"""reuse: Checks -> what need not be asked again, because an earlier run was told that the name matches.

Only a match is used again. Of everything else the payer wants to know whether it still holds, and an error
says nothing about the payee. An answer keeps the time at which it came, however often it is used again, so
that it grows old.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import polars as pl

from pipeline.apis import Api, basis_of
from pipeline.frames import CHECKS, AnswerState, Check
from pipeline.stores.sqlite.ledger import FinalAnswer
from schemas.outcomes import ApiName, Outcome


class Earlier(Protocol):
    """The record of an earlier run; `ledger.reading.Record` is the one there is."""

    def question_key(self, check: Check) -> bytes:
        """What this record knows a question by."""

    def answers(self) -> Iterable[FinalAnswer]:
        """Its final answers."""


class Known(NamedTuple):
    """A question, and the match that an earlier run was told."""

    check: Check
    answer: FinalAnswer
    """As the earlier run has it: its `question` is the key of that run."""
    source: int
    """Which of the earlier runs, counted from 0."""


def reuse(
    checks: pl.DataFrame,
    earlier: Sequence[Earlier],
    apis: Mapping[ApiName, Api],
    *,
    not_before: str,
    now: str,
) -> list[Known]:
    """Find the questions that earlier runs were answered with a match.

    Where several runs asked the same question the latest answer counts: an older match is worth nothing
    once a newer answer was another one.

    Args:
        checks: `Checks`, those that have no answer in this run.
        earlier: the records of earlier runs, of the same environment and provider.
        apis: their tables say which code is a match.
        not_before: UTC, ISO 8601 with Z; an older answer is not used.
        now: as `not_before`; an answer of the future, by a clock that was wrong, is not used either.

    Returns:
        The matches, in the order of the checks.
    """
    assert checks.schema == CHECKS
    answers = [{answer.question: answer for answer in record.answers()} for record in earlier]
    found = []
    for row in checks.iter_rows():
        check = Check(row[0], ApiName(row[1]), *row[2:])
        known = [
            Known(check, answer, source)
            for source, record in enumerate(earlier)
            if (answer := answers[source].get(record.question_key(check))) is not None
        ]
        latest = max(known, key=lambda one: one.answer.time or "", default=None)
        if latest is None or not _is_match(latest, apis[check.api]):
            continue
        assert latest.answer.time is not None, "a match without a time"
        if not_before <= latest.answer.time <= now:
            found.append(latest)
    return found


def _is_match(known: Known, api: Api) -> bool:
    if known.answer.state not in (AnswerState.ANSWERED, AnswerState.REUSED):
        return False
    return api.meanings[basis_of(known.check), known.answer.code].outcome is Outcome.MATCH
