"""Event loops in virtual time: one for each simulated process, all stepped by one world.

Nothing sleeps here. A loop runs until nothing in it is ready, and says when its next timer is due; the world
then moves its clock there. A process that is killed is a loop that is stepped no more, wherever its tasks
stand; one that is stopped is a loop whose timers fire late.
"""

import asyncio
import sys
from asyncio import events
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Any, Protocol
from weakref import WeakSet

from anyio._backends._asyncio import CancelScope

ROUND_S = 1e-6
"""What a round of a loop takes."""
_RESOLUTION_S = 1e-9
_TICK_S = 1e-6
"""The least that a clock moves on."""
_WAIT_MAX_S = 86_400.0
"""What asyncio's own loop waits at most before it looks again."""
_TIMERS_MIN = 100
_ROUNDS_MAX = 100_000
"""Rounds without a wait between them, after which a loop is called a livelock."""


class LivelockError(Exception):
    """A process goes round without ever waiting for anything."""


class Timeline(Protocol):
    """Whoever has the time."""

    now_s: float


def leave() -> None:
    """No loop runs now."""
    events._set_running_loop(None)  # noqa: SLF001
    sys.set_asyncgen_hooks(None, None)


class NumberedTask(asyncio.Task):  # type: ignore[type-arg]
    """A task whose hash is its number in its loop, and not its address."""

    def __init__(self, number: int, coroutine: Any, **how: Any) -> None:
        self._number = number  # before the loop puts it into a set
        super().__init__(coroutine, **how)

    def __hash__(self) -> int:
        return self._number


class ScopeNumbers:
    """Gives anyio's scopes in virtual time a number as their hash; all others keep theirs.

    A scope cancels its tasks and the scopes within in the order of a set: by their addresses, that would be
    another one whenever something else has run before.
    """

    def __init__(self) -> None:
        self._number_of: dict[int, int] = {}
        self._count = 0
        begin = CancelScope.__init__

        def numbered(scope: CancelScope, *arguments: Any, **named: Any) -> None:
            self._number_of.pop(id(scope), None)  # of one that is gone
            if isinstance(events._get_running_loop(), VirtualLoop):  # noqa: SLF001
                self._number_of[id(scope)] = self._count
                self._count += 1
            begin(scope, *arguments, **named)

        CancelScope.__init__ = numbered  # type: ignore[method-assign]
        CancelScope.__hash__ = lambda scope: self._number_of.get(id(scope), id(scope))  # type: ignore[method-assign]

    def begin_anew(self) -> None:
        """Another history begins."""
        self._count = 0


SCOPE_NUMBERS = ScopeNumbers()


class Call:
    """What a loop is to call in its next round."""

    __slots__ = ("args", "callback", "context", "is_cancelled")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None):
        self.callback: Callable[..., object] | None = callback
        self.args: tuple[Any, ...] = args
        self.context = copy_context() if context is None else context
        self.is_cancelled = False

    def cancel(self) -> None:
        """Do not call it; what it holds is free at once."""
        self.is_cancelled = True
        self.callback, self.args = None, ()


