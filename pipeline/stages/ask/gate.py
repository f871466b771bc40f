"""Let requests out within limits, pauses that the server requests, and recent failures."""

from collections import defaultdict
from datetime import datetime
from enum import Enum, auto
from functools import partial
from math import inf
from typing import NamedTuple

import anyio
import httpx
import structlog

from pipeline.apis.problem_codes import problem_code
from pipeline.frames import AnswerState, Check, OwnCode
from pipeline.stages.ask.concurrency import Bulkhead
from pipeline.stages.ask.values import ApiChannel, AskingContext, Closure
from pipeline.stores.protocols import Quota
from pipeline.transport import retry
from pipeline.transport.breaker import Breaker, RetryBudget
from pipeline.wording import Sentence

PAUSE_MAX_S = 60.0  # the longest pause that a run waits for a server; a later run continues after others
PAUSE_FIRST_S = 0.5  # the shortest pause after a reply that requests one; doubled until another kind of reply
PAUSES_MAX = 5  # how many consecutive pauses a run waits out, without another kind of reply between them
PLACE_INTERVAL_S = 0.1  # how often a question for a slow responder checks for a free place, in seconds
RETRIES_FREE = 20  # retries of any run, besides a tenth of its questions and one for each place in flight

log: structlog.stdlib.BoundLogger = structlog.get_logger()

Reply = httpx.Response | retry.NetworkFailure


class DepartureState(NamedTuple):
    """The state of the gate when a request was sent."""

    alone: bool  # true if requests were sent one at a time
    pause_count: int  # number of earlier pauses in this run


class GateDecision(Enum):
    """The decision of the gate about a question."""

    GO = auto()  # now, and only now: the slot is taken
    LATER = auto()  # its responder is slow or silent, or its own request in flight; others may go first
    NEVER = auto()  # not in this run


def code_of(reply: Reply) -> str:
    """Return the code of a reply that is not an answer: the server's, or one of ours."""
    if isinstance(reply, httpx.Response):
        return problem_code(reply)
    match reply.kind:
        case "connect" | "tls" | "broken" | "held":
            return OwnCode.NETWORK
        case "deadline":
            return OwnCode.DEADLINE


def kind_of(reply: Reply) -> str:
    """Return the kind of a reply: its HTTP status, or the failure."""
    return str(reply.status_code) if isinstance(reply, httpx.Response) else reply.kind


def asks_for_a_pause(reply: Reply, now: datetime) -> bool:
    """True if a healthy server only wants fewer requests and has not processed this one."""
    if isinstance(reply, retry.NetworkFailure):
        return False
    return reply.status_code == 429 or (
        reply.status_code == 503 and retry.pause_s(reply.headers, now=now) > 0
    )


def was_held(reply: Reply) -> bool:
    """True if nothing was sent because the server had requested a pause meanwhile."""
    return isinstance(reply, retry.NetworkFailure) and reply.kind == "held"


