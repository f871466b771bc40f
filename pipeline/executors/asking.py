"""Ask the questions of a run, for a file or a data set, alone or together, and count what is left."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import ceil
from operator import itemgetter
from typing import NamedTuple, Protocol

import polars as pl

from pipeline.config import Profile
from pipeline.connections import open_channels, shares_of_this_machine
from pipeline.errors import IncompleteError, PrecheckError
from pipeline.executors.event_loop import in_event_loop, new_context, or_stopped, watched
from pipeline.executors.kept_open import KeptOpen, Opening
from pipeline.frames import (
    ANSWERS,
    Answer,
    Answers,
    AnswerState,
    Bases,
    Checks,
    OwnCode,
    question_counts,
    slim,
)
from pipeline.runs.request import CheckJob, Phase, Surface
from pipeline.sections import Server
from pipeline.stages.ask import ask
from pipeline.stages.ask.remaining import (
    RUNS_MAX,
    RemainingQuestions,
    answers_so_far,
    count_given_up,
    remaining_questions,
    within_limit,
)
from pipeline.stages.ask.values import AnswerBuffer, AnswerSink, ApiChannel, AskingContext, AskingTally
from pipeline.stores.leased_shares import LeaseTerms
from pipeline.stores.local_source import LocalSource
from pipeline.stores.protocols import Ledger
from pipeline.wording import Moment, Sentence
from schemas.outcomes import ApiName, Environment
from schemas.strict import timestamp
from schemas.summary import ApiCalls

Caps = dict[ApiName, tuple[int, datetime]]  # API -> its daily cap, and when it resets
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
        return Sentence("executors.questions_left", count=count)
    # If two APIs have a cap, the one that needs more days decides.
    days, cap, resets_at = max((ceil(count / caps[api][0]), *caps[api]) for api, count in capped.items())
    time = Moment(timestamp(resets_at))
    return Sentence("executors.left_by_cap", left_count=count, cap=cap, time=time, count=days)


Piece = Callable[[], Awaitable[pl.DataFrame]]
"""Reads a piece of the open questions: `Checks`, with `attempts` and `is_suspect`."""


class RunQuestions(AnswerSink, Protocol):
    """The questions of a run in parts, and their answers in any order.

    Question n is in part `(n - 1) % part_count`, at index `(n - 1) // part_count` when sorted by number.
    """

    @property
    def counts(self) -> Counter[ApiName]:
        """The number of questions, by API."""

    @property
    def part_count(self) -> int:
        """The number of parts, which are numbered from 0."""

    def checks(self, part: int) -> Checks:
        """Return the questions of a part, in the order of asking."""

    def unasked(self, part: int) -> Piece:
        """Return the questions of a part, for a run that has not asked any yet."""

    def put_aside(self, part: int, name: str, todo: pl.DataFrame) -> Piece:
        """Store open questions of a part under a name."""

    def keep(self, part: int, name: str, answers: pl.DataFrame) -> None:
        """Store `Answers` of a part under a name."""

    def forget(self) -> None:
        """Drop all answers; those that count are in the ledger."""


class FileQuestions:
    """The questions of a payment file, as one part in memory; a `RunQuestions`."""

    part_count = 1

    def __init__(self, checks: Checks) -> None:
        self.counts = Counter(question_counts(checks))
        self._checks = checks
        self._kept: list[pl.DataFrame] = []
        self._coming = AnswerBuffer()

    def answers(self) -> Answers:
        """Return all answers held in memory, and drop them."""
        kept, self._kept = self._kept, []
        return Answers(slim(*kept))

    def checks(self, part: int) -> Checks:  # noqa: ARG002
        """Return all questions."""
        return self._checks

    def unasked(self, part: int) -> Piece:
        """Return all questions."""
        return self.put_aside(part, "all", never_asked(self._checks))

    def put_aside(self, part: int, name: str, todo: pl.DataFrame) -> Piece:  # noqa: ARG002
        """Hold open questions in memory."""

        async def held() -> pl.DataFrame:
            return todo

        return held

    def keep(self, part: int, name: str, answers: pl.DataFrame) -> None:  # noqa: ARG002
        """Hold answers in memory."""
        self._kept.append(answers)

    def add(self, answer: Answer) -> None:
        """Hold another answer in memory."""
        self._coming.add(answer)

    def frame(self) -> pl.DataFrame:
        """Combine the single answers into one frame, held in memory."""
        self._kept.append(self._coming.frame())
        return pl.DataFrame(schema=ANSWERS)

    def forget(self) -> None:
        """Drop all held answers."""
        self._kept.clear()


class Asking(NamedTuple):
    """The questions, with what a process needs to ask them."""

    job: CheckJob
    questions: RunQuestions
    profile: Profile
    world: AskingContext
    surface: Surface

    async def left(self, ledger: Ledger) -> AsyncIterator[tuple[int, RemainingQuestions]]:
        """Yield each part's number, with its open questions and its existing answers."""
        for part in range(self.questions.part_count):
            checks, retry = self.questions.checks(part), self.job.retry_unanswered
            left = await remaining_questions(checks, ledger, self.world.tally, retry_unanswered=retry)
            yield part, left


class Way(Protocol):
    """A way for a process to ask: alone, or together with others."""

    @property
    def kept(self) -> KeptOpen | None:
        """The resources that stay open for the next file."""

    def begin(self, asking: Asking) -> None:
        """Prepare for the first question (IncompleteError: asking is impossible now)."""

    async def ask(self, asking: Asking) -> None:
        """Ask until no question is left or a stop is requested (PrecheckError: see `stages.ask.ask`)."""

    async def end(self, asking: Asking, ended_by: PrecheckError | None) -> AskingResult:
        """Store the answers, one per question, and count the abandoned questions."""


