"""One history: a file of questions, a provider, people who start runs, and whatever goes wrong."""

import random
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import structlog

from simulation.books import Book
from simulation.loops import LivelockError
from simulation.provider import Provider
from simulation.rules import Breach, broken_rules
from simulation.runs import RunEnd, RunOptions, run
from simulation.weather import Weather, without
from simulation.world import Clock, Process, World

QUESTION_COUNT = 200
RUN_MAX_S = 6 * 3600.0
"""What one run may take, however the world is."""
RUNS_MAX = 30
PAUSE_BETWEEN_RUNS_S = (2.0, 60.0, 3600.0)


class Report(NamedTuple):
    """What came of a history."""

    seed: int
    breaches: list[Breach]
    digest: str
    story: list[str]
    faults: tuple[str, ...]
    met: dict[str, int]
    request_count: int
    simulated_s: float
    run_count: int


@dataclass(slots=True)
class History:
    """One seed, played."""

    seed: int
    question_count: int = QUESTION_COUNT
    left_out: frozenset[str] = frozenset()
    is_told: bool = False
    world: World = field(init=False)
    weather: Weather = field(init=False)
    provider: Provider = field(init=False)
    book: Book = field(init=False)
    ends: list[RunEnd] = field(default_factory=list)
    breaches: list[Breach] = field(default_factory=list)
    options: RunOptions = field(init=False)
    killed_at: list[float] = field(default_factory=list)
    _names: "count[int]" = field(default_factory=lambda: count(1))
    _clock: Clock = field(init=False)

    def __post_init__(self) -> None:
        self.world = World(self.seed, self.is_told)
        self.weather = without(self.seed, self.question_count, self.left_out)
        chance = self.world.chance
        self.options = RunOptions(chance.choice([5, 20, 50, 200]), chance.choice([1, 4, 16, 64]))
        self.provider = Provider(self.world, self.weather, self.options.rate, self.question_count)
        self.book = Book()
        self._clock = Clock(self.world)
        for moment, by_s in self.weather.clock_jumps:
            self.world.after(moment, lambda by_s=by_s: self._jump(by_s))

    def play(self) -> Report:
        """Play it to its end, and judge it."""
        random.seed(self.seed)  # libraries that draw from the common source
        self.world.tell("world", f"faults: {', '.join(self.weather.names) or 'none'}; {self.options}")
        try:
            self._runs()
        except LivelockError:
            self.breaches.append(Breach("livelock", "a process goes round without waiting for anything"))
        finally:
            self.world.close()
        self.breaches += broken_rules(self)
        return Report(
            self.seed,
            self.breaches,
            self.world.digest,
            self.world.story,
            self.weather.names,
            dict(self.provider.met),
            len(self.provider.departures),
            self.world.now_s,
            len(self.ends),
        )

    def _runs(self) -> None:
        """Run after run, until everything is decided: a person does what the exit status asks for."""
        for number in range(RUNS_MAX):
            is_last = number >= 3 and self.world.now_s > self.weather.heals_at_s
            options = self.options._replace(
                limit=self.weather.limit if number == 0 else None, retry_unanswered=is_last
            )
            end = self._one_run(options)
            if end is not None:
                self.ends.append(end)
                self.book.finish(
                    "",
                    question_count=self.question_count,
                    unanswered_count=end.answers.filter(~end.answers["state"].is_in(["answered", "refused"])).height,
                    outcome_sha256="",
                )
                if end.is_complete or (is_last and self.world.now_s > self.weather.heals_at_s + 4 * 86_400):
                    return
            self._wait(self.world.chance.choice(PAUSE_BETWEEN_RUNS_S))
            if number >= 3:
                self._wait(max(self.weather.heals_at_s - self.world.now_s, 0) + 1.1)
        # what is still open is judged by the rules

    def _one_run(self, options: RunOptions) -> RunEnd | None:
        """A run until it ends or is killed; None where it was killed."""
        process = self.world.process(f"run {next(self._names)}")
        begun_s, ends = self.world.now_s, []
        self.world.tell(process.name, f"starts with {options}")
        process.begin(
            run(process, self.provider, self.book, self.weather, self._clock, options, None, ends.append)
        )
        self._plan_faults(process)
        self.world.run(begun_s + RUN_MAX_S, lambda: bool(ends) or not process.is_alive)
        if process.loop.failures:
            self.breaches.append(Breach("exception", repr(process.loop.failures[0])))
        if ends:
            self.world.tell(process.name, f"ends: {ends[0].error or 'by itself'}")
        elif process.is_alive:
            self.breaches.append(Breach("a run does not end", f"{process.name} after {RUN_MAX_S} s"))
        if not process.is_alive:
            self.killed_at.append(self.world.now_s)
            self._wait(1.1)  # as the lease of the server's account makes the next run wait
        process.is_alive = False
        return ends[0] if ends else None

    def _plan_faults(self, process: Process) -> None:
        """What happens to processes happens at its time, to the process that runs then."""
        now = self.world.now_s
        for moment in self.weather.kills:
            if moment > now:
                self.world.after(moment - now, process.kill)
        for moment, for_s in self.weather.stops:
            if moment > now:
                self.world.after(moment - now, lambda for_s=for_s: process.stop(for_s))

    def _jump(self, by_s: float) -> None:
        self._clock.ahead_s += by_s
        self.world.tell("clock", f"jumps by {by_s:.0f} s")

    def _wait(self, wait_s: float) -> None:
        self.world.run(self.world.now_s + wait_s, lambda: False)


structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
