"""Report a command to monitoring: metrics in a file or on a port, traces, pings, and `[notify]`.

Failures here are only warnings, and do not change the exit status. A killed process reports nothing; the
monitor must notice that a ping is missing.
"""

import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from pipeline.cli import logs
from pipeline.cli.exit_status import ENDINGS, reported
from pipeline.cli.options import now
from pipeline.config import ConfigurationFile
from pipeline.errors import (
    ConfigurationError,
    DiskError,
    IncompleteError,
    MistakeError,
    OutputError,
    PrecheckError,
)
from pipeline.files.disk_errors import is_of_an_output
from pipeline.jobs.notify import notified_file
from pipeline.jobs.notify import notify as notify_people
from pipeline.jobs.quota import quota_usage
from pipeline.reports.metrics import FileEnd, RunFigures, metrics_text, write_metrics
from pipeline.stores.sqlite.quota import QuotaUse
from pipeline.transport.tls import client_context
from pipeline.wording import Sentence
from schemas.notification import Notification
from schemas.strict import timestamp
from schemas.summary import REHEARSAL, Summary

if TYPE_CHECKING:
    from pipeline.executors.live_metrics import LiveMetrics
    from pipeline.stages.ask.values import AskingObserver

_INCOMPLETE = IncompleteError.exit_code
EMBEDDED = "sandbox"  # the label `profile` of a run without a profile


@dataclass(frozen=True, slots=True)
class MonitoringTargets:
    """Where to report that a command starts and ends."""

    metrics: Path | None = None
    ping_url: str | None = None
    ping_ca: Path | None = None  # the only authority trusted for pings; None means the usual ones
    profile: str | None = None  # people are notified only of runs with a named profile
    config: ConfigurationFile | Path | None = None
    log_form: logs.Form = "text"


@dataclass(slots=True)
class MonitoredRun:
    """The state of a command, for its reports."""

    ends: Mapping[Path, FileEnd] = field(default_factory=dict)
    folders: Mapping[Path, Path] = field(default_factory=dict)  # file -> the folder of its results

    @property
    def summaries(self) -> list[Summary]:
        """The summaries of all files that have an outcome file."""
        return [end.summary for end in self.ends.values() if end.summary is not None]


@contextmanager
def monitored(watchers: MonitoringTargets) -> Iterator[MonitoredRun]:
    """Report the start and the end of the block; exceptions are passed on."""
    started, run = now(), MonitoredRun()
    _ping(watchers, "start")
    status, ended_by = 0, None
    try:
        yield run
    except BaseException as end:
        status, ended_by = status_of(end), end
        raise
    finally:
        ended = now()
        if watchers.metrics is not None:
            figures = RunFigures(version("payee-precheck"), started, ended, status, run.summaries, _quotas())
            write_or_warn(watchers.metrics.absolute(), metrics_text(figures).encode())
        _ping(watchers, str(status))
        notification = Notification(
            event=logs.RUN_ENDED,
            status=status,
            reason=_reason(status, run, ended_by),
            host=socket.gethostname(),
            profile=watchers.profile,
            started=timestamp(started),
            ended=timestamp(ended),
            files=[
                notified_file(end.name, run.folders[file], end.exit_code, end.summary)
                for file, end in run.ends.items()
            ],
        )
        if status and watchers.profile not in {None, REHEARSAL}:
            _notify(watchers, notification)
        if watchers.log_form == "json":
            # After the log lines of the end itself, so that the last line is a complete summary.
            click.get_current_context().find_root().call_on_close(partial(_log_end, notification))


def _reason(status: int, run: MonitoredRun, ended_by: BaseException | None) -> str:
    """Explain an exit status: the error's sentence or the next step, with the advice."""
    errors = [error for error in (ended_by, *reported) if isinstance(error, PrecheckError)]
    sentences = [error.sentence() for error in errors if error.exit_code == status]
    left = [summary.next_step for summary in run.summaries if summary.next_step and status == _INCOMPLETE]
    return next((reason for reason in (*sentences, *left)), ENDINGS.get(status, ENDINGS[130]))


