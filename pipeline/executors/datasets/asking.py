"""The asking of a data set: questions come from the files of buckets, and answers go to files."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
import polars as pl

from pipeline.config import Profile
from pipeline.connections import open_channels, shares_of_this_machine
from pipeline.errors import PrecheckError
from pipeline.executors.asking import Caps, caps_of, new_context, or_stopped, watched
from pipeline.frames import ANSWERS, CHECKS, Answer, Schema
from pipeline.runs.part_files import PartFiles, read_frame, write_frame
from pipeline.runs.request import CheckJob, Phase, Surface
from pipeline.stages.ask import (
    AnswerBuffer,
    AskingTally,
    answers_so_far,
    ask,
    count_given_up,
    deferred_by_limit,
    remaining_questions,
)
from pipeline.stores.leased_shares import LeaseTerms
from pipeline.stores.local_source import LocalSource
from pipeline.stores.protocols import Ledger
from pipeline.stores.values import ChunkLease, QuestionChunk
from schemas.outcomes import ApiName, Environment

ANSWERS_AT_ONCE = 65_536
"""In memory, before they are written."""
LEFT: Schema = {**CHECKS, "attempts": pl.Int32(), "is_suspect": pl.Boolean()}


class SetQuestions(NamedTuple):
    """The questions of a data set, and where they lie."""

    files: PartFiles
    counts: Sequence[Mapping[ApiName, int]]
    """How many each bucket has."""

    @property
    def by_api(self) -> Counter[ApiName]:
        """How many there are."""
        return sum((Counter(counts) for counts in self.counts), Counter())

    @property
    def buckets(self) -> range:
        """Their numbers."""
        return range(len(self.counts))

    def checks(self, bucket: int) -> pl.DataFrame:
        """`Checks` of a bucket."""
        return read_frame(self.files.questions(bucket), CHECKS)


@dataclass(frozen=True, slots=True)
class SetAsked:
    """What came of the asking; the answers lie in the work folder, one for each question."""

    caps: Caps
    tally: AskingTally
    given_up_count: int
    """Questions that no later run asks, unless the user requests it."""
    ended_by: PrecheckError | None
    """What ended the run before all was asked."""


def ask_buckets(  # noqa: PLR0913 (what asking takes)
    job: CheckJob,
    questions: SetQuestions,
    profile: Profile,
    ledger: Ledger,
    surface: Surface,
    *,
    is_ours: bool,
) -> SetAsked:
    """Ask what is left to ask of a data set, until all is asked or the run is stopped.

    Args:
        job: what is to be done.
        questions: of the data set.
        profile: whom to ask.
        ledger: the record of the run.
        surface: what starts it, to report to.
        is_ours: whether the server is the embedded sandbox, which no other run asks.

    Raises:
        DiskError: the ledger or the work folder cannot be written.
        StoppedError: the run is to stop at once; what was answered is in the ledger.
    """
    forget_answers(questions)

    world = new_context(surface)

    async def asks() -> Caps:
        surface.watch.begin(simulated=profile.environment is Environment.SANDBOX)
        surface.watch.enter(Phase.CONNECTING)
        terms = LeaseTerms(world.now, world.clock, surface.watch.wait, job.wait_max_s)
        shares = None if is_ours else shares_of_this_machine(terms)
        needed = questions.by_api.keys()
        async with open_channels(profile, needed, now=world.now, shares=shares) as channels:
            surface.watch.enter(Phase.ASKING)
            left = await _left(job, questions, ledger, world.tally)
            spilled = SpilledAnswers(questions)
            source = BucketSource(questions, left, ledger)
            await ask(source, channels, ledger, world, has_answered=left.has_answered, answers=spilled)
            spilled.spill()
            return await caps_of(profile.servers, channels)

    caps, ended_by = watched(asks, world, surface)
    ended_by = or_stopped(ended_by, job.file.name, surface.stop)
    if caps is None or ended_by is not None:
        anyio.run(_take_from_ledger, questions, ledger)
    given_up_count = anyio.run(_count_given_up, questions, ledger)
    return SetAsked(caps or {}, world.tally, given_up_count, ended_by)


class _Left(NamedTuple):
    """What is left to ask."""

    files: Sequence[Path] | None
    """`LEFT` frames, in the order of asking; None: all of it, as nothing was asked before."""
    has_answered: frozenset[ApiName]
    """APIs that answered a question before."""


async def _left(job: CheckJob, questions: SetQuestions, ledger: Ledger, tally: AskingTally) -> _Left:
    """Put down what is left to ask, bucket by bucket, and the answers that there are."""
    tally.check_count = sum(questions.by_api.values())
    if not any(ledger.counts) and job.limit is None:
        return _Left(None, frozenset())
    has_answered, asked_least = set[ApiName](), dict[int, int]()
    for bucket in questions.buckets:
        of_bucket = AskingTally()
        left = await remaining_questions(
            questions.checks(bucket), ledger, of_bucket, retry_unanswered=job.retry_unanswered
        )
        todo = left.todo.cast(LEFT)  # type: ignore[arg-type]  # polars' stubs want an invariant mapping
        asked = todo.filter(pl.col("attempts") > 0)
        asked_least[bucket] = next(iter(asked["attempts"]), 0)
        write_frame(todo.head(todo.height - asked.height), questions.files.left(bucket, were_asked=False))
        write_frame(asked, questions.files.left(bucket, were_asked=True))
        write_frame(left.answers, questions.files.answers(bucket) / "before.parquet")
        tally.done_count += of_bucket.done_count
        tally.settled_count += of_bucket.settled_count
        tally.answered_before += of_bucket.answered_before
        tally.reused += of_bucket.reused
        has_answered |= set(left.has_answered)
    least_first = sorted(questions.buckets, key=asked_least.__getitem__)
    in_order = [
        *((bucket, questions.files.left(bucket, were_asked=False)) for bucket in questions.buckets),
        *((bucket, questions.files.left(bucket, were_asked=True)) for bucket in least_first),
    ]
    if job.limit is not None:
        _defer_beyond(job.limit, in_order, questions, tally)
    return _Left([path for _, path in in_order], frozenset(has_answered))


def _defer_beyond(
    limit: int, in_order: Sequence[tuple[int, Path]], questions: SetQuestions, tally: AskingTally
) -> None:
    """Keep the first questions, as many as the limit, and defer the others to a later run."""
    for bucket, path in in_order:
        left = read_frame(path, LEFT)
        todo, beyond = left.head(limit), left[limit:]
        limit -= todo.height
        if beyond.height:
            write_frame(todo, path)
            write_frame(deferred_by_limit(beyond), questions.files.answers(bucket) / f"beyond-{path.name}")
            tally.done_count += beyond.height
            tally.settled_count += beyond.height


class BucketSource:
    """The questions of a data set that one process has to itself; what was asked before comes last."""

    is_shared = False

    def __init__(self, questions: SetQuestions, left: _Left, ledger: Ledger) -> None:
        self._questions = questions
        self._left = left
        self._ledger = ledger
        self._frames = {api: self._each(api) for api in questions.by_api}
        self._here: dict[ApiName, LocalSource] = {}
        self._chunk_count = 0

    async def claim(self, api: ApiName) -> QuestionChunk | None:
        """The next questions for an API."""
        while api in self._frames:
            here = self._here.get(api)
            chunk = None if here is None else await here.claim(api)
            if chunk is not None:
                self._chunk_count += 1
                return chunk._replace(hold=ChunkLease(self._chunk_count, fence=1))
            frame = await anyio.to_thread.run_sync(next, self._frames[api], None)
            if frame is None:
                del self._frames[api]
            else:
                self._here[api] = LocalSource(frame, self._ledger.question_key)
        return None

    async def has_free(self, api: ApiName) -> bool:  # noqa: ARG002
        """Never: no other process gives any back."""
        return False

    async def done(self, hold: ChunkLease) -> None:
        """Nothing to record: the ledger has the answers."""

    def holds(self, hold: ChunkLease) -> bool:  # noqa: ARG002
        """Always: the work folder is locked."""
        return True

    def may_send(self, hold: ChunkLease) -> bool:  # noqa: ARG002
        """Always, again."""
        return True

    async def give_back(self, api: ApiName | None = None) -> None:
        """Give out no more questions."""
        if api is None:
            self._frames, self._here = {}, {}
        else:
            self._frames.pop(api, None)
            self._here.pop(api, None)

    def _each(self, api: ApiName) -> Iterator[pl.DataFrame]:
        """The questions for an API, a bucket at a time."""
        if self._left.files is None:
            never = {"attempts": pl.lit(0, pl.Int32), "is_suspect": pl.lit(value=False)}
            checks = (self._questions.checks(bucket) for bucket in self._questions.buckets)
            frames = (some.with_columns(**never) for some in checks)
        else:
            frames = (read_frame(path, LEFT) for path in self._left.files)
        of_api = (frame.filter(pl.col("api") == api) for frame in frames)
        yield from (some for some in of_api if some.height)


class SpilledAnswers:
    """Answers on their way to the files of their buckets."""

    def __init__(self, questions: SetQuestions) -> None:
        self._questions = questions
        self._here = AnswerBuffer()
        self._spill_count = 0

    def add(self, answer: Answer) -> None:
        """Keep one more."""
        self._here.add(answer)
        if self._here.count == ANSWERS_AT_ONCE:
            self.spill()

    def frame(self) -> pl.DataFrame:
        """None are kept in memory."""
        return pl.DataFrame(schema=ANSWERS)

    def spill(self) -> None:
        """Write what is in memory."""
        self._spill_count += 1
        here, self._here = self._here.frame(), AnswerBuffer()
        bucket = ((pl.col("check") - 1) % len(self._questions.counts)).alias("bucket")
        pieces = here.with_columns(bucket).partition_by("bucket", as_dict=True, include_key=False)
        for (number,), some in pieces.items():
            write_frame(some, self._questions.files.answers(number) / f"{self._spill_count:06}.parquet")


def forget_answers(questions: SetQuestions) -> None:
    """Remove the answers that an earlier asking left: the ledger has those that count."""
    for bucket in questions.buckets:
        for piece in questions.files.answers(bucket).glob("*"):
            piece.unlink(missing_ok=True)


async def _take_from_ledger(questions: SetQuestions, ledger: Ledger) -> None:
    """Put down what the ledger knows, after an asking that ended early."""
    forget_answers(questions)
    for bucket in questions.buckets:
        found = await answers_so_far(questions.checks(bucket), ledger)
        write_frame(found, questions.files.answers(bucket) / "so_far.parquet")


async def _count_given_up(questions: SetQuestions, ledger: Ledger) -> int:
    if not await ledger.fruitless():
        return 0
    return sum([await count_given_up(questions.checks(bucket), ledger) for bucket in questions.buckets])
