"""Event loops in virtual time: one for each simulated process, all stepped by one world.

Nothing sleeps here. A loop runs until nothing in it is ready, and says when its next timer is due; the world
then moves its clock there. A process that is killed is a loop that is stepped no more, wherever its tasks
stand; one that is stopped is a loop whose timers fire late.
"""

import asyncio
from collections.abc import Callable
from math import inf
from typing import Any

_TICK_S = 1e-6
"""The least that a clock moves on."""
_ROUNDS_MAX = 100_000
"""Rounds without a wait between them, after which a loop is called a livelock."""


class LivelockError(Exception):
    """A process goes round without ever waiting for anything."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop without a selector: it can wait for timers and for calls of the world, nothing else."""

    def __init__(self, clock: Callable[[], float], spend: Callable[[], None]) -> None:
        """Start with nothing to do.

        Args:
            clock: seconds that never go back.
            spend: called for each round of the loop, which takes its time as on a real machine.
        """
        super().__init__()
        self._selector = self
        self._clock = clock
        self._spend = spend
        self._round_count = 0
        self.due_at = 0.0
        """When it has something to do again, on its clock; inf where only the world can wake it."""
        self.failures: list[BaseException] = []
        self.set_exception_handler(self._note)

    def time(self) -> float:
        """Seconds that never go back."""
        return self._clock()

    def run_until_idle(self) -> None:
        """Run what is ready, and whatever becomes ready by it."""
        self._round_count = 0
        self.run_forever()

    def select(self, timeout: float | None) -> list[Any]:
        """What the loop calls between two rounds: where it would wait, it ends instead."""
        if timeout == 0:
            self._round_count += 1
            self._spend()
            if self._round_count > _ROUNDS_MAX:
                raise LivelockError
            return []
        self.due_at = inf if timeout is None else self._clock() + max(timeout, _TICK_S)
        self.stop()
        return []

    def call_soon(self, callback, *args, context=None):
        """As every loop's; the world sees that there is something to do."""
        self.due_at = -inf
        return super().call_soon(callback, *args, context=context)

    def call_at(self, when, callback, *args, context=None):
        """As every loop's; also where the world calls it between two runs."""
        self.due_at = min(self.due_at, when)
        return super().call_at(when, callback, *args, context=context)

    def abandon(self) -> None:
        """Let every task of a loop that is stepped no more come to its end, so that nothing is left open."""
        for _ in range(100):
            tasks = asyncio.all_tasks(self)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            self.run_until_idle()
        self.close()

    def _process_events(self, _events: list[Any]) -> None:
        """There are none: `select` finds nothing."""

    def _write_to_self(self) -> None:
        """Nothing waits, so nothing has to be woken."""

    def _note(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if (error := context.get("exception")) is not None:
            self.failures.append(error)
