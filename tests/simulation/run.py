"""Play histories: `python tests/simulation/run.py --histories 2000`.

The last line is JSON: histories, questions, requests, simulated_hours, failed, first_failing_seed. The first
history that fails is made as small as it can be, and printed as a story. `--seed N` replays one; with
`--mistakes`, each known mistake is made, and must be found.
"""

import argparse
import gc
import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from difflib import get_close_matches
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # frames of 200 rows
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from simulation import tables

if TYPE_CHECKING:
    from simulation.history import Report

AT_ONCE = 5
"""Few, so that no processor waits long while another plays the last ones."""
OF_A_POOL = 1000
"""Then other processes take over: what histories leave in memory is not to add up over a hundred thousand."""
STORY_MAX = 400


class Batch(NamedTuple):
    """What came of some histories."""

    histories: int
    questions: int
    requests: int
    simulated_s: float
    met: "Counter[tuple[str, str]]"
    """Fault, and what the process did that met it."""
    failed: list[int]
    rules: "Counter[str]"

    def plus(self, other: "Batch") -> "Batch":
        """Both together."""
        return Batch(
            self.histories + other.histories,
            self.questions + other.questions,
            self.requests + other.requests,
            self.simulated_s + other.simulated_s,
            self.met + other.met,
            [*self.failed, *other.failed],
            self.rules + other.rules,
        )


def play(seeds: range, mistake: str | None, question_count: int, *, stop_at_first: bool) -> Batch:
    """Play some histories in this process."""
    _prepare(mistake)
    from simulation.history import History

    batch = Batch(0, 0, 0, 0.0, Counter(), [], Counter())
    for seed in seeds:
        report = History(seed, question_count).play()
        batch = batch._replace(
            histories=batch.histories + 1,
            questions=batch.questions + question_count,
            requests=batch.requests + report.request_count,
            simulated_s=batch.simulated_s + report.simulated_s,
        )
        batch.met.update(report.met)
        if report.breaches:
            batch.failed.append(seed)
            batch.rules.update({breach.rule for breach in report.breaches})
            if stop_at_first:
                break
    return batch


def smallest(seed: int, question_count: int) -> "tuple[Report, list[str]]":
    """The history with as few faults as still break one of its rules, and the faults that were left out.

    Each fault that is left is needed: without it, the others break none of these rules.
    """
    from simulation.history import History

    report, left_out = History(seed, question_count).play(), frozenset[str]()
    rules, again = {breach.rule for breach in report.breaches}, bool(report.breaches)
    while again:
        again = False
        for name in report.faults:
            fewer = left_out | {name}
            played = History(seed, question_count, fewer).play() if fewer != left_out else None
            if played is not None and rules & {breach.rule for breach in played.breaches}:
                left_out, again = fewer, True
    told = History(seed, question_count, left_out, is_told=True).play()
    return told, sorted(left_out)


