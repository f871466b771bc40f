"""What a machine that reads the log is told while a run goes on."""

import re
from contextlib import redirect_stderr
from io import StringIO

import pytest
import structlog
from rich.console import Console
from structlog.testing import capture_logs

from pipeline.cli.logs import PROGRESS_INTERVAL_S, ProgressEvents, log_to_stderr
from pipeline.cli.progress import progress
from pipeline.runs.request import RunProgress, SetStep
from pipeline.stores.values import LeaseHolder
from schemas.outcomes import Outcome


@pytest.fixture(autouse=True)
def _usual_levels():
    """A command that another test called in this process may have been a quiet one."""
    structlog.reset_defaults()


def test_log_tells_every_ten_seconds_what_became_of_the_questions_so_far():
    now = iter([0.0, 1.0, PROGRESS_INTERVAL_S, PROGRESS_INTERVAL_S + 1])
    with capture_logs() as events:
        watch = ProgressEvents(clock=lambda: next(now))
        watch.begin(simulated=True)
        for done_count in (10, 20, 30):
            watch.update(RunProgress(done_count, 40, {Outcome.MATCH: done_count}))
    [event] = events
    assert event == {
        "event": "progress",
        "log_level": "info",
        "done_count": 20,
        "check_count": 40,
        "outcome_counts": {"match": 20},
    }


def test_log_counts_the_parts_of_a_data_set_every_ten_seconds():
    now = iter([0.0, 1.0, PROGRESS_INTERVAL_S, PROGRESS_INTERVAL_S + 1])
    with capture_logs() as events:
        watch = ProgressEvents(clock=lambda: next(now))
        for done_count in (1, 2, 3):
            watch.count(SetStep.WRITTEN, done_count, 4)
    [event] = events
    assert (event["counted"], event["done_count"], event["all_count"]) == ("parts written", 2, 4)


def test_log_tells_whom_a_run_waits_for_and_what_for_when_it_is_to_stop():
    with capture_logs() as events:
        ProgressEvents().wait(LeaseHolder("cop.example:443", 4242, "2030-01-02T03:04:05Z"))
        ProgressEvents().stop(3, 8.0)
    waiting, stopping = events
    assert (waiting["event"], waiting["server"], waiting["pid"]) == (
        "waiting for another run",
        "cop.example:443",
        4242,
    )
    assert (stopping["event"], stopping["requests_in_flight"]) == ("stopping", 3)


class Terminal(StringIO):
    """Standard error of a person."""

    def isatty(self):
        return True


@pytest.mark.parametrize("is_quiet", [False, True])
def test_on_a_terminal_an_event_is_a_sentence_above_the_bar_which_stays_whole(is_quiet):
    terminal = Terminal()
    console = Console(file=terminal, force_terminal=True, width=80)
    with redirect_stderr(terminal):
        log_to_stderr("text", quiet=is_quiet)
        with progress(console, "payments.csv") as watch:
            watch.update(RunProgress(10, 40))
            structlog.get_logger().warning("the ledger's database does not answer", server="db:5432")
            watch.update(RunProgress(20, 40))
    structlog.reset_defaults()

    said = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    lines = [line.strip() for line in re.split(r"[\r\n]+", said) if line.strip()]
    alone = [line for line in lines if "database" in line]
    assert alone == (
        [] if is_quiet else ["precheck: the ledger's database does not answer (server: db:5432)"]
    )


def test_in_a_log_an_event_is_a_line_with_its_time(capsys):
    log_to_stderr("text", quiet=False)
    structlog.get_logger().warning("the ledger's database does not answer", server="db:5432")
    structlog.reset_defaults()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ the ledger's database does not answer \(server: db:5432\)\n",
        capsys.readouterr().err,
    )
