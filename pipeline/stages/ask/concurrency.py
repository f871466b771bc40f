"""Limit the requests in flight to one API, in all and to each bank.

*The door.* A run begins with a single question: until its answer, a second one might disclose a second payee
to the wrong party. The door closes again if the server begins to refuse all access.

*The window.* If a server answers "too many" (429), the limit in flight is halved, at most once per pause;
then a single request is tried; and with every answer the limit grows a little. Below one it is a share of our
rate.

*The bulkhead.* One slow bank must not occupy all places, above all in a file sorted by bank. A bank gets at
most half of them until it has answered in time, and again after a request to it has waited too long; other
banks' questions go first. A bank that answers in time is not limited, even if it is the only one. Under a
daily cap, order matters more than time, and no question overtakes another.
"""

from collections import defaultdict
from collections.abc import Callable
from math import inf

import anyio

ALONE_MAX_S = 1.0  # how long others wait for a question sent alone, lest a slow bank delay all
GROWTH = 0.04
"""How much each answer adds to the limit in flight, or if that is below one, the share of the rest: a server
too slow for us then answers "too many" about once in twenty requests.
"""
WINDOW_MIN = 1 / 256
SLOW_S = 2.0  # a bank that takes longer is slow; the schemes require an answer within 1 second, and wait 5
SHARE_MIN = 8  # places that any bank may have; a total of no more than these is not divided


class ConcurrencyLimit:
    """The places in flight of one API. Times are seconds of a monotonic clock."""

    def __init__(self, most: int, rate_per_s: float, clock: Callable[[], float]) -> None:
        """Start empty with the door closed, for `most` requests in flight; the rate is limited elsewhere."""
        self.is_open = False
        self.window = float(most)  # the limit in flight; below 1, the share of our rate
        self._most = self._kept = most
        self._rate_per_s = rate_per_s
        self._clock = clock
        self.in_flight = 0  # number of places taken
        self._has_none = False
        self._is_over = False
        self._left_at = -inf
        self._is_trying = False
        self._queue = anyio.Lock()
        self._freed = anyio.Event()

    @property
    def is_slowed(self) -> bool:
        """True if the server wants fewer concurrent requests than agreed."""
        return self.window < self._most

    @property
    def is_exceeded(self) -> bool:
        """True if more places are taken than we may use; other processes may have them by now."""
        return self.in_flight > self._kept

    def resize(self, most: int, rate_per_s: float, *, kept: int = 0) -> None:
        """Change the limit in flight; requests in flight finish first, and up to `kept` places stay taken."""
        self._has_none = most == 0
        self._kept = max(most, kept)
        if most:
            self.window = min(self.window, most) if self.is_slowed else float(most)
            self._most = most
            self._rate_per_s = rate_per_s
        self._freed.set()

    async def take(self) -> bool:
        """Wait in line for a place and take it; return False, without a place, after `end`."""
        if self._queue.locked() or self._wait_s() > 0:
            async with self._queue:
                while (wait_s := self._wait_s()) > 0:
                    self._freed = anyio.Event()
                    with anyio.move_on_after(wait_s):
                        await self._freed.wait()
        if self._is_over:
            return False
        self.in_flight += 1
        self._left_at = self._clock()
        return True

    def give_back(self) -> None:
        """Return a place: the reply arrived, or nothing was sent."""
        self.in_flight -= 1
        self._freed.set()

    def end(self) -> None:
        """Send nothing more: all waiting tasks wake at once, not in turn."""
        self._is_over = True
        self._freed.set()

    def open(self) -> None:
        """Open the door after an answer."""
        self.is_open = True
        self._freed.set()

    def shut(self) -> None:
        """Close the door: send one question at a time again."""
        self.is_open = False

    def halve(self) -> None:
        """Halve the limit for an overloaded server, and send one request as a test."""
        self.window = max(min(self.window, max(self.in_flight, 1)) / 2, WINDOW_MIN)
        self._is_trying = True

    def grow(self) -> None:
        """Raise the limit a little after an answer."""
        self._is_trying = False
        if self.is_slowed:
            self.window = min(self.window + GROWTH * min(self.window, 1.0), self._most)
            self._freed.set()

    def _wait_s(self) -> float:
        """Return the seconds until a place is free: 0 if one is, or after `end`; inf if all are taken."""
        if self._is_over:
            return 0.0
        if self._has_none or self.in_flight >= self._most:
            return inf
        if self._is_trying:
            most = 1
        elif not self.is_open:
            # After too long, a question sent alone no longer delays the others.
            since_s = self._clock() - self._left_at
            return 0.0 if self.in_flight == 0 else max(ALONE_MAX_S - since_s, 0.0)
        else:
            most = max(int(self.window), 1)
        if self.in_flight >= most:
            return inf
        if self.window >= 1:
            return 0.0
        return max(self._left_at + 1 / (self._rate_per_s * self.window) - self._clock(), 0.0)


class Bulkhead:
    """The requests in flight to each responder. Times are seconds of a monotonic clock."""

    def __init__(self, in_flight_max: int, *, slow_s: float = SLOW_S) -> None:
        self._slow_s = slow_s
        self._share_max = max(in_flight_max // 2, SHARE_MIN)
        self._since: defaultdict[str, dict[int, float]] = defaultdict(dict)  # responder -> check -> time sent
        self._quick: set[str] = set()  # responders whose last reply came in time

    def has_place(self, responder: str, now: float) -> bool:
        """True if one more request to this responder may be sent."""
        since = self._since[responder]
        if len(since) < self._share_max:
            return True
        return responder in self._quick and now - next(iter(since.values())) < self._slow_s

    def take(self, responder: str, check: int, now: float) -> None:
        """Record a request; a check has at most one in flight."""
        self._since[responder][check] = now

    def withdraw(self, responder: str, check: int) -> None:
        """Record that a request was not sent."""
        del self._since[responder][check]

    def give_back(self, responder: str, check: int, now: float) -> None:
        """Record that a request's reply arrived or never will."""
        if now - self._since[responder].pop(check) < self._slow_s:
            self._quick.add(responder)
        else:
            self._quick.discard(responder)
