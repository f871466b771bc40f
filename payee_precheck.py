"""The entry point of the command, and the Python API: `check`, `plan` and `explain`.

The packages of this program are named `pipeline` and `schemas`, names that other packages may have too; this
module is named after the distribution. `python -I -m payee_precheck` runs the command in an interpreter that
ignores PYTHONPATH and the working folder. The Python API runs each job in such an interpreter, so that the
caller's modules, event loop, threads and signal handlers do not matter. Importing this module loads nothing
heavy.

>>> from payee_precheck import check
>>> result = check("payroll.csv", profile="production", out="checked/payroll")  # doctest: +SKIP
>>> result.outcomes.filter(pl.col("check_outcome") == "no_match")  # doctest: +SKIP
"""

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypedDict, Unpack

if TYPE_CHECKING:
    import polars as pl

    from schemas.forecast import Forecast
    from schemas.summary import Summary

__all__ = ["CheckOptions", "CheckResult", "PlanOptions", "PrecheckError", "check", "explain", "plan"]

_PACKAGES = ("pipeline", "schemas")
_CONFIGURATION = 78
_MISTAKE = 70  # exit statuses of two errors in `pipeline.errors`, which cannot be imported here
_COMPLETE = (0, 1)  # exit statuses of a run that decided every row
_LAST_COLUMN = "check_attempts"
"""The last column of an outcome file; the character before it is the delimiter."""
_COLLECTED_AFTER = 200_000  # the garbage collector runs after this many new objects; short runs make fewer


class PrecheckError(Exception):
    """A refusal, or the error that ended a run early.

    Attributes:
        exit_code: the exit status of the command, as in `precheck run --help`: 65 for a file that cannot be
            used, 75 for a run that is not complete, and so on.
        reason: what happened and where, as an English sentence.
        advice: what to do; empty if the reason says it or nothing can be done.
        result: the result so far, if the run wrote its outcome file; else None.
    """

    def __init__(
        self, exit_code: int, reason: str, advice: str = "", result: "CheckResult | None" = None
    ) -> None:
        super().__init__(f"{reason}; {advice}" if advice else reason)
        self.exit_code, self.reason, self.advice, self.result = exit_code, reason, advice, result


class PlanOptions(TypedDict, total=False):
    """The options of `precheck plan` by their long names; `precheck plan --help` describes each."""

    profile: str
    rehearse: bool
    config: str | Path
    map: Mapping[str, str]
    input_format: str
    encoding: str
    sheet: str
    country: str
    order: Literal["file", "amount"]
    reuse_from: Sequence[str | Path]
    reuse_max_age: str
    compare_with: str | Path


class CheckOptions(PlanOptions, total=False):
    """The options of `precheck run` by their long names; `precheck run --help` describes each.

    `format` is parquet by default, so that `CheckResult.outcomes` has the types of the file's columns.
    """

    format: Literal["csv", "parquet"]
    fail_on: Sequence[str]
    limit: int
    retry_unanswered: bool
    fresh: bool
    allow_many_names: str
    pain002: bool
    wait_max: str
    sign_with: str | Path


@dataclass(frozen=True)
class CheckResult:
    """The result of a check."""

    exit_code: int  # 0: every row is decided; 1: also, a row has an outcome in `fail_on`
    folder: Path  # the folder of the outcome file, the reports and the ledger
    _document: str

    @cached_property
    def summary(self) -> "Summary":
        """The document `summary.json`: counts, sums and the rows that a person must review."""
        summary: Summary = _schema("summary").Summary.model_validate_json(self._document)
        return summary

    @cached_property
    def outcomes(self) -> "pl.DataFrame":
        """One row per payment: the file's columns and the ten outcome columns; identifiers are text."""
        import polars as pl

        parquet, text = self.folder / "outcomes.parquet", self.folder / "outcomes.csv"
        if parquet.exists():
            return pl.read_parquet(parquet)
        with text.open(encoding="utf-8-sig", newline="") as file:
            before_last = file.readline().rstrip('"\r\n').removesuffix(_LAST_COLUMN).rstrip('"')
        return pl.read_csv(text, separator=before_last[-1], infer_schema=False)


