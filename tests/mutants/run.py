"""Mutation testing: change a module in one small way at a time, and see that its tests fail.

    python tests/mutants/run.py                  every module of [tool.mutants] in pyproject.toml
    python tests/mutants/run.py pipeline/stores/sqlite/quota.py
    python tests/mutants/run.py --write ...      and write the figures into docs/mutants.md

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
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Literal, NamedTuple, Self, get_args

from changes import Change, changes

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "mutants.md"
SURVIVORS = Path(__file__).with_name("survivors.toml")
PARTS = ("pipeline", "schemas", "tests", "docs", "sample_data", "pyproject.toml")
TIMEOUT_MIN_S = 10.0
TIMEOUT_FACTOR = 5.0
"""A mutant is stopped when its tests take this many times as long as without it."""
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
                shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / part)
        self._folder = folder
        temporary = folder / "tmp"
        temporary.mkdir()
        self._forks = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("forks.py"))],
            cwd=folder,
            # Two mutants can have one length and one second, which is all that a .pyc is known by.
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
        if (code := self._exit_code(tests, timeout_s=600)) != 0:
            raise SystemExit(f"{module}: its tests end with status {code} without a mutant; make them pass")
        seconds = monotonic() - started
        if self.verdict(module, b"raise ImportError\n", tests, timeout_s=600) == "survived":
            raise SystemExit(f"{module}: its tests pass without it; look at [tool.mutants] in pyproject.toml")
        return seconds

    def verdict(self, module: str, source: bytes, tests: Sequence[str], *, timeout_s: float) -> Verdict:
        """What the tests say to a module with this text."""
        path = self._folder / module
        original = path.read_bytes()
        path.write_bytes(source)
        try:
            code = self._exit_code(tests, timeout_s=timeout_s)
        finally:
            path.write_bytes(original)
        return "endless" if code == -signal.SIGALRM else "killed" if code else "survived"

    def _exit_code(self, tests: Sequence[str], *, timeout_s: float) -> int:
        known = "ignore:Module already imported"  # on purpose, in forks.py
        arguments = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "-W", known, *tests]
        assert self._forks.stdin is not None
        assert self._forks.stdout is not None
        print(json.dumps([timeout_s, *arguments]), file=self._forks.stdin, flush=True)
        return int(self._forks.stdout.readline())


def tried(modules: dict[str, list[str]], workers_count: int) -> Iterator[Trial]:
    """Every mutant of these modules, with its verdict, as they come."""
    with (
        tempfile.TemporaryDirectory() as temporary,
        ExitStack() as opened,
        ThreadPoolExecutor(workers_count) as pool,
    ):
        benches: queue.Queue[Bench] = queue.Queue()
        for number in range(workers_count):
            benches.put(opened.enter_context(Bench(Path(temporary, str(number)))))

        for module, tests in modules.items():
            bench = benches.get()
            timeout_s = TIMEOUT_MIN_S + TIMEOUT_FACTOR * bench.seconds_of(module, tests)
            found = changes(bench.text_of(module))
            benches.put(bench)

            def trial(
                change: Change, module: str = module, tests: list[str] = tests, timeout_s: float = timeout_s
            ) -> Trial:
                bench = benches.get()
                try:
                    return Trial(
                        module, change, bench.verdict(module, change.source, tests, timeout_s=timeout_s)
                    )
                finally:
                    benches.put(bench)

            yield from pool.map(trial, found)


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
        ("figures", [HEAD, *(lines[module] for module in modules)]),
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
    parser.add_argument("--write", action="store_true", help="write the figures into docs/mutants.md")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="COUNT")
    chosen = parser.parse_args()

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
