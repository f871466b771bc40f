"""How a command ends: an error of the program is one sentence and an exit status, and so is a signal."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from shutil import get_terminal_size
from typing import Any, NoReturn

import click

from pipeline.errors import DiskError, PrecheckError, stopped_by


class Group(click.Group):
    """Turns the errors of the program into one sentence and an exit status."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 (click's own signature)
        """Run the command that was named."""
        os.umask(0o077)  # whatever is written is for its owner, the folders above it too
        before = _on_signal(_leave)  # before anything heavy is imported
        try:
            return super().invoke(ctx)
        except PrecheckError as error:
            for sentence in error.sentences:
                say(sentence, status=error.exit_code)
            sys.exit(error.exit_code)
        except KeyboardInterrupt as interrupt:
            [number] = interrupt.args or [signal.SIGINT]
            say(stopped_by(number), status=128 + number)
            sys.exit(128 + number)
        except BrokenPipeError:
            # Whoever read our output has gone; there is nobody left to tell.
            with suppress(OSError):
                sys.stdout.close()
            sys.exit(DiskError.exit_code)
        except OSError as error:
            # Files are written where errors of theirs are known: what failed is an output stream.
            with suppress(OSError):
                said = f"the output cannot be written ({error.strerror}); make room, or send it elsewhere"
                say(said, status=DiskError.exit_code)
            sys.exit(DiskError.exit_code)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def interruptible() -> None:
    """Let SIGINT and SIGTERM end a command that has things to close."""
    _on_signal(_interrupt)


def say(sentence: str, *, status: int | None = None) -> None:
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


def _on_signal(handler: Callable[[int, object], NoReturn]) -> dict[signal.Signals, Any]:
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
    """End a command that has things to close, wherever it is; while questions are asked, `run` listens."""
    raise KeyboardInterrupt(number)