class Timer(Call):
    """What a loop is to call at its time."""

    __slots__ = ("is_waiting", "loop", "when_s")

    def __init__(self, loop: "VirtualLoop", when_s: float, *call: Any) -> None:
        super().__init__(*call)
        self.loop, self.when_s, self.is_waiting = loop, when_s, True

    def __lt__(self, other: "Timer") -> bool:
        return self.when_s < other.when_s

    def cancel(self) -> None:
        """Do not call it."""
        if self.is_waiting and not self.is_cancelled:
            self.loop.cancelled_count += 1
        super().cancel()


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop without a selector: it can wait for timers and for calls of the world, nothing else.

    It does what asyncio's own loop does, in the same order, and leaves out what only a real machine needs:
    debugging, sockets, wake-ups from threads. A history is a few thousand rounds.
    """

    def __init__(self, world: Timeline) -> None:
        """Start with nothing to do, in the time of this world."""
        super().__init__()
        self._world = world
        self._calls: deque[Call] = deque()
        self._timers: list[Timer] = []
        self.cancelled_count = 0
        """Of the timers."""
        self.due_at = 0.0
        """When it has something to do again, on its clock; inf where only the world can wake it."""
        self.failures: list[BaseException] = []
        self.set_exception_handler(self._note)
        self._task_count = count()
        self._tasks = WeakSet[NumberedTask]()
        self.set_task_factory(self._task)

    def time(self) -> float:
        """Seconds that never go back."""
        return self._world.now_s

    def run_until_idle(self) -> None:
        """Run what is ready, and whatever becomes ready by it. The loop counts as running until `leave`."""
        if events._get_running_loop() is not self:  # noqa: SLF001
            sys.set_asyncgen_hooks(None, self._asyncgen_finalizer_hook)
            events._set_running_loop(self)  # noqa: SLF001
        world, calls = self._world, self._calls
        for _ in range(_ROUNDS_MAX):
            timers = self._timers
            if timers and (timers[0].is_cancelled or len(timers) > _TIMERS_MIN):
                timers = self._living_timers()
            now_s = world.now_s
            is_idle = not calls and not (timers and timers[0].when_s <= now_s)
            if is_idle:
                wait_s = max(min(timers[0].when_s - now_s, _WAIT_MAX_S), _TICK_S) if timers else inf
                self.due_at = now_s + wait_s
            else:
                world.now_s = now_s = now_s + ROUND_S
            while timers and timers[0].when_s < now_s + _RESOLUTION_S:
                timer = heappop(timers)
                timer.is_waiting = False
                calls.append(timer)
            for _ in range(len(calls)):
                call = calls.popleft()
                if not call.is_cancelled:
                    try:
                        call.context.run(call.callback, *call.args)  # type: ignore[arg-type]
                    except Exception as error:  # noqa: BLE001 (as asyncio's own)
                        self.failures.append(error)
            if is_idle:
                return
        raise LivelockError

    def _living_timers(self) -> list[Timer]:
        """The heap of timers, without cancelled ones that lie at its head, or are most of it."""
        timers = self._timers
        if len(timers) > _TIMERS_MIN and self.cancelled_count > len(timers) / 2:
            for timer in timers:
                timer.is_waiting = not timer.is_cancelled
            timers = self._timers = [timer for timer in timers if timer.is_waiting]
            heapify(timers)
            self.cancelled_count = 0
        else:
            while timers and timers[0].is_cancelled:
                self.cancelled_count -= 1
                heappop(timers).is_waiting = False
        return timers

    def call_soon(self, callback, *args, context=None):
        """As every loop's; the world sees that there is something to do."""
        self.due_at = -inf
        call = Call(callback, args, context)
        self._calls.append(call)
        return call

    call_soon_threadsafe = call_soon  # there are no threads
    get_debug = staticmethod(bool)
    """Never: every future and every task asks."""

    def call_later(self, delay, callback, *args, context=None):
        """As every loop's."""
        return self.call_at(self._world.now_s + delay, callback, *args, context=context)

    def call_at(self, when, callback, *args, context=None):
        """As every loop's; also where the world calls it between two runs."""
        self.due_at = min(self.due_at, when)
        timer = Timer(self, when, callback, args, context)
        heappush(self._timers, timer)
        return timer

    def abandon(self) -> None:
        """Let every task of a loop that is stepped no more come to its end, so that nothing is left open."""
        for _ in range(100):
            undone = {task for task in self._tasks if not task.done()}
            if not undone:
                break
            for task in undone:
                task.cancel()
            self.run_until_idle()
        leave()
        self.close()

    def _task(self, _loop: asyncio.AbstractEventLoop, coroutine: Any, **how: Any) -> NumberedTask:
        task = NumberedTask(next(self._task_count), coroutine, loop=self, **how)
        self._tasks.add(task)  # asyncio's own set has those of all loops
        return task

    def _note(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if (error := context.get("exception")) is not None:
            self.failures.append(error)
