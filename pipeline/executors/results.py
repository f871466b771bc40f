"""The result of asking a run's questions: counts per API, what is left, and how to continue."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import NamedTuple

import polars as pl

from pipeline.errors import PrecheckError
from pipeline.frames import Answers, AnswerState, Bases, OwnCode
from pipeline.stages.ask.remaining import RUNS_MAX
from pipeline.stages.ask.values import AskingTally
from pipeline.wording import Moment, Sentence
from schemas.outcomes import ApiName
from schemas.strict import timestamp
from schemas.summary import ApiCalls

Caps = dict[ApiName, tuple[int, datetime]]
"""API -> its daily cap, and when it resets."""
_IS_UNDECIDED = pl.col("state").is_in([AnswerState.UNANSWERED, AnswerState.DEFERRED])


@dataclass(frozen=True, slots=True)
class AskingResult:
    """The result of asking a run's questions, except the answers."""

    caps: Caps
    tally: AskingTally
    given_up_count: int  # questions that no later run will ask unless the user requests it
    ended_by: PrecheckError | None  # the error that ended the run early


class QuestionsLeft(NamedTuple):
    """Counts of questions without a final answer."""

    open_count: int
    given_up_count: int  # unanswered questions that no later run will ask unless the user requests it
    capped: Mapping[ApiName, int]  # unanswered questions that the daily cap left, by API

    @property
    def is_given_up(self) -> bool:
        """True if questions are left, but no later run would ask any of them."""
        return 0 < self.given_up_count == self.open_count


def questions_left(answers: Answers, bases: Bases, asked: AskingResult) -> QuestionsLeft:
    """Count the questions of a file that are left to a later run."""
    undecided = answers.filter(_IS_UNDECIDED)
    if not asked.caps:
        return QuestionsLeft(undecided.height, asked.given_up_count, {})
    capped = undecided["check"].filter(undecided["code"] == OwnCode.DAILY_CAP)
    of_api = Bases(bases.filter(pl.col("check").is_in(capped.implode())))
    return QuestionsLeft(undecided.height, asked.given_up_count, question_counts(of_api))


def question_counts(bases: Bases) -> dict[ApiName, int]:
    """Count the questions by API."""
    counts = bases.group_by("api", maintain_order=True).len()
    return {ApiName(api): count for api, count in counts.iter_rows()}


def calls_of(question_counts: Mapping[ApiName, int], tally: AskingTally) -> list[ApiCalls]:
    """Count the questions by API and result."""
    return [
        ApiCalls(
            api=api,
            question_count=question_count,
            answered_before_count=tally.answered_before[api],
            reused_count=tally.reused[api],
            elsewhere_count=tally.elsewhere[api],
            request_count=tally.requests[api],
            repeat_count=tally.repeats[api],
            pause_count=tally.pauses[api],
            in_flight_least=tally.slowest.get(api),
        )
        for api, question_count in question_counts.items()
    ]


def next_step(left: QuestionsLeft, asked: AskingResult) -> Sentence:
    """Say how, and when, to continue with the questions that are left."""
    left_count = left.open_count - left.given_up_count
    given_up = Sentence("executors.given_up", run_count=RUNS_MAX, count=left.given_up_count)
    if left_count == 0:
        return given_up
    left_over = _left(left_count, left.capped, asked)
    if not left.given_up_count:
        return left_over
    return Sentence("executors.left_and_given_up", left=left_over, given_up=given_up)


def _left(count: int, capped: Mapping[ApiName, int], asked: AskingResult) -> Sentence:
    caps, closed, ended_by = asked.caps, asked.tally.closed, asked.ended_by
    if ended_by is not None:
        return Sentence("executors.left_as_ended", count=count, why=ended_by.messages)
    if closed:
        return Sentence("executors.left_as_closed", count=count, why=list(closed.values()))
    if not capped:
        return Sentence("executors.left", count=count)
    # If two APIs have a cap, the one that needs more days decides.
    days, cap, resets_at = max((ceil(count / caps[api][0]), *caps[api]) for api, count in capped.items())
    time = Moment(timestamp(resets_at))
    return Sentence("executors.left_by_cap", left_count=count, cap=cap, time=time, count=days)
