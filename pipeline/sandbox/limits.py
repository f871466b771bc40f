"""The limits that the simulated servers keep: requests a day, and requests a second.

The reference names the first (50 a day and client on the CoP test server) and shows no answer to
exceeding it; 429 with Retry-After is our choice. It shows no rate limit at all; ours is off unless
asked for.
"""

import math
from collections import deque
from collections.abc import Callable

from pipeline.sandbox.problems import Refusal, too_many_requests

_DAY_S = 86_400


class DailyCap:
    """Counts each client's requests of the current UTC day, and refuses those beyond the cap."""

    def __init__(self, requests_max: int, clock: Callable[[], float]) -> None:
        """Start with an empty count, which is not kept beyond the life of the server.

        The clock gives seconds since the epoch.
        """
        self.requests_max = requests_max
        self._clock = clock
        self._day = 0
        self._used: dict[str, int] = {}

    def admit(self, client: str) -> None:
        """Count one request of a client; 429 with the seconds to midnight UTC where it is one too many."""
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
    """Refuses a client's request when it sent the allowed number within the last second."""

    def __init__(self, rate_per_s_max: int | None, clock: Callable[[], float]) -> None:
        """Start with no request seen; None allows as many as there are. The clock gives monotonic seconds."""
        self.rate_per_s_max = rate_per_s_max
        self._clock = clock
        self._admitted: dict[str, deque[float]] = {}

    def admit(self, client: str) -> None:
        """Count one request of a client; 429, to be repeated after a second, where it is one too many."""
        if self.rate_per_s_max is None:
            return
        now = self._clock()
        times = self._admitted.setdefault(client, deque())
        while len(times) > self.rate_per_s_max - 1 and now - times[0] >= 1.0:
            times.popleft()
        if len(times) >= self.rate_per_s_max:
            detail = f"more than {self.rate_per_s_max} requests in one second"
            raise too_many_requests(detail, 1, Refusal.RATE)
        times.append(now)
