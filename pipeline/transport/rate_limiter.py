"""Limit the rate of requests: never more than agreed in any second, right from the start.

The strict rule looks back: a request is sent only if the window that ends with it contains no more than
agreed, which is exact even if timers are late. aiolimiter's leaky bucket spreads the requests of a second.
"""

import asyncio
import time
from collections.abc import Callable
from math import floor, inf

from aiolimiter import AsyncLimiter

from pipeline.errors import ConfigurationError
from pipeline.wording import Sentence

RATE_MIN_PER_S = 0.1
RATE_MAX_PER_S = 5000

_STRETCH = 1.028
"""How much longer our windows are than agreed. Even if travel times differ by this part of a window, no
window gets more requests than agreed. It costs the same share of the rate; 97 % must be sustained.
"""
_BURST_SHARE = 0.05  # the share of a window's requests that may be sent at once, to make up for late timers


class Pace:
    """Grants slots, one per request, in order of arrival.

    For rates of 1 per second or more, any second has at most the integer part of the rate. For lower rates,
    any `1 / rate_per_s` seconds have at most one request. A new rate applies at once, and counts requests
    already sent.
    """

    def __init__(self, rate_per_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with the first slots free; the rate is 0.1 to 5000 (ConfigurationError: out of range).

        The clock returns monotonic seconds. It is not the event loop's, which stops while a task runs.
        """
        self.clock = clock
        self._left_at = [-inf] * RATE_MAX_PER_S  # times of the last requests, in turn from the first again
        self._count = 0
        self._queue = asyncio.Lock()
        self._resized = asyncio.Event()
        self._keep(rate_per_s)
        self._until = inf
        self._is_over = False

    def resize(self, rate_per_s: float, *, until: float = inf) -> None:
        """Set the rate, 0.1 to 5000 or 0 to stop, until a time of the clock (ConfigurationError)."""
        if rate_per_s == 0:
            self.rate_per_s = rate_per_s
        elif rate_per_s != self.rate_per_s:
            self._keep(rate_per_s)
        self._until = until
        self._resized.set()
        self._resized = asyncio.Event()

    def end(self) -> None:
        """Stop all sending: wake all waiting tasks together."""
        self._is_over = True
        self._resized.set()

    async def slot(self) -> bool:
        """Wait until one more request may be sent; False after `end`. If cancelled, no slot is taken."""
        return await self._slot(waits_for_a_rate=True)

    async def slot_unless_ended(self) -> bool:
        """Wait until one more request may be sent; False, without a slot, if the rate expires first.

        The caller sends at once. The request counts from when it really leaves: a task of the HTTP client
        writes it in the loop's next turn, and it leaves at the end of that turn, late if the loop is busy.
        """
        if not await self._slot(waits_for_a_rate=False):
            return False
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._leave, self._count - 1)
        return True

    def _leave(self, number: int) -> None:
        self._left_at[number % RATE_MAX_PER_S] = self.clock()

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
            self._leave(self._count)
            self._count += 1
        return True

    def _keep(self, rate_per_s: float) -> None:
        if not RATE_MIN_PER_S <= rate_per_s <= RATE_MAX_PER_S:
            raise ConfigurationError(
                Sentence(
                    "transport.rate_out_of_range",
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
        """Return the seconds until the window has room, at most 0 if it has; inf if nothing may be sent."""
        now = self.clock()
        if self.rate_per_s == 0 or now >= self._until:
            return inf
        return self._left_at[(self._count - self._count_max) % RATE_MAX_PER_S] + self._window_s - now


def window_of(rate_per_s: float) -> float:
    """Return how long a request counts, in seconds: the length of its window."""
    return _promise(rate_per_s)[0] * _STRETCH


def _promise(rate_per_s: float) -> tuple[float, int]:
    """Return the window's length in seconds, and the maximum number of requests in it."""
    return (1.0, floor(rate_per_s)) if rate_per_s >= 1 else (1 / rate_per_s, 1)
