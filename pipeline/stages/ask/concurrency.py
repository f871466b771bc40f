"""Limit the requests in flight to one API: one at a time at first, then up to the maximum.

*The door.* A run begins with a single question: until its answer, a second one might disclose a second payee
to the wrong party. The door closes again if the server begins to refuse all access.

*The window.* If a server answers "too many" (429), the limit in flight is halved, at most once per pause;
after the pause a single request is tried; and with every answer the limit grows a little. A limit below one
is a share of our rate, sent evenly.
"""

from collections.abc import Callable
from math import inf

import anyio

ALONE_MAX_S = 1.0  # how long others wait for a question sent alone, lest a slow bank delay all
GROWTH = 0.04
"""How much each answer adds to the limit in flight, or if that is below one, the share of the rest: a server
too slow for us then answers "too many" about once in twenty requests.
"""
WINDOW_MIN = 1 / 256


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
