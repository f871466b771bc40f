"""How far a run is: a bar on a terminal, lines elsewhere, nothing where it is to be quiet."""

import io
import re
from threading import Thread

import pytest
from refusals import said
from rich.console import Console
from rich.text import Text

from pipeline.cli.progress import LINE_INTERVAL_S, ProgressBar, ProgressLines, progress
from pipeline.reports.wording import visible
from pipeline.runs.request import RunProgress, SetStep
from pipeline.stores.values import LeaseHolder
from pipeline.wording import Moment, Sentence, speak, speaking
from schemas.outcomes import ApiName, Outcome


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


HOLDER = LeaseHolder("cop.example:443", 4242, "2030-01-02T03:04:05Z")
WAITING = said(
    "stores.waiting_for_since",
    holder=Sentence("stores.process", pid=4242), server=HOLDER.server, since=Moment(HOLDER.since),
)  # fmt: skip


def console_of(*, is_terminal=False, width=80, **environment):
    environment = {"TERM": "xterm", **environment}
    return Console(file=io.StringIO(), width=width, force_terminal=is_terminal, _environ=environment)


def test_line_is_said_every_ten_seconds_and_not_more_often():
    console, clock = console_of(), Clock()
    lines = ProgressLines(console, "pay.csv", clock=clock)
    for _ in range(100):
        clock.now_s += LINE_INTERVAL_S / 4
        lines.update(RunProgress(int(clock.now_s), 1000))
    assert len(console.file.getvalue().splitlines()) == 25


def test_line_says_how_many_how_fast_and_how_long_still():
    console, clock = console_of(), Clock()
    lines = ProgressLines(console, "pay.csv", clock=clock)
    clock.now_s += 20
    lines.update(RunProgress(500, 2500, {Outcome.NO_MATCH: 20, Outcome.MATCH: 480}))
    so_far = {"done_count": 500, "check_count": 2500, "rate_per_s": 25.0, "left_s": 80}
    line = f"{said('progress.so_far_and_left', **so_far)}; match 480, no match 20"
    assert console.file.getvalue() == f"pay.csv: {line}\n"


def test_parts_of_a_data_set_are_counted_every_ten_seconds():
    console, clock = console_of(), Clock()
    lines = ProgressLines(console, "pay", clock=clock)
    for done_count in range(1, 41):
        clock.now_s += LINE_INTERVAL_S / 10
        lines.count(SetStep.READ, done_count, 40)
    assert console.file.getvalue() == "".join(
        f"pay: {said('progress.parts_read', done_count=count, all_count=40)}\n" for count in (10, 20, 30, 40)
    )


def test_lines_are_in_the_language_of_the_terminal():
    console, clock = console_of(), Clock()
    speak("de")
    try:
        lines = ProgressLines(console, "pay.csv", clock=clock)
        clock.now_s += 20
        lines.update(RunProgress(500, 2500, {Outcome.MATCH: 1480}, {ApiName.COP: 0.25}))
        lines.stop(1, 15)
    finally:
        speak("en")
    said = (
        "500 von 2.500 Fragen, 25,0/s, noch 80 s; Übereinstimmung 1.480; der Server lässt weniger zu: "
        "höchstens 25 % der Rate\n"
        "pay.csv: wird angehalten; wartet bis zu 15 s auf 1 ausstehende Antwort."
    )
    assert console.file.getvalue() == f"pay.csv: {said}\n"


def test_line_before_the_first_answer_promises_nothing():
    console, clock = console_of(), Clock()
    lines = ProgressLines(console, "pay.csv", clock=clock)
    clock.now_s += 20
    lines.update(RunProgress(0, 2500))
    assert console.file.getvalue() == "pay.csv: 0 of 2,500 questions, 0.0/s\n"


def test_every_line_says_that_a_sandbox_answers():
    console, clock = console_of(), Clock()
    lines = ProgressLines(console, "pay.csv", clock=clock)
    lines.begin(simulated=True)
    clock.now_s += 20
    lines.update(RunProgress(100, 200, {Outcome.MATCH: 100}))
    assert console.file.getvalue().startswith("pay.csv SIMULATED: 100 of 200 questions")


def test_line_of_an_incomplete_first_interval_is_held_back_and_the_wait_counts_for_no_speed():
    console, clock = console_of(), Clock()
    lines = ProgressLines(console, "pay.csv", clock=clock)
    for _ in range(100):
        clock.now_s += 1
        lines.update(RunProgress(0, 0))
    clock.now_s += 10
    lines.update(RunProgress(50, 100))
    assert console.file.getvalue() == "pay.csv: 50 of 100 questions, 5.0/s, 10 s left\n"


def test_line_says_at_once_whom_the_run_waits_for_and_every_ten_seconds_that_it_still_does():
    console, clock = console_of(), Clock()
    lines = ProgressLines(console, "pay.csv", clock=clock)
    lines.wait(HOLDER)
    for _ in range(24):
        clock.now_s += 1
        lines.update(RunProgress(0, 0))
    still = said("progress.still_waiting", waiting=WAITING)
    assert console.file.getvalue().splitlines() == [f"pay.csv: {line}" for line in (WAITING, still, still)]


def test_run_that_is_to_stop_says_what_it_waits_for_in_a_whole_sentence():
    console = console_of()
    ProgressLines(console, "pay.csv", clock=Clock()).stop(1200, 8.0)
    stopping = said("progress.stopping", count=1200, wait_s=8.0)
    assert console.file.getvalue() == f"pay.csv: {stopping}\n"


