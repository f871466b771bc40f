"""One history: a file of questions, a provider, people who start runs, and whatever goes wrong."""

import random
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import structlog
from simulation.books import Book, CapFile, QuotaOfProcess, UnitsTaken
from simulation.dialects import VOP
from simulation.folder import RunFolder
from simulation.loops import LivelockError
from simulation.provider import DEADLINE_S, Provider
from simulation.purging import older_than, purged
from simulation.results import Breach
from simulation.rules import REQUESTS_PER_RUN_MAX, broken_rules
from simulation.runs import RunEnd, RunOptions, Scene, run
from simulation.sharing import DividedAccount, SharedQuestions, parts_of
from simulation.weather import Weather, weather_of
from simulation.world import Clock, Process, World

from pipeline.stores.values import ServerAccount
from pipeline.transport.rate_limiter import window_of
from schemas.outcomes import ApiName

QUESTION_COUNT = 200
RUN_MAX_S = 2 * 3600.0
"""What one run may take, however the world is."""
SILENCE_MAX_S = 1800.0
"""For how long a run may send nothing, and not end."""
RUNS_ILL_MAX = 6
DAY_S = 86_400.0
FORGOTTEN_S = 1.0
"""What a store forgets that fails over."""
SECOND_SIGTERM_S = (0.01, 0.3, 3.0)
"""How long after the first: before it is heeded, while requests land, and once most have."""
AT_A_WRITE_SHARE = 0.5
"""Of kills and stops: how many come between a write and its reply."""
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
    met: dict[tuple[str, str], int]
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
    """That of CoP."""
    providers: dict[ApiName, Provider] = field(init=False)
    book: Book = field(init=False)
    units: UnitsTaken = field(default_factory=UnitsTaken)
    ends: list[RunEnd] = field(default_factory=list)
    started_at: dict[str, float] = field(default_factory=dict)
    """Process -> when it started."""
    asked_to_stop_at: dict[str, float] = field(default_factory=dict)
    purged_at: float = inf
    """When names of older answers were erased."""
    breaches: list[Breach] = field(default_factory=list)
    options: RunOptions = field(init=False)
    _names: "count[int]" = field(default_factory=lambda: count(1))
    scene: Scene = field(init=False)
    _clock: Clock = field(init=False)
    _folder: Path = field(init=False)
    _cap_file: CapFile = field(init=False)

    def __post_init__(self) -> None:
        world = self.world = World(self.seed, self.is_told)
        self.weather = weather_of(self.seed, self.question_count, self.left_out)
        chance = self.world.chance
        self.options = RunOptions(chance.choice([5, 20, 50, 200]), chance.choice([1, 4, 16, 64]))
        self.world.begins_at, self.world.store_stalls = self.weather.begins_at, self.weather.store_stalls
        self.provider = Provider(self.world, self.weather, self.question_count)
        self.provider.agree(self.options.rate, self.options.in_flight_max)
        self.providers = {ApiName.COP: self.provider}
        if self.weather.vop is not None:
            self.providers[ApiName.VOP_GATEWAY] = self._vop(self.weather.vop)
        self._clock = Clock(self.world)
        self.scene = Scene(
            self.world,
            self.weather,
            self.providers,
            Book([], lambda: world.now_s),
            self._clock,
            {name: DividedAccount(self.world, self._account(name)) for name in self.providers},
            SharedQuestions(self.world) if self.weather.process_count > 1 else None,
        )
        self.book = self.scene.book = Book(self.scene.file.checks, lambda: world.now_s)
        self._lose_replies()
        for moment, by_s in self.weather.clock_jumps:
            self.world.after(moment, lambda by_s=by_s: self._jump(by_s))

    def _lose_replies(self) -> None:
        """A store that processes share may lose its replies, and fail over."""
        weather, world = self.weather, self.world
        world.meet = self._meet
        if self.scene.shared is not None:
            world.lost_reply_share, world.lost_replies_until_s = weather.lost_reply_share, weather.heals_at_s
            for moment in weather.failovers:
                world.after(max(moment - FORGOTTEN_S, 0.0), partial(self._lag, moment))

    def _lag(self, until_s: float) -> None:
        """From now on a standby gets nothing any more; it takes over then."""
        shared, book = self.scene.shared, self.scene.book
        assert shared is not None
        forget_questions, forget_lines = shared.forgetting(), book.forgetting()
        divisions = {name: account.division for name, account in self.scene.accounts.items()}

        def fail_over() -> None:
            if self.scene.book is not book:
                return  # another file has been begun since
            self.world.tell("store", "fails over, and lacks the last second")
            self.world.forgot_count += 1
            forget_questions()
            forget_lines()
            for name, division in divisions.items():
                account = self.scene.accounts[name]
                if parts_of(account.division) != parts_of(division):
                    self.providers[name].forgot_at.append(self.world.now_s)
                account.division = division
            for process in self.world.processes:
                if process.is_at_work:
                    self._meet(process, "failover")

        self.world.after(until_s - self.world.now_s, fail_over)

    def _vop(self, weather: Weather) -> Provider:
        provider = Provider(self.world, weather, self.question_count, VOP)
        provider.agree(*self.weather.vop_limits)
        return provider

    def _account(self, name: ApiName = ApiName.COP) -> ServerAccount:
        """Of a provider, as its limits are now."""
        limits = self.providers[name].limits[-1]
        return ServerAccount(
            f"{name}.example|c", name, limits.rate, limits.places, window_of(limits.rate), DEADLINE_S
        )

    def _change_limits(self) -> None:
        """A person sets other limits, between two runs."""
        if self.weather.other_limits is not None:
            rate, places = self.weather.other_limits
            self.options = self.options._replace(rate=rate, in_flight_max=places)
            self.provider.agree(rate, places)
            self.scene.accounts[ApiName.COP].account = self._account()

    def _put_another_file(self) -> None:
        """A person puts another file where the first one was: it is refused where that one has answers.

        Then the first one is put back, or the run begins anew for the other.
        """
        if not self.weather.other_file:
            return
        folder, first, other = RunFolder(self._folder), self.scene.file_version, self.scene.file_version + 1
        has_answers = bool(self.book.final_now())
        folder.has_run(first, has_answers=has_answers)
        if folder.begin(other) == has_answers:
            said = "was taken for the first" if has_answers else "was refused, and there was no answer"
            self.breaches.append(Breach("another file", f"it {said}"))
        if has_answers and self.world.chance.random() < 0.5:
            if not folder.begin(first):
                self.breaches.append(Breach("another file", "the first was refused when it was put back"))
            return
        if not folder.begin(other, is_fresh=has_answers):
            self.breaches.append(Breach("another file", "it was refused with --fresh"))
        self.world.tell("person", "begins anew with another file")
        self.scene.file_version = other
        for provider in self.providers.values():
            provider.go_by_file(other)
        self.book = self.scene.book = self.book.followed_by_another(self.scene.file.checks)
        if self.scene.shared is not None:
            self.scene.shared = SharedQuestions(self.world)

    def play(self) -> Report:
        """Play it to its end, and judge it."""
        random.seed(self.seed)  # libraries that draw from the common source
        self.world.tell("world", f"faults: {', '.join(self.weather.names) or 'none'}; {self.options}")
        with TemporaryDirectory(dir=_MEMORY) as folder, _without_logs():
            self._folder = Path(folder)
            self._cap_file = CapFile(self._folder / "quota.db")
            self._play()
            self._cap_file.close()
        self.breaches += broken_rules(self)
        return Report(
            self.seed,
            self.breaches,
            self.world.digest,
            self.world.story,
            self.weather.names,
            dict(sum((provider.met for provider in self.providers.values()), Counter())),
            sum(len(provider.departures) for provider in self.providers.values()),
            self.world.now_s,
            len(self.ends),
        )

    def _play(self) -> None:
        try:
            self._runs()
            self._purge_at_the_end()
        except LivelockError:
            self.breaches.append(Breach("livelock", "a process goes round without waiting for anything"))
        except Exception as error:  # noqa: BLE001 (whatever it is, its seed is to be told)
            rule = "assertion" if isinstance(error, AssertionError) else "exception"
            self.breaches.append(Breach(rule, "".join(traceback.format_exception(error)[-2:]).strip()))
        finally:
            self.world.close()

    def _purge(self, *, is_late: bool) -> bool:
        """A person erases the names that banks returned, of older answers; whether one does it now."""
        older_than_s = self.weather.purge_older_than_s
        if older_than_s is None or is_late != self.weather.is_purged_late or not self.ends:
            return False
        folder = self._folder / f"purged {len(self.ends)}"
        folder.mkdir()
        self.world.tell("person", f"purges what is older than {older_than_s:.0f} s")
        self.purged_at = self.world.now_s
        wrong = purged(self.book, folder, older_than(older_than_s), self._clock.now())
        self.breaches += [Breach("purge", what) for what in wrong]
        return True

    def _purge_at_the_end(self) -> None:
        """What is purged is neither asked again nor decided otherwise by one more run."""
        if self._purge(is_late=True) and not self.open_rows:
            self._wait(60)
            self._ended_complete(self.options)

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
            if number == 0:
                self._change_limits()
                self._put_another_file()
                self._purge(is_late=False)
        self._wait(max(self.weather.heals_at_s - self.world.now_s, 0))
        runs_well = self._runs_by_cap()
        for number in range(runs_well):
            asks_all = number >= runs_well // 2 or not self.open_rows
            if self._ended_complete(self.options._replace(retry_unanswered=asks_all)):
                return
            if asks_all and not self.open_rows:
                return  # what is left would be refused on any day
            self._wait(DAY_S if self.weather.cap is not None else 60)

    @property
    def open_rows(self) -> dict[int, str]:
        """The rows that a healthy world would answer, and the last run did not; with the code of each."""
        if not self.ends:
            return dict.fromkeys(range(1, self.question_count + 1), "NO_RUN_ENDED")
        hopeless = self.weather.hopeless_rows
        return {check: code for check, code in self.ends[-1].open_rows.items() if check not in hopeless}

    def _runs_by_cap(self) -> int:
        """How many runs a healthy world may need: one a day under a cap, and as many rows for ever ill."""
        if self.weather.cap is None:
            return 2
        requests = self.question_count + len(self.weather.hopeless_rows) * REQUESTS_PER_RUN_MAX
        return 2 * (2 + requests // self.weather.cap)

    def _ended_complete(self, options: RunOptions) -> bool:
        """One run, by one process or several; whether it left nothing to do."""
        ends = self._run_together(options)
        if not ends:
            return False
        self.ends += ends
        last = ends[-1]
        left_count = max(len(last.open_rows), self.question_count - self.book.counts.answer_count)
        self.book.finish(
            "", question_count=self.question_count, unanswered_count=left_count, outcome_sha256=""
        )
        return last.is_complete

    def _run_together(self, options: RunOptions) -> list[RunEnd]:
        """Some processes until each has ended or is killed; how they ended, the last one last."""
        ends: list[RunEnd] = []
        starts_s = (0.0, *(self.weather.starts_s or (0.0, 0.0)))[: self.weather.process_count]
        processes = [self._start(options, ends, late_s) for late_s in starts_s]
        begun_s = self.world.now_s
        self._plan_faults(processes)
        self.world.run(begun_s + RUN_MAX_S, processes, partial(self._stuck_at, begun_s))
        took_s = self.world.now_s - begun_s
        for process in processes:
            self.breaches += [Breach("exception", repr(error)) for error in process.loop.failures[:1]]
            if process.is_at_work:
                self.breaches.append(Breach("a run does not end", f"{process.name} after {took_s:.0f} s"))
        self.world.bury()
        return ends

    def _stuck_at(self, begun_s: float) -> float:
        """When nothing will have left for so long that nothing will."""
        sent = [each.departures[-1].time_s for each in self.providers.values() if each.departures]
        return max(begun_s, *sent, 0.0) + SILENCE_MAX_S

    def _start(self, options: RunOptions, ends: list[RunEnd], late_s: float) -> Process:
        process = self.world.process(f"run {next(self._names)}")
        self.world.tell(process.name, f"starts with {options}")
        self.started_at[process.name] = self.world.now_s
        quota = self._quota()

        def ended(end: RunEnd) -> None:
            self.world.tell(process.name, f"ends: {end.error or 'by itself'}")
            process.is_at_work = False
            ends.append(end)

        def begin() -> None:
            if process.is_at_work:
                process.begin(run(self.scene, process, options, quota, ended))

        if late_s:
            self.world.after(late_s, begin)
        else:
            begin()
        return process

    def _quota(self) -> QuotaOfProcess | None:
        """The daily cap as one process counts it, in the file of all."""
        if self.weather.cap is None:
            return None
        return QuotaOfProcess(self._cap_file, self.weather.cap, self._clock, self.units)

    def _plan_faults(self, processes: list[Process]) -> None:
        """What happens to processes happens at its time, to one of those that run then.

        Half of it waits until a store has done what that process asked, and comes before the reply.
        """
        world, stops = self.world, self.weather.stops
        faults = [(moment, partial(self._kill, until_s=moment + 1.0)) for moment in self.weather.kills]
        faults += [(moment, partial(self._stop, until_s=moment + for_s)) for moment, for_s in stops]
        faults += [(at, partial(self._terminate, is_twice=twice)) for at, twice in self.weather.terminations]
        for moment, befall in faults:
            if moment > world.now_s:
                process = world.chance.choice(processes)
                happens = partial(befall, process)
                if world.chance.random() < AT_A_WRITE_SHARE:
                    happens = partial(setattr, process, "at_its_next_write", happens)
                world.after(moment - world.now_s, happens)

    def _kill(self, process: Process, until_s: float) -> None:
        if process.is_at_work and self.world.now_s < until_s:
            self._meet(process, "kill -9")
            process.kill()

    def _terminate(self, process: Process, *, is_twice: bool) -> None:
        """Ask it to end; where nobody heard, the second time ends it at once."""
        if process.is_at_work:
            self._meet(process, "SIGTERM")
            self.asked_to_stop_at.setdefault(process.name, self.world.now_s)
            process.terminate()
            if is_twice:
                self.world.after(self.world.chance.choice(SECOND_SIGTERM_S), process.terminate)

    def _stop(self, process: Process, until_s: float) -> None:
        if process.is_at_work and self.world.now_s < until_s:
            self._meet(process, "SIGSTOP")
            process.stop(until_s - self.world.now_s)

    def _meet(self, process: Process, fault: str) -> None:
        """A fault of the process itself, which is met beside every API."""
        self.provider.meet(process, fault)
        for provider in self.providers.values():
            provider.note(process, fault)

    def _jump(self, by_s: float) -> None:
        self._clock.ahead_s += by_s
        self.world.tell("clock", f"jumps by {by_s:.0f} s")

    def _wait(self, wait_s: float) -> None:
        self.world.run(self.world.now_s + wait_s)


@contextmanager
def _without_logs() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    try:
        yield
    finally:
        structlog.configure(**before)
