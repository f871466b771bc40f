"""Event loops in virtual time: one for each simulated process, all stepped by one world.

Nothing sleeps here. A loop runs until nothing in it is ready, and says when its next timer is due; the world
then moves its clock there. A process that is killed is a loop that is stepped no more, wherever its tasks
stand; one that is stopped is a loop whose timers fire late.
"""

import asyncio
import sys
from asyncio import events
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any

_TICK_S = 1e-6
"""The least that a clock moves on."""
_WAIT_MAX_S = 86_400.0
"""What asyncio's own loop waits at most before it looks again."""
_TIMERS_MIN = 100
_ROUNDS_MAX = 100_000
"""Rounds without a wait between them, after which a loop is called a livelock."""


class LivelockError(Exception):
    """A process goes round without ever waiting for anything."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop without a selector: it can wait for timers and for calls of the world, nothing else.

    It does what asyncio's own loop does, in the same order, and leaves out what only a real machine needs:
    debugging, sockets, wake-ups from threads. A history is a few thousand rounds.
    """

    def __init__(self, clock: Callable[[], float], spend: Callable[[], None]) -> None:
        """Start with nothing to do.

        Args:
            clock: seconds that never go back.
            spend: called for each round of the loop, which takes its time as on a real machine.
        """
        super().__init__()
        self.time = clock  # type: ignore[method-assign]
        self._spend = spend
        self.due_at = 0.0
        """When it has something to do again, on its clock; inf where only the world can wake it."""
        self.failures: list[BaseException] = []
        self.set_exception_handler(self._note)

    def run_until_idle(self) -> None:
        """Run what is ready, and whatever becomes ready by it."""
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(self._asyncgen_firstiter_hook, self._asyncgen_finalizer_hook)
        events._set_running_loop(self)
        try:
            for _ in range(_ROUNDS_MAX):
                if not self._round():
                    return
            raise LivelockError
        finally:
            events._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def _round(self) -> bool:
        """Run what is ready now; False where nothing was, and it waits."""
        timers, ready = self._timers(), self._ready
        wait_s = 0.0
        if not ready:
            wait_s = max(0, timers[0]._when - self.time()) if timers else inf
        if wait_s == 0:
            self._spend()
        else:
            self.due_at = self.time() + max(min(wait_s, _WAIT_MAX_S), _TICK_S) if timers else inf
        until = self.time() + self._clock_resolution
        while timers and timers[0]._when < until:
            timer = heappop(timers)
            timer._scheduled = False
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                try:
                    handle._context.run(handle._callback, *handle._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001 (as asyncio's own)
                    self.failures.append(error)
        return wait_s == 0

    def _timers(self) -> list[asyncio.TimerHandle]:
        """The heap of timers, without cancelled ones that lie at its head, or are most of it."""
        timers = self._scheduled
        if len(timers) > _TIMERS_MIN and self._timer_cancelled_count > len(timers) / 2:
            for timer in timers:
                timer._scheduled = not timer._cancelled
            timers = self._scheduled = [timer for timer in timers if timer._scheduled]
            heapify(timers)
            self._timer_cancelled_count = 0
        else:
            while timers and timers[0]._cancelled:
                self._timer_cancelled_count -= 1
                heappop(timers)._scheduled = False
        return timers

    def call_soon(self, callback, *args, context=None):
        """As every loop's; the world sees that there is something to do."""
        self.due_at = -inf
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(self, when, callback, *args, context=None):
        """As every loop's; also where the world calls it between two runs."""
        if when < self.due_at:
            self.due_at = when
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heappush(self._scheduled, timer)
        timer._scheduled = True
        return timer

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

    def _note(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if (error := context.get("exception")) is not None:
            self.failures.append(error)
