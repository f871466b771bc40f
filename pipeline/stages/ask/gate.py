"""Whether a request may leave: the limits, the server's own wishes, and how it has been doing."""

from collections import defaultdict
from datetime import datetime, timedelta
from enum import Enum, auto
from functools import partial
from typing import NamedTuple

import anyio
import anyio.to_thread
import httpx
import structlog

from pipeline.apis import problem_code
from pipeline.frames import AnswerState, Check, OwnCode
from pipeline.stages.ask.shares import Shares
from pipeline.stages.ask.values import Channel, World
from pipeline.transport import retry
from pipeline.transport.breaker import Breaker, RetryBudget
from schemas.outcomes import ApiName

PAUSE_MAX_S = 60.0
"""The longest pause on the server's wish that a run sits out; a longer one is for a later run."""
PLACE_INTERVAL_S = 0.1
"""How often a question for a slow responder looks for a place."""
RETRIES_FREE = 20
"""Retries that any run may make beside a tenth of its questions and one for each request in flight."""

log: structlog.stdlib.BoundLogger = structlog.get_logger()

Reply = httpx.Response | retry.NetworkFailure


class Closed(NamedTuple):
    """Why no more may be sent in this run, and so what becomes of the questions that are left."""

    state: AnswerState
    code: str


class Entry(Enum):
    """What the gate says to a question."""

    GO = auto()  # now, and only now: the slot is taken
    LATER = auto()  # its responder is slow, or has fallen silent; others may go first
    NEVER = auto()  # not in this run


def responder_of(check: Check) -> str:
    """What stands for the bank behind an account: its sort code, or the bank code of the IBAN.

    The gateway does not say which bank it asks, so this is a guess that costs nothing when wrong: it
    decides only who waits for whom.
    """
    if check.api is ApiName.COP:
        return check.account[:6]
    return check.responder_bic or check.account[:2] + check.account[4:8]


def code_of(reply: Reply) -> str:
    """The code of a reply that is no answer: the server's own, or one of ours."""
    if isinstance(reply, httpx.Response):
        return problem_code(reply)
    match reply.kind:
        case "connect" | "tls" | "broken":
            return OwnCode.NETWORK
        case "deadline":
            return OwnCode.DEADLINE
        case "oversized" | "encoded":
            return OwnCode.CONTRACT


