"""Ask a run together with other processes, through a shared ledger.

The folder's ledger gets a copy of all answers: this process's at once, others' at the run's start and end.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

import anyio
import anyio.to_thread
import polars as pl

from pipeline.errors import IncompleteError, PrecheckError
from pipeline.executors.asking import Asking, AskingResult, RunQuestions, all_given_up
from pipeline.executors.kept_open import KeptOpen
from pipeline.executors.shared import CHUNK_SIZE, RoundAsker, SharedAccess, round_to_ask
from pipeline.frames import ANSWERS, AnswerState, Check, Checks, OwnCode, each_check, question_counts
from pipeline.stages.ask.remaining import answers_so_far
from pipeline.stages.ask.values import AskingTally, Closure
from pipeline.stores.protocols import SharedRun, StoredRun
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import PlannedChunk, RecordedRequest
from schemas.outcomes import ApiName

_OWN_AT_ONCE = 1_000
_ALL_AT_ONCE = 5_000


class FolderCopy:
    """The copy in one folder's ledger."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self.ledger = ledger
        self._waiting: list[tuple[Check, RecordedRequest]] = []
        self._is_writing = False

    async def add(self, check: Check, request: RecordedRequest) -> None:
        """Copy a request of this process, as part of a batch (DiskError: the ledger cannot be written)."""
        self._waiting.append((check, request))
        if len(self._waiting) < _OWN_AT_ONCE or self._is_writing:
            return
        self._is_writing = True
        try:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.flush)
        finally:
            self._is_writing = False

    def flush(self) -> None:
        """Copy the unfinished batch (DiskError: the ledger of the folder cannot be written)."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.ledger.copy([self._own(check, request) for check, request in waiting])

    def take_over(self, lines: Iterable[RecordedRequest], checks: pl.DataFrame, shared: SharedRun) -> None:
        """Copy all missing `lines` of a shared run, whose questions have keys by `shared`.

        Raises DiskError if the ledger cannot be written or a line is corrupt; IncompleteError without the
        database.
        """
        self.flush()
        indexes = {shared.question_key(check): index for index, check in enumerate(each_check(checks))}
        known = {answer.question for answer in self.ledger.answers() if answer.state is AnswerState.REUSED}
        for some in _batches(lines):
            requests, reused = [], []
            for line, check in zip(
                some, each_check(checks[[indexes[line.question] for line in some]]), strict=True
            ):
                own = self._own(check, line)
                if own.reused is None:
                    requests.append(own)
                elif own.question not in known:
                    reused.append(own.reused)
            self.ledger.copy(requests)
            self.ledger.reuse(reused)

    def _own(self, check: Check, request: RecordedRequest) -> RecordedRequest:
        question = self.ledger.question_key(check)
        answer, reused = request.answer, request.reused
        return request._replace(
            question=question,
            answer=None if answer is None else answer._replace(question=question),
            reused=None if reused is None else reused._replace(question=question),
        )


def _batches(lines: Iterable[RecordedRequest]) -> Iterator[list[RecordedRequest]]:
    iterator = iter(lines)
    while some := list(islice(iterator, _ALL_AT_ONCE)):
        yield some


LAST_WAIT_MAX_S = 5.0  # how long the end of a run waits for a database that was unavailable before
ANSWERED = (AnswerState.ANSWERED, AnswerState.REFUSED, AnswerState.REUSED)


class JoinedRun(NamedTuple):
    """The shared run of a file or a data set."""

    access: SharedAccess
    run: StoredRun
    shared: SharedRun  # as this process uses it


@dataclass(slots=True)
class WithOthers:
    """A way to ask together with all other processes of the same run."""

    joined: JoinedRun
    copy: FolderCopy
    """The copy in the folder: answers are read from it even if the database is unavailable at the end."""
    asks: bool = True  # true if this process asks; otherwise it leaves an open round to workers
    _asker: RoundAsker = field(init=False)

    @property
    def kept(self) -> KeptOpen | None:
        """Resources that stay open for the next file."""
        return self.joined.access.kept

    def begin(self, asking: Asking) -> None:
        """Copy the answers of other processes (IncompleteError: the database is unavailable)."""
        job, questions, _, world, (watch, *_) = asking
        (access, _, shared), apis = self.joined, questions.counts.keys()
        self._asker = RoundAsker(shared, access, apis, world, watch, job.limit, job.wait_max_s)
        shared.copy_to(self.copy.add)
        if shared.counts != self.copy.ledger.counts:
            self._take_over(questions)

    async def ask(self, asking: Asking) -> None:
        """Find the open questions, and take part in asking them."""
        asker, planned, has_answered = self._asker, list[tuple[int, PlannedChunk]](), set[ApiName]()
        try:
            async for part, left in asking.left(asker.run):
                has_answered |= set(left.has_answered)
                planned += _chunks(left.todo, part, asking.questions.part_count)
            asker.has_answered = has_answered
            chunks = [chunk for _, chunk in sorted(planned, key=itemgetter(0))]
            if (number := await round_to_ask(asker.run, chunks)) is not None and self.asks:
                await asker.ask(number)
        finally:
            self.copy.flush()

    async def end(self, asking: Asking, ended_by: PrecheckError | None) -> AskingResult:
        """Read all processes' answers from the copy; some are missing if the database is unavailable."""
        questions, asker, given_up_count = asking.questions, self._asker, 0
        if isinstance(ended_by, IncompleteError):
            self.joined.access.store.wait_at_most(LAST_WAIT_MAX_S)
        try:
            await _end_round(asker)
            given_up_count = await all_given_up(questions, asker.run)
            self._take_over(questions)
        except IncompleteError as error:
            ended_by = ended_by or error
        questions.forget()
        answered_counts = Counter[ApiName]()
        for part in range(questions.part_count):
            checks = questions.checks(part)
            answers = _with_reasons(await answers_so_far(checks, self.copy.ledger), checks, asker)
            answered = answers.filter(pl.col("state").is_in(ANSWERED))
            answered_counts.update(question_counts(answered.join(checks.select("check", "api"), on="check")))
            questions.keep(part, "so_far", answers)
        _count_elsewhere(answered_counts, asking.world.tally)
        return AskingResult(asker.caps, asking.world.tally, given_up_count, ended_by)

    def _take_over(self, questions: RunQuestions) -> None:
        access, run, shared = self.joined
        checks = pl.concat(map(questions.checks, range(questions.part_count)))
        self.copy.take_over(access.store.lines(run), checks, shared)


