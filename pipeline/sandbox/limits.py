"""The limits of the simulated servers: requests per day, and requests per second.

The reference defines the first limit (50 per day and client on the CoP test server), but no response beyond
it: 429 with Retry-After is our choice. It defines no rate limit; ours is off by default.
"""

import math
from collections import deque
from collections.abc import Callable

from pipeline.sandbox.problems import Refusal, too_many_requests

_DAY_S = 86_400


class DailyCap:
    """Counts each client's requests per UTC day, and refuses those beyond the cap."""

    def __init__(self, requests_max: int, clock: Callable[[], float]) -> None:
        """Start with empty counts, which exist only in memory; the clock returns seconds since the epoch."""
        self.requests_max = requests_max
        self._clock = clock
        self._day = 0
        self._used: dict[str, int] = {}

    def admit(self, client: str) -> None:
        """Count a client's request; beyond the cap, raise 429 with the seconds until midnight UTC."""
        now = self._clock()
        today = int(now // _DAY_S)
        if today != self._day:
            self._day, self._used = today, {}
        used = self._used.get(client, 0)
        if used >= self.requests_max:
            raise too_many_requests(
                f"the daily limit of {self.requests_max} requests of this client is used up",
                math.ceil((today + 1) * _DAY_S - now),
                Refusal.DAILY_CAP,
            )
        self._used[client] = used + 1


class RateLimit:
    """Refuses a client's request if the allowed number arrived within the last second."""

    def __init__(self, rate_per_s_max: int | None, clock: Callable[[], float]) -> None:
        """Start empty; None means no limit. The clock returns monotonic seconds."""
        self.rate_per_s_max = rate_per_s_max
        self._clock = clock
        self._admitted: dict[str, deque[float]] = {}

    def admit(self, client: str) -> None:
        """Count a client's request; beyond the rate, raise 429 with a retry after one second."""
        if self.rate_per_s_max is None:
            return
        now = self._clock()
        times = self._admitted.setdefault(client, deque())
        while len(times) > self.rate_per_s_max - 1 and now - times[0] >= 1.0:
            times.popleft()
        if len(times) >= self.rate_per_s_max:
            raise too_many_requests(
                f"more than {self.rate_per_s_max} requests in one second", 1, Refusal.RATE
            )
        times.append(now)
