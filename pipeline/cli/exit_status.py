"""How commands end: every error and signal becomes one sentence and an exit status.

A bug of this program also leaves a crash file for its maintainers. It has only positions in the program,
because error messages and values may be personal data.
"""

import errno
import os
import platform
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

from pipeline import errors
from pipeline.cli.helps import Group
from pipeline.cli.language import in_words, speak_as_called
from pipeline.files.disk_errors import TOO_FEW_FILES
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from pipeline.runs.request import StopSwitch


reported: list[errors.PrecheckError | click.ClickException] = []
"""The errors reported so far, which ended the command or the check of one of its files."""
ENDINGS = {
    0: "every row is decided",
    1: "a row has an outcome or a warning named by --fail-on",
    2: "invalid command-line arguments",
    65: "the input file cannot be used",
    70: "an error in precheck: report it",
    73: "an output cannot be created",
    74: "the disk is full or failed",
    75: "not every row is decided: run the same command again",
    76: "the server broke the protocol repeatedly, or a row failed in three runs",
    77: "credentials or certificate refused",
    78: "invalid configuration, or no trusted TLS connection",
    130: "stopped by Ctrl-C, 129 by SIGHUP, 143 by SIGTERM, 152 by SIGXCPU: run the same command again",
}
"""Exit status of a run -> what it means."""
_interrupts: list[int] = []  # signals that have interrupted the command
_REPEATED = (signal.SIGHUP, signal.SIGXCPU)
"""Signals that come more than once: SIGHUP from terminal and shell, SIGXCPU every second."""