def _chunks(todo: pl.DataFrame, part: int, part_count: int) -> Iterator[tuple[int, PlannedChunk]]:
    """Yield the chunks of a part, with how often their questions were asked; new questions are separate."""
    was_asked = (pl.col("attempts") > 0).alias("was_asked")
    for (api, _), mine in todo.group_by("api", was_asked, maintain_order=True):
        for some in mine.iter_slices(CHUNK_SIZE):
            indexes = ((some["check"] - 1) // part_count).to_list()
            yield some["attempts"][0], PlannedChunk(str(api), part, indexes)


async def _end_round(asker: RoundAsker) -> None:
    """End the round with its unasked questions; record the causes, such as caps that others used up."""
    if asker.round_number is None:
        return
    await asker.run.end_round(asker.round_number, is_over=True)
    if asker.world.stop.is_set() or asker.is_used_up:
        return
    closures = asker.world.tally.closures
    for api in asker.apis:
        if api not in closures and (spent := await asker.access.spent_cap(api)) is not None:
            closures[api] = Closure(AnswerState.DEFERRED, OwnCode.DAILY_CAP)
            asker.caps[api] = spent


def _with_reasons(answers: pl.DataFrame, checks: Checks, asker: RoundAsker) -> pl.DataFrame:
    """Return `Answers` with a reason for each unanswered question, as far as this process knows it."""
    reasons: dict[str, Closure] = {str(api): closure for api, closure in asker.world.tally.closures.items()}
    if asker.is_used_up:
        reasons = {str(api): Closure(AnswerState.DEFERRED, OwnCode.LIMIT) for api in asker.apis} | reasons
    of_api = answers.select("check").join(
        checks.select("check", pl.col("api").cast(pl.String)), on="check", how="left", maintain_order="left"
    )
    for api, (state, code) in reasons.items():
        is_left = (pl.col("code") == OwnCode.RUN_ENDED) & (of_api["api"] == api)
        answers = answers.with_columns(
            state=pl.when(is_left).then(pl.lit(str(state), ANSWERS["state"])).otherwise("state"),
            code=pl.when(is_left).then(pl.lit(str(code))).otherwise("code"),
        )
    return answers


def _count_elsewhere(answered: Counter[ApiName], tally: AskingTally) -> None:
    """Count the answers of other processes since this one began; `answered` has the current numbers."""
    for name, count in answered.items():
        # If the database is unavailable, this process no longer knows all earlier answers.
        before_count = tally.answered_before[name] + tally.reused[name]
        tally.elsewhere[name] = max(count - before_count - tally.answered[name], 0)
