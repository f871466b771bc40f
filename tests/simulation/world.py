"""The simulated world: one clock, one source of chance, and everything that happens, in order.

One seed is one history. Whatever is random is drawn from `World.chance`, in an order that the world decides,
so the same seed gives the same history, byte for byte.
"""

import heapq
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import count
from math import inf
from random import Random
from typing import Any

from simulation.loops import SCOPE_NUMBERS, VirtualLoop, leave
from simulation.weather import BEGINNING, Span

from pipeline.stages.ask.concurrency import ConcurrencyLimit


@dataclass(slots=True)
class Clock:
    """The wall clock of one machine, which may be wrong."""

    world: "World"
    ahead_s: float = 0.0
    _shown: tuple[float, datetime] = (-1.0, BEGINNING)

    def now(self) -> datetime:
        """What it shows, UTC; it is looked at several times in one moment."""
        since_s = self.world.now_s + self.ahead_s
        if self._shown[0] != since_s:
            self._shown = since_s, self.world.begins_at + timedelta(seconds=since_s)
        return self._shown[1]


class Process:
    """A process that can be stopped, woken and killed at any await."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.is_alive = True
        self.is_at_work = True
        """Until it has ended or is killed."""
        self.is_stopped = False
        self.wakes_at = 0.0
        """The end of its last stop."""
        self.at_its_next_write: Callable[[], None] | None = None
        """What happens once a store has done what it was asked, and before this process knows."""
        self.asked_to_stop: Callable[[], None] | None = None
        """Asks it to end, while it asks; at other times a signal ends it at once."""
        self.states: Callable[[], list[str]] = lambda: ["starting"]
        """What it is doing, in the words of `tables.STATES`."""
        self.places: list[ConcurrencyLimit] = []
        """Its places at each API."""
        self.loop = VirtualLoop(world)
        self.forgot_before = world.forgot_count
        """How often a store had failed over when it started."""

    def has_written(self) -> None:
        """A store has done what it was asked."""
        happens, self.at_its_next_write = self.at_its_next_write, None
        if happens is not None:
            happens()

    def begin(self, main: Coroutine[Any, Any, Any]):
        """Start its first task."""
        return self.loop.create_task(main)

    def kill(self) -> None:
        """It ends here: no task of it goes on, and nothing is cleaned up."""
        if self.is_at_work:
            self.is_alive = self.is_at_work = False
            self.world.tell(self.name, "killed")

    def terminate(self) -> None:
        """Ask it to end."""
        if self.is_at_work:
            self.world.tell(self.name, "asked to stop")
            if self.asked_to_stop is None:
                self.is_alive = self.is_at_work = False
            else:
                self.asked_to_stop()

    def stop(self, for_s: float) -> None:
        """It stands still for a while, and does not know it."""
        if self.is_alive and not self.is_stopped:
            self.is_stopped, self.wakes_at = True, self.world.now_s + for_s
            self.world.tell(self.name, f"stopped for {for_s:.1f} s")
            self.world.after(for_s, self._wake)

    def _wake(self) -> None:
        self.is_stopped = False
        if self.is_alive:
            self.world.tell(self.name, "woken")


@dataclass(slots=True)
class World:
    """One history."""

    seed: int
    is_told: bool = False
    """Whether the story is kept line by line, for a person to read."""
    now_s: float = 0.0
    begins_at: datetime = BEGINNING
    store_stalls: list[Span] = field(default_factory=list)
    """When nothing is written, and nobody gets a reply from a store."""
    lost_reply_share: float = 0.0
    """Of the replies of stores: how many are lost, after what was asked of them is done."""
    lost_replies_until_s: float = 0.0
    forgot_count: int = 0
    """How often a store has failed over to one that lagged behind."""
    meet: Callable[[Process, str], None] = lambda _process, _fault: None
    """Counts that a process met a fault."""
    chance: Random = field(init=False)
    processes: list[Process] = field(default_factory=list)
    """Those of the present run."""
    _gone: list[Process] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=count)
    _digest: Any = field(default_factory=sha256)

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)
        SCOPE_NUMBERS.begin_anew()

    def process(self, name: str) -> Process:
        """Start an empty process."""
        started = Process(self, name)
        self.processes.append(started)
        return started

    def store_wait_s(self) -> float:
        """How long a store that is called now stands still."""
        if not self.store_stalls:
            return 0
        return max(
            (stall.to_s - self.now_s for stall in self.store_stalls if stall.covers(self.now_s)), default=0
        )

    def loses_reply(self, process: Process) -> bool:
        """Whether a process hears nothing of what a store has done for it."""
        is_lost = (
            self.lost_reply_share > 0
            and self.now_s < self.lost_replies_until_s
            and self.chance.random() < self.lost_reply_share
        )
        if is_lost:
            self.meet(process, "reply of the store lost")
        return is_lost

    def bury(self) -> None:
        """No process goes on from here; what is left of each is closed with the world."""
        for process in self.processes:
            process.is_alive = False
        self._gone += self.processes
        self.processes.clear()

    def after(self, wait_s: float, do: Callable[[], None]) -> None:
        """Let something happen later."""
        heapq.heappush(self._events, (self.now_s + wait_s, next(self._numbers), do))

    def tell(self, who: str, what: str) -> None:
        """Add a line to the history."""
        line = f"{self.now_s:.6f} {who}: {what}"
        self._digest.update(line.encode())
        if self.is_told:
            self.story.append(line)

    @property
    def digest(self) -> str:
        """The hash of all that happened."""
        return self._digest.hexdigest()

    def run(
        self,
        until_s: float,
        for_these: Sequence[Process] = (),
        stuck_at: Callable[[], float] = lambda: inf,
    ) -> None:
        """Let things happen in the order of their time, until the time has come.

        Args:
            until_s: the time.
            for_these: processes; where there are any, it ends also when none of them is at work any more.
            stuck_at: gives the time after which nothing more is expected of them; it never goes back.
        """
        try:
            self._run(until_s, for_these, stuck_at)
        finally:
            leave()

    def _run(self, until_s: float, for_these: Sequence[Process], stuck_at: Callable[[], float]) -> None:
        events, end_s = self._events, -inf
        while not for_these or _are_at_work(for_these):
            ready, due_s = self._ready()
            if ready:
                process = self.chance.choice(ready) if len(ready) > 1 else ready[0]
                process.loop.run_until_idle()
                continue
            if due_s > end_s:
                end_s = min(until_s, stuck_at())
                if due_s > end_s:
                    self.now_s = end_s
                    return
            self.now_s = max(self.now_s, due_s)
            while events and events[0][0] <= self.now_s:
                heapq.heappop(events)[2]()

    def _ready(self) -> tuple[list[Process], float]:
        """The processes that have something to do now, and when anything else happens."""
        ready, due_s = [], self._events[0][0] if self._events else inf
        for process in self.processes:
            if process.is_alive and not process.is_stopped:
                due_at = process.loop.due_at
                if due_at <= self.now_s:
                    ready.append(process)
                elif due_at < due_s:
                    due_s = due_at
        return ready, due_s

    def close(self) -> None:
        """End every process, so that nothing is left open, and nothing refers to what is done with it."""
        self.bury()
        for process in self._gone:
            process.loop.abandon()
        self._gone.clear()
        self._events.clear()
        self.meet = lambda _process, _fault: None


def _are_at_work(processes: Sequence[Process]) -> bool:
    for process in processes:  # noqa: SIM110 (asked after every step of the world)
        if process.is_at_work:
            return True
    return False
