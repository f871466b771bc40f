"""The pace of requests: never more than the agreed rate in any second, from the first one on.

Two rules together. The strict one looks back: a request leaves only when the window that ends with it
holds no more than was agreed. That is exact, whatever the timers do, and what a late timer loses is
won back within the window. Alone it would let a whole second's requests leave at once, so aiolimiter's
leaky bucket spreads them.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from math import floor, inf

from aiolimiter import AsyncLimiter

from pipeline.errors import ConfigurationError
from pipeline.wording import Sentence

RATE_MIN_PER_S = 0.1
RATE_MAX_PER_S = 5000

_STRETCH = 1.028
"""The limit is kept in windows this much longer than agreed: requests that take so much of the window longer
on their way than others still meet no more than was agreed where they arrive. It costs as much of the
rate, and 97 % of it must be sustained."""
_BURST_SHARE = 0.05
"""The part of a window's requests that may leave at once, so that a late timer costs nothing."""


class Pace:
    """Hands out slots, one per request, first come, first served.

    From 1 per second up, any second sees at most the whole part of the rate, as no second holds half a
    request. Below 1 per second, any `1 / rate_per_s` seconds see at most one request. Another rate holds from
    the moment it is set, and counts what has left already.
    """

    def __init__(self, rate_per_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Start a pace; the first slots are free at once.

        Args:
            rate_per_s: What the provider allows, 0.1 to 5000.
            clock: Seconds that never go back. Not the event loop's, which stands still while a task runs.

        Raises:
            ConfigurationError: the rate is out of range.
        """
        self.clock = clock
        self._left_at: deque[float] = deque()  # the last window
        self._queue = asyncio.Lock()
        self._resized = asyncio.Event()
        self._keep(rate_per_s)
        self._until = inf
        self._is_over = False

    def resize(self, rate_per_s: float, *, until: float = inf) -> None:
        """Keep another rate from now on.

        Args:
            rate_per_s: 0.1 to 5000; 0: nothing leaves until there is another.
            until: When there is none any more, on the clock of this pace.

        Raises:
            ConfigurationError: the rate is out of range.
        """
        if rate_per_s == 0:
            self.rate_per_s = rate_per_s
        elif rate_per_s != self.rate_per_s:
            self._keep(rate_per_s)
        self._until = until
        self._resized.set()
        self._resized = asyncio.Event()

    def end(self) -> None:
        """Let nothing more leave: all waiting tasks are woken at once, not in turn."""
        self._is_over = True
        self._resized.set()

    async def slot(self) -> bool:
        """Wait until one more request may leave; False after `end`. A cancelled wait takes no slot."""
        return await self._slot(waits_for_a_rate=True)

    async def slot_unless_ended(self) -> bool:
        """Wait until one more request may leave; False, and no slot, where the rate has ended by then."""
        return await self._slot(waits_for_a_rate=False)

    async def _slot(self, *, waits_for_a_rate: bool) -> bool:
        async with self._queue:
            if not self._is_over:
                await self._spread.acquire()
            while not self._is_over and (wait_s := self._wait_s()) > 0:  # a timer may be early
                if wait_s < inf:
                    await asyncio.sleep(wait_s)
                elif waits_for_a_rate:
                    await self._resized.wait()
                else:
                    return False
            if self._is_over:
                return False
            self._left_at.append(self.clock())
        return True

    def _keep(self, rate_per_s: float) -> None:
        if not RATE_MIN_PER_S <= rate_per_s <= RATE_MAX_PER_S:
            raise ConfigurationError(
                Sentence(
                    "transport.rate_per_s_out_range",
                    rate_per_s=rate_per_s,
                    rate_min_per_s=RATE_MIN_PER_S,
                    rate_max_per_s=RATE_MAX_PER_S,
                )
            )
        self.rate_per_s = rate_per_s
        window_s, self._count_max = _promise(rate_per_s)
        burst = max(2.0, self._count_max * _BURST_SHARE)
        self._spread = AsyncLimiter(burst, burst * window_s / self._count_max)
        self._window_s = window_of(rate_per_s)

    def _wait_s(self) -> float:
        """How long until the oldest request of a full window has left it; inf while nothing may leave."""
        now, left_at = self.clock(), self._left_at
        if self.rate_per_s == 0 or now >= self._until:
            return inf
        while len(left_at) > 1 and left_at[0] + self._window_s <= now:
            left_at.popleft()  # but never the latest, which a longer window may still hold
        if len(left_at) < self._count_max:
            return 0.0
        return left_at[-self._count_max] + self._window_s - now


def window_of(rate_per_s: float) -> float:
    """The window that a request counts in, in seconds."""
    return _promise(rate_per_s)[0] * _STRETCH


def _promise(rate_per_s: float) -> tuple[float, int]:
    """A window and the most requests that may leave in it."""
    return (1.0, floor(rate_per_s)) if rate_per_s >= 1 else (1 / rate_per_s, 1)