class RequestGate:
    """The gate to one API."""

    def __init__(self, channel: ApiChannel, world: AskingContext) -> None:
        self.closed: Closure | None = None
        self.budget = RetryBudget(free=RETRIES_FREE + channel.in_flight_max)
        self._channel = channel
        self._world = world
        self._server = Breaker(channel.server_patience)
        self._responders: dict[str, Breaker] = defaultdict(partial(Breaker, channel.responder_patience))
        self._silent_as: dict[str, str] = {}  # responder -> the code of its last failure
        self._paused_until = -inf  # time on the context's clock
        self._pause_count = self._pauses_in_a_row = 0
        self._paused_s = 0.0  # total length of the consecutive pauses
        self._concurrency = channel.concurrency
        self._under_way: set[int] = set()  # checks in the gate or in flight
        self._tickets: dict[int, DepartureState] = {}  # check -> state, for requests in flight
        self._units = channel.quota if isinstance(channel.quota, Quota) else None
        self._reserving = anyio.Lock()
        self._bulkhead = Bulkhead(channel.in_flight_max, slow_s=channel.slow_s)
        self._is_probed = anyio.Event()  # set when the probe in flight ends
        self._is_closed = anyio.Event()

    async def enter(self, check: Check) -> GateDecision:
        """Wait until a request for this question may leave, and take a place for it."""
        if check.check in self._under_way:  # it came again in another chunk, and its reply is not there yet
            return GateDecision.NEVER if self._is_shut() else GateDecision.LATER
        self._under_way.add(check.check)
        decision = await self._go_through(check)
        if decision is not GateDecision.GO:
            self._under_way.remove(check.check)
        return decision

    async def _go_through(self, check: Check) -> GateDecision:
        responder = self._channel.api.responder(check)
        while True:
            if self._is_shut():
                return GateDecision.NEVER
            if self._is_for_later(responder):
                return GateDecision.LATER
            if (wait_s := self._wait_s()) > 0:
                await (self._is_probed.wait() if self._server.is_probing else self.sleep(wait_s))
            elif await self._concurrency.take():
                ticket = DepartureState(not self._concurrency.is_open, self._pause_count)
                if self._is_free(responder) and await self._has_its_turn(responder):
                    self._let_go(check, responder, ticket)
                    return GateDecision.GO
                self._concurrency.give_back()  # the gate changed meanwhile

    def _let_go(self, check: Check, responder: str, ticket: DepartureState) -> None:
        self._server.start()
        if self._server.is_probing:
            self._is_probed = anyio.Event()
        if responder in self._responders:
            self._responders[responder].start()
        self._bulkhead.take(responder, check.check, self._world.clock())
        self._tickets[check.check] = ticket

    def may_leave(self) -> bool:
        """True if an admitted request may still be sent: no pause was requested, no place lost meanwhile."""
        return self._paused_until <= self._world.clock() and not self._concurrency.is_exceeded

    def later(self, check: Check) -> float | str:
        """Return how long a postponed question must wait in seconds, or its final code."""
        responder = self._channel.api.responder(check)
        if check.check in self._under_way or not self._has_place(responder):
            return PLACE_INTERVAL_S
        breaker = self._responders[responder]
        if breaker.has_given_up:
            return self._silent_as[responder]
        return breaker.wait_s(self._world.clock())

    def withdraw(self, check: Check) -> None:
        """Give back the place of a question that passed the gate but sent nothing."""
        responder = self._channel.api.responder(check)
        self._bulkhead.withdraw(responder, check.check)
        self._concurrency.give_back()
        self._under_way.remove(check.check)
        del self._tickets[check.check]
        self._abstain(responder)
        self._wake()

    async def note(self, check: Check, reply: Reply) -> tuple[int | None, DepartureState]:
        """Note what a reply shows, and return the state of the gate when its request was sent.

        Also return the number of the server's streak of failures, None if the reply shows a healthy server.
        """
        responder = self._channel.api.responder(check)
        streak: int | None = self._server.streak
        now = self._world.clock()
        self._bulkhead.give_back(responder, check.check, now)
        self._concurrency.give_back()
        self._under_way.remove(check.check)
        ticket = self._tickets.pop(check.check)
        match reply:
            case _ if asks_for_a_pause(reply, self._world.now()) or was_held(reply):
                streak = None
                self._abstain(responder)
            case httpx.Response(status_code=502 | 504):
                self._server.fail(now)
                self._responders[responder].fail(now)
                self._silent_as[responder] = code_of(reply)
            case retry.NetworkFailure(kind="connect" | "tls" | "broken" | "deadline"):
                self._abstain(responder, failed_at=now)
            case httpx.Response(status_code=status) if status >= 500:
                self._abstain(responder, failed_at=now)
            case _:
                streak = None
                self._succeed(responder, ticket)
        self._wake()
        if self._server.has_given_up:
            self.close(AnswerState.UNANSWERED, code_of(reply))
        return streak, ticket

    def _abstain(self, responder: str, *, failed_at: float | None = None) -> None:
        """Note a reply that shows nothing of the responder, nor of the server unless that failed."""
        if failed_at is None:
            self._server.abstain()
        else:
            self._server.fail(failed_at)
        if responder in self._responders:
            self._responders[responder].abstain()

    def _succeed(self, responder: str, ticket: DepartureState) -> None:
        self._server.succeed()
        if responder in self._responders:
            self._responders[responder].succeed()
        if ticket.pause_count == self._pause_count:
            self._pauses_in_a_row, self._paused_s = 0, 0.0
            self._concurrency.grow()
            self._publish_window()

    def answered(self) -> None:
        """Record an answer, so that others may follow."""
        self._concurrency.open()

    def ask_alone(self) -> None:
        """Send one question at a time, until one is answered."""
        if self._concurrency.is_open:
            log.warning("asking one question at a time", api=self._channel.api.name.value)
        self._concurrency.shut()

    def was_outage(self, streak: int | None) -> bool | None:
        """True if the failures that `note` returned became an outage; None while undecided."""
        return False if streak is None else self._server.was_outage(streak)

    async def note_reply(self, check: Check, response: httpx.Response) -> None:
        """Pause for as long as the server asks, even waiting requests; too long a pause ends the run."""
        ticket = self._tickets[check.check]
        quota, now = self._channel.quota, self._world.now()
        wished_s = retry.pause_s(response.headers, now=now)
        if wished_s > PAUSE_MAX_S:
            self._paused_until = self._world.clock() + wished_s  # also for requests past the gate
            self._channel.share.pause(PAUSE_MAX_S)  # other processes wait as long as a run waits
        if wished_s > PAUSE_MAX_S and response.status_code == 429 and quota is not None:
            # The server has counted more of our requests than we have.
            await quota.close_for_today()
            self.close_for_cap()
        elif wished_s > PAUSE_MAX_S:
            is_longest = wished_s >= retry.RETRY_AFTER_MAX_S
            key = "stages.longest_pause" if is_longest else "stages.long_pause"
            self._leave_alone(Sentence(key, api=self._channel.api.name, pause_s=wished_s))
        elif asks_for_a_pause(response, now) and ticket.pause_count == self._pause_count:
            self._begin_pause(wished_s)
        elif wished_s > 0:
            self._pause_for(wished_s)

    def _begin_pause(self, wished_s: float) -> None:
        pause_s = max(wished_s, PAUSE_FIRST_S * 2**self._pauses_in_a_row)
        self._pause_for(pause_s)
        if self._pauses_in_a_row == PAUSES_MAX:
            api, paused_s = self._channel.api.name, self._paused_s
            self._leave_alone(
                Sentence("stages.only_pauses", api=api, pause_count=PAUSES_MAX, pause_s=paused_s)
            )
            return
        if self._pauses_in_a_row == 0:
            log.warning("the server asks for a pause", api=self._channel.api.name.value, pause_s=pause_s)
        self._pauses_in_a_row += 1
        self._paused_s += pause_s
        self._pause_count += 1
        self._world.tally.pauses[self._channel.api.name] += 1
        self._concurrency.halve()
        self._publish_window()

    def _pause_for(self, pause_s: float) -> None:
        """Pause this process and all others that share the account."""
        self._paused_until = max(self._paused_until, self._world.clock() + pause_s)
        self._channel.share.pause(pause_s)

    def _publish_window(self) -> None:
        tally, name, window = self._world.tally, self._channel.api.name, self._concurrency.window
        if self._concurrency.is_slowed:
            tally.slowed[name] = window
            tally.slowest[name] = min(window, tally.slowest.get(name, window))
        else:
            tally.slowed.pop(name, None)

    def _leave_alone(self, why: Sentence) -> None:
        """Send no more in this run, because the server requests a longer pause than a run waits."""
        self._world.tally.closed[self._channel.api.name] = why
        self.close(AnswerState.DEFERRED, OwnCode.SERVER_PAUSE)

    def close_for_cap(self) -> None:
        """Send no more in this run, because the daily cap is used up."""
        self.close(AnswerState.DEFERRED, OwnCode.DAILY_CAP)

    def close(self, state: AnswerState, code: str) -> None:
        """Send no more in this run; the remaining questions end in this state."""
        if self.closed is None:
            name = self._channel.api.name
            log.warning("no more requests in this run", api=name.value, code=str(code))
            self.closed = self._world.tally.closures[name] = Closure(state, code)
            # Waiting tasks wake at once; each would otherwise wait minutes for its turn.
            self._is_closed.set()
            self._concurrency.end()
            self._channel.pace.end()
            self._wake()

    async def sleep(self, wait_s: float) -> None:
        """Wait until the time is over or the gate closes; a stop request cancels the waiting task."""
        with anyio.move_on_after(wait_s):
            await self._is_closed.wait()

    def _wake(self) -> None:
        """Wake tasks that wait for a probe, unless it is still in flight."""
        if self.closed is not None or not self._server.is_probing:
            self._is_probed.set()

    def _has_place(self, responder: str) -> bool:
        return self._channel.quota is not None or self._bulkhead.has_place(responder, self._world.clock())

    def _is_for_later(self, responder: str) -> bool:
        breaker = self._responders.get(responder)
        is_silent = breaker is not None and (breaker.has_given_up or breaker.wait_s(self._world.clock()) > 0)
        return is_silent or not self._has_place(responder)

    def _is_free(self, responder: str) -> bool:
        return not (self._is_shut() or self._is_for_later(responder) or self._wait_s())

    def _is_shut(self) -> bool:
        return self.closed is not None or self._world.stop.is_set()

    def _wait_s(self) -> float:
        """Return how long the whole server must be left alone, in seconds."""
        now = self._world.clock()
        return max(self._paused_until - now, self._server.wait_s(now), 0.0)

    async def _has_its_turn(self, responder: str) -> bool:
        """Wait for a slot and a unit of the daily cap; return true if the request may still be sent."""
        # During the wait, a share with fewer slots may have replaced this one.
        if not await self._channel.pace.slot() or self._concurrency.is_exceeded:
            return False
        if self._units is None:
            return self._is_free(responder)
        async with self._reserving:  # last, because units are not returned
            if not self._is_free(responder):
                return False
            if not await self._units.reserve():
                self.close_for_cap()
        return not self._is_shut()
