"""The clock by which the sandbox dates its answers, and judges those of others."""

import time
from dataclasses import dataclass


@dataclass(slots=True)
class Clock:
    """The time of this machine, or one that is off on purpose."""

    ahead_s: float = 0.0
    """How far ahead of the machine's clock it goes; negative: behind."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time() + self.ahead_s
