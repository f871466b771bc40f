"""Log lines on standard error, as text for people or as JSON for programs.

Log lines are events of the run, and never contain names, accounts or secrets. With JSON, each line on
standard error is one document, once the command line is parsed.
"""

import sys
import time
from collections.abc import Callable, MutableMapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from pipeline.cli.language import in_words, translated
from pipeline.cli.plain_structlog import structlog
from pipeline.errors import TOTALS_DIFFER
from pipeline.reports.wording import SIMULATED
from pipeline.runs.request import Notice, RunObserver, RunProgress, SetStep
from pipeline.stores.values import LeaseHolder
from pipeline.wording import Sentence
from schemas.localized import LocalizedText
from schemas.summary import Summary

if TYPE_CHECKING:
    from structlog.typing import Processor

Form = Literal["text", "json"]

PROGRESS_INTERVAL_S = 10.0
FINISHED = "file finished"
METRICS_FAILED = "the metrics file cannot be written"
METRICS_NOT_SERVED = "metrics cannot be served"
NOTIFY_FAILED = "the notification was not sent"
PING_FAILED = "the ping was not taken"
RUN_ENDED: Final = "run ended"
TRACES_FAILED = "traces are lost"
_NEVER_MISSED = frozenset(
    {FINISHED, METRICS_FAILED, METRICS_NOT_SERVED, NOTIFY_FAILED, PING_FAILED, RUN_ENDED, TRACES_FAILED}
)
"""Events that are logged even with --quiet, besides errors."""
_VITAL = "vital"
"""Key of events that are logged even with --quiet: the user must act, or one of the user's files was renamed,
which neither the exit status nor the outcome file shows.
"""

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def log_as_given(form: Form, *, quiet: bool) -> None:
    """Set up the log like `log_to_stderr`, and let errors of the command have the same form."""
    click.get_current_context().find_root().obj = form
    log_to_stderr(form, quiet=quiet)


def log_to_stderr(form: Form, *, quiet: bool) -> None:
    """Set up the log; with `quiet`, only results, errors, failed monitoring and vital events are logged."""
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True, key="at")
    in_json: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        stamp,
        structlog.processors.add_log_level,
        structlog.processors.JSONRenderer(),
    ]
    as_text: list[Processor] = [_sentence] if sys.stderr.isatty() else [stamp, _line]
    written = in_json if form == "json" else as_text
    structlog.configure(
        processors=[partial(_without_what_may_be_missed, quiet=quiet), *written],
        wrapper_class=structlog.make_filtering_bound_logger("info" if form == "json" else "warning"),
        # Looked up for each line, because a progress bar may replace standard error.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )


def _without_what_may_be_missed(
    _logger: object, method: str, event: MutableMapping[str, Any], *, quiet: bool
) -> MutableMapping[str, Any]:
    may_be_missed = not event.pop(_VITAL, False) and event["event"] not in _NEVER_MISSED
    if quiet and may_be_missed and method != "error":
        raise structlog.DropEvent
    return event


def _line(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
    """Format an event as one log line: `2030-01-02T03:04:05Z what (key: value)`."""
    return f"{event.pop('at')[:19]}Z {_event_text(event)}"


def _sentence(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
    """Format an event for a terminal, without the time: `precheck: what (key: value)`."""
    return f"precheck: {_event_text(event)}"


def _event_text(event: MutableMapping[str, Any]) -> str:
    spoken = {
        key: in_words(Sentence.of_document(one)) if isinstance(one, LocalizedText) else one
        for key, one in event.items()
    }
    what = translated(spoken.pop("event"))
    details = ", ".join(f"{translated(key)}: {value}" for key, value in spoken.items())
    return f"{what} ({details})" if details else what


def log_file(name: str | None) -> None:
    """Set the file that JSON lines name from now on; None for no file."""
    structlog.contextvars.clear_contextvars()
    if name is not None:
        structlog.contextvars.bind_contextvars(file=name)


class ProgressEvents(RunObserver):
    """Logs the progress of a run as an event every ten seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_line = clock()

    def count(self, step: SetStep, done_count: int, all_count: int) -> None:
        """Log the progress of a data set, at most every ten seconds."""
        now = self._clock()
        if now - self._last_line >= PROGRESS_INTERVAL_S:
            self._last_line = now
            log.info("progress", counted=step.value, done_count=done_count, all_count=all_count)

    def wait(self, holder: LeaseHolder) -> None:
        """Log which other run this one waits for."""
        log.warning("waiting for another run", server=holder.server, pid=holder.pid, since=holder.since)

    def update(self, so_far: RunProgress) -> None:
        """Log the progress of the run, at most every ten seconds."""
        now = self._clock()
        if so_far.check_count and now - self._last_line >= PROGRESS_INTERVAL_S:
            self._last_line = now
            counts = {outcome.value: count for outcome, count in so_far.outcomes.items()}
            in_flight = {api.value: round(window, 3) for api, window in so_far.slowed.items()}
            log.info(
                "progress",
                done_count=so_far.done_count,
                check_count=so_far.check_count,
                outcome_counts=counts,
                **({"in_flight_max": in_flight} if in_flight else {}),
            )

    def stop(self, in_flight_count: int, wait_max_s: float) -> None:
        """Log what a run that stops is still waiting for."""
        log.warning("stopping", requests_in_flight=in_flight_count, wait_max_s=wait_max_s)


def log_notice(notice: Notice) -> None:
    """Log a notice about a running job."""
    log.warning(notice.message.recorded(), **notice.facts, **({_VITAL: True} if notice.is_vital else {}))


def file_warnings(summary: Summary, say: Callable[[Sentence | str], str] = str) -> list[str]:
    """Return warnings about the file as a whole, which no row shows."""
    warnings = [f"{TOTALS_DIFFER}: {say(difference)}" for difference in summary.input.differences]
    if summary.modulus is not None and summary.modulus.is_old:
        warnings.append(say(Sentence("terminal.old_modulus_tables")))
    return warnings


def log_summary(summary: Summary, folder: Path, *, status: int, already_finished: bool) -> None:
    """Log one file's result, without its rows, and the exit status."""
    log.info(
        FINISHED,
        status=status,
        folder=str(folder),
        environment=summary.environment.value,
        simulated=summary.simulated,
        already_finished=already_finished,
        row_counts={total.outcome.value: total.row_count for total in summary.outcomes},
        request_counts={call.api.value: call.request_count for call in summary.calls},
        warning_count=summary.warning_count,
        file_warnings=file_warnings(summary),
        complete=summary.complete,
        next_step=summary.next_step,
        **({"note": str(SIMULATED)} if summary.simulated else {}),
    )
