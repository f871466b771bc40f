"""Crash files: they record a bug of this program for its maintainers.

They contain only positions in the program, because error messages and values may be personal data.
"""

import errno
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click

from pipeline.errors import MistakeError
from pipeline.wording import Sentence


def is_mistake(end: BaseException) -> bool:
    """True if an exception is a crash: neither the program nor click expects it."""
    if isinstance(end, (click.ClickException, click.Abort, click.exceptions.Exit)):
        return False
    from pipeline.files.disk_errors import is_expected_end

    return not is_expected_end(end)


def recorded_crash(error: BaseException, *, where: str | None = None) -> MistakeError:
    """Write a crash file; return an error that says what happened and where to send the file."""
    what = f"{type(error).__name__} in {_last_frame(error)}"
    path = _kept(_described(error))
    message = (
        Sentence("cli.mistake", what=what)
        if path is None
        else Sentence("cli.mistake_kept", what=what, path=path)
    )
    return MistakeError(message if where is None else Sentence("cli.of_file", file=where, why=message))


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


def _last_frame(error: BaseException) -> str:
    return list(_frames(error))[-1] if error.__traceback__ is not None else "no place"


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