def check(
    payments: "str | Path | pl.DataFrame",
    /,
    *,
    out: str | Path | None = None,
    **options: Unpack[CheckOptions],
) -> CheckResult:
    """Check every payment, as `precheck run` does.

    Calling it again resumes the run; answered checks are never asked again. If two calls use one folder at
    the same time, the later one raises a PrecheckError with `exit_code` 75.

    Args:
        payments: a payment file, or a frame whose identifiers (sort code, account, IBAN) are text and whose
            amounts are decimals or text.
        out: the folder of the run; by default the file's name with `.precheck`. A frame needs one.
        options: the options of the command; without `profile`, the sandbox answers.

    Raises:
        PrecheckError: the file or the configuration is refused, or the run ended early.
    """
    with _on_disk(payments, out) as (file, folder):
        words = _arguments({"format": "parquet", **options}, folder)
        answer = _answer(["run", "--quiet", "--json", *words, "--", str(file)])
    result = CheckResult(answer.exit_code, folder, answer.document) if answer.document else None
    answer.raise_refusal(result)
    assert result is not None
    if result.exit_code not in _COMPLETE:
        how = str(result.summary.next_step or "not every row is decided")
        raise PrecheckError(result.exit_code, f"{file.name}: {how}", result=result)
    return result


def plan(
    payments: "str | Path | pl.DataFrame", /, *, out: str | Path | None = None, **options: Unpack[PlanOptions]
) -> "Forecast":
    """Forecast a check, as `precheck plan` does; nothing is sent.

    Takes and raises the same as `check`.
    """
    with _on_disk(payments, out) as (file, folder):
        answer = _answer(["plan", "--json", *_arguments(options, folder), "--", str(file)])
    answer.raise_refusal()
    forecast: Forecast = _schema("forecast").Forecast.model_validate_json(answer.document)
    return forecast


def explain(code: str, /) -> str:
    """Return what a code means, what it does not mean and what to do, as `precheck explain` in English.

    Raises:
        PrecheckError: the code does not exist.
    """
    answer = _answer(["explain", "--lang", "en", "--", code])
    answer.raise_refusal()
    return answer.document.strip()


@contextmanager
def _on_disk(payments: "str | Path | pl.DataFrame", out: str | Path | None) -> Iterator[tuple[Path, Path]]:
    """Yield the file to read and the folder of its run; a frame becomes a temporary Parquet file."""
    if isinstance(payments, str | Path):
        file = Path(payments)
        # Absolute, because `-` alone would be standard input.
        yield file.absolute(), Path(f"{file.stem}.precheck" if out is None else out)
        return
    if out is None:
        raise PrecheckError(2, "a frame has no file name", "name the folder of the run: out=")
    with tempfile.TemporaryDirectory(prefix="precheck-") as private:
        file = Path(private) / f"{Path(out).name}.parquet"
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as parquet:
            payments.write_parquet(parquet)
        yield file, Path(out)


def _arguments(options: Mapping[str, Any], folder: Path) -> Iterator[str]:
    for name, given in {**options, "out": folder}.items():
        option = f"--{name.replace('_', '-')}"
        if given is None or given is False:
            continue
        if given is True:
            yield option
        elif isinstance(given, Mapping):
            yield from (part for key, value in given.items() for part in (option, f"{key}={value}"))
        elif isinstance(given, Sequence) and not isinstance(given, str):
            yield from (part for value in given for part in (option, str(value)))
        else:
            yield from (option, str(given))


@dataclass(frozen=True)
class _Answer:
    """The output of the command in another interpreter."""

    exit_code: int
    document: str
    refusals: Sequence[tuple[str, str]]  # reason and advice of each error

    def raise_refusal(self, result: CheckResult | None = None) -> None:
        if self.refusals:
            raise PrecheckError(self.exit_code, *self.refusals[-1], result)


