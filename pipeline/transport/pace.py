"""The pace of requests: never more than the agreed rate in any second, from the first one on.

A leaky bucket that holds `burst` and drains `refill_per_s` lets at most `burst + refill_per_s * w`
requests through in any window of `w` seconds. That count is a whole number, so "at most N" holds
as long as the sum stays below N + 1. The bucket here spends that last fraction twice: a little on
windows that a busy machine makes longer than a second, the rest on a burst that wins back what
late timers lose.
"""

from math import floor
from typing import NamedTuple

from aiolimiter import AsyncLimiter

from pipeline.errors import ConfigurationError

RATE_MIN_PER_S = 0.1
RATE_MAX_PER_S = 5000

_SHARE = 0.98
"""The part of the agreed rate that is used: above the 97 % that a run must sustain."""
_STRETCH = 1.01
"""The limit holds in windows this much longer than agreed, so that a request which leaves a
hundredth late does not meet, within one second, those that leave in time."""


class Bucket(NamedTuple):
    """A leaky bucket: what it holds at once, and what it drains."""

    burst: float
    refill_per_s: float


def bucket(rate_per_s: float) -> Bucket:
    """The bucket that keeps a rate.

    From 1 per second up, any window of one second sees at most the whole part of the rate, as no
    second holds half a request. Below 1 per second, any window of `1 / rate_per_s` seconds sees
    at most one request.

    Raises:
        ConfigurationError: the rate is outside 0.1 to 5000 per second.

    >>> bucket(1000)
    Bucket(burst=11.2, refill_per_s=980.0)
    """
    if not RATE_MIN_PER_S <= rate_per_s <= RATE_MAX_PER_S:
        raise ConfigurationError(
            f"rate_per_s: {rate_per_s:g} is out of range; "
            f"give a number from {RATE_MIN_PER_S:g} to {RATE_MAX_PER_S:g}"
        )
    window_s, count_max = (1.0, floor(rate_per_s)) if rate_per_s >= 1 else (1 / rate_per_s, 1)
    burst = 1 + count_max * (1 - _SHARE * _STRETCH)
    return Bucket(burst=round(burst, 9), refill_per_s=_SHARE * count_max / window_s)


class Pace:
    """Hands out slots, one per request, in the order in which they were asked for."""

    def __init__(self, rate_per_s: float) -> None:
        """Start a pace; the first slots are free at once.

        Args:
            rate_per_s: What the provider allows, 0.1 to 5000; see `bucket` for what is kept.

        Raises:
            ConfigurationError: the rate is out of range.
        """
        burst, refill_per_s = bucket(rate_per_s)
        self._limiter = AsyncLimiter(burst, burst / refill_per_s)

    async def slot(self) -> None:
        """Wait until one more request may leave. A wait that is cancelled takes no slot."""
        await self._limiter.acquire()
