"""The jobs that check files, called as any surface calls them: no signal, no terminal, no command line."""

import asyncio
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from refusals import refused

from pipeline.errors import InputError, StoppedError, UsageError
from pipeline.executors.event_loop import in_event_loop, new_context, watched
from pipeline.jobs.check import check
from pipeline.jobs.check_files import check_files
from pipeline.jobs.data_set import check_data_set
from pipeline.jobs.forecast import forecast_data_set
from pipeline.runs.request import (
    CheckJob,
    DataSetJob,
    Phase,
    ReusePermission,
    RunObserver,
    StopRequest,
    StopSwitch,
    Surface,
)
from pipeline.wording import Sentence

HEADER = "name,sort_code,account_number\n"
ROWS = [f"Avery Thornwood {chr(ord('A') + at % 26)}{at // 26},001122,{at:08d}\n" for at in range(400)]
REQUEST = StopRequest("stopped on the page by Mara", 130)


class Onlooker(RunObserver):
    """Keeps what it is called with, and does something as a phase begins."""

    def __init__(self, on=None):
        self.phases, self.simulated, self.updates, self.notices, self.counts = [], None, 0, [], []
        self._on = on or {}

    def enter(self, phase):
        self.phases.append(phase)
        self._on.get(phase, lambda: None)()

    def count(self, step, done_count, all_count):
        self.counts.append((step.value, done_count, all_count))

    def begin(self, *, simulated):
        self.simulated = simulated

    def wait(self, holder):
        raise AssertionError(holder)

    def update(self, *_numbers):
        self.updates += 1


@pytest.fixture
def checked(tmp_path, monkeypatch):
    """Check a file of so many payments against the embedded sandbox."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(row_count, watch, stop):
        file = tmp_path / "pay.csv"
        file.write_text("".join([HEADER, *ROWS[:row_count]]))
        return check(
            CheckJob(file, tmp_path / "out"),
            Surface(watch, lambda: datetime.now(UTC), stop, watch.notices.append),
        )

    return run


def test_the_phases_of_a_run_are_entered_in_order(checked):
    watch = Onlooker()

    result = checked(2, watch, StopSwitch())

    assert watch.phases == list(Phase)
    assert (result.ended_by, watch.simulated) == (None, True)
    assert watch.updates


def test_a_run_that_had_finished_is_read_and_no_more(checked):
    checked(2, Onlooker(), StopSwitch())
    again = Onlooker()

    assert checked(2, again, StopSwitch()).already_finished
    assert again.phases == [Phase.READING]


def test_a_workbook_that_was_changed_is_kept_and_the_surface_is_notified(checked, tmp_path):
    checked(2, Onlooker(), StopSwitch())
    (tmp_path / "out" / "report.xlsx").write_bytes(b"decided")
    (tmp_path / "out" / "outcomes.csv").unlink()
    again = Onlooker()

    checked(2, again, StopSwitch())

    [notice] = again.notices
    assert notice.message == Sentence("jobs.notice_workbook_kept")
    assert Path(notice.facts["kept_as"]).read_bytes() == b"decided"


def test_a_request_from_another_thread_ends_the_asking_and_leaves_an_outcome_for_each_row(checked, tmp_path):
    stop = StopSwitch()
    wishing = threading.Thread(target=lambda: stop.request(REQUEST))

    result = checked(400, Onlooker({Phase.CONNECTING: wishing.start}), stop)

    assert isinstance(result.ended_by, StoppedError)
    assert (str(result.ended_by), result.ended_by.exit_code) == (f"pay.csv: {REQUEST.sentence}", 130)
    assert not result.summary.complete
    assert len((tmp_path / "out" / "outcomes.csv").read_text().splitlines()) == 401


def test_a_second_wish_ends_the_run_at_once_and_the_next_run_goes_on(checked, tmp_path):
    stop = StopSwitch()

    def wish_twice():
        stop.request(REQUEST)
        stop.request(REQUEST)

    with refused(StoppedError, "executors.stopped", why="stopped on the page by Mara"):
        checked(2, Onlooker({Phase.CONNECTING: wish_twice}), stop)
    assert not (tmp_path / "out" / "outcomes.csv").exists()
    assert checked(2, Onlooker(), StopSwitch()).summary.complete


def test_a_wish_is_watched_while_questions_are_asked_and_at_no_other_time(checked):
    stop, watched = StopSwitch(), {}
    looks = {phase: lambda phase=phase: watched.update({phase: stop.is_watched}) for phase in Phase}

    checked(2, Onlooker(looks), stop)

    assert [phase for phase in Phase if watched[phase]] == [Phase.CONNECTING, Phase.ASKING]


# Several files


@pytest.fixture
def several(tmp_path, monkeypatch):
    """Check files of so many payments each (None: no file); `on`: what to do at a phase of the first."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(stop, *row_counts, on=None, **options):
        jobs = []
        for number, row_count in enumerate(row_counts):
            file = tmp_path / f"{number}.csv"
            if row_count is not None:
                file.write_text("".join([HEADER, *ROWS[:row_count]]))
            jobs.append(CheckJob(file, tmp_path / f"out-{number}", **options))

        @contextmanager
        def surfaces(job):
            watch = Onlooker(on if job is jobs[0] else None)
            yield Surface(watch, lambda: datetime.now(UTC), stop, watch.notices.append)

        return check_files(jobs, surfaces)

    return run