def ask_all(
    job: CheckJob, questions: RunQuestions, profile: Profile, way: Way, surface: Surface
) -> AskingResult:
    """Ask open questions and report progress; return the result even after an error or a stop request.

    Raises DiskError if ledger or work folder cannot be written, StoppedError if the run must stop at once,
    and IncompleteError if a shared ledger is unavailable and no other copy of the answers exists.
    """
    run = in_event_loop if way.kept is None else way.kept.run
    return run(partial(_ask_all, Asking(job, questions, profile, new_context(surface), surface), way))


async def _ask_all(asking: Asking, way: Way) -> AskingResult:
    ended_by: PrecheckError | None
    watch, stop = asking.surface.watch, asking.surface.stop

    async def asks() -> None:
        watch.begin(simulated=asking.profile.environment is Environment.SANDBOX)
        watch.enter(Phase.CONNECTING)
        await way.ask(asking)

    asking.questions.forget()
    try:
        way.begin(asking)
        ended_by = await watched(asks, asking.world, asking.surface)
    except IncompleteError as error:
        ended_by = error
    return await way.end(asking, or_stopped(ended_by, asking.job.file.name, stop))


@dataclass(slots=True)
class Alone:
    """A process that asks alone: the ledger is in a folder that it has locked."""

    ledger: Ledger
    is_ours: bool  # True if the server is the embedded sandbox, which no other run uses
    kept: KeptOpen | None = None  # resources that stay open for the next file
    _caps: Caps | None = None  # daily caps of the servers; None before the asking has ended

    def begin(self, asking: Asking) -> None:
        """Do nothing."""

    async def ask(self, asking: Asking) -> None:
        """Open the channels and ask."""
        job, questions, profile, world, (watch, *_) = asking
        terms = LeaseTerms(world.now, world.clock, watch.wait, job.wait_max_s)
        shares = None if self.is_ours else shares_of_this_machine(terms)
        opening: Opening = open_channels(profile, questions.counts, now=world.now, shares=shares)
        if self.kept is not None:
            servers = [server for server in profile.servers if server.name in questions.counts]
            opening = self.kept.channels(servers, opening, world.tally)
        async with opening as channels:
            watch.enter(Phase.ASKING)
            (first, *more), has_answered = await left_to_ask(asking, self.ledger)
            source = LocalSource(await first(), self.ledger.question_key, more)
            await ask(source, channels, self.ledger, world, has_answered=has_answered, answers=questions)
            self._caps = await caps_of(profile.servers, channels)

    async def end(self, asking: Asking, ended_by: PrecheckError | None) -> AskingResult:
        """Read the answers from the ledger if an error ended the asking."""
        questions = asking.questions
        if self._caps is None or ended_by is not None:
            questions.forget()
            for part in range(questions.part_count):
                questions.keep(part, "so_far", await answers_so_far(questions.checks(part), self.ledger))
        given_up_count = await all_given_up(questions, self.ledger)
        return AskingResult(self._caps or {}, asking.world.tally, given_up_count, ended_by)


async def left_to_ask(asking: Asking, ledger: Ledger) -> tuple[Sequence[Piece], Collection[ApiName]]:
    """Store open questions and answers; return pieces, those asked before last, and APIs that answered."""
    questions, limit = asking.questions, asking.job.limit
    if not any(ledger.counts) and limit is None:
        asking.world.tally.check_count = questions.counts.total()
        return [*map(questions.unasked, range(questions.part_count))], ()
    has_answered, new, again = set[ApiName](), [], []
    async for part, left in asking.left(ledger):
        has_answered |= set(left.has_answered)
        questions.keep(part, "before", left.answers)
        asked = left.todo.filter(pl.col("attempts") > 0)
        new.append((part, questions.put_aside(part, "open", left.todo.head(left.todo.height - asked.height))))
        least = next(iter(asked["attempts"]), 0)
        again.append((least, (part, questions.put_aside(part, "asked", asked))))
    in_order = [*new, *(piece for _, piece in sorted(again, key=itemgetter(0)))]
    if limit is not None:
        in_order = [piece async for piece in _within_limit(limit, in_order, asking)]
    return [piece for _, piece in in_order], has_answered


def never_asked(checks: pl.DataFrame) -> pl.DataFrame:
    """Return `Checks` that no run has asked, in the form of open questions."""
    return checks.with_columns(attempts=pl.lit(0, pl.Int32), is_suspect=pl.lit(value=False))


async def _within_limit(
    limit: int, in_order: Iterable[tuple[int, Piece]], asking: Asking
) -> AsyncIterator[tuple[int, Piece]]:
    """Yield the first questions up to the limit; the rest are deferred to a later run."""
    questions = asking.questions
    for place, (part, piece) in enumerate(in_order):
        todo, deferred = within_limit(await piece(), limit, asking.world.tally)
        limit -= todo.height
        if deferred.is_empty():
            yield part, piece
        else:
            questions.keep(part, f"beyond-{place}", deferred)
            yield part, questions.put_aside(part, f"within-{place}", todo)


async def all_given_up(questions: RunQuestions, ledger: Ledger) -> int:
    """Count the questions that no later run will ask unless the user requests it."""
    if not await ledger.fruitless():
        return 0
    return sum([await count_given_up(questions.checks(part), ledger) for part in range(questions.part_count)])


async def caps_of(servers: Iterable[Server], channels: Mapping[ApiName, ApiChannel]) -> Caps:
    """Return the caps of the servers that were asked."""
    return {
        server.name: (server.cap, await channel.quota.resets_at())
        for server in servers
        if (channel := channels.get(server.name)) is not None
        and channel.quota is not None
        and server.cap is not None
    }
