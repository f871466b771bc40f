"""Mutation testing: change a module in one small way at a time, and see that its tests fail.

    python tests/mutants/run.py                  every module of [tool.mutants] in pyproject.toml
    python tests/mutants/run.py pipeline/stores/sqlite/quota.py
    python tests/mutants/run.py --write ...      and write the figures into docs/dev/mutants.md
    python tests/mutants/run.py --planted        the planted faults of planted.toml instead

Each mutant is tried in a copy of the tree, with the tests that belong to its module. One that no
test notices must be told of in tests/mutants/survivors.toml, with the reason why it may live; the
exit status is 1 while another one does, or while the file tells of one that does not.
"""

import argparse
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Literal, NamedTuple, Self, get_args

import pytest
from changes import Change, changes
from planted import PLANTED

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "dev" / "mutants.md"
SURVIVORS = Path(__file__).with_name("survivors.toml")
PARTS = ("pipeline", "schemas", "tests", "docs", "sample_data", "pyproject.toml")
TIMEOUT_MIN_S = 10.0
TIMEOUT_FACTOR = 5.0
"""A mutant is stopped when its tests take this many times as long as without it."""
PLANTED_MAX_S = 60.0
"""How long one test may take to find a planted fault."""
TOLD_MAX = 120
"""How much of a change the page quotes."""

Verdict = Literal["killed", "endless", "survived"]


class Trial(NamedTuple):
    """What became of one mutant."""

    module: str
    change: Change
    verdict: Verdict

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        return (self.module, *self.change.key)


class Bench:
    """A copy of the tree, in which one mutant at a time is tried."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, folder / part)
            else:
                shutil.copy(source, folder / part)
        self._folder = folder
        temporary = folder / "tmp"
        temporary.mkdir()
        self._forks = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("forks.py"))],
            cwd=folder,
            # Two mutants can have one length and one second, which is all that a .pyc is known by: none is
            # written, and those of the tree fit no file that was changed.
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(temporary)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._forks as process:
            process.terminate()

    def text_of(self, module: str) -> bytes:
        """The module as it was when the copy was made."""
        return (self._folder / module).read_bytes()

    def seconds_of(self, module: str, tests: Sequence[str]) -> float:
        """How long the tests of a module take without a mutant.

        Raises:
            SystemExit: they fail; or they pass without the module, so that they prove nothing.
        """
        started = monotonic()
        self.require_passing(tests)
        seconds = monotonic() - started
        if self.verdict(module, b"raise ImportError\n", tests, timeout_s=600) == "survived":
            raise SystemExit(f"{module}: its tests pass without it; look at [tool.mutants] in pyproject.toml")
        return seconds

    def require_passing(self, tests: Sequence[str]) -> None:
        """Run tests on the tree as it is.

        Raises:
            SystemExit: they fail.
        """
        if (code := self._exit_code(tests, timeout_s=600)) != 0:
            raise SystemExit(f"{', '.join(tests)}: end with status {code} without a change; make them pass")

    def verdict(self, module: str, source: bytes, tests: Sequence[str], *, timeout_s: float) -> Verdict:
        """What the tests say to a module with this text."""
        code = self.exit_code_with(module, source, tests, timeout_s=timeout_s)
        return "endless" if code == -signal.SIGALRM else "killed" if code else "survived"

    def exit_code_with(self, module: str, source: bytes, tests: Sequence[str], *, timeout_s: float) -> int:
        """How pytest ends with a module of this text."""
        path = self._folder / module
        original = path.read_bytes()
        path.write_bytes(source)
        try:
            return self._exit_code(tests, timeout_s=timeout_s)
        finally:
            path.write_bytes(original)

    def _exit_code(self, tests: Sequence[str], *, timeout_s: float) -> int:
        known = "ignore:Module already imported"  # on purpose, in forks.py
        arguments = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "-W", known, *tests]
        assert self._forks.stdin is not None
        assert self._forks.stdout is not None
        print(json.dumps([timeout_s, *arguments]), file=self._forks.stdin, flush=True)
        return int(self._forks.stdout.readline())


class Benches(ExitStack):
    """Benches that threads take turns with."""

    def __init__(self, count: int) -> None:
        super().__init__()
        temporary = self.enter_context(tempfile.TemporaryDirectory())
        self._free: queue.Queue[Bench] = queue.Queue()
        for number in range(count):
            self._free.put(self.enter_context(Bench(Path(temporary, str(number)))))
        self.pool = self.enter_context(ThreadPoolExecutor(count))

    @contextmanager
    def one(self) -> Iterator[Bench]:
        """A bench for this thread alone, while the block lasts."""
        bench = self._free.get()
        try:
            yield bench
        finally:
            self._free.put(bench)


def tried(modules: dict[str, list[str]], workers_count: int) -> Iterator[Trial]:
    """Every mutant of these modules, with its verdict, as they come."""
    with Benches(workers_count) as benches:
        for module, tests in modules.items():
            with benches.one() as bench:
                timeout_s = TIMEOUT_MIN_S + TIMEOUT_FACTOR * bench.seconds_of(module, tests)
                found = changes(bench.text_of(module))

            def trial(
                change: Change, module: str = module, tests: list[str] = tests, timeout_s: float = timeout_s
            ) -> Trial:
                with benches.one() as bench:
                    return Trial(
                        module, change, bench.verdict(module, change.source, tests, timeout_s=timeout_s)
                    )

            yield from benches.pool.map(trial, found)


def planted_missed(workers_count: int) -> Iterator[tuple[str, list[str]]]:
    """Every planted fault, with those of its tests that do not find it, as they come."""
    with Benches(workers_count) as benches:
        with benches.one() as bench:
            bench.require_passing(sorted({test for fault in PLANTED.values() for test in fault.found_by}))

        def missed(name: str) -> tuple[str, list[str]]:
            fault = PLANTED[name]
            with benches.one() as bench:
                source = fault.made(bench.text_of(fault.file))
                codes = {
                    test: bench.exit_code_with(fault.file, source, [test], timeout_s=PLANTED_MAX_S)
                    for test in fault.found_by
                }
            return name, [test for test, code in codes.items() if code != pytest.ExitCode.TESTS_FAILED]

        yield from benches.pool.map(missed, PLANTED)


def try_planted(workers_count: int) -> int:
    """Try the planted faults and print what became of each; the exit status says whether all were found."""
    missed_count = 0
    for name, missed in planted_missed(workers_count):
        missed_count += bool(missed)
        print(f"MISSED {name}: {', '.join(missed)}" if missed else f"found  {name}", flush=True)
    print(f"{len(PLANTED) - missed_count} of {len(PLANTED)} planted faults found")
    return int(missed_count > 0)


def explained() -> dict[tuple[str, str, str, str, int], str]:
    """Why each known survivor may live."""
    table = tomllib.loads(SURVIVORS.read_text("utf-8"))
    return {
        (row["module"], row["place"], row["before"], row["after"], row.get("nth", 1)): row["why"]
        for row in table["mutant"]
    }


HEAD = """| module | mutants | a test fails | its tests never end | survived | tried on |
| --- | --- | --- | --- | --- | --- |"""


def figures(trials: Sequence[Trial]) -> dict[str, str]:
    """Module -> its line of the page's table."""
    counts = Counter((trial.module, trial.verdict) for trial in trials)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    lines = {}
    for module in dict.fromkeys(trial.module for trial in trials):
        verdicts = [counts[module, verdict] for verdict in get_args(Verdict)]
        numbers = " | ".join(f"{count:,}" for count in (sum(verdicts), *verdicts))
        lines[module] = f"| `{module}` | {numbers} | {today} |"
    return lines


