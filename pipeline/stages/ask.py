"""ask: Checks -> Answers. Every question at most once, under every limit, whatever dies.

For each attempt, in this order: a slot of the pace is awaited, a unit of the daily cap is reserved, the
intent is made durable, the request leaves, and what came back is made durable before it counts.
So after a crash the requests that may have been sent are known, and they are at most as many as may
be in flight.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

import anyio
import anyio.abc
import anyio.to_thread
import polars as pl
import structlog

from pipeline.apis import Api, ContractBreachError, MisdirectedError, problem_code
from pipeline.errors import PrecheckError, ProtocolError, first_of
from pipeline.frames import ANSWERS, CHECKS, Answer, AnswerState, Check, OwnCode
from pipeline.ledger import FinalAnswer, Ledger
from pipeline.quota import Quota
from pipeline.transport import retry
from pipeline.transport.pace import Pace
from pipeline.transport.tokens import Token
from schemas.outcomes import ApiName
from schemas.wire import Request, Response, timestamp

log: structlog.stdlib.BoundLogger = structlog.get_logger()

MISDIRECTED_MAX = 3
"""Replies to somebody else's request that a run tolerates; the server mixes up its clients."""
BREACHES_IN_A_ROW_MAX = 20
"""Contract breaches without one good reply between them that a run tolerates."""
PAUSE_MAX_S = 60.0
"""The longest pause on the server's wish that a run sits out; a longer one is for a later run."""

DRAIN_MAX_S = 8.0
"""How long requests in flight are awaited after a stop: the longest responder's wait and a second."""


class Sender(Protocol):
    """Sends one request; `transport.client.Client` is the one there is."""

    async def token(self) -> Token | None:
        """The token to send with the next request; None under mutual TLS."""

    async def renew(self, rejected: Token) -> Token:
        """The token to use after a 401 for this one."""

    async def send(self, request: Request, *, deadline_s: float, token: Token | None = None) -> Response:
        """Send, and return the whole response; raises NetworkFailure."""

    async def drop_connections(self) -> None:
        """Use no open connection again."""


@dataclass(frozen=True, slots=True)
class Channel:
    """One API, the way to it, and the limits on the way."""

    api: Api
    sender: Sender
    pace: Pace
    quota: Quota | None
    in_flight_max: int
    attempts_max: int
    deadline_s: float