class Gate:
    """The way out to one API."""

    def __init__(self, channel: Channel, world: World) -> None:
        self.closed: Closed | None = None
        self.budget = RetryBudget(free=RETRIES_FREE + channel.in_flight_max)
        self._channel = channel
        self._world = world
        self._server = Breaker(channel.server_patience)
        self._responders: dict[str, Breaker] = defaultdict(partial(Breaker, channel.responder_patience))
        self._silent_as: dict[str, str] = {}  # responder -> the code that it last failed with
        self._paused_until: datetime | None = None
        self._reserving = anyio.Lock()
        self._shares = Shares(channel.in_flight_max, slow_s=channel.slow_s)

    async def enter(self, check: Check) -> Entry:
        """Wait until a request for this question may leave, and take its place."""
        responder = responder_of(check)
        while True:
            if self._is_shut():
                return Entry.NEVER
            if responder in self._responders:
                breaker = self._responders[responder]
                if breaker.has_given_up or breaker.wait_s(self._world.clock()) > 0:
                    return Entry.LATER
            if not self._has_place(responder):
                return Entry.LATER
            if (wait_s := self._wait_s()) > 0:
                await self.sleep(wait_s)
                continue
            await self._channel.pace.slot()
            if self._wait_s() == 0:
                break
        if self._is_shut() or not await self._reserve():
            return Entry.NEVER
        self._server.start()
        if responder in self._responders:
            self._responders[responder].start()
        self._shares.take(responder, check.check, self._world.clock())
        return Entry.GO

    def later(self, check: Check) -> float | str:
        """How long a question for a silent responder is to wait, or the code that it ends with."""
        responder = responder_of(check)
        if not self._has_place(responder):
            return PLACE_INTERVAL_S
        breaker = self._responders[responder]
        if breaker.has_given_up:
            return self._silent_as[responder]
        return breaker.wait_s(self._world.clock())

    async def note(self, check: Check, reply: Reply) -> int | None:
        """Learn from a reply how the server and the responder are doing, and what they wish.

        Returns:
            The server's run of failures that the reply belongs to; None where it shows a server at work.
        """
        responder = responder_of(check)
        streak: int | None = self._server.streak
        now = self._world.clock()
        self._shares.give_back(responder, check.check, now)
        match reply:
            case httpx.Response(status_code=502 | 504):
                self._server.fail(now)
                self._responders[responder].fail(now)
                self._silent_as[responder] = code_of(reply)
            case retry.NetworkFailure(kind="connect" | "tls" | "broken" | "deadline"):
                self._server.fail(now)
            case httpx.Response(status_code=status) if status >= 500:
                self._server.fail(now)
            case _:
                streak = None
                self._server.succeed()
                if responder in self._responders:
                    self._responders[responder].succeed()
        if self._server.has_given_up:
            self.close(AnswerState.UNANSWERED, code_of(reply))
        if isinstance(reply, httpx.Response):
            await self.heed(reply)
        return streak

    def was_outage(self, streak: int | None) -> bool | None:
        """Whether a run of failures, as `note` told it, became an outage; None while there is no telling."""
        return False if streak is None else self._server.was_outage(streak)

    async def heed(self, response: httpx.Response) -> None:
        """Keep silent for as long as the server asks; longer than a while is for a later run."""
        quota = self._channel.quota
        pause_s = retry.pause_s(response.headers, now=self._world.now())
        if pause_s > PAUSE_MAX_S and response.status_code == 429 and quota is not None:
            # The server counts requests of ours that our own count does not know.
            await anyio.to_thread.run_sync(quota.close_for_today)
            self.close(AnswerState.DEFERRED, OwnCode.DAILY_CAP)
        elif pause_s > PAUSE_MAX_S:
            self.close(AnswerState.DEFERRED, OwnCode.SERVER_PAUSE)
        elif pause_s > 0:
            until = self._world.now() + timedelta(seconds=pause_s)
            if self._paused_until is None or self._paused_until < self._world.now():
                log.warning("the server asks for a pause", api=self._channel.api.name.value, pause_s=pause_s)
            self._paused_until = max(self._paused_until or until, until)

    def close(self, state: AnswerState, code: str) -> None:
        """Send no more in this run; what is left ends in this state."""
        if self.closed is None:
            log.warning("no more requests in this run", api=self._channel.api.name.value, code=str(code))
            self.closed = Closed(state, code)

    async def sleep(self, wait_s: float) -> None:
        """Wait, but not beyond the wish to stop."""
        with anyio.move_on_after(max(wait_s, 0)):
            await self._world.stop.wait()

    def _has_place(self, responder: str) -> bool:
        return self._channel.quota is not None or self._shares.has_place(responder, self._world.clock())

    def _is_shut(self) -> bool:
        return self.closed is not None or self._world.stop.is_set()

    def _wait_s(self) -> float:
        """How long the server as a whole is to be left alone."""
        paused_s = 0.0
        if self._paused_until is not None:
            paused_s = max((self._paused_until - self._world.now()).total_seconds(), 0.0)
        return max(paused_s, self._server.wait_s(self._world.clock()))

    async def _reserve(self) -> bool:
        """Reserve one request of the daily cap, where there is one: last of all, and never given back."""
        quota = self._channel.quota
        if quota is not None:
            async with self._reserving:
                if self.closed is None and not await anyio.to_thread.run_sync(quota.reserve):
                    self.close(AnswerState.DEFERRED, OwnCode.DAILY_CAP)
        return not self._is_shut()