class CommandGroup(Group):
    """A group that turns any error or signal of its commands into one sentence and an exit status."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:  # noqa: ANN401 (click's own signature)
        """Parse the arguments up to the command's name."""
        speak_as_called(args[1])
        with _reported_and_ended():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 (click's own signature)
        """Run the command."""
        _interrupts.clear()
        reported.clear()
        before = _on_signal(_leave)  # before anything heavy is imported
        try:
            with _reported_and_ended():
                return super().invoke(ctx)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def _reported_and_ended() -> Iterator[None]:
    """Report an error that ends the block, and exit with its status; 1 is reserved for --fail-on."""
    try:
        yield
    except click.ClickException as error:
        reported.append(error)
        with suppress(OSError):
            error.show()
        sys.exit(error.exit_code)
    except KeyboardInterrupt as interrupt:
        [number] = interrupt.args or [signal.SIGINT]
        _exit_by_signal(number)
    except BrokenPipeError:
        # Readers such as `head` may close the pipe early; if standard error fails, output is lost.
        sys.exit(errors.DiskError.exit_code if _has_reader(sys.stdout) else 0)
    except BaseException as end:  # noqa: BLE001 (the one place that catches everything, to report it)
        if (stopped := _interrupt_behind(end)) is not None:
            _exit_by_signal(stopped)
        ended_by = _error_of(end)
        reported.append(ended_by)
        _report(*ended_by.messages, status=ended_by.exit_code)
        sys.exit(ended_by.exit_code)
    finally:
        _let_go()


def _has_reader(stream: TextIO) -> bool:
    poll = select.poll()
    with suppress(OSError, ValueError):
        poll.register(stream.fileno(), 0)
    return not poll.poll(0)  # polls for nothing, so that only errors and hang-ups are reported


def _exit_by_signal(number: int) -> NoReturn:
    _report(errors.stopped_by(number), status=128 + number)
    sys.exit(128 + number)


def _interrupt_behind(end: BaseException) -> int | None:
    """Return the signal behind an error: compiled code turns interrupts into errors of its own."""
    return _interrupts[-1] if _interrupts and is_mistake(end) else None


def _error_of(end: BaseException) -> errors.PrecheckError:
    """Return the error to report for an exception; re-raise exits, such as that of --help."""
    if is_mistake(end):
        return _unexpected(end)
    if isinstance(end, OSError):
        if end.errno in TOO_FEW_FILES:
            return errors.IncompleteError(Sentence("transport.open_files_limit_reached"))
        return errors.DiskError(Sentence("cli.output_not_writable", why=end))
    if isinstance(end, errors.PrecheckError):
        return end
    raise end


def about_one_file(end: BaseException, name: str) -> errors.PrecheckError:
    """Return the error to report for an exception about one of several files; re-raise others."""
    if (stopped := _interrupt_behind(end)) is not None:
        raise KeyboardInterrupt(stopped)
    if not isinstance(end, errors.CONCERN_ONE_FILE) and not is_mistake(end):
        raise end
    error = end if isinstance(end, errors.CONCERN_ONE_FILE) else _unexpected(end, where=name)
    reported.append(error)
    return error


def _unexpected(end: BaseException, *, where: str | None = None) -> errors.PrecheckError:
    """Return the error for a bug of this program, or for a folder that this user may not enter."""
    if isinstance(end, PermissionError) and isinstance(end.filename, str):
        path = os.path.abspath(end.filename)  # noqa: PTH100 (a folder that may not be entered is not resolved)
        return errors.OutputError(
            Sentence("cli.no_access_to_folder", path=path, user=os.geteuid(), reason=end)
        )
    return recorded_crash(end, where=where)


def _report(*messages: Sentence, status: int) -> None:
    with suppress(OSError):
        notify(*messages, status=status)


def _let_go() -> None:
    """Discard output that cannot be written; otherwise Python would retry at exit, and end with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def interruptible() -> None:
    """Let signals interrupt the command, because it has resources to close."""
    _on_signal(_interrupt)


def stoppable() -> "StopSwitch":
    """Let signals request a stop while a job watches for it, and otherwise interrupt the command."""
    from pipeline.runs.request import StopRequest, StopSwitch

    stop = StopSwitch()

    def handler(number: int, _frame: object) -> None:
        if number in _REPEATED:
            _take_once(number)
            if stop.first is not None:
                return
        # Set first: compiled code can lose the interrupt, but the next question then stops at once.
        stop.request(StopRequest(errors.stopped_by(number), 128 + number))
        if not stop.is_watched:
            _interrupt(number, _frame)

    _on_signal(handler)
    return stop


def _logs_json() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and context.find_root().obj == "json"


def notify(*messages: Sentence | str, status: int | None = None) -> None:
    """Print sentences on standard error or, with the exit status, in the JSON log."""
    for sentence in (in_words(one) if isinstance(one, Sentence) else one for one in messages):
        if _logs_json():
            import structlog

            structlog.get_logger().error(sentence, **({} if status is None else {"status": status}))
        else:
            _print(sentence)


def _print(sentence: str) -> None:
    from pipeline.reports.wording import between_words, visible

    line = f"precheck: {visible(sentence)}"
    click.echo(between_words(line, get_terminal_size().columns) if sys.stderr.isatty() else line, err=True)


@contextmanager
def reporting_a_lost_signature(folder: Path) -> Iterator[None]:
    """Print a note if the block rewrites a signed manifest without signing it."""
    from pipeline.files.signatures import is_signed
    from schemas.folder import MANIFEST, SIGNATURE

    was_signed = is_signed(folder)
    try:
        yield
    finally:
        if was_signed and not is_signed(folder):
            notify(Sentence("cli.signature_lost", manifest=folder / MANIFEST, signature=SIGNATURE))


def _on_signal(handler: Callable[[int, object], None]) -> dict[signal.Signals, Any]:
    """Handle the signals that end a command, except those ignored by nohup; return the old handlers."""
    numbers = [signal.SIGINT, signal.SIGTERM, *_REPEATED]
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        numbers.remove(signal.SIGHUP)
    return {number: signal.signal(number, handler) for number in numbers}


def _take_once(number: int) -> None:
    """Ignore this signal from now on; also stop writing to a closed terminal, which would end the run."""
    signal.signal(number, signal.SIG_IGN)
    gone = select.poll()
    for descriptor in (1, 2):
        gone.register(descriptor, 0)
    for descriptor, _ in gone.poll(0):
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def _leave(number: int, _frame: object) -> NoReturn:
    """End a command at once, while it has no resources to close.

    An exception would not do: Python drops exceptions that are raised in import callbacks, and the command
    would continue. If the signal interrupts an import that the sentence needs, only the signal's name is
    printed.
    """
    try:
        reason = in_words(errors.stopped_by(number))
    except Exception:  # noqa: BLE001 (a half-imported module may raise anything)
        reason = signal.Signals(number).name
    os.write(2, f"precheck: {reason}\n".encode())
    os._exit(128 + number)


def _interrupt(number: int, _frame: object) -> NoReturn:
    """Interrupt a command that has resources to close, wherever it is."""
    if number in _REPEATED:
        _take_once(number)
    _interrupts.append(number)
    raise KeyboardInterrupt(number)


def is_mistake(end: BaseException) -> bool:
    """True if an exception is a crash: neither the program nor click expects it."""
    if isinstance(end, (click.ClickException, click.Abort, click.exceptions.Exit)):
        return False
    from pipeline.files.disk_errors import is_expected_end

    return not is_expected_end(end)


def recorded_crash(error: BaseException, *, where: str | None = None) -> errors.MistakeError:
    """Write a crash file; return an error that says what happened and where to send the file."""
    *_, place = ["no place", *_frames(error)]
    what = f"{type(error).__name__} in {place}"
    path = _kept(_described(error))
    message = (
        Sentence("cli.internal_error", what=what)
        if path is None
        else Sentence("cli.internal_error_report_kept", what=what, path=path)
    )
    return errors.MistakeError(message if where is None else Sentence("cli.of_file", file=where, why=message))


def _described(error: BaseException) -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    known = f"precheck {version('payee-precheck')}, Python {platform.python_version()}, {platform.platform()}"
    return "\n".join([f"{known}, {now}", f"called as: {' '.join(_words())}", *_lines(error)]) + "\n"


def _words() -> Iterator[str]:
    """Yield the command and its options, without their values."""
    context = click.get_current_context(silent=True)
    root = None if context is None else context.find_root()
    if root is None or not isinstance(root.command, click.Group) or root.invoked_subcommand is None:
        return
    yield root.invoked_subcommand
    options = root.command.commands[root.invoked_subcommand].params
    known = {name for option in options for name in option.opts if name.startswith("-")}
    yield from (word for word in sys.argv[1:] if word in known)


def _lines(error: BaseException, depth: int = 0, seen: frozenset[int] = frozenset()) -> Iterator[str]:
    """Yield the kind and position of an error, of the errors in its group and of its causes, each once."""
    seen |= {id(error)}
    indent = "  " * depth
    number = error.errno if isinstance(error, OSError) else None
    yield f"{indent}{type(error).__name__}" + (f" {errno.errorcode.get(number, number)}" if number else "")
    yield from (f"{indent}  {frame}" for frame in _frames(error))
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _lines(one, depth + 1, seen)
    before = error.__cause__ or error.__context__
    if before is not None and id(before) not in seen:
        yield f"{indent}after"
        yield from _lines(before, depth, seen)


def _frames(error: BaseException) -> Iterator[str]:
    for frame, line in traceback.walk_tb(error.__traceback__):
        yield f"{frame.f_globals.get('__name__')}:{line} {frame.f_code.co_qualname}"


def _kept(text: str) -> Path | None:
    """Write the text to a new file, readable by its owner only; return None if that fails."""
    from platformdirs import user_state_path

    folders = [Path(tempfile.gettempdir())]
    with suppress(RuntimeError):  # the user may have no home directory
        folders.insert(0, user_state_path("payee-precheck") / "mistakes")
    for folder in folders:
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, path = tempfile.mkstemp(prefix="precheck-mistake-", suffix=".txt", dir=folder)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            return Path(path)
    return None
