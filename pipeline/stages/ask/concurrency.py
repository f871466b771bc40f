"""How many requests to one API may be in flight: one at a time at first, then all that may.

*The door.* A run begins with one question alone. Only the first answer shows that a server accepts us, with
these credentials and at this address: until then a second question might disclose a second payee to the
wrong party. The door opens with the first answer, and is shut again where the server begins to refuse
access to everything.

*The window.* A server that says "too many" (429) is hurried. What may be in flight is halved, at most once
for each pause; after the pause one request tries, alone; and with every answer a little more may be in
flight, until all of it may again. Below one request in flight, as many of our rate leave, evenly.
"""

from collections.abc import Callable
from math import inf

import anyio

ALONE_MAX_S = 1.0
"""How long the others wait for a question sent alone: a slow bank does not hold up the whole file."""
GROWTH = 0.04
"""What each answer adds to the requests that may be in flight: so a server that is too slow for us says "too
many" once in some twenty requests. Below one, it adds as much of what is left."""
WINDOW_MIN = 1 / 256


class ConcurrencyLimit:
    """The places in flight of one API. Times are seconds of a clock that never goes back."""

    def __init__(self, most: int, rate_per_s: float, clock: Callable[[], float]) -> None:
        """Begin closed and empty, with an upper limit of requests; the rate is kept elsewhere."""
        self.is_open = False
        self.window = float(most)
        """How many may be in flight; below 1, the part of our rate that may leave."""
        self._most = self._kept = most
        self._rate_per_s = rate_per_s
        self._clock = clock
        self.in_flight = 0
        """How many places are taken."""
        self._has_none = False
        self._is_over = False
        self._left_at = -inf
        self._is_trying = False
        self._queue = anyio.Lock()
        self._freed = anyio.Event()

    @property
    def is_slowed(self) -> bool:
        """True if the server wants fewer than agreed."""
        return self.window < self._most

    @property
    def is_exceeded(self) -> bool:
        """True if more places are taken than are counted for us: other processes may have them by now."""
        return self.in_flight > self._kept

    def resize(self, most: int, rate_per_s: float, *, kept: int = 0) -> None:
        """As many may be in flight from now on; what is in flight already lands first.

        Args:
            most: places to take.
            rate_per_s: as in the beginning.
            kept: how many of those that are taken may stay so, where that is more.
        """
        self._has_none = most == 0
        self._kept = max(most, kept)
        if most:
            self.window = min(self.window, most) if self.is_slowed else float(most)
            self._most = most
            self._rate_per_s = rate_per_s
        self._freed.set()

    async def take(self) -> bool:
        """Wait for a place, first come first served, and take it; False, and none taken, after `end`."""
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
        """The reply is here, or nothing was sent."""
        self.in_flight -= 1
        self._freed.set()

    def end(self) -> None:
        """Let nothing more leave: all waiting tasks are woken at once, not in turn."""
        self._is_over = True
        self._freed.set()

    def open(self) -> None:
        """An answer came: the others may follow."""
        self.is_open = True
        self._freed.set()

    def shut(self) -> None:
        """One at a time again."""
        self.is_open = False

    def halve(self) -> None:
        """The server is hurried: half as many as are in flight, and one alone to try."""
        self.window = max(min(self.window, max(self.in_flight, 1)) / 2, WINDOW_MIN)
        self._is_trying = True

    def grow(self) -> None:
        """The server answered: a little more."""
        self._is_trying = False
        if self.is_slowed:
            self.window = min(self.window + GROWTH * min(self.window, 1.0), self._most)
            self._freed.set()

    def _wait_s(self) -> float:
        """Seconds until a slot is free: 0 if one is, or after `end`; inf if one must be returned first."""
        if self._is_over:
            return 0.0
        if self._has_none or self.in_flight >= self._most:
            return inf
        if self._is_trying:
            most = 1
        elif not self.is_open:
            # After too long alone it no longer holds up the others.
            since_s = self._clock() - self._left_at
            return 0.0 if self.in_flight == 0 else max(ALONE_MAX_S - since_s, 0.0)
        else:
            most = max(int(self.window), 1)
        if self.in_flight >= most:
            return inf
        if self.window >= 1:
            return 0.0
        return max(self._left_at + 1 / (self._rate_per_s * self.window) - self._clock(), 0.0)
