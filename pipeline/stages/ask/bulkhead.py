"""Keep one slow bank from occupying all places in flight, above all in a file sorted by bank.

A bank gets at most half of the places until it has answered in time, and again after a request to it has
waited too long; other banks' questions go first. A bank that answers in time is not limited, even if it is
the only one. Under a daily cap, order matters more than time, and no question overtakes another.
"""

from collections import defaultdict

SLOW_S = 2.0  # a bank that takes longer is slow; the schemes require an answer within 1 second, and wait 5

SHARE_MIN = 8  # places that any bank may have; a total of no more than these is not divided


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
