"""How far a run is: a bar on a terminal, a plain line now and then elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

LINE_INTERVAL_S = 10.0


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Checks per second, over the last half minute."""
        return Text("" if task.speed is None else f"{task.speed:,.0f}/s")


class Bar:
    """A progress bar with rate and time left."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("checking", total=None)

    def update(self, done_count: int, check_count: int) -> None:
        """Show how far the run is."""
        self._progress.update(self._task, completed=done_count, total=check_count or None)


class Lines:
    """A line every ten seconds, for logs and pipes."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._started = self._said = clock()

    def update(self, done_count: int, check_count: int) -> None:
        """Say how far the run is, if it was not said just now."""
        now = self._clock()
        if check_count == 0:
            self._started = now  # nothing is asked yet
            return
        if now - self._said < LINE_INTERVAL_S:
            return
        self._said = now
        rate_per_s = done_count / (now - self._started)
        left = f", {(check_count - done_count) / rate_per_s:,.0f} s left" if rate_per_s else ""
        self._console.print(f"{done_count:,} of {check_count:,} checks, {rate_per_s:,.1f}/s{left}")


class Silence:
    """Says nothing, for --quiet."""

    def update(self, done_count: int, check_count: int) -> None:
        """Say nothing."""


@contextmanager
def progress(console: Console, *, quiet: bool) -> Iterator[Bar | Lines | Silence]:
    """What suits the console: a bar on a terminal, lines elsewhere, nothing where it is to be quiet."""
    if quiet:
        yield Silence()
    elif not console.is_terminal:
        yield Lines(console)
    else:
        columns = (
            TextColumn("[progress.description]{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=True) as bar:
            yield Bar(bar)
