"""The breakers of each simulated process, watched: whether they are closed, open, or try a probe."""

from collections.abc import Callable
from contextvars import ContextVar

from pipeline.stages.ask import gate
from pipeline.transport.breaker import SERVER, Breaker, Patience


class WatchedBreaker(Breaker):
    """As the product's, and known to those who watch."""

    def __init__(self, patience: Patience) -> None:
        super().__init__(patience)
        if (mine := _MINE.get()) is not None:
            mine.append(self)

    @property
    def state(self) -> str | None:
        """In the words of `tables.STATES`; None where it is closed."""
        of_server = self._patience is SERVER
        if not self.is_open:
            return None
        if self.is_probing:
            return "half-open" if of_server else "bank's half-open"
        return "breaker open" if of_server else "bank's breaker open"


_MINE: ContextVar[list[WatchedBreaker] | None] = ContextVar("_MINE", default=None)
"""Those of the process whose task this is."""
gate.Breaker = WatchedBreaker


def watched() -> Callable[[], list[str]]:
    """Watch the breakers that this task, and those that it starts, make from now on.

    Returns:
        What says the states that they are in then, each once.
    """
    mine: list[WatchedBreaker] = []
    _MINE.set(mine)
    return lambda: sorted({state for breaker in mine if (state := breaker.state) is not None})