def _answer(arguments: Sequence[str]) -> _Answer:
    """Run the command in its own interpreter; its arguments and answer pass only through pipes."""
    here = str(Path(__file__).resolve().parent)
    code = f"import sys; sys.path.insert(0, {here!r}); import payee_precheck; payee_precheck.answer()"
    with subprocess.Popen(  # noqa: S603 (this interpreter, this module)
        [sys.executable, "-I", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C reaches the caller, who passes it on
    ) as child:
        try:
            printed, _ = child.communicate(json.dumps(list(arguments)).encode())
        except BaseException:
            child.send_signal(signal.SIGINT)  # like any run, it writes its outcome file and can be resumed
            child.wait()
            raise
    try:
        return _Answer(**json.loads(printed))
    except (ValueError, TypeError):
        how = f"signal {-child.returncode}" if child.returncode < 0 else f"exit status {child.returncode}"
        raise PrecheckError(
            _MISTAKE,
            f"the process that did the job ended with {how}",
            "call it again: nothing answered is lost",
        ) from None


_IMPORTING = threading.Lock()


def _schema(name: str) -> Any:  # noqa: ANN401 (a module)
    """Import a module of our `schemas`, even if the caller has or will have a package of this name."""
    here = Path(__file__).resolve().parent
    with _IMPORTING:
        loaded = sys.modules.get("schemas")
        if loaded is not None and Path(loaded.__file__ or "").parent == here / "schemas":
            return import_module(f"schemas.{name}")
        if name not in _LOADED:
            callers = _taken_out()
            sys.path.insert(0, str(here))
            try:
                _LOADED[name] = import_module(f"schemas.{name}")
            finally:
                sys.path.remove(str(here))
                _taken_out()
                sys.modules.update(callers)
        return _LOADED[name]


_LOADED: dict[str, Any] = {}


def _taken_out() -> dict[str, Any]:
    """Hide every module that is loaded as `schemas` from imports while the block runs."""
    return {key: sys.modules.pop(key) for key in list(sys.modules) if key.partition(".")[0] == "schemas"}


def main() -> None:
    """Start the command if all packages it would import are ours."""
    _start("pipeline.cli.main", "main", prog_name="precheck")


def answer() -> None:
    """Run the command for another process's Python API, which uses it through pipes."""
    _start("pipeline.cli.main", "answer")


def _start(module: str, function: str, **arguments: str) -> None:
    """Call a function of the program after checking that its packages are ours."""
    if sys.platform == "win32":
        sys.stderr.write("precheck: it needs Linux or macOS; on Windows use WSL, or the desk of your team\n")
        sys.exit(_CONFIGURATION)
    _have_standard_streams()
    _forget_what_imports_would_obey()
    # A run makes few reference cycles, and imported modules are not garbage (docs/adr/0012).
    gc.set_threshold(_COLLECTED_AFTER)
    # Skip the collection at exit too: searching for cycles takes a quarter of a short run.
    atexit.register(gc.freeze)
    for name in _PACKAGES:
        if (stranger := _stranger(name)) is not None:
            _refuse(f"{stranger} has the name of a module of this program, and is found before it")
    try:
        command = getattr(import_module(module), function)
        from pipeline.files.child_process import forbid_core_dumps
    except Exception as error:  # noqa: BLE001 (a foreign module may raise anything)
        _refuse(
            f"it cannot be imported ({_where(error)}): another program's module, or a damaged installation"
        )
    os.umask(0o077)  # all files are private, and new folders above them
    forbid_core_dumps()
    try:
        command(**arguments)
    except Exception as error:  # noqa: BLE001 (last resort: the code that reports errors failed)
        _refuse(f"it failed and could not report it ({_where(error)}): another program's module?", _MISTAKE)


def _forget_what_imports_would_obey() -> None:
    """Remove environment variables that change the behaviour of libraries."""
    # Some libraries make a TLS context during import. It would write its secrets to this file,
    os.environ.pop("SSLKEYLOGFILE", None)
    # and read the machine's authorities, which are not trusted here: `transport/tls.py` names its own.
    os.environ["SSL_CERT_FILE"] = os.devnull
    # Other packages' plugins would see every document, so none are loaded.
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    # httpx imports its command, which would load Rich and Pygments if they are installed.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]


def _have_standard_streams() -> None:
    """Open /dev/null for each closed standard stream, so that no other file gets its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 (until the end)


def _stranger(name: str) -> str | None:
    """Return the other place that would provide a package; None if it is the one next to this module."""
    spec = PathFinder.find_spec(name)
    found = None if spec is None else spec.origin
    ours = Path(__file__).resolve().parent / name / "__init__.py"
    return None if found is not None and Path(found).resolve() == ours else found or f"no {name}"


def _where(error: BaseException) -> str:
    """Return the last line of Python that ran before an error, without the error's message."""
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
