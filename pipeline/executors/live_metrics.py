"""Prometheus metrics of a running process. No label says anything about a payee."""

import time
from collections import Counter as Counts
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from typing import NamedTuple, assert_never

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pipeline.stages.ask import values
from schemas.outcomes import ApiName, Outcome

SLOT_BUCKETS_S = (0.001, 0.01, 0.1, 0.5, 1, 5, 30, 60, 300)
LEDGER_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30, 300)
"""From a commit to a local disk up to an unavailable database."""
REPLY_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10)
"""The schemes require answers within one second, and banks time out after five or seven."""

HELD = "held"
"""The kind of reply for a request that was not sent, because the server had just asked for a pause."""


class RunInProgress(NamedTuple):
    """The run in progress, as the metrics need it."""

    channels: Mapping[ApiName, values.ApiChannel]
    tally: values.AskingTally
    pauses_before: Counts[ApiName]

    @property
    def pauses(self) -> Counts[ApiName]:
        """Pauses since the run began."""
        pauses = self.tally.pauses.copy()
        pauses.subtract(self.pauses_before)
        return pauses


class LiveMetrics(Collector):
    """The metrics of this process; an `AskingObserver`."""

    def __init__(self, labels: Mapping[str, str], *, clock: Callable[[], float] = time.monotonic) -> None:
        """Start counting; all metrics have these labels, such as `host` and `profile`."""
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.clock = clock
        self._labels = dict(labels)
        self._now: list[RunInProgress] = []
        self._pauses: Counts[ApiName] = Counts()  # pauses in earlier runs
        own = ["api", *labels]
        requests = _named("requests", "Completed requests, retries included.")
        self._requests = Counter(*requests, own, registry=self.registry)
        self._repeats = Counter(*_named("repeats", "Retries among them."), own, registry=self.registry)
        answers = _named("answers", "Completed questions, by outcome.")
        self._answers = Counter(*answers, [*own, "outcome"], registry=self.registry)
        self._in_flight = Gauge(*_named("in_flight", "Requests in flight."), own, registry=self.registry)
        slots = _named("slot_wait_seconds", "Waits of a question until its request may leave.")
        self._slots = Histogram(*slots, own, buckets=SLOT_BUCKETS_S, registry=self.registry)
        replies = _named("reply_seconds", "Waits for a reply, by HTTP status or kind of failure.")
        self._replies = Histogram(*replies, [*own, "reply"], buckets=REPLY_BUCKETS_S, registry=self.registry)
        commits = _named("ledger_seconds", "Waits for a durable write of an intent or a reply.")
        self._commits = Histogram(*commits, [*own, "write"], buckets=LEDGER_BUCKETS_S, registry=self.registry)
        self._of_api = cache(self._bound)
        info = Gauge(*_named("info", "Version of the tool."), ["version", *labels], registry=self.registry)
        info.labels(version=version("payee-precheck"), **self._labels).set(1)
        self.registry.register(self)

    @contextmanager
    def asking(
        self, channels: Mapping[ApiName, values.ApiChannel], tally: values.AskingTally
    ) -> Iterator[None]:
        """Show the limits and the pauses of this run during the block."""
        run = RunInProgress(channels, tally, tally.pauses.copy())
        self._pauses.update(dict.fromkeys(channels, 0))  # so that no API is missing
        self._now.append(run)
        try:
            yield
        finally:
            self._now.remove(run)
            self._pauses.update(run.pauses)
            for api in channels:  # requests in flight are abandoned at a stop
                self._of_api(api).in_flight.set(0)

    def follow(self, api: ApiName) -> values.Follow:
        """Count one question."""
        return _QuestionMetrics(self._of_api(api), self.clock).event

    def text(self) -> bytes:
        """Return all metrics in the text format."""
        return prometheus_client.generate_latest(self.registry)

    @contextmanager
    def served(self, host: str, port: int) -> Iterator[None]:
        """Serve the metrics from a thread during the block (OSError: it cannot listen there)."""
        server, thread = prometheus_client.start_http_server(port, host, registry=self.registry)
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics; may be called from another thread."""
        runs = list(self._now)
        pauses = self._pauses.copy()
        rates, windows, closed = (dict.fromkeys(pauses, 0.0) for _ in range(3))
        for run in runs:
            pauses.update(run.pauses)
            for api, channel in run.channels.items():
                rates[api] += channel.pace.rate_per_s
                windows[api] += channel.concurrency.window
                closed[api] += api in run.tally.closures
        names = ["api", *self._labels]
        total = CounterMetricFamily(*_named("pauses", "Pauses that the server asked for."), labels=names)
        for api, count in pauses.items():
            total.add_metric([api.value, *self._labels.values()], count)
        yield total
        for name, meaning, numbers in (
            ("rate_per_second", "The rate that this process may use now.", rates),
            ("places", "Requests that this process may have in flight now.", windows),
            ("closed", "1 if this run sends nothing more to the API.", closed),
        ):
            gauge = GaugeMetricFamily(*_named(name, meaning), labels=names)
            for api, number in numbers.items():
                gauge.add_metric([api.value, *self._labels.values()], number)
            yield gauge

    def _bound(self, api: ApiName) -> "_ApiMetrics":
        labels = {"api": api.value, **self._labels}
        return _ApiMetrics(
            self._requests.labels(**labels),
            self._repeats.labels(**labels),
            cache(lambda outcome: self._answers.labels(outcome=outcome.value, **labels)),
            self._in_flight.labels(**labels),
            self._slots.labels(**labels),
            cache(lambda reply: self._replies.labels(reply=reply, **labels)),
            self._commits.labels(write="intent", **labels),
            self._commits.labels(write="reply", **labels),
        )


def _named(name: str, meaning: str) -> tuple[str, str]:
    return f"precheck_live_{name}", meaning


class _ApiMetrics(NamedTuple):
    requests: Counter
    repeats: Counter
    answers: Callable[[Outcome], Counter]
    in_flight: Gauge
    slots: Histogram
    replies: Callable[[str], Histogram]
    intents: Histogram
    records: Histogram


class _QuestionMetrics:
    __slots__ = ("_clock", "_of_api", "_since")

    def __init__(self, of_api: _ApiMetrics, clock: Callable[[], float]) -> None:
        self._of_api = of_api
        self._clock = clock
        self._since: float | None = None  # when its current step began; None if it has none

    def event(self, event: values.QuestionEvent) -> None:
        of_api = self._of_api
        match event:
            case values.Wait():
                if self._since is None:  # a postponed question is already waiting
                    self._since = self._clock()
            case values.Intend(attempt):
                if attempt > 1:
                    of_api.repeats.inc()
                of_api.slots.observe(self._step_s())
            case values.Send():
                of_api.intents.observe(self._step_s())
                of_api.in_flight.inc()
            case values.Receive(reply):
                if reply != HELD:
                    of_api.requests.inc()
                of_api.in_flight.dec()
                of_api.replies(reply).observe(self._step_s())
            case values.Record():
                of_api.records.observe(self._step_s())
                self._since = None
            case values.End(_, outcome):
                of_api.answers(outcome).inc()
            case _:
                assert_never(event)

    def _step_s(self) -> float:
        assert self._since is not None
        began, self._since = self._since, self._clock()
        return self._since - began