def _notify(watchers: MonitoringTargets, notification: Notification) -> None:
    """Send a notification; as the run is over, signals only end the sending."""
    try:
        failed = anyio.run(notify_people, watchers.config, notification)
    except KeyboardInterrupt:
        failed = Sentence("jobs.stopped_by_signal").recorded()
    if failed is not None:
        _warn(logs.NOTIFY_FAILED, failed)


def _log_end(notification: Notification) -> None:
    with suppress(OSError):
        facts = notification.model_dump(mode="json", exclude={"event"})
        (logs.log.error if notification.status else logs.log.info)(logs.RUN_ENDED, **facts)


def status_of(end: BaseException) -> int:
    """Return the exit status for an exception."""
    match end:
        case SystemExit(code=int(status)) | PrecheckError(exit_code=status):
            return status
        case KeyboardInterrupt():
            [number] = end.args or [signal.SIGINT]
            return 128 + int(number)
        case OSError() if is_of_an_output(end):
            return DiskError.exit_code
        case _:
            return MistakeError.exit_code


def _quotas() -> list[QuotaUse]:
    try:
        return quota_usage(now())
    except PrecheckError:
        return []  # the command has reported the error, or counts no cap


def write_or_warn(path: Path, text: bytes, *, warn: bool = True) -> bool:
    """Write a metrics file; on failure, warn and return False."""
    try:
        write_metrics(path, text)
    except (OutputError, DiskError) as error:
        reason = error.__cause__.strerror if isinstance(error.__cause__, OSError) else "not a plain file"
        if warn:
            _warn(logs.METRICS_FAILED, reason, file=os.fspath(path))
        return False
    return True


def _ping(watchers: MonitoringTargets, word: str) -> None:
    if watchers.ping_url is None:
        return
    from pipeline.transport.ping import PING_KEYS, ping

    try:
        context = client_context(ca_file=watchers.ping_ca, ca_key=PING_KEYS.authority)
        anyio.run(partial(ping, watchers.ping_url, word, context=context))
    except PrecheckError as error:
        _warn(logs.PING_FAILED, error.messages[0].recorded(), ping=word)


@dataclass(frozen=True, slots=True)
class ObservingTargets:
    """Where to report metrics and traces of a running process."""

    profile: str | None
    file: Path | None = None  # for a textfile collector; rewritten at intervals
    file_interval_s: float = 10.0
    metrics_listen: tuple[str, int] | None = None  # address and port
    traces: bool = False


@contextmanager
def observed(targets: ObservingTargets) -> "Iterator[AskingObserver | None]":
    """Yield an observer of this block's questions, or None (ConfigurationError: a library is missing)."""
    profile, host = targets.profile or EMBEDDED, socket.gethostname()
    observers: list[AskingObserver] = []
    with ExitStack() as stack:
        if targets.file is not None or targets.metrics_listen is not None:
            observers.append(stack.enter_context(_metrics(targets, {"host": host, "profile": profile})))
        if targets.traces:
            with _needing("otel", "--traces"):
                from pipeline.executors.traces import traces

            failed = partial(_warn, logs.TRACES_FAILED)
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
            stack.enter_context(_served(metrics, *targets.metrics_listen))
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
            Sentence("cli.extra_not_installed", option=option, missing=missing.name, extra=extra)
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
def _served(metrics: "LiveMetrics", host: str, port: int) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(metrics.served(host, port))
        except OSError as error:
            reason = error.strerror or "the address cannot be used"
            _warn(logs.METRICS_NOT_SERVED, reason, port=port)
        yield


def _warn(event: str, reason: str | None, **facts: str | int) -> None:
    with suppress(OSError):
        logs.log.warning(event, **facts, reason=reason)
