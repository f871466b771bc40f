"""The job that checks a file, called as any surface calls it: no signal, no terminal, no command line."""

import threading
from datetime import UTC, datetime

import pytest

from pipeline.errors import StoppedError
from pipeline.jobs.check import check
from pipeline.runs.request import Job, Phase, Stop, Surface, Wish

HEADER = "name,sort_code,account_number\n"
ROWS = [f"Avery Thornwood {chr(ord('A') + at % 26)}{at // 26},001122,{at:08d}\n" for at in range(400)]
WISH = Wish("stopped on the page by Mara", 130)


class Onlooker:
    """Keeps what it is told, and does something as a phase begins."""

    def __init__(self, on=None):
        self.phases, self.simulated, self.updates = [], None, 0
        self._on = on or {}

    def enter(self, phase):
        self.phases.append(phase)
        self._on.get(phase, lambda: None)()

    def begin(self, *, simulated):
        self.simulated = simulated

    def wait(self, holder):
        raise AssertionError(holder)

    def update(self, *_numbers):
        self.updates += 1

    def stop(self, *_numbers):
        pass


@pytest.fixture
def checked(tmp_path, monkeypatch):
    """Check a file of so many payments against the embedded sandbox."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(row_count, watch, stop):
        file = tmp_path / "pay.csv"
        file.write_text("".join([HEADER, *ROWS[:row_count]]))
        return check(Job(file, tmp_path / "out"), Surface(watch, lambda: datetime.now(UTC), stop))

    return run


def test_the_phases_of_a_run_are_entered_in_order(checked):
    watch = Onlooker()

    result = checked(2, watch, Stop())

    assert watch.phases == list(Phase)
    assert (result.ended_by, watch.simulated) == (None, True)
    assert watch.updates


def test_a_run_that_had_finished_is_read_and_no_more(checked):
    checked(2, Onlooker(), Stop())
    again = Onlooker()

    assert checked(2, again, Stop()).already_finished
    assert again.phases == [Phase.READING]


def test_a_wish_from_another_thread_ends_the_asking_and_leaves_an_outcome_for_each_row(checked, tmp_path):
    stop = Stop()
    wishing = threading.Thread(target=lambda: stop.wish(WISH))

    result = checked(400, Onlooker({Phase.CONNECTING: wishing.start}), stop)

    assert isinstance(result.ended_by, StoppedError)
    assert (str(result.ended_by), result.ended_by.exit_code) == (f"pay.csv: {WISH.said}", 130)
    assert not result.summary.complete
    assert len((tmp_path / "out" / "outcomes.csv").read_text().splitlines()) == 401


def test_a_second_wish_ends_the_run_at_once_and_the_next_run_goes_on(checked, tmp_path):
    stop = Stop()

    def wish_twice():
        stop.wish(WISH)
        stop.wish(WISH)

    with pytest.raises(StoppedError, match="stopped on the page by Mara"):
        checked(2, Onlooker({Phase.CONNECTING: wish_twice}), stop)
    assert not (tmp_path / "out" / "outcomes.csv").exists()
    assert checked(2, Onlooker(), Stop()).summary.complete


def test_a_wish_is_heeded_while_questions_are_asked_and_at_no_other_time(checked):
    stop, heeded = Stop(), {}
    looks = {phase: lambda phase=phase: heeded.update({phase: stop.is_heeded}) for phase in Phase}

    checked(2, Onlooker(looks), stop)

    assert [phase for phase in Phase if heeded[phase]] == [Phase.CONNECTING, Phase.ASKING]
