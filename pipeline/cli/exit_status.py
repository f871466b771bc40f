"""How a command ends: an error of the program is one sentence and an exit status, and so is a signal."""

import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, NoReturn

import click

from pipeline.cli.crashes import is_mistake, recorded_crash
from pipeline.errors import (
    CONCERN_ONE_FILE,
    DiskError,
    IncompleteError,
    PrecheckError,
    ProtocolError,
    stopped_by,
)
from pipeline.files.core_dumps import forbid_core_dumps

if TYPE_CHECKING:
    from pipeline.runs.request import Stop
    from schemas.summary import Summary

FAILED_ON = 1
"""The exit status where a row has an outcome or a warning that the caller wanted to hear of."""
ANY_WARNING = "warning"
"""Stands in `--fail-on` for every code of a warning."""
TOTALS_DIFFER = "TOTALS_DIFFER"
"""What `--fail-on` calls a total or a count in the file that is not that of its payments."""


class CommandGroup(click.Group):
    """Turns whatever ends a command into one sentence and an exit status."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:  # noqa: ANN401 (click's own signature)
        """Read the words before the command's name."""
        with _told_and_ended():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 (click's own signature)
        """Run the command that was named."""
        os.umask(0o077)  # whatever is written is for its owner, the folders above it too
        forbid_core_dumps()
        before = _on_signal(_leave)  # before anything heavy is imported
        try:
            with _told_and_ended():
                return super().invoke(ctx)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def _told_and_ended() -> Iterator[None]:
    """Tell what ends the block, and end with its status; 1 is for --fail-on alone.

    Where nobody is left to be told, the status is all that tells.
    """
    try:
        yield
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        sys.exit(error.exit_code)
    except KeyboardInterrupt as interrupt:
        [number] = interrupt.args or [signal.SIGINT]
        _tell(stopped_by(number), status=128 + number)
        sys.exit(128 + number)
    except BrokenPipeError:
        sys.exit(DiskError.exit_code)
    except BaseException as end:  # noqa: BLE001 (the one place that catches everything, to tell it)
        told = _told(end)
        for sentence in told.sentences:
            _tell(sentence, status=told.exit_code)
        sys.exit(told.exit_code)
    finally:
        _let_go()


def _told(end: BaseException) -> PrecheckError:
    """The error that stands for what ended a command; a wish to end, such as that of --help, goes on."""
    if is_mistake(end):
        return recorded_crash(end)
    if isinstance(end, OSError):
        return DiskError(f"the output cannot be written ({end.strerror}); make room, or send it elsewhere")
    if isinstance(end, PrecheckError):
        return end
    raise end


def about_one_file(end: BaseException, name: str) -> PrecheckError:
    """What to say of an end that concerns one file of several, of which the next can still be checked.

    Raises:
        BaseException: the same end, where it concerns them all.
    """
    if isinstance(end, CONCERN_ONE_FILE):
        return end
    if is_mistake(end):
        return recorded_crash(end, where=name)
    raise end


def _tell(sentence: str, *, status: int) -> None:
    with suppress(OSError):
        notify(sentence, status=status)


def _let_go() -> None:
    """Forget what can never be written: Python would try again when it ends, and then end with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def interruptible() -> None:
    """Let SIGINT and SIGTERM end a command that has things to close."""
    _on_signal(_interrupt)


def stoppable() -> "Stop":
    """Let SIGINT and SIGTERM wish an end while that is heeded, and end the command at any other time."""
    from pipeline.runs.request import Stop, Wish

    stop = Stop()

    def handler(number: int, _frame: object) -> None:
        if not stop.is_heeded:
            raise KeyboardInterrupt(number)
        stop.wish(Wish(stopped_by(number), 128 + number))

    _on_signal(handler)
    return stop


def notify(sentence: str, *, status: int | None = None) -> None:
    """Tell a person something on standard error, or its log where that is of JSON documents.

    Args:
        sentence: for a person.
        status: the exit status that it explains, for the log; None where it explains none.
    """
    context = click.get_current_context(silent=True)
    if context is not None and context.find_root().obj == "json":
        import structlog

        structlog.get_logger().error(sentence, **({} if status is None else {"status": status}))
        return
    from pipeline.reports.terminal import between_words, visible

    said = f"precheck: {visible(sentence)}"
    click.echo(between_words(said, get_terminal_size().columns) if sys.stderr.isatty() else said, err=True)


@contextmanager
def reporting_a_lost_signature(folder: Path) -> Iterator[None]:
    """Say so where the manifest in a folder was signed, and has been written anew by nobody with the key."""
    from pipeline.files.signatures import is_signed
    from schemas.folder import MANIFEST, SIGNATURE

    was_signed = is_signed(folder)
    try:
        yield
    finally:
        if was_signed and not is_signed(folder):
            notify(
                f"{folder / MANIFEST} was written anew and is not signed any more: {SIGNATURE} was deleted; "
                "precheck report DIR --sign-with KEY signs it again"
            )


def _on_signal(handler: Callable[[int, object], None]) -> dict[signal.Signals, Any]:
    """Have SIGINT and SIGTERM handled like this; return what handled them before."""
    return {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}


def _leave(number: int, _frame: object) -> NoReturn:
    """End a command at once, while there is nothing to close.

    An exception would not do: Python drops those that are raised in the callbacks of its imports, and
    the command would go on as if it had not been asked to stop.
    """
    os.write(2, f"precheck: {stopped_by(number)}\n".encode())
    os._exit(128 + number)


def _interrupt(number: int, _frame: object) -> NoReturn:
    """End a command that has things to close, wherever it is."""
    raise KeyboardInterrupt(number)


def status_of_summary(summary: "Summary", fail_on: Collection[str]) -> int:
    """The exit status that a summary stands for.

    A row that is not decided yet may still become what `fail_on` names, so an incomplete run says
    so first; unless it was asked to fail on just that.

    Args:
        summary: of the run.
        fail_on: outcomes, codes of warnings, or `ANY_WARNING`.
    """
    from schemas.outcomes import Outcome

    there = {total.outcome.value for total in summary.outcomes if total.row_count}
    there |= {count.code.value for count in summary.warning_codes}
    there |= {TOTALS_DIFFER} if summary.input.differences else set()
    there |= {ANY_WARNING} if summary.warning_codes or summary.input.differences else set()
    found = there.intersection(fail_on)
    if found & {Outcome.DEFERRED, Outcome.UNANSWERED}:
        return FAILED_ON
    if not summary.complete:
        return ProtocolError.exit_code if summary.given_up else IncompleteError.exit_code
    return FAILED_ON if found else 0
