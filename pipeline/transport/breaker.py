"""When to stop asking a server that only fails, and when to try it again. Pure: time is an argument.

A breaker is closed while things go well. After some failures in a row it opens: nothing is sent but a
probe now and then, each after twice the wait of the last one, and the first probe that succeeds closes
it. Where the last probe fails too, it gives up. It also reports, for each run of failures, whether it was
such an outage: what failed in one does not count against the questions that were asked meanwhile.

A budget bounds the retries of a whole run: a server in trouble gets a tenth more requests than there
are questions, and not three times as many.
"""

from dataclasses import dataclass

RETRY_SHARE = 0.1
OUTAGES_MAX = 10
"""Outages of one run that cost its questions no attempt; a server that comes and goes more often is
charged to them like any other trouble, so that every run ends."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The settings of a breaker."""

    failures_max: int  # failures in a row that open it
    probe_wait_s: float  # from opening to the first probe; doubled for each further one
    probe_wait_max_s: float
    probes_max: int  # probes that may fail before it gives up


SERVER = Patience(failures_max=20, probe_wait_s=30.0, probe_wait_max_s=300.0, probes_max=5)
"""For a whole server: it is given 13 minutes to come back within the run."""
RESPONDER = Patience(failures_max=5, probe_wait_s=30.0, probe_wait_max_s=300.0, probes_max=2)
"""For one bank behind it: the rows of all others go on meanwhile."""


class Breaker:
    """The state of one server or responder. Times are seconds of one clock that never goes back."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._failures_in_a_row = 0
        self._probes_failed = 0
        self._probe_at: float | None = None
        """When the next probe may leave; None while closed."""
        self._probing = False
        self._outages: set[int] = set()
        self.streak = 0
        """The number of the present run of failures; each success begins another."""

    @property
    def is_open(self) -> bool:
        """True if only probes may be sent."""
        return self._probe_at is not None

    @property
    def is_probing(self) -> bool:
        """True if a probe is on its way, whose reply the others wait for."""
        return self._probing

    @property
    def has_given_up(self) -> bool:
        """True if nothing may be sent any more in this run."""
        return self.is_open and self._probes_failed >= self._patience.probes_max

    def wait_s(self, now: float) -> float:
        """Seconds until a request may leave; 0: now. Short while a probe is on its way."""
        if self._probe_at is None:
            return 0.0
        if self._probing:
            return 0.1
        return max(self._probe_at - now, 0.0)

    def start(self) -> None:
        """A request is about to leave. On an open breaker it is the probe, and the only one."""
        self._probing = self.is_open

    def was_outage(self, streak: int) -> bool | None:
        """True if a run of failures became an outage; None while that is open."""
        if streak in self._outages:
            return True
        return None if streak == self.streak and not self.is_open else False

    def succeed(self) -> None:
        """A reply came that shows the server at work."""
        self.streak += 1
        self._failures_in_a_row = 0
        self._probes_failed = 0
        self._probe_at = None
        self._probing = False

    def abstain(self) -> None:
        """A reply came that shows nothing of the server's health: a probe that got it is sent again."""
        self._probing = False

    def fail(self, now: float) -> None:
        """A request failed because of the server and not of the question."""
        self._failures_in_a_row += 1
        if self.is_open and not self._probing:
            return  # a straggler from before it opened
        if self.is_open:
            self._probing = False
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
        """Start with some retries that any run may make, however short it is."""
        self._allowed = float(free)

    def earn(self) -> None:
        """Note a first request for a question."""
        self._allowed += RETRY_SHARE

    def spend(self, cost: float = 1.0) -> bool:
        """Take one retry, at its cost; False if there is none left."""
        if self._allowed < cost:
            return False
        self._allowed -= cost
        return True
