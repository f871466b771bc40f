"""Where the command starts: before any of its modules is imported, or any import obeys the environment.

The packages of this program have names that others have too, `pipeline` and `schemas`; this module has the
name of the distribution. `python -I -m payee_precheck` is the command in an interpreter that no PYTHONPATH
and no working folder reaches.
"""

import atexit
import gc
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NoReturn

_PACKAGES = ("pipeline", "schemas")
_CONFIGURATION = 78
_MISTAKE = 70
"""The exit statuses of two errors of `pipeline.errors`, which cannot be imported here."""
_COLLECTED_AFTER = 200_000
"""New objects after which cycles are looked for: more than a run of a few rows makes."""


def main() -> None:
    """Start the command, if what would be imported is ours."""
    _have_standard_streams()
    _forget_what_imports_would_obey()
    # A run has few cycles to find, and what it imports is no garbage (docs/adr/0012).
    gc.set_threshold(_COLLECTED_AFTER)
    # Nor is it walked when it goes: Python would look for cycles in all of it, a quarter of a short run.
    atexit.register(gc.freeze)
    for name in _PACKAGES:
        if (stranger := _stranger(name)) is not None:
            _refuse(f"{stranger} has the name of a module of this program, and is found before it")
    try:
        from pipeline.cli.main import main as command
        from pipeline.files.core_dumps import forbid_core_dumps
    except Exception as error:  # noqa: BLE001 (a stranger's module may do anything)
        _refuse(
            f"it cannot be imported ({_where(error)}): another program's module, or a damaged installation"
        )
    os.umask(0o077)  # everything written is for its owner only, including the folders above it
    forbid_core_dumps()
    try:
        command(prog_name="precheck")
    except Exception as error:  # noqa: BLE001 (the last to be told: what reports mistakes made one itself)
        _refuse(f"it failed and could not report it ({_where(error)}): another program's module?", _MISTAKE)


def _forget_what_imports_would_obey() -> None:
    """Leave nothing in the environment that has libraries do what nobody here wants."""
    # Some make a TLS context while they are imported. It would write its secrets to this file,
    os.environ.pop("SSLKEYLOGFILE", None)
    # and read the authorities of the machine, which nothing here trusts: `transport/tls.py` names its own.
    os.environ["SSL_CERT_FILE"] = os.devnull
    # Another package's plugin would see every document; none is even looked for.
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    # The command of httpx, which is imported with it, and brings Rich and Pygments where they are there.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]


def _have_standard_streams() -> None:
    """Fill the place of a stream that is closed: the next file that is opened must not get its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 (until the end)


def _stranger(name: str) -> str | None:
    """Where a package would come from that is not beside this module; None where it is ours."""
    spec = PathFinder.find_spec(name)
    found = None if spec is None else spec.origin
    ours = Path(__file__).resolve().parent / name / "__init__.py"
    return None if found is not None and Path(found).resolve() == ours else found or f"no {name}"


def _where(error: BaseException) -> str:
    """The last line of Python that ran before an error, without what it says."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    kind = type(error).__name__
    return kind if last is None else f"{kind} in {last.tb_frame.f_code.co_filename}:{last.tb_lineno}"


def _refuse(what: str, status: int = _CONFIGURATION) -> NoReturn:
    do = f"unset PYTHONPATH, start it as `{sys.executable} -I -m payee_precheck`, or install it again"
    sys.stderr.write(f"precheck: {what}; {do}\n")
    sys.exit(status)


if __name__ == "__main__":
    main()