def _from(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return value

    return number


def _known_mistake(name: str) -> str:
    from simulation.mistakes import MISTAKES

    if name not in MISTAKES:
        near = get_close_matches(name, MISTAKES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise argparse.ArgumentTypeError(f"{name!r} is none of those in tests/simulation/mistakes.toml{hint}")
    return name


def _asked() -> argparse.Namespace:
    from simulation.weather import ROWS_OF_THEIR_OWN_MAX

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--histories", type=_from(1), default=2000, metavar="N", help="how many to play (default: 2000)")
    add("--first", type=_from(0), default=0, metavar="SEED", help="the seed of the first (default: 0)")
    add(
        "--questions",
        type=_from(ROWS_OF_THEIR_OWN_MAX),
        default=200,
        metavar="N",
        help="of each (default: 200)",
    )
    add("--workers", type=_from(1), default=os.cpu_count() or 1, metavar="N", help="processes that play them")
    add("--seed", type=_from(0), help="play this one alone, and tell its story")
    add(
        "--mistake",
        type=_known_mistake,
        metavar="NAME",
        help="make one of those in mistakes.toml, and stop at the first history that fails, with status 1",
    )
    add(
        "--mistakes",
        action="store_true",
        help="make each of them, one after the other; status 1: one is missed",
    )
    add(
        "--record",
        action="store_true",
        help="write the table into docs/proof/simulation.md, where none failed",
    )
    asked = parser.parse_args()
    if asked.record and (asked.mistake or asked.seed is not None):
        parser.error("--record is not for --mistake or --seed: the tables are of many histories")
    if asked.mistakes and (asked.mistake or asked.seed is not None):
        parser.error("--mistakes makes each of them: leave out --mistake and --seed")
    return asked


def main() -> int:
    """Play, print, and say in the exit status whether every history was as it must be."""
    asked = _asked()
    if asked.mistakes:
        return _find_mistakes(asked)
    if asked.seed is not None:
        return _replay(asked.seed, asked.questions, asked.mistake)
    total = Batch(0, 0, 0, 0.0, Counter(), [], Counter())
    for batch in _played(asked):
        total = total.plus(batch)
        if total.histories % OF_A_POOL == 0:
            print(f"{total.histories:,} histories, {len(total.failed)} failed", file=sys.stderr, flush=True)
        if asked.mistake and total.failed:
            break
    print(*tables.faults(total.met), sep="\n")
    first = min(total.failed, default=None)
    if total.failed and not asked.mistake:
        print(f"failed: {sorted(total.failed)}")
    if first is not None and not asked.mistake:
        _replay(first, asked.questions, None)
    found = {
        "histories": total.histories,
        "questions": total.questions,
        "requests": total.requests,
        "simulated_hours": round(total.simulated_s / 3600, 1),
        "failed": len(total.failed),
        "first_failing_seed": first,
    }
    if asked.mistake:
        found["rules"] = dict(total.rules)
        how = "" if first is None else _how_to_replay(first, asked.questions, asked.mistake)
        print(how or "it is not found")
    if asked.record and not total.failed:
        tables.record("faults", tables.faults(total.met), json.dumps(found))
    print(json.dumps(found))
    return 1 if total.failed else 0


def _find_mistakes(asked: argparse.Namespace) -> int:
    """Make each known mistake, and print within how many histories it was found."""
    from simulation.mistakes import MISTAKES

    all_found = []
    for name in MISTAKES:
        asked.mistake, played, rules = name, 0, Counter[str]()
        for batch in _played(asked):
            played += batch.histories
            rules += batch.rules
        all_found.append((name, played, rules))
        print(tables.mistakes(all_found)[-1], flush=True)
    missed = sum(not rules for _, _, rules in all_found)
    last_line = json.dumps({"mistakes": len(MISTAKES), "missed": missed})
    if asked.record and not missed:
        tables.record("mistakes", tables.mistakes(all_found), last_line)
    print(last_line)
    return 1 if missed else 0


def _played(asked: argparse.Namespace) -> Iterator[Batch]:
    """The batches, as they end."""
    end = asked.first + asked.histories
    for first in range(asked.first, end, OF_A_POOL):
        last = min(first + OF_A_POOL, end)
        with ProcessPoolExecutor(asked.workers, mp_context=get_context("spawn")) as pool:
            futures = [
                pool.submit(
                    play,
                    range(start, min(start + AT_ONCE, last)),
                    asked.mistake,
                    asked.questions,
                    stop_at_first=asked.mistake is not None,
                )
                for start in range(first, last, AT_ONCE)
            ]
            for future in futures:
                yield future.result()
                if asked.mistake and future.result().failed:
                    for other in futures:
                        other.cancel()
                    return


def _replay(seed: int, question_count: int, mistake: str | None) -> int:
    _prepare(mistake)
    report, left_out = smallest(seed, question_count)
    story = report.story
    if len(story) > STORY_MAX:
        cut = len(story) - STORY_MAX
        story = [*story[: STORY_MAX // 2], f"... {cut} lines ...", *story[-STORY_MAX // 2 :]]
    print(f"seed {seed}, without: {', '.join(left_out) or 'nothing'}" if report.breaches else f"seed {seed}")
    print("\n".join(story))
    for breach in report.breaches:
        print(f"BROKEN {breach.rule}: {breach.what}")
    if not report.breaches:
        print(f"no rule is broken; faults: {', '.join(report.faults) or 'none'}")
        return 0
    print(_how_to_replay(seed, question_count, mistake))
    return 1


def _how_to_replay(seed: int, question_count: int, mistake: str | None) -> str:
    made = [] if mistake is None else ["--mistake", mistake]
    script = os.path.relpath(__file__)
    return "replay: " + shlex.join(
        [sys.executable, script, "--seed", str(seed), "--questions", str(question_count), *made]
    )


def _prepare(mistake: str | None) -> None:
    from simulation.mistakes import MISTAKES, make

    if mistake is not None and MISTAKES[mistake].module not in sys.modules:
        make(mistake)
    import simulation.history  # noqa: F401  (what it imports is there for good, and not to be looked at again)

    gc.freeze()
    gc.set_threshold(500_000, 20, 100)


if __name__ == "__main__":
    sys.exit(main())
