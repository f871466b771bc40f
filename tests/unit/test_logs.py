"""What a machine that reads the log is told while a run goes on."""

import pytest
import structlog
from structlog.testing import capture_logs

from pipeline.cli.logs import PROGRESS_INTERVAL_S, ProgressEvents
from pipeline.runs.request import RunProgress
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
