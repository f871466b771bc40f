"""How far a run is: a bar on a terminal, lines elsewhere, nothing where it is to be quiet."""

import io

import pytest
from rich.console import Console

from pipeline.reports.progress import LINE_INTERVAL_S, Bar, Lines, Silence, progress


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


def console_of(*, is_terminal=False):
    return Console(file=io.StringIO(), width=80, force_terminal=is_terminal)


def test_line_is_said_every_ten_seconds_and_not_more_often():
    console, clock = console_of(), Clock()
    lines = Lines(console, clock=clock)
    for _ in range(100):
        clock.now_s += LINE_INTERVAL_S / 4
        lines.update(int(clock.now_s), 1000)
    assert len(console.file.getvalue().splitlines()) == 25


def test_line_says_how_many_how_fast_and_how_long_still():
    console, clock = console_of(), Clock()
    lines = Lines(console, clock=clock)
    clock.now_s += 20
    lines.update(500, 2500)
    assert console.file.getvalue() == "500 of 2,500 checks, 25.0/s, 80 s left\n"


def test_line_before_the_first_answer_promises_nothing():
    console, clock = console_of(), Clock()
    lines = Lines(console, clock=clock)
    clock.now_s += 20
    lines.update(0, 2500)
    assert console.file.getvalue() == "0 of 2,500 checks, 0.0/s\n"


@pytest.mark.parametrize(
    ("is_terminal", "quiet", "kind"),
    [(True, False, Bar), (False, False, Lines), (True, True, Silence), (False, True, Silence)],
)
def test_kind_of_progress_suits_the_console(is_terminal, quiet, kind):
    console = console_of(is_terminal=is_terminal)
    with progress(console, quiet=quiet) as watch:
        assert isinstance(watch, kind)
        watch.update(0, 0)
        watch.update(5, 10)
    if quiet:
        assert not console.file.getvalue()
