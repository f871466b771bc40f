"""The progress of a run: a bar on a terminal, otherwise plain lines now and then."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from pipeline.reports.terminal import text_line
from pipeline.reports.wording import in_words, visible
from pipeline.runs.request import Phase, RunObserver, RunProgress, SetStep
from pipeline.stores.values import LeaseHolder
from pipeline.wording import Sentence
from schemas.outcomes import Outcome

LINE_INTERVAL_S = 10.0
NAME_WIDTH_MAX = 30
SLOW_PER_S = 10  # rates below this are shown with one decimal


_PHASES = {Phase.READING: Sentence("progress.reading"), Phase.CONNECTING: Sentence("progress.connecting")}
_COUNTED = {
    SetStep.READ: "progress.parts_read",
    SetStep.PLANNED: "progress.buckets_planned",
    SetStep.WRITTEN: "progress.parts_written",
}


class ProgressBar(RunObserver):
    """A progress bar with the rate and the time left, above the results so far."""

    def __init__(self, display: "_Display", file_name: str) -> None:
        self._display = display
        self._name = visible(file_name)
        self._task = display.add_task(
            self._name, total=None, simulated="", stand=in_words(_PHASES[Phase.READING])
        )

    def enter(self, phase: Phase) -> None:
        """Show the phase until there are numbers."""
        if phase in _PHASES:
            self._display.update(self._task, stand=in_words(_PHASES[phase]))

    def count(self, step: SetStep, done_count: int, all_count: int) -> None:
        """Show the progress of a data set."""
        stand = in_words(_counted(step, done_count, all_count))
        self._display.update(self._task, completed=done_count, total=all_count, stand=stand)

    def begin(self, *, simulated: bool) -> None:
        """Show on the bar whether a sandbox answers."""
        self._display.update(self._task, simulated=_simulated(simulated=simulated))

    def wait(self, holder: LeaseHolder) -> None:
        """Show which run this one waits for, instead of the bar."""
        self._display.below = in_words(holder.waited_for)
        self._display.update(self._task, stand=in_words(Sentence("progress.waiting")))

    def update(self, so_far: RunProgress) -> None:
        """Show the progress of the run."""
        if not so_far.check_count:
            return
        done_count, check_count = so_far.done_count, so_far.check_count
        self._display.below = in_words(Sentence("progress.several_facts", became=_became(so_far)))
        stand = in_words(Sentence("progress.done_of_all", done_count=done_count, check_count=check_count))
        self._display.update(self._task, completed=done_count, total=check_count, stand=stand)

    def stop(self, in_flight_count: int, wait_max_s: float) -> None:
        """Announce above the bar that the run is ending, and what it still waits for."""
        stopping = _stopping(in_flight_count, wait_max_s)
        message = Sentence("progress.stop_at_once", name=self._name, stopping=stopping)
        self._display.console.print(text_line(message))


class ProgressLines(RunObserver):
    """Prints a line every ten seconds, for logs and pipes."""

    def __init__(
        self, console: Console, file_name: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._name = visible(file_name)
        self._simulated = ""
        self._waiting: Sentence | None = None
        self._clock = clock
        self._started = self._last_line = clock()

    def count(self, step: SetStep, done_count: int, all_count: int) -> None:
        """Report the progress of a data set, at most every ten seconds."""
        now = self._clock()
        if now - self._last_line >= LINE_INTERVAL_S:
            self._last_line = now
            self._say(_counted(step, done_count, all_count))

    def begin(self, *, simulated: bool) -> None:
        """If a sandbox answers, mention that in every line."""
        self._simulated = f" {_simulated(simulated=simulated)}".rstrip()

    def wait(self, holder: LeaseHolder) -> None:
        """Print which run this one waits for, at once and then every ten seconds."""
        self._waiting = holder.waited_for
        self._last_line = self._clock()
        self._say(self._waiting)

    def update(self, so_far: RunProgress) -> None:
        """Report the progress of the run, at most every ten seconds."""
        now = self._clock()
        if so_far.check_count == 0:
            self._started = now  # no question has been asked yet
        if (so_far.check_count == 0 and self._waiting is None) or now - self._last_line < LINE_INTERVAL_S:
            return
        self._last_line = now
        if so_far.check_count == 0:
            self._say(Sentence("progress.still_waiting", waiting=self._waiting))
            return
        rate_per_s = so_far.done_count / (now - self._started) if now > self._started else 0.0
        first = Sentence(
            "progress.so_far_and_left" if rate_per_s else "progress.so_far",
            done_count=so_far.done_count,
            check_count=so_far.check_count,
            rate_per_s=rate_per_s,
            left_s=(so_far.check_count - so_far.done_count) / (rate_per_s or 1),
        )
        self._say(Sentence("progress.several_facts", became=[first, *_became(so_far)]))

    def stop(self, in_flight_count: int, wait_max_s: float) -> None:
        """Print that the run is ending, and what it still waits for."""
        self._say(_stopping(in_flight_count, wait_max_s))

    def _say(self, sentence: Sentence) -> None:
        self._console.print(
            text_line(Sentence("progress.line", name=self._name + self._simulated, sentence=sentence)),
            soft_wrap=True,
        )


@contextmanager
def progress(console: Console, file_name: str) -> Iterator[ProgressBar | ProgressLines]:
    """Choose the display: a bar on a terminal, otherwise lines."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield ProgressLines(console, file_name)
    else:
        with _Display(console) as display:
            yield ProgressBar(display, file_name)