def test_a_file_that_cannot_be_checked_keeps_no_other_from_it(several):
    missing, there = several(StopSwitch(), None, 1)

    assert isinstance(missing.end, InputError)
    assert missing.result is None
    assert there.end is None
    assert there.result.summary.complete


def test_a_mistake_with_one_file_keeps_no_other_from_being_checked(several):
    def mistake():
        raise KeyError("a name")

    broken, there = several(StopSwitch(), 1, 1, on={Phase.READING: mistake})

    assert (type(broken.end), broken.result) == (KeyError, None)
    assert there.result.summary.complete


def test_a_request_to_stop_is_reported_for_its_file_and_ends_them_all(several):
    stop = StopSwitch()
    files = several(stop, 400, 1, on={Phase.CONNECTING: lambda: stop.request(REQUEST)})

    first = next(files)
    assert isinstance(first.end, StoppedError)
    assert not first.result.summary.complete
    with pytest.raises(StoppedError):
        next(files)


def test_what_concerns_every_file_is_raised(several, tmp_path):
    with refused(UsageError, "stores.no_ledger_in_folder"):
        next(several(StopSwitch(), 1, 1, reusable=ReusePermission([tmp_path])))


def test_parts_and_buckets_of_a_data_set_are_counted_as_they_are_done(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    data, watch = tmp_path / "pay", Onlooker()
    data.mkdir()
    for part in range(3):
        (data / f"{part}.csv").write_text("".join([HEADER, *ROWS[4 * part : 4 * part + 4]]))
    job = DataSetJob(CheckJob(data, tmp_path / "out"), tmp_path / "work")
    check_data_set(job, Surface(watch, lambda: datetime.now(UTC), StopSwitch(), watch.notices.append))
    assert watch.counts == [
        (step, done_count, all_count)
        for step, all_count in (("parts read", 3), ("buckets planned", 4), ("parts written", 3))
        for done_count in range(1, all_count + 1)
    ]


def test_a_data_set_is_read_as_the_section_of_its_name_says(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    data, config, watch = tmp_path / "pay-11", tmp_path / "precheck.toml", Onlooker()
    data.mkdir()
    (data / "0.csv").write_bytes("Wer;Wohin\nŁukasz Żółw;DE62370400440532013001\n".encode("cp1250"))
    section = '[inputs.pay]\nmatch = "pay-*"\nencoding = "cp1250"\nmap = { name = "Wer", iban = "Wohin" }\n'
    config.write_text(section, "utf-8")
    job = DataSetJob(CheckJob(data, tmp_path / "out", config=config), tmp_path / "work")
    surface = Surface(watch, lambda: datetime.now(UTC), StopSwitch(), watch.notices.append)
    forecast_data_set(job, surface.clock)
    check_data_set(job, surface)
    left = [path.read_bytes() for path in (tmp_path / "out").rglob("*0.csv")]
    assert any("Łukasz Żółw".encode() in each for each in left)
    config.write_text(section + 'sheet = "Payments"\n', "utf-8")
    with refused(UsageError, "jobs.option_not_for_data_sets", option="--sheet"):
        check_data_set(job, surface)


@pytest.mark.parametrize(("said", "is_shown"), [({"transport": object()}, False), ({}, True)])
def test_a_connection_that_breaks_while_it_is_closed_is_no_traceback(caplog, said, is_shown):
    """Libraries report to the loop what no task can be told of; a mistake of ours is reported as ever."""
    surface = Surface(Onlooker(), lambda: datetime.now(UTC), StopSwitch(), [].append)

    async def asking():
        error = RuntimeError("unable to perform operation")
        context = {"message": "Fatal error on SSL protocol", "exception": error, **said}
        asyncio.get_running_loop().call_exception_handler(context)

    assert in_event_loop(partial(watched, asking, new_context(surface), surface)) is None
    assert ("Fatal error on SSL protocol" in caplog.text) == is_shown
