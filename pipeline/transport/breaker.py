"""Decide when to stop asking a failing server, and when to try it again. Pure: the time is an argument.

After some failures in a row a breaker opens: only occasional probes are sent, with a wait that doubles each
time, and the first success closes it. Failures during an outage do not count as attempts of a question.
"""

from dataclasses import dataclass

RETRY_SHARE = 0.1
OUTAGES_MAX = 10
"""Up to this many outages of a run do not count as attempts. Later ones do, so that every run ends."""


@dataclass(frozen=True, slots=True)
class Patience:
    """When a breaker opens, probes and gives up."""

    failures_max: int  # failures in a row that open it
    probe_wait_s: float  # from opening to the first probe; then doubled each time
    probe_wait_max_s: float
    probes_max: int  # probes that may fail before it gives up


SERVER = Patience(failures_max=20, probe_wait_s=30.0, probe_wait_max_s=300.0, probes_max=5)
"""For a whole server, which has 13 minutes to recover within the run."""
RESPONDER = Patience(failures_max=5, probe_wait_s=30.0, probe_wait_max_s=300.0, probes_max=2)
"""For one bank behind a server; other banks' rows continue in the meantime."""


class Breaker:
    """The breaker for one server or responder. Times are seconds of a monotonic clock."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._failures_in_a_row = 0
        self._probes_failed = 0
        self._probe_at: float | None = None  # when the next probe may be sent; None while closed
        self.is_probing = False  # true if a probe is in flight, and all other requests wait for its reply
        self._outages: set[int] = set()
        self.streak = 0  # the number of the current streak of failures; each success begins another

    @property
    def is_open(self) -> bool:
        """True if only probes may be sent."""
        return self._probe_at is not None

    @property
    def has_given_up(self) -> bool:
        """True if nothing more may be sent in this run."""
        return self.is_open and self._probes_failed >= self._patience.probes_max

    def wait_s(self, now: float) -> float:
        """Return the seconds until a request may be sent; 0 means now. Short while a probe is in flight."""
        if self._probe_at is None:
            return 0.0
        if self.is_probing:
            return 0.1
        return max(self._probe_at - now, 0.0)

    def start(self) -> None:
        """Record that a request is about to be sent. If the breaker is open, it is the only probe."""
        self.is_probing = self.is_open

    def was_outage(self, streak: int) -> bool | None:
        """Return whether a streak of failures became an outage; None while that is undecided."""
        if streak in self._outages:
            return True
        return None if streak == self.streak and not self.is_open else False

    def succeed(self) -> None:
        """Record a reply that shows that the server works."""
        self.streak += 1
        self._failures_in_a_row = 0
        self._probes_failed = 0
        self._probe_at = None
        self.is_probing = False

    def abstain(self) -> None:
        """Record a reply that says nothing about the server's health; a probe must be repeated."""
        self.is_probing = False

    def fail(self, now: float) -> None:
        """Record a failure of the server, not of the question."""
        self._failures_in_a_row += 1
        if self.is_open and not self.is_probing:
            return  # a late reply from before it opened
        if self.is_open:
            self.is_probing = False
            self._probes_failed += 1
        elif self._failures_in_a_row < self._patience.failures_max:
            return
        elif len(self._outages) < OUTAGES_MAX:
            self._outages.add(self.streak)
        wait_s = self._patience.probe_wait_s * 2**self._probes_failed
        self._probe_at = now + min(wait_s, self._patience.probe_wait_max_s)


class RetryBudget:
    """The budget of retries for a whole run."""

    def __init__(self, *, free: int) -> None:
        self._allowed = float(free)

    def earn(self) -> None:
        """Count the first request for a question."""
        self._allowed += RETRY_SHARE

    def spend(self, cost: float = 1.0) -> bool:
        """Take one retry, at its cost; False if the budget does not allow it."""
        if self._allowed < cost:
            return False
        self._allowed -= cost
        return True