def _counted(step: SetStep, done_count: int, all_count: int) -> Sentence:
    return Sentence(_COUNTED[step], done_count=done_count, all_count=all_count)


def _simulated(*, simulated: bool) -> str:
    return in_words(Sentence("progress.simulated")) if simulated else ""


def _became(so_far: RunProgress) -> list[Sentence]:
    """Describe the results so far, in the order of the documentation, and reduced limits."""
    outcomes = [
        Sentence("progress.outcome", outcome=Sentence(f"outcome.{outcome}"), count=count)
        for outcome in Outcome
        if (count := so_far.outcomes.get(outcome))
    ]
    sentences = [Sentence("progress.outcomes", outcomes=outcomes)] if outcomes else []
    return [*sentences, *map(_slowed, so_far.slowed.values())]


def _slowed(window: float) -> Sentence:
    """Describe the reduced limit: requests in flight or, if below 1, a share of the rate."""
    if window >= 1:
        return Sentence("progress.fewer_in_flight", most=int(window))
    if window < 0.01:
        return Sentence("progress.lowest_rate")
    return Sentence("progress.lower_rate", percent=round(window * 100))


def _stopping(in_flight_count: int, wait_max_s: float) -> Sentence:
    return Sentence("progress.stopping", wait_s=wait_max_s, count=in_flight_count)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Show the questions per second, over the last half minute."""
        if task.speed is None:
            return Text()
        return Text(f"{task.speed:,.0f}/s" if task.speed >= SLOW_PER_S else f"{task.speed:.1f}/s")


class _TimeLeft(ProgressColumn):
    def __init__(self) -> None:
        super().__init__()
        self._words = in_words(
            Sentence("progress.time_left", time="{}")
        )  # the drawing thread has no language set

    def render(self, task: Task) -> Text:
        """Show the time left at that rate."""
        if task.total is None or task.time_remaining is None:
            return Text()
        return Text(self._words.format(timedelta(seconds=task.time_remaining)))


class _Display(Progress):
    def __init__(self, console: Console) -> None:
        self.below = ""
        self._output = console
        name = Column(no_wrap=True, overflow="ellipsis", max_width=NAME_WIDTH_MAX)
        super().__init__(
            TextColumn("{task.description}", markup=False, table_column=name),
            TextColumn("{task.fields[simulated]}", style="bold yellow", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[stand]}", markup=False),
            _Rate(),
            _TimeLeft(),
            console=console,
            transient=True,
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the bar and the results.

        Terminals echo ^C at the cursor. At the end of a full line, that would begin a new line and leave a
        copy of the bar behind.
        """
        width = self._output.width - len("^C") - 1
        yield Constrain(self.make_tasks_table(self.tasks), width)
        if self.below:
            yield Constrain(Padding(Text(visible(self.below)), (0, 0, 0, 2)), width)
