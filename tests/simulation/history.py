"""One history: a file of questions, a provider, people who start runs, and whatever goes wrong."""

import random
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import structlog

from simulation.books import Book, QuotaOfProcess
from simulation.loops import LivelockError
from simulation.provider import Provider
from simulation.rules import REQUESTS_PER_RUN_MAX, Breach, broken_rules
from simulation.runs import RunEnd, RunOptions, run
from simulation.weather import Weather, without
from simulation.world import Clock, Process, World

QUESTION_COUNT = 200
RUN_MAX_S = 6 * 3600.0
"""What one run may take, however the world is."""
RUNS_ILL_MAX = 6
DAY_S = 86_400.0
PAUSE_BETWEEN_RUNS_S = (2.0, 60.0, 3600.0)

_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where files lie that need not outlive the history."""


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
    _folder: Path = field(init=False)

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
        with TemporaryDirectory(dir=_MEMORY) as folder:
            self._folder = Path(folder)
            self._play()
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

    def _play(self) -> None:
        try:
            self._runs()
        except LivelockError:
            self.breaches.append(Breach("livelock", "a process goes round without waiting for anything"))
        finally:
            self.world.close()

    def _runs(self) -> None:
        """Run after run, until everything is decided: a person does what the exit status asks for.

        A few runs meet the ill world. Then it heals, and in a few more everything must be answered that can
        be: once by the same command, and once by one that asks also what was given up.
        """
        for number in range(RUNS_ILL_MAX):
            if self.weather.is_well(self.world.now_s):
                break
            if self._ended_complete(self.options._replace(limit=self.weather.limit if number == 0 else None)):
                return
            self._wait(self.world.chance.choice(PAUSE_BETWEEN_RUNS_S))
        self._wait(max(self.weather.heals_at_s - self.world.now_s, 0))
        runs_well = self._runs_by_cap()
        for number in range(runs_well):
            options = self.options._replace(retry_unanswered=number == runs_well - 1)
            if self._ended_complete(options):
                return
            self._wait(DAY_S if self.weather.cap is not None else 60)

    def _runs_by_cap(self) -> int:
        """How many runs a healthy world may need: one a day under a cap, and as many rows for ever ill."""
        if self.weather.cap is None:
            return 2
        lasting = self.weather.disliked_rows | self.weather.broken_rows | self.weather.failing_rows
        requests = self.question_count + len(lasting) * REQUESTS_PER_RUN_MAX
        return 2 + requests // self.weather.cap + 2

    def _ended_complete(self, options: RunOptions) -> bool:
        """One run; whether it left nothing to do."""
        end = self._one_run(options)
        if end is None:
            return False
        self.ends.append(end)
        is_open = ~end.answers["state"].is_in(["answered", "refused"])
        self.book.finish(
            "", question_count=self.question_count, unanswered_count=int(is_open.sum()), outcome_sha256=""
        )
        return end.is_complete

    def _one_run(self, options: RunOptions) -> RunEnd | None:
        """A run until it ends or is killed; None where it was killed."""
        process = self.world.process(f"run {next(self._names)}")
        begun_s, ends = self.world.now_s, []
        quota = self._quota()
        self.world.tell(process.name, f"starts with {options}")
        process.begin(
            run(process, self.provider, self.book, self.weather, self._clock, options, quota, ends.append)
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
        if quota is not None:
            quota.close()
        return ends[0] if ends else None

    def _quota(self) -> QuotaOfProcess | None:
        """The daily cap as one process counts it, in the file of all."""
        if self.weather.cap is None:
            return None
        return QuotaOfProcess(self._folder / "quota.db", self.weather.cap, self._clock)

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