@dataclass(slots=True)
class Tally:
    """What a run has done so far; read by the progress display while the run goes on."""

    check_count: int = 0
    done_count: int = 0
    in_flight_count: int = 0
    landed: anyio.Event = field(default_factory=anyio.Event)
    """Set whenever nothing is in flight after a stop."""
    answered_before: dict[ApiName, int] = field(default_factory=dict)
    requests: dict[ApiName, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class World:
    """Time and chance, and those outside who watch the run or want it to stop."""

    now: Callable[[], datetime]
    chance: Callable[[], float]
    new_id: Callable[[], str]
    stop: anyio.Event
    tally: Tally


async def ask(
    checks: pl.DataFrame,
    channels: Mapping[ApiName, Channel],
    ledger: Ledger,
    world: World,
    *,
    limit: int | None = None,
) -> pl.DataFrame:
    """Ask every question that has no answer yet, each API at its own pace, all at the same time.

    Args:
        checks: a `Checks` frame, or any slice of one, in the order of asking.
        channels: one per API that occurs in `checks`.
        ledger: the record of this run, open for writing.
        world: time, chance and the wish to stop. After a stop no question is taken up, requests
            in flight are awaited for a while, and the questions left have no answer.
        limit: how many questions to take up at most; the others are deferred.

    Returns:
        `Answers`: one per check, unless stopped.

    Raises:
        CredentialsError, ConfigurationError: the server would refuse every row alike.
        ProtocolError: the server broke the protocol repeatedly.
        DiskError: the ledger cannot be written.
    """
    assert checks.schema == CHECKS
    world.tally.check_count = checks.height
    known = {final.question: _answer_of(final) for final in ledger.answers()}
    run = _Run(ledger, world, known, ledger.open_attempts(), allowance=limit)
    try:
        async with ledger.writing(), _workers(world) as workers:
            for (name, *_), part in checks.group_by("api", maintain_order=True):
                channel = channels[ApiName(str(name))]
                asking = _Asking(run, channel)
                todo = (Check(row[0], channel.api.name, *row[2:]) for row in part.iter_rows())
                for _ in range(min(channel.in_flight_max, part.height)):
                    workers.start_soon(asking.work, todo)
    except BaseExceptionGroup as failures:
        raise first_of(failures) from None
    if run.ended_by is not None:
        raise run.ended_by
    return pl.DataFrame(run.answers, schema=ANSWERS, orient="row")


def _answer_of(final: FinalAnswer) -> Answer:
    return Answer(
        0, final.state, final.code, final.matched_name, final.request_id, final.time, final.attempts
    )


@asynccontextmanager
async def _workers(world: World) -> AsyncIterator[anyio.abc.TaskGroup]:
    """Tasks that are awaited; after a stop, only for as long as their requests may take."""
    async with anyio.create_task_group() as watch:

        async def drain() -> None:
            await world.stop.wait()
            if world.tally.in_flight_count == 0:
                world.tally.landed.set()
            with anyio.move_on_after(DRAIN_MAX_S):
                await world.tally.landed.wait()
            watch.cancel_scope.cancel()

        watch.start_soon(drain)
        async with anyio.create_task_group() as workers:
            yield workers
        watch.cancel_scope.cancel()


@dataclass(slots=True)
class _Run:
    """What all the workers of a run share."""

    ledger: Ledger
    world: World
    known: Mapping[bytes, Answer]
    """Final answers of earlier runs, by question."""
    attempts: Mapping[bytes, int]
    """Requests of earlier runs for questions that have no final answer yet."""
    allowance: int | None
    """How many questions may still be taken up; None for any number."""
    answers: list[Answer] = field(default_factory=list)
    ended_by: PrecheckError | None = None

    def take(self) -> bool:
        """Whether one more question may be taken up."""
        if self.allowance is None:
            return True
        self.allowance -= 1
        return self.allowance >= 0


class _Final(NamedTuple):
    """A reply that settles its question for good."""

    state: AnswerState
    code: str
    matched_name: str | None


class _Useless(NamedTuple):
    """A reply that tells nothing about the payee, and what to do about it."""

    code: str
    decision: retry.Retry | retry.RenewToken | retry.GiveUp | retry.Stop


class _Asking:
    """The asking of one API."""

    def __init__(self, run: _Run, channel: Channel) -> None:
        self._run = run
        self._world = run.world
        self._channel = channel
        self._api = channel.api
        self._closed_as: str | None = None  # once no more may be sent in this run: the code of what is left
        self._paused_until: datetime | None = None  # the server asked this client to be silent
        self._reserving = anyio.Lock()
        self._misdirected_count = 0
        self._breaches_in_a_row = 0
        run.world.tally.requests[self._api.name] = 0
        run.world.tally.answered_before[self._api.name] = 0

    async def work(self, todo: Iterator[Check]) -> None:
        """Take questions, one after the other, until there are none or the run is to stop."""
        for check in todo:
            if self._world.stop.is_set():
                return
            try:
                answer = await self._answer(check)
            except PrecheckError as error:
                # Every row would meet the same end; what is in flight elsewhere may still land.
                self._run.ended_by = self._run.ended_by or error
                self._world.stop.set()
                return
            if answer is not None:
                self._run.answers.append(answer)
                self._run.world.tally.done_count += 1

    async def _answer(self, check: Check) -> Answer | None:
        """Bring the answer to one question; None where the run was stopped before there was one."""
        question = self._run.ledger.question_key(check)
        known = self._run.known.get(question)
        if known is not None:
            self._run.world.tally.answered_before[self._api.name] += 1
            return known._replace(check=check.check)
        if self._closed_as is None and not self._run.take():
            sent_count = self._run.attempts.get(question, 0)
            return _without_answer(check, AnswerState.DEFERRED, OwnCode.LIMIT, sent_count)
        return await self._exchange(check, question)

    async def _exchange(self, check: Check, question: bytes) -> Answer | None:
        """Send a question, and again where that may help, until there is an answer or will be none."""
        ledger = self._run.ledger
        sent_count = self._run.attempts.get(question, 0)
        useless: _Useless | None = None
        renewed = False
        for number in range(1, self._channel.attempts_max + 1):
            await self._channel.sender.token()  # waits for the identity provider here, not in a slot
            if not (await self._slot() and await self._may_send()):
                break
            sent_count += 1
            request_id = self._world.new_id()
            await ledger.intend(question, attempt=sent_count, request_id=request_id, time=self._time())
            token = await self._channel.sender.token()
            renewable = token is not None and not renewed
            attempt = retry.Attempt(number, renewable, self._channel.attempts_max)
            with self._in_flight():
                reply = await self._send(check, request_id, token)
                verdict = await self._judge(check, reply, request_id, attempt)
                if isinstance(verdict, _Final):
                    answer = Answer(check.check, *verdict, request_id, self._time(), sent_count)
                    await ledger.settle(question, answer)
                    return answer
                await ledger.fail(question, attempt=sent_count, code=verdict.code, time=self._time())
            useless = verdict
            await self._heed(reply)
            if isinstance(useless.decision, retry.RenewToken):
                assert token is not None
                await self._channel.sender.renew(token)
                renewed = True
            elif not await self._carry_out(useless.decision):
                break
        if self._world.stop.is_set():
            return None
        if self._closed_as is not None:
            return _without_answer(check, AnswerState.DEFERRED, self._closed_as, sent_count)
        assert useless is not None
        return _without_answer(check, AnswerState.UNANSWERED, useless.code, sent_count)

    async def _slot(self) -> bool:
        """Wait until a request may leave; False where none may in this run."""
        while self._closed_as is None and not self._world.stop.is_set():
            if self._paused_until is not None:
                await self._sleep((self._paused_until - self._world.now()).total_seconds())
            await self._channel.pace.slot()
            if self._paused_until is None or self._paused_until <= self._world.now():
                break
        return self._closed_as is None and not self._world.stop.is_set()

    async def _may_send(self) -> bool:
        """Reserve one request of the daily cap, where there is one: last of all, and never given back."""
        quota = self._channel.quota
        if quota is not None:
            async with self._reserving:
                if self._closed_as is None and not await anyio.to_thread.run_sync(quota.reserve):
                    self._close(OwnCode.DAILY_CAP)
        return self._closed_as is None

    @contextmanager
    def _in_flight(self) -> Iterator[None]:
        tally = self._world.tally
        tally.requests[self._api.name] += 1
        tally.in_flight_count += 1
        try:
            yield
        finally:
            tally.in_flight_count -= 1
            if tally.in_flight_count == 0 and self._world.stop.is_set():
                tally.landed.set()

    async def _send(
        self, check: Check, request_id: str, token: Token | None
    ) -> Response | retry.NetworkFailure:
        request = self._api.request(check, request_id, self._time())
        try:
            return await self._channel.sender.send(request, deadline_s=self._channel.deadline_s, token=token)
        except retry.NetworkFailure as failure:
            return failure

    async def _judge(
        self,
        check: Check,
        reply: Response | retry.NetworkFailure,
        request_id: str,
        attempt: retry.Attempt,
    ) -> _Final | _Useless:
        """Decide what a reply is worth: an answer, a refusal, or nothing."""
        decision = retry.decide(reply, attempt, chance=self._world.chance(), now=self._world.now())
        match decision:
            case retry.Accept():
                assert isinstance(reply, Response)
                return await self._read(check, reply, request_id, attempt)
            case retry.Refuse():
                assert isinstance(reply, Response)
                return _Final(AnswerState.REFUSED, problem_code(reply), None)
            case _:
                return _Useless(_code_of(reply), decision)

    async def _read(
        self, check: Check, response: Response, request_id: str, attempt: retry.Attempt
    ) -> _Final | _Useless:
        try:
            reading = self._api.read(response, check, request_id)
        except ContractBreachError as breach:
            log.warning("contract breach", api=self._api.name.value, request_id=request_id, rule=str(breach))
            self._breaches_in_a_row += 1
            if isinstance(breach, MisdirectedError):
                self._misdirected_count += 1
                await self._channel.sender.drop_connections()
            return _Useless(OwnCode.CONTRACT, self._after_breach(breach, attempt))
        self._breaches_in_a_row = 0
        return _Final(AnswerState.ANSWERED, reading.code, reading.matched_name)

    def _after_breach(
        self, breach: ContractBreachError, attempt: retry.Attempt
    ) -> retry.Retry | retry.GiveUp | retry.Stop:
        """One more try for one row; the end for a server that does nothing else."""
        if self._misdirected_count >= MISDIRECTED_MAX or self._breaches_in_a_row >= BREACHES_IN_A_ROW_MAX:
            return retry.Stop(
                ProtocolError(
                    f"{self._api.name}: the server broke the protocol repeatedly, the last time: {breach}; "
                    "ask the provider; rows answered so far are kept"
                )
            )
        return retry.Retry(0.0) if attempt.number == 1 else retry.GiveUp()

    async def _carry_out(self, decision: retry.Decision) -> bool:
        """Do what a decision says; True where the question is to be sent again."""
        match decision:
            case retry.Stop(error):
                raise error
            case retry.Retry(wait_s):
                await self._sleep(wait_s if self._closed_as is None else 0)
                return True
            case _:
                return False

    async def _heed(self, reply: Response | retry.NetworkFailure) -> None:
        """Keep silent for as long as the server asks; longer than a while is for a later run."""
        if isinstance(reply, retry.NetworkFailure):
            return
        quota = self._channel.quota
        pause_s = retry.pause_s(reply.headers, now=self._world.now())
        if pause_s > PAUSE_MAX_S and reply.status == 429 and quota is not None:
            # The server counts requests of ours that our own count does not know.
            await anyio.to_thread.run_sync(quota.close_for_today)
            self._close(OwnCode.DAILY_CAP)
        elif pause_s > PAUSE_MAX_S:
            self._close(OwnCode.SERVER_PAUSE)
        elif pause_s > 0:
            log.warning("the server asks for a pause", api=self._api.name.value, pause_s=pause_s)
            self._paused_until = self._world.now() + timedelta(seconds=pause_s)

    def _close(self, code: str) -> None:
        """Send no more in this run; what is left is deferred under this code."""
        if self._closed_as is None:
            log.warning("no more requests in this run", api=self._api.name.value, code=code)
            self._closed_as = code

    async def _sleep(self, wait_s: float) -> None:
        """Wait, but not beyond the wish to stop."""
        with anyio.move_on_after(max(wait_s, 0)):
            await self._world.stop.wait()

    def _time(self) -> str:
        return timestamp(self._world.now())


def _without_answer(check: Check, state: AnswerState, code: str, sent_count: int) -> Answer:
    return Answer(check.check, state, code, None, None, None, sent_count)


def _code_of(reply: Response | retry.NetworkFailure) -> str:
    """The code of a reply that is no answer: the server's own, or one of ours."""
    if isinstance(reply, Response):
        return problem_code(reply)
    match reply.kind:
        case "connect" | "tls" | "broken":
            return OwnCode.NETWORK
        case "deadline":
            return OwnCode.DEADLINE
        case "oversized" | "encoded":
            return OwnCode.CONTRACT