def survivors() -> Iterator[str]:
    """The survivors of the page, each with its reason."""
    yield "| where | instead of | with | why it may live |"
    yield "| --- | --- | --- | --- |"
    for (module, place, *change, _), why in explained().items():
        before, after = (
            textwrap.shorten(text, TOLD_MAX, placeholder=" …").replace("|", "\\|") for text in change
        )
        where = f"`{module}` {place}".strip()
        yield f"| {where} | `{before}` | `{after}` | {why} |"


def write(trials: Sequence[Trial], modules: Iterable[str]) -> None:
    """Put the figures of what was tried into the page; those of the other modules stay as they are."""
    page = PAGE.read_text("utf-8")
    table = page.partition("<!-- figures -->")[2].partition("<!-- end -->")[0]
    last = {line.split("`")[1]: line for line in table.splitlines() if "`" in line}
    lines = last | figures(trials)
    for mark, text in (
        ("figures", [HEAD, *(lines[module] for module in modules if module in lines)]),
        ("survivors", survivors()),
    ):
        head, opened, rest = page.partition(f"<!-- {mark} -->")
        _, closed, tail = rest.partition("<!-- end -->")
        page = f"{head}{opened}\n\n" + "\n".join(text) + f"\n\n{closed}{tail}"
    PAGE.write_text(page, "utf-8")


def main() -> int:
    """Try, tell, and say by the exit status whether every survivor is explained."""
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mutants"]
    parser = argparse.ArgumentParser(description="mutation testing of the modules of [tool.mutants]")
    parser.add_argument("module", nargs="*", choices=[[], *configured], help="these only")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/dev/mutants.md")
    parser.add_argument(
        "--planted", action="store_true", help="try the planted faults of planted.toml instead"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="COUNT")
    chosen = parser.parse_args()
    if chosen.planted:
        return try_planted(chosen.workers)

    trials = []
    for trial in tried({name: configured[name] for name in chosen.module or configured}, chosen.workers):
        trials.append(trial)
        if trial.verdict == "survived":
            change = trial.change
            known = "known   " if trial.key in explained() else "SURVIVED"
            told = f"{change.place} ({change.nth}): {change.before} -> {change.after}"
            print(f"{known} {trial.module}:{change.line} {told}", flush=True)

    print(HEAD, *figures(trials).values(), sep="\n")
    alive = {trial.key for trial in trials if trial.verdict == "survived"}
    known_keys = {key for key in explained() if key[0] in {trial.module for trial in trials}}
    for key in sorted(known_keys - alive):
        print("no survivor any more, take it out of survivors.toml:", *key)
    if alive != known_keys:
        return 1
    if chosen.write:
        write(trials, configured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
