"""The metrics of a process while it works, read by the official parser."""

import socket
from contextlib import closing
from types import SimpleNamespace
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from pipeline.cli.monitoring import ObservingTargets, observed
from pipeline.executors.live_metrics import LiveMetrics
from pipeline.frames import Answer, AnswerState
from pipeline.stages.ask.values import AskingTally, End, Intend, Receive, Record, Send, Wait
from schemas.outcomes import ApiName, Outcome

LABELS = {"host": "pay1", "profile": "production"}
ANSWER = Answer(1, AnswerState.ANSWERED, "ANNM", "A Name", "id", "2030-01-01T12:00:00Z", 1)


class Clock:
    """Seconds that pass as a test says."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self):
        return self.now

    def wait(self, wait_s):
        self.now += wait_s


def channel(rate_per_s, window):
    return SimpleNamespace(
        pace=SimpleNamespace(rate_per_s=rate_per_s), concurrency=SimpleNamespace(window=window)
    )


def samples(text, **labels):
    """Name and further labels -> value, of the samples that have these labels."""
    return {
        (sample.name, *(value for name, value in sample.labels.items() if name not in labels)): sample.value
        for family in text_string_to_metric_families(bytes(text).decode())
        for sample in family.samples
        if labels.items() <= sample.labels.items()
    }


def test_a_question_is_counted_by_its_waits_its_replies_and_its_outcome():
    clock = Clock()
    metrics = LiveMetrics(LABELS, clock=clock)
    question = metrics.follow(ApiName.COP)
    for attempt, reply in ((1, "deadline"), (2, "200")):
        question(Wait())
        clock.wait(2)
        question(Wait())  # postponed: it goes on waiting
        clock.wait(1)
        question(Intend(attempt, "id"))
        clock.wait(0.25)
        question(Send())
        clock.wait(0.5)
        question(Receive(reply))
        clock.wait(0.125)
        question(Record())
        clock.wait(60)  # before it is sent again: no wait for a slot
    question(End(ANSWER, Outcome.NO_MATCH))

    found = samples(metrics.text(), api="cop", **LABELS)

    assert found["precheck_live_requests_total",] == 2
    assert found["precheck_live_repeats_total",] == 1
    assert found["precheck_live_answers_total", "no_match"] == 1
    assert found["precheck_live_slot_wait_seconds_sum",] == 6
    assert found["precheck_live_ledger_seconds_sum", "intent"] == 0.5
    assert found["precheck_live_ledger_seconds_sum", "reply"] == 0.25
    assert found["precheck_live_reply_seconds_sum", "200"] == 0.5
    assert found["precheck_live_reply_seconds_count", "deadline"] == 1
    assert found["precheck_live_in_flight",] == 0


def test_what_never_left_is_no_request():
    metrics = LiveMetrics(LABELS)
    question = metrics.follow(ApiName.COP)
    question(Wait())
    question(Intend(1, "id"))
    question(Send())
    assert samples(metrics.text(), api="cop", **LABELS)["precheck_live_in_flight",] == 1
    question(Receive("held"))
    found = samples(metrics.text(), api="cop", **LABELS)
    assert (found["precheck_live_requests_total",], found["precheck_live_in_flight",]) == (0, 0)


def test_limits_are_those_of_the_runs_that_are_asked_now_and_pauses_are_never_forgotten():
    metrics, tally = LiveMetrics(LABELS), AskingTally()

    def found():
        return samples(metrics.text(), api="cop", **LABELS)

    with metrics.asking({ApiName.COP: channel(20.0, 32.0)}, tally):
        tally.pauses[ApiName.COP] = 2
        question = metrics.follow(ApiName.COP)
        question(Wait())
        question(Intend(1, "id"))
        question(Send())
        assert (found()["precheck_live_rate_per_second",], found()["precheck_live_places",]) == (20, 32)
        assert found()["precheck_live_pauses_total",] == 2
    assert (found()["precheck_live_rate_per_second",], found()["precheck_live_places",]) == (0, 0)
    assert found()["precheck_live_in_flight",] == 0
    with metrics.asking({ApiName.COP: channel(10.0, 8.0)}, AskingTally()):
        assert found()["precheck_live_pauses_total",] == 2
        assert ("precheck_live_pauses_total",) not in samples(metrics.text(), api="vop_gateway", **LABELS)


def ask_once(metrics):
    question = metrics.follow(ApiName.COP)
    question(Wait())
    question(Intend(1, "id"))
    question(Send())
    question(Receive("200"))
    question(Record())


def requests_in(text):
    found = samples(text, host=socket.gethostname(), profile="production", process="worker-1")
    return found.get(("precheck_live_requests_total", "cop"))


def test_a_file_is_rewritten_while_the_process_works_and_when_it_ends(tmp_path, wait_until):
    path = tmp_path / "worker-1.prom"
    with observed(ObservingTargets("production", file=path, file_interval_s=0.01)) as metrics:
        for count in (1, 2):
            ask_once(metrics)
            wait_until(lambda: path.exists() and requests_in(path.read_bytes()) == count)  # noqa: B023
    with observed(ObservingTargets("production", file=path, file_interval_s=3600)) as metrics:
        wait_until(lambda: requests_in(path.read_bytes()) is None)
        ask_once(metrics)
    assert requests_in(path.read_bytes()) == 1
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_file_that_cannot_be_written_is_one_warning(tmp_path, wait_until):
    targets = ObservingTargets("production", file=tmp_path / "gone" / "w.prom", file_interval_s=0.01)
    with capture_logs() as logs, observed(targets):
        wait_until(lambda: logs)
    assert [line["event"] for line in logs] == ["the metrics file cannot be written"]


def test_metrics_are_served_while_the_process_works_and_no_longer():
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        listen = ("127.0.0.1", port)
        with (
            capture_logs() as logs,
            observed(ObservingTargets("production", metrics_listen=listen)) as metrics,
        ):
            ask_once(metrics)  # though nobody can see it
        assert [line["event"] for line in logs] == ["metrics cannot be served"]
    with observed(ObservingTargets(None, metrics_listen=listen)) as metrics:
        ask_once(metrics)
        with urlopen(f"http://127.0.0.1:{port}/metrics") as reply:
            found = samples(reply.read(), host=socket.gethostname(), profile="sandbox")
    assert found["precheck_live_requests_total", "cop"] == 1
    with pytest.raises(URLError):
        urlopen(f"http://127.0.0.1:{port}/metrics")


def test_without_anything_to_report_there_is_no_observer():
    with observed(ObservingTargets("production")) as observer:
        assert observer is None
