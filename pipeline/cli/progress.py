"""How far a run is: a bar on a terminal, a plain line now and then elsewhere."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from pipeline.reports.wording import counted, visible
from pipeline.runs.request import Phase, RunProgress, SetStep
from pipeline.stores.values import LeaseHolder
from schemas.outcomes import Outcome

LINE_INTERVAL_S = 10.0
NAME_WIDTH_MAX = 30
SLOW_PER_S = 10
"""Below this rate its tenths are shown."""


class ProgressBar:
    """A progress bar with rate and time left, and below it what became of the questions so far."""

    def __init__(self, display: "_Display", file_name: str) -> None:
        self._display = display
        self._name = visible(file_name)
        self._task = display.add_task(self._name, total=None, simulated="", stand=Phase.READING.value)

    def enter(self, phase: Phase) -> None:
        """Show the phase, before there are numbers."""
        if phase in (Phase.READING, Phase.CONNECTING):
            self._display.update(self._task, stand=phase.value)

    def count(self, step: SetStep, done_count: int, all_count: int) -> None:
        """Show how far a data set is."""
        stand = counted_text(step, done_count, all_count)
        self._display.update(self._task, completed=done_count, total=all_count, stand=stand)

    def begin(self, *, simulated: bool) -> None:
        """Show on the bar whether a sandbox answers."""
        self._display.update(self._task, simulated="SIMULATED" if simulated else "")

    def wait(self, holder: LeaseHolder) -> None:
        """Show which run is waited for, in place of the bar."""
        self._display.below = waiting_text(holder)
        self._display.update(self._task, stand="waiting")

    def update(self, so_far: RunProgress) -> None:
        """Show how far the run is."""
        if not so_far.check_count:
            return
        self._display.below = "; ".join(
            filter(None, (outcomes_text(so_far.outcomes), *map(slowed_text, so_far.slowed.values())))
        )
        stand = f"{so_far.done_count:,} of {so_far.check_count:,}"
        self._display.update(self._task, completed=so_far.done_count, total=so_far.check_count, stand=stand)

    def stop(self, in_flight_count: int, wait_max_s: float) -> None:
        """Announce above the bar that the run ends, and what it waits for."""
        said = f"{stopping_text(in_flight_count, wait_max_s)} Press Ctrl-C again to stop at once."
        self._display.console.print(Text(f"{self._name}: {said}"))


class ProgressLines:
    """A line every ten seconds, for logs and pipes."""

    def __init__(
        self, console: Console, file_name: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._name = visible(file_name)
        self._simulated = ""
        self._waiting: str | None = None
        self._clock = clock
        self._started = self._said = clock()

    def enter(self, phase: Phase) -> None:
        """Print nothing: a line has numbers."""

    def count(self, step: SetStep, done_count: int, all_count: int) -> None:
        """Report how far a data set is, unless something was reported just now."""
        now = self._clock()
        if now - self._said >= LINE_INTERVAL_S:
            self._said = now
            self._say(counted_text(step, done_count, all_count))

    def begin(self, *, simulated: bool) -> None:
        """State in every line whether a sandbox answers."""
        self._simulated = " SIMULATED" if simulated else ""

    def wait(self, holder: LeaseHolder) -> None:
        """Report at once which run is waited for, and every ten seconds that it still is."""
        self._waiting = waiting_text(holder)
        self._said = self._clock()
        self._say(self._waiting)

    def update(self, so_far: RunProgress) -> None:
        """Report how far the run is, unless it was reported just now."""
        now = self._clock()
        if so_far.check_count == 0:
            self._started = now  # nothing is asked yet
        if (so_far.check_count == 0 and self._waiting is None) or now - self._said < LINE_INTERVAL_S:
            return
        self._said = now
        if so_far.check_count == 0:
            self._say(f"still {self._waiting}")
            return
        rate_per_s = so_far.done_count / (now - self._started) if now > self._started else 0.0
        left = f", {(so_far.check_count - so_far.done_count) / rate_per_s:,.0f} s left" if rate_per_s else ""
        became = "".join(
            f"; {said}"
            for said in (outcomes_text(so_far.outcomes), *map(slowed_text, so_far.slowed.values()))
            if said
        )
        self._say(
            f"{so_far.done_count:,} of {so_far.check_count:,} questions, {rate_per_s:,.1f}/s{left}{became}"
        )

    def stop(self, in_flight_count: int, wait_max_s: float) -> None:
        """Report that the run ends, and what it waits for."""
        self._say(stopping_text(in_flight_count, wait_max_s))

    def _say(self, sentence: str) -> None:
        self._console.print(f"{self._name}{self._simulated}: {sentence}", soft_wrap=True)


@contextmanager
def progress(console: Console, file_name: str) -> Iterator[ProgressBar | ProgressLines]:
    """What suits the console: a bar on a terminal, lines elsewhere."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield ProgressLines(console, file_name)
    else:
        with _Display(console) as display:
            yield ProgressBar(display, file_name)


def counted_text(step: SetStep, done_count: int, all_count: int) -> str:
    """How far a data set is.

    >>> counted_text(SetStep.READ, 3, 1040)
    '3 of 1,040 parts read'
    """
    return f"{done_count:,} of {all_count:,} {step.value}"


def outcomes_text(outcomes: Mapping[Outcome, int]) -> str:
    """What became of questions, in the order of the documentation.

    >>> outcomes_text({Outcome.NO_MATCH: 3, Outcome.MATCH: 1200})
    'match 1,200, no match 3'
    """
    there = (outcome for outcome in Outcome if outcomes.get(outcome))
    return ", ".join(f"{outcome.value.replace('_', ' ')} {outcomes[outcome]:,}" for outcome in there)


def slowed_text(window: float) -> str:
    """The lower limit that the server asks for.

    >>> slowed_text(7.9), slowed_text(0.25)
    ('the server wants fewer: at most 7 in flight', 'the server wants fewer: at most 25 % of the rate')
    """
    share = f"{window:.0%}".replace("%", " %") if window >= 0.01 else "less than 1 %"  # fmt: skip
    most = f"{int(window)} in flight" if window >= 1 else f"{share} of the rate"
    return f"the server wants fewer: at most {most}"


def waiting_text(holder: LeaseHolder) -> str:
    """Which run is waited for."""
    return f"waiting for {holder.name}, which has been asking {holder.server}{holder.since_when}"


def stopping_text(in_flight_count: int, wait_max_s: float) -> str:
    """What a run still waits for after it was stopped."""
    return (
        f"stopping; waiting up to {wait_max_s:.0f} s for the answers to "
        f"{counted(in_flight_count, 'request')} in flight."
    )


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Questions per second, over the last half minute."""
        if task.speed is None:
            return Text()
        return Text(f"{task.speed:,.0f}/s" if task.speed >= SLOW_PER_S else f"{task.speed:.1f}/s")


class _TimeLeft(ProgressColumn):
    def render(self, task: Task) -> Text:
        """How long it still takes at that rate."""
        if task.total is None or task.time_remaining is None:
            return Text()
        return Text(f"{timedelta(seconds=task.time_remaining)} left")


class _Display(Progress):
    """The bar, and a line below it."""

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
        """The bar, and what became of the questions.

        A terminal echoes ^C where the cursor is. At the end of a full line that would begin a new one, and
        the bar above it would stay.
        """
        width = self._output.width - len("^C") - 1
        yield Constrain(self.make_tasks_table(self.tasks), width)
        if self.below:
            yield Constrain(Padding(Text(visible(self.below)), (0, 0, 0, 2)), width)
