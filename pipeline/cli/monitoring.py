"""Monitoring of a command from outside: a metrics file and pings.

Neither changes how the command ends: a failure here is a warning. A process that is killed reports nothing,
and the monitor has to notice the missing ping.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path

import anyio
import structlog

from pipeline.cli.clock import now
from pipeline.cli.logs import METRICS_FAILED, PING_FAILED
from pipeline.errors import DiskError, MistakeError, OutputError, PrecheckError
from pipeline.files.disk_errors import is_of_an_output
from pipeline.jobs.quota import quota_usage
from pipeline.reports.metrics import QuotaFigures, RunFigures, metrics_text, write_metrics
from pipeline.transport.tls import client_context
from schemas.summary import Summary

log: structlog.stdlib.BoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class MonitoringTargets:
    """Where to report how a command went."""

    metrics: Path | None = None
    ping_url: str | None = None
    ping_ca: Path | None = None
    """The only authority to trust for the pings; None: the usual ones."""


@dataclass(slots=True)
class MonitoredRun:
    """What there is to report of a command so far."""

    summaries: list[Summary] = field(default_factory=list)


@contextmanager
def monitored(watchers: MonitoringTargets) -> Iterator[MonitoredRun]:
    """Report when the block begins and how it ends; what it raises is passed on."""
    started, run = now(), MonitoredRun()
    _ping(watchers, "start")
    status = 0
    try:
        yield run
    except BaseException as end:
        status = status_of(end)
        raise
    finally:
        if watchers.metrics is not None:
            figures = RunFigures(version("payee-precheck"), started, now(), status, run.summaries, _quotas())
            write_or_warn(watchers.metrics.absolute(), metrics_text(figures).encode())
        _ping(watchers, str(status))


def status_of(end: BaseException) -> int:
    """The exit status of a command that ends like this."""
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


def _quotas() -> list[QuotaFigures]:
    try:
        return [QuotaFigures(use.scope, use.used_count, use.cap) for use in quota_usage(now())]
    except PrecheckError:
        return []  # the command itself has reported it, or had no cap to count


def write_or_warn(path: Path, text: bytes, *, warn: bool = True) -> bool:
    """Write a metrics file; False where it cannot be written, with a warning."""
    try:
        write_metrics(path, text)
    except (OutputError, DiskError) as error:
        reason = error.__cause__.strerror if isinstance(error.__cause__, OSError) else "not a plain file"
        if warn:
            with suppress(OSError):
                log.warning(METRICS_FAILED, file=os.fspath(path), reason=reason)
        return False
    return True


def _ping(watchers: MonitoringTargets, word: str) -> None:
    if watchers.ping_url is None:
        return
    from pipeline.transport.ping import ping

    try:
        context = client_context(ca_file=watchers.ping_ca)
        anyio.run(partial(ping, watchers.ping_url, word, context=context))
    except PrecheckError as error:
        with suppress(OSError):
            log.warning(PING_FAILED, word=word, reason=str(error))
