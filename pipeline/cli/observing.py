"""Observe a running process: metrics in a file or on a port, and traces.

As in `monitoring`, failures are only warnings.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.cli.logs import METRICS_NOT_SERVED, TRACES_FAILED
from pipeline.cli.monitoring import write_or_warn
from pipeline.cli.options import ListenAddress
from pipeline.cli.plain_structlog import structlog
from pipeline.errors import ConfigurationError
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from pipeline.executors.live_metrics import LiveMetrics
    from pipeline.stages.ask.values import AskingObserver

EMBEDDED = "sandbox"
"""The label `profile` of a run without a profile."""

log: structlog.stdlib.BoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ObservingTargets:
    """Where to report metrics and traces of a running process."""

    profile: str | None
    file: Path | None = None  # for a textfile collector; rewritten at intervals
    file_interval_s: float = 10.0
    metrics_listen: ListenAddress | None = None
    traces: bool = False


@contextmanager
def observed(targets: ObservingTargets) -> "Iterator[AskingObserver | None]":
    """Yield an observer of the questions asked in this block; None if none was requested.

    Raises:
        ConfigurationError: a library is not installed, or the environment has a mistake.
    """
    profile, host = targets.profile or EMBEDDED, socket.gethostname()
    observers: list[AskingObserver] = []
    with ExitStack() as stack:
        if targets.file is not None or targets.metrics_listen is not None:
            observers.append(stack.enter_context(_metrics(targets, {"host": host, "profile": profile})))
        if targets.traces:
            with _needing("otel", "--traces"):
                from pipeline.executors.traces import traces

            failed = partial(_warn, TRACES_FAILED)
            observers.append(stack.enter_context(traces(profile=profile, host=host, failed=failed)))
        if observers:
            from pipeline.stages.ask.values import Observers

            yield Observers(observers)
        else:
            yield None


@contextmanager
def _metrics(targets: ObservingTargets, labels: dict[str, str]) -> "Iterator[LiveMetrics]":
    with _needing("metrics", "--metrics-listen" if targets.file is None else "--metrics"):
        from pipeline.executors.live_metrics import LiveMetrics
    with ExitStack() as stack:
        if targets.file is not None:
            # Each process of a host needs its own label: textfile collectors refuse duplicate metrics.
            labels["process"] = targets.file.stem
        metrics = LiveMetrics(labels)
        if targets.file is not None:
            stack.enter_context(_written(metrics, targets.file.absolute(), targets.file_interval_s))
        if targets.metrics_listen is not None:
            stack.enter_context(_served(metrics, targets.metrics_listen))
        yield metrics


@contextmanager
def _needing(extra: str, option: str) -> Iterator[None]:
    """Turn a failed import in the block into advice to install an extra."""
    try:
        yield
    except ImportError as missing:
        if (missing.name or "").partition(".")[0] not in {"prometheus_client", "opentelemetry"}:
            raise
        raise ConfigurationError(
            Sentence("cli.not_installed_install", option=option, missing=missing.name, extra=extra)
        ) from None


@contextmanager
def _written(metrics: "LiveMetrics", path: Path, interval_s: float) -> Iterator[None]:
    """Write the file at intervals during the block, and once more at its end."""
    ended = threading.Event()

    def keep_writing() -> None:
        is_well = write_or_warn(path, metrics.text())
        while not ended.wait(interval_s):
            is_well = write_or_warn(path, metrics.text(), warn=is_well)  # warns only once while it fails
        write_or_warn(path, metrics.text(), warn=is_well)

    writer = threading.Thread(target=keep_writing, name="precheck-metrics", daemon=True)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


@contextmanager
def _served(metrics: "LiveMetrics", address: ListenAddress) -> Iterator[None]:
    """Serve the metrics on a port during the block."""
    with ExitStack() as stack:
        try:
            stack.enter_context(metrics.served(address.host, address.port))
        except OSError as error:
            reason = error.strerror or "the address cannot be used"
            _warn(METRICS_NOT_SERVED, reason, port=address.port)
        yield


def _warn(event: str, reason: str, **facts: str | int) -> None:
    with suppress(OSError):
        log.warning(event, **facts, reason=reason)
