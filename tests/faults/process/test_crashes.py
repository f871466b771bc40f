"""A1, A2: SIGKILL at any moment. Answered is answered, and what was in flight is sent again once."""

import csv
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, cycle
from pathlib import Path
from random import Random

import pytest

ROW_COUNT = 160
IN_FLIGHT_MAX = 32  # of both APIs
LIMITS = {"rate_per_s": 250, "in_flight_max": IN_FLIGHT_MAX // 2}
RUNS_AT_ONCE = 2
FIRST_AIM = ("ledger.db.new", 0.0)  # while the ledger is made
AIMS = (
    ("ledger.db-wal", 0.6),  # while questions are asked
    (None, 1.0),  # any moment from the start on
    ("ledger.db-wal", 0.6),
    ("*.part", 0.0),  # while an outcome file is written
    ("ledger.db-wal", 0.6),
    ("summary.json", 0.0),  # when the log is about to be folded into the ledger
)
"""What the kills go for, in turn: the moment at which a file was written to, and some seconds at most."""


@dataclass
class Total:
    """What came of the kills of some runs."""

    kill_count: int = 0
    run_count: int = 0
    unharmed_count: int = 0
    repeated_count: int = 0
    extra_count: int = 0
    doubtful_max: int = 0
    findings: tuple[str, ...] = ()

    def __add__(self, other):
        return Total(
            self.kill_count + other.kill_count,
            self.run_count + other.run_count,
            self.unharmed_count + other.unharmed_count,
            self.repeated_count + other.repeated_count,
            self.extra_count + other.extra_count,
            max(self.doubtful_max, other.doubtful_max),
            self.findings + other.findings,
        )


@dataclass
class Killer:
    """Leads runs of one file from their first start through their kills to their end."""

    desk: Callable
    words: tuple
    undisturbed: list
    chance: Random
    clock: Callable[[], float]
    image_of: Callable

    def lead(self, folder: Path, kill_max: int, server) -> Total:
        """Start one run again and again until it has ended by itself."""
        before, images = server.call_count, []
        aims, findings = chain([FIRST_AIM], cycle(AIMS)), []
        while len(images) < kill_max:
            finished = self._start(folder, len(images)).kill_when(self._moment(folder, next(aims)))
            if finished.status != -9:
                break
            images.append(self.image_of(folder, at=folder.with_name(f"{folder.name}-copy")))
        else:
            finished = self._start(folder, len(images)).end()
        if finished.status != 0:
            findings.append(f"ended with {finished.status}: {finished.err[-500:]}")
        elif self.desk.stable_outcomes(folder) != self.undisturbed:
            findings.append("another outcome file")
        return judged(images, server.questions(before), findings)

    def _start(self, folder, number):
        # A state folder for each start: a turn that a kill cut short is rested after, a second each.
        state = f"{folder}-state{number}"
        return self.desk.start("run", *self.words, "--out", folder, "--quiet", XDG_STATE_HOME=state)

    def _moment(self, folder, aim):
        name, delay_max_s = aim
        started, due = time.time(), None

        def is_time():
            nonlocal due
            if due is None and (name is None or any(written_since(started, folder, name))):
                due = self.clock() + self.chance.uniform(0, delay_max_s)
            return due is not None and self.clock() >= due

        return is_time


def written_since(time_s, folder, name):
    """Whether each file of that name was written to since then; those of an earlier start were not."""
    for path in folder.glob(name):
        with suppress(FileNotFoundError):  # it has its final name by now
            yield path.stat().st_mtime >= time_s


def judged(images, calls, findings) -> Total:
    """Compare what the server was asked with what the ledger held at each kill of a run."""
    question_of = {call["request_id"]: call["question"] for call in calls}
    extra_count = len(calls) - len(set(question_of.values()))
    repeated: set[str] = set()
    doubtful_max, known = 0, frozenset()
    for image in images:
        if not image.is_sound:
            findings.append("the ledger is not sound")
        done = {question_of[request_id] for request_id in image.answered}
        later = [call for call in calls if call["request_id"] not in image.intents]
        repeated |= {call["request_id"] for call in later if call["question"] in done}
        doubtful_max = max(doubtful_max, len(image.open - known))
        known = image.intents
    if repeated:
        findings.append(f"calls for answered questions: {len(repeated)}")
    if doubtful_max > IN_FLIGHT_MAX or extra_count > len(images) * IN_FLIGHT_MAX:
        findings.append(f"in doubt after a kill: {doubtful_max}; calls too many: {extra_count}")
    return Total(len(images), 1, not findings, len(repeated), extra_count, doubtful_max, tuple(findings))


@pytest.fixture
def undisturbed(desk_in, sandbox, sample, tmp_path):
    """The outcome file of a run that nothing disturbs."""
    desk = desk_in(tmp_path / "undisturbed")
    finished = desk(
        "run", sample(ROW_COUNT), *desk.using(**sandbox.both(**LIMITS)), "--out", "whole", "--quiet"
    )
    assert finished.status == 0, finished.err
    return desk.stable_outcomes(desk.folder / "whole")


def test_killed_at_any_moment_the_run_ends_as_if_nothing_had_happened(
    desk_in, serve, undisturbed, sample, ledger_image, chance, clock, tmp_path, tell, is_long
):
    kill_max = (1000 if is_long else 100) // RUNS_AT_ONCE

    def kill_many(number):
        desk = desk_in(tmp_path / f"desk{number}")
        total = Total()
        with serve(tmp_path / f"server{number}", "--latency", "0.02") as server:
            words = (sample(ROW_COUNT), *desk.using(**server.both(**LIMITS)))
            random = Random(chance.random())
            killer = Killer(desk, words, undisturbed, random, clock, ledger_image)
            while total.kill_count < kill_max:
                folder = desk.folder / f"run{total.run_count}"
                total += killer.lead(folder, kill_max - total.kill_count, server)
        return total

    with ThreadPoolExecutor(RUNS_AT_ONCE) as threads:
        total = sum(threads.map(kill_many, range(RUNS_AT_ONCE)), Total())
    print(*total.findings, sep="\n")  # noqa: T201 (pytest shows it for a failure)
    assert total.doubtful_max > 0, "no kill came while requests were in flight: this tried too little"
    tell(
        "A1",
        "SIGKILL at any moment",
        tried=total.kill_count,
        survived=max(0, total.kill_count - len(total.findings)),
        figure=f"{total.unharmed_count} of {total.run_count} runs as undisturbed; repeats"
        f" {total.repeated_count}; extra calls {total.extra_count / total.kill_count:.1f} per kill;"
        f" in doubt at most {total.doubtful_max}",
        goal=f"all as undisturbed; repeats 0; extra calls per kill <= {IN_FLIGHT_MAX} in flight",
    )


def test_what_was_in_flight_at_a_crash_is_sent_again_once_as_attempt_two(
    desk, serve, network_payments, ledger_image, tmp_path, tell, is_long
):
    count, round_count = 12, 10 if is_long else 2
    survived, sent_count = 0, 0
    # No answer comes while the last of them is on its way, however slow this machine is.
    with serve(tmp_path / "server", "--latency", "3", "--latency-spread", "0") as server:
        # All ask one bank, and a bank that has not answered yet gets half of the places.
        using = desk.using(cop=server.section(in_flight_max=2 * count))
        for number in range(round_count):
            folder = desk.folder / f"round{number}"
            # The first is answered alone, and the others follow together.
            file = desk.payments(network_payments(1 + count), name=f"{number}.csv")
            words = ("run", file, "--out", folder, *using, "--quiet")
            before = server.call_count

            def all_are_in_doubt(folder=folder):
                return len(ledger_image(folder, at=tmp_path / "copy").open) == count

            desk.start(*words).kill_when(all_are_in_doubt)
            finished = desk(*words)
            calls = [call["question"] for call in server.questions(before)]
            sent_count += len(calls)
            with (folder / "outcomes.csv").open() as outcomes:
                attempts = [row["check_attempts"] for row in csv.DictReader(outcomes)]
            is_as_promised = finished.status == 0 and attempts == ["1"] + ["2"] * count
            survived += is_as_promised and len(calls) <= 1 + 2 * count and len(set(calls)) == 1 + count
    tell(
        "A2",
        "in flight at the crash",
        tried=round_count,
        survived=survived,
        figure=f"{round_count * count} in doubt, sent again once each as attempt 2; calls {sent_count}",
        goal="each sent again once, attempt 2 recorded",
    )
