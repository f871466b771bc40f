"""OpenTelemetry traces: spans for questions, waits, commits and requests, without a name or account."""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import assert_never

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context

from pipeline.errors import ConfigurationError
from pipeline.frames import AnswerState
from pipeline.stages.ask import values
from pipeline.wording import Sentence
from schemas.outcomes import ApiName

FLUSH_MAX_S = 5.0  # how long a command waits at its end for the collector to accept the last spans
SERVICE = "payee-precheck"
PROTOCOL = "http/protobuf"
_PROTOCOL_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


LEFT = "left"  # the state of a question that stayed unanswered, because of a stop or another process


class Traces:
    """Traces of questions; an `AskingObserver`."""

    def __init__(self, tracer: Tracer, profile: str) -> None:
        self._tracer = tracer
        self._profile = profile
        self._open: set[_QuestionTrace] = set()

    @contextmanager
    def asking(
        self, channels: Mapping[ApiName, values.ApiChannel], tally: values.AskingTally
    ) -> Iterator[None]:
        """Close the spans that are still open at the end; each question begins its own."""
        del channels, tally
        try:
            yield
        finally:
            while self._open:
                self._open.pop().leave()

    def follow(self, api: ApiName) -> values.Follow:
        """Begin the span of a question."""
        attributes = {"precheck.api": api.value, "precheck.profile": self._profile}
        span = self._tracer.start_span("check", attributes=attributes)
        trace = _QuestionTrace(self._tracer, span, self._open.discard)
        self._open.add(trace)
        return trace.event


class _QuestionTrace:
    __slots__ = ("_context", "_ended", "_span", "_step", "_tracer")

    def __init__(self, tracer: Tracer, span: Span, ended: "Callable[[_QuestionTrace], None]") -> None:
        self._tracer = tracer
        self._span = span
        self._ended = ended
        self._context = set_span_in_context(span)
        self._step: Span | None = None

    def event(self, event: values.QuestionEvent) -> None:
        """Begin and end the question's steps; a wait before the next attempt is a gap."""
        match event:
            case values.Wait():
                if self._step is None:  # a postponed question is already waiting
                    self._begin("wait")
            case values.Intend(attempt, request_id):
                self._begin("intent", {"precheck.attempt": attempt, "precheck.request_id": request_id})
            case values.Send():
                self._begin("request", kind=SpanKind.CLIENT)
            case values.Receive(reply):
                if self._step is not None:
                    _name_reply(self._step, reply)
                self._begin("record")
            case values.Record():
                self._end_step()
            case values.End():
                self._complete(event)
            case _:
                assert_never(event)

    def _complete(self, end: values.End) -> None:
        answer, outcome = end
        self._span.set_attributes(
            {
                "precheck.state": answer.state.value,
                "precheck.code": str(answer.code),
                "precheck.outcome": outcome.value,
                "precheck.attempts": answer.attempts,
                **({} if answer.request_id is None else {"precheck.request_id": answer.request_id}),
            }
        )
        if answer.state is AnswerState.UNANSWERED:
            self._span.set_status(StatusCode.ERROR)
        self._end_span()
        self._ended(self)

    def leave(self) -> None:
        self._span.set_attribute("precheck.state", LEFT)
        self._end_span()

    def _begin(
        self, name: str, attributes: Mapping[str, str | int] | None = None, kind: SpanKind = SpanKind.INTERNAL
    ) -> None:
        self._end_step()
        if self._span.is_recording():  # unsampled questions should cost little
            self._step = self._tracer.start_span(name, self._context, kind, attributes)

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.end()
            self._step = None

    def _end_span(self) -> None:
        self._end_step()
        self._span.end()


def _name_reply(request: Span, reply: str) -> None:
    """Set a request's attributes, by OpenTelemetry, "Semantic conventions for HTTP spans"."""
    if reply.isdecimal():
        request.set_attribute("http.response.status_code", int(reply))
    if not reply.isdecimal() or int(reply) >= 400:
        request.set_attribute("error.type", reply)
        request.set_status(StatusCode.ERROR)


@contextmanager
def traces(*, profile: str, host: str, failed: Callable[[str], None]) -> Iterator[Traces]:
    """Send traces to the collector in OTEL_* during the block (ConfigurationError: package not installed).

    When the first span is lost, `failed` is called with the reason, possibly from another thread.
    """
    for variable in _PROTOCOL_VARIABLES:
        if (wanted := os.environ.get(variable, PROTOCOL)) != PROTOCOL:
            protocols = {"wanted": repr(wanted), "protocol": PROTOCOL}
            raise ConfigurationError(
                Sentence("executors.trace_protocol_unsupported", variable=variable, **protocols)
            )
    with _failures_go_to(failed):
        resource = Resource.create(
            {"service.name": SERVICE, "service.version": version(SERVICE), "host.name": host}
        )
        provider = TracerProvider(
            resource=resource.merge(OTELResourceDetector().detect()), shutdown_on_exit=False
        )
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        try:
            yield Traces(provider.get_tracer(SERVICE, version(SERVICE)), profile)
        finally:
            flush = threading.Thread(target=provider.shutdown, daemon=True)
            flush.start()
            flush.join(FLUSH_MAX_S)
            if flush.is_alive():
                failed(f"the collector took no spans for {FLUSH_MAX_S:g} s")


@contextmanager
def _failures_go_to(failed: Callable[[str], None]) -> Iterator[None]:
    """Pass the first of OpenTelemetry's error messages to `failed`, and none to standard error."""

    class Once(logging.Handler):
        is_done = False

        def emit(self, record: logging.LogRecord) -> None:
            if not self.is_done:
                self.is_done = True
                failed(record.getMessage())

    logger, handler = logging.getLogger("opentelemetry"), Once(logging.WARNING)
    kept = logger.propagate
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = kept
