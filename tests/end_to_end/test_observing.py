"""What a run shows of itself while it works: metrics on a port, traces at a collector."""

import gzip
import socket
import threading
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from prometheus_client.parser import text_string_to_metric_families
from refusals import said

ROWS = [
    {
        "payment_id": f"P{number}",
        "name": name,
        "account_type": "Personal",
        "sort_code": "001122",
        "account_number": "00012345",
        "amount": "10.00",
        "currency": "GBP",
    }
    for number, name in enumerate(["Avery Thornwood", "Rowan Blackmere"])
]


class Collector:
    """An OpenTelemetry collector on loopback: what it was sent, and by whom."""

    def __init__(self, status) -> None:
        self.bodies, self.paths = [], []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.paths.append(self.path)
                collector.bodies.append(
                    gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body
                )
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_words):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def served(self):
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    @property
    def resources(self):
        for body in self.bodies:
            yield from ExportTraceServiceRequest.FromString(body).resource_spans

    @property
    def spans(self):
        return [span for resource in self.resources for scope in resource.scope_spans for span in scope.spans]


def facts_of(attributes):
    return {each.key: each.value.string_value or each.value.int_value for each in attributes}


@pytest.fixture
def collector():
    """`with collector(status) as collector`."""
    return lambda status=200: Collector(status).served()


def free_port():
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        return taken.getsockname()[1]


def figures(port):
    """Name -> value, of the CoP metrics that a process serves; none before it does."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics") as reply:
            text = reply.read().decode()
    except URLError:
        return {}
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("api") == "cop" and sample.labels["profile"] == "mine"
    }


def test_metrics_are_served_while_a_run_works(desk, tmp_path, serve, network_payments, wait_until):
    port = free_port()
    with serve(tmp_path / "slow", "--latency", 0.2, "--latency-spread", 0) as slow:
        file = desk.payments(network_payments(400))
        words = desk.using(cop=slow.section(rate_per_s=100, in_flight_max=16))
        with desk.start("run", file, "--metrics-listen", f"127.0.0.1:{port}", *words) as running:
            wait_until(lambda: figures(port).get("precheck_live_requests_total", 0) > 16)
            found = figures(port)
            running.send_signal(15)
            ended = running.end()
    assert ended.status == 143
    assert 1 <= found["precheck_live_in_flight"] <= 16
    assert found["precheck_live_places"] == 16
    assert 0 < found["precheck_live_rate_per_second"] <= 100
    assert figures(port) == {}


@pytest.mark.parametrize("address", ["9464", "localhost:9464", "127.0.0.1:0", "127.0.0.1:70000", "[::1]"])
def test_an_address_that_is_none_is_refused(desk, address):
    desk.payments(ROWS)
    finished = desk("run", "payments.csv", "--metrics-listen", address)
    assert finished.status == 2
    assert said("cli.not_an_address_and_port") in finished.err


def test_a_trace_has_the_steps_of_a_question_and_nothing_about_the_payee(desk, sandbox, collector):
    file = desk.payments(ROWS)
    with collector() as heard:
        finished = desk(
            *("run", file, "--traces", *sandbox.using("sandbox")),
            OTEL_EXPORTER_OTLP_ENDPOINT=heard.url,
            OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
        )
    assert finished.status == 0
    assert set(heard.paths) == {"/v1/traces"}
    spans = heard.spans
    checks = [span for span in spans if span.name == "check"]
    outcomes = {row["check_id"]: row for row in desk.outcomes()}
    assert len(checks) == len(outcomes) == 2
    for check in checks:
        facts = facts_of(check.attributes)
        row = outcomes[facts["precheck.request_id"]]
        assert facts == {
            "precheck.api": "cop",
            "precheck.profile": "sandbox",
            "precheck.state": "answered",
            "precheck.code": row["check_code"],
            "precheck.outcome": row["check_outcome"],
            "precheck.attempts": 1,
            "precheck.request_id": row["check_id"],
        }
        steps = sorted(
            (span for span in spans if span.parent_span_id == check.span_id),
            key=lambda span: span.start_time_unix_nano,
        )
        assert [step.name for step in steps] == ["wait", "intent", "request", "record"]
        assert {step.trace_id for step in steps} == {check.trace_id}
        assert facts_of(steps[1].attributes) == {
            "precheck.attempt": 1,
            "precheck.request_id": row["check_id"],
        }
        assert steps[2].kind == Span.SpanKind.SPAN_KIND_CLIENT
        assert facts_of(steps[2].attributes) == {"http.response.status_code": 200}
    resource = facts_of(next(heard.resources).resource.attributes)
    assert resource["service.name"] == "payee-precheck"
    assert resource["deployment.environment.name"] == "test"
    for secret in (b"Thornwood", b"Blackmere", b"00012345", b"001122"):
        assert not any(secret in body for body in heard.bodies)


def test_a_request_that_fails_is_marked_in_the_trace_and_is_followed_by_another(
    desk, tmp_path, serve, collector, network_payments
):
    file = desk.payments(network_payments(1))
    with serve(tmp_path / "own", "--fault", "500:first=1") as own, collector() as heard:
        desk(
            *("run", file, *own.using("sandbox")),
            PRECHECK_TRACES="1",
            OTEL_EXPORTER_OTLP_ENDPOINT=heard.url,
        )
    steps = sorted((span for span in heard.spans), key=lambda span: span.start_time_unix_nano)
    assert [step.name for step in steps] == ["check", *2 * ["wait", "intent", "request", "record"]]
    failed, answered = (span for span in steps if span.name == "request")
    assert facts_of(failed.attributes) == {"http.response.status_code": 500, "error.type": "500"}
    assert failed.status.code == Status.StatusCode.STATUS_CODE_ERROR
    assert answered.status.code == Status.StatusCode.STATUS_CODE_UNSET
    assert facts_of(steps[0].attributes)["precheck.attempts"] == 2


@pytest.mark.nightly
def test_a_collector_that_takes_nothing_is_one_warning_and_changes_nothing_else(desk, sandbox, collector):
    file = desk.payments(ROWS)
    with collector(status=400) as heard:
        words = ("run", file, "--quiet", *sandbox.using("sandbox"))
        refused = desk(*words, PRECHECK_TRACES="1", OTEL_EXPORTER_OTLP_ENDPOINT=heard.url)
    away = desk(
        *(*words, "--fresh", "--traces"),
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1",
        OTEL_EXPORTER_OTLP_TIMEOUT="0.2",
    )
    for finished in (refused, away):
        assert finished.status == 0
        assert finished.err.count("traces are lost") == 1
        assert len(finished.err.splitlines()) == 2  # the other one: a sandbox answered


def test_a_protocol_that_is_not_ours_is_refused(desk):
    desk.payments(ROWS)
    finished = desk("run", "payments.csv", "--traces", OTEL_EXPORTER_OTLP_PROTOCOL="grpc")
    assert finished.status == 78
    expected = said(
        "executors.trace_protocol_unsupported",
        variable="OTEL_EXPORTER_OTLP_PROTOCOL",
        wanted="'grpc'",
        protocol="http/protobuf",
    )
    assert expected in finished.err


@pytest.mark.nightly
def test_nothing_of_it_is_imported_where_it_is_not_asked_for(desk, sandbox):
    file = desk.payments(ROWS)
    with desk.start(
        "run", file, "--metrics", "m.prom", *sandbox.using("sandbox"), PYTHONPROFILEIMPORTTIME="1"
    ) as running:
        finished = running.end()
    assert finished.status == 0
    assert "pipeline.stages.ask" in finished.err
    assert "opentelemetry" not in finished.err
    assert "prometheus_client" not in finished.err