def seen_of(*steps, width=100, name="pay.csv"):
    """What a terminal shows after these steps."""
    console = console_of(is_terminal=True, width=width)
    with progress(console, name) as bar:
        for step in steps:
            step(bar)
    # What is shown last is drawn once more before it goes.
    return Text.from_ansi(console.file.getvalue()).plain


def test_bar_tells_file_sandbox_numbers_and_outcomes_so_far():
    seen = seen_of(
        lambda bar: bar.begin(simulated=True),
        lambda bar: bar.update(RunProgress(1200, 5000, {Outcome.MATCH: 1100, Outcome.UNANSWERED: 100})),
    )
    assert re.search(r"pay\.csv SIMULATED .*1,200 of 5,000", seen)
    assert "  match 1,100, unanswered 100" in seen


def test_bar_that_a_thread_draws_is_in_the_language_of_the_terminal():
    console = console_of(is_terminal=True, width=100)
    with speaking("de"), progress(console, "pay.csv") as bar:
        bar.update(RunProgress(3, 3))
        drawing = Thread(target=bar._display.refresh)  # noqa: SLF001 - as Rich does
        drawing.start()
        drawing.join()
    seen = Text.from_ansi(console.file.getvalue()).plain
    assert "noch 0:00:00" in seen
    assert "left" not in seen


def test_bar_counts_the_parts_of_a_data_set_and_then_its_questions():
    steps = [lambda bar: bar.count(SetStep.READ, 3, 1040)]
    parts = said("progress.parts_read", done_count=3, all_count=1040)
    assert re.search(rf"pay\.csv .*{parts}", seen_of(*steps))
    steps += [lambda bar: bar.update(RunProgress(5, 20)), lambda bar: bar.count(SetStep.WRITTEN, 2, 1040)]
    assert said("progress.parts_written", done_count=2, all_count=1040) in seen_of(*steps)
    assert "5 of 20 " in seen_of(*steps[:2])


def test_bar_of_a_real_server_says_nothing_of_a_sandbox():
    seen = seen_of(lambda bar: bar.begin(simulated=False), lambda bar: bar.update(RunProgress(1, 2)))
    assert "1 of 2" in seen
    assert "SIMULATED" not in seen


def test_bar_says_whom_the_run_waits_for_until_it_goes_on():
    steps = [lambda bar: bar.wait(HOLDER)]
    assert WAITING in seen_of(*steps)
    steps.append(lambda bar: bar.update(RunProgress(1, 2, {Outcome.MATCH: 1})))
    assert seen_of(*steps).rstrip().endswith("match 1")


@pytest.mark.parametrize("name", ["[bold]x[/bold].csv", "{task}.csv", "\x1b[31mred.csv"])
def test_name_of_a_file_is_shown_as_text(name):
    assert visible(name) in seen_of(lambda bar: bar.update(RunProgress(1, 2)), name=name)


def test_bar_fits_a_terminal_of_80_columns_whatever_the_name_of_the_file():
    seen = seen_of(
        lambda bar: bar.begin(simulated=True),
        lambda bar: bar.update(RunProgress(1_200_000, 5_000_000, {Outcome.MATCH: 1_200_000})),
        width=80,
        name="a" * 200 + ".csv",
    )
    assert "1,200,000 of 5,000,000" in seen
    assert "SIMULATED" in seen


@pytest.mark.parametrize(("is_terminal", "kind"), [(True, ProgressBar), (False, ProgressLines)])
def test_kind_of_progress_suits_the_console(is_terminal, kind):
    with progress(console_of(is_terminal=is_terminal), "pay.csv") as watch:
        assert isinstance(watch, kind)
        watch.begin(simulated=True)
        watch.wait(HOLDER)
        watch.update(RunProgress(0, 0))
        watch.update(RunProgress(5, 10))
        watch.stop(1, 8.0)


def test_terminal_that_cannot_move_its_cursor_gets_lines():
    with progress(console_of(is_terminal=True, TERM="dumb"), "pay.csv") as watch:
        assert isinstance(watch, ProgressLines)


def test_bar_has_no_colour_where_none_is_wanted():
    console = console_of(is_terminal=True, NO_COLOR="1")
    with progress(console, "pay.csv") as watch:
        watch.begin(simulated=True)
        watch.update(RunProgress(5, 10))
    assert not re.search(r"\x1b\[[0-9;]*3[0-9][0-9;]*m", console.file.getvalue())


def test_what_is_drawn_leaves_room_for_the_echo_of_ctrl_c():
    seen = seen_of(
        lambda bar: bar.begin(simulated=True),
        lambda bar: bar.update(RunProgress(1, 5000, {Outcome.MATCH: 1})),
        lambda bar: bar.wait(HOLDER),
        width=80,
    )
    lines = [line.rstrip("\r") for line in seen.splitlines()]
    assert 60 < max(map(len, lines)) <= 80 - len("^C") - 1


def test_a_server_that_wants_fewer_requests_is_told_of_by_line_and_bar():
    clock = Clock()
    printed = io.StringIO()
    lines = ProgressLines(Console(file=printed, width=200), "pay.csv", clock=clock)
    clock.now_s += 10.0
    lines.update(RunProgress(20, 100, {Outcome.MATCH: 20}, {ApiName.COP: 7.9, ApiName.VOP_GATEWAY: 0.25}))

    fewer = said("progress.fewer_in_flight", most=7)
    assert f"{fewer}; {said('progress.lower_rate', percent=25)}" in printed.getvalue()
    seen = seen_of(lambda bar: bar.update(RunProgress(20, 100, {Outcome.MATCH: 20}, {ApiName.COP: 7.9})))
    assert fewer in seen
