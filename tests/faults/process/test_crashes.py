"""A1, A2: SIGKILL at any moment. Answered is answered, and what was in flight is sent again once."""

import csv
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import cycle
from random import Random

ROW_COUNT = 160
IN_FLIGHT_MAX = 16
API_COUNT = 2
RUNS_AT_ONCE = 2
AIMS = ("anywhere", "anywhere", "ledger.db.new", "anywhere", "*.part", "anywhere", "anywhere", "fold")
"""What the kills go for, in turn: any moment, or the moments that random times rarely hit."""


@dataclass
class Life:
    """One run, from its first start through its kills to its end."""

    images: list = field(default_factory=list)
    """The ledger after each kill."""
    findings: list = field(default_factory=list)
    """What did not hold."""


@dataclass
class Total:
    kill_count: int = 0
    life_count: int = 0
    whole_count: int = 0
    """Lives whose kills all did no harm."""
    repeated_count: int = 0
    extra_count: int = 0
    extra_max: int = 0
    findings: list = field(default_factory=list)


def moment(aim, folder, chance, whole_s, clock):
    """When to kill: a predicate that is asked again and again."""
    at_s = clock() + chance.uniform(0, whole_s)
    if aim == "anywhere":
        return lambda: clock() >= at_s
    if aim == "fold":  # the write-ahead log is folded into the file at the very end
        return lambda: (folder / "summary.json").exists()
    return lambda: next(folder.glob(aim), None) is not None


def live(life, desk, words, folder, kills, *, image_of):
    """Start the run again and again until it has ended by itself, or `kills` are used up."""
    for number, is_time in enumerate(kills):
        # A state folder for each start: a turn that a kill cut short would be rested after, a second each.
        state = str(folder.with_name(f"{folder.name}-state{number}"))
        running = desk.start("run", *words, "--out", folder, "--quiet", XDG_STATE_HOME=state)
        finished = running.kill_when(is_time(folder))
        if finished.status != -9:
            if finished.status != 0:
                life.findings.append(f"ended with {finished.status}: {finished.err[-500:]}")
            return True
        image = image_of(folder, at=folder.with_name(f"{folder.name}-copy"))
        life.images.append(image)
    return False


def judge(life, calls):
    """Compare what the server was asked with what the ledger held at each kill."""
    question_of = {call["request_id"]: call["question"] for call in calls}
    repeated, earlier_intents = set(), frozenset()
    extra_max = 0
    for image in life.images:
        if not image.is_sound:
            life.findings.append("the ledger is not sound")
        done = {question_of[request_id] for request_id in image.answered}
        repeated |= {
            call["request_id"]
            for call in calls
            if call["request_id"] not in image.intents and call["question"] in done
        }
        extra_max = max(extra_max, len(image.open - earlier_intents))
        earlier_intents = image.intents
    if repeated:
        life.findings.append(f"{len(repeated)} calls for answered questions")
    if extra_max > IN_FLIGHT_MAX * API_COUNT:
        life.findings.append(f"a kill left {extra_max} requests in doubt")
    extra_count = len(calls) - len(set(question_of.values()))
    if extra_count > len(life.images) * IN_FLIGHT_MAX * API_COUNT:
        life.findings.append(f"{extra_count} calls too many")
    return len(repeated), extra_count, extra_max


def kill_until(total, kill_max, tools, seed):
    """Lead lives, one after the other, until so many kills are done."""
    desk_in, serve, folder, file, undisturbed, whole_s, image_of, stable_rows, clock = tools
    chance = Random(seed)
    aims = cycle(AIMS)
    with serve(folder / "server", "--latency", "0.02") as server:
        desk = desk_in(folder / "desk")
        section = server.both(rate_per_s=250, in_flight_max=IN_FLIGHT_MAX)
        words = (file, *desk.using(section))
        while total.kill_count < kill_max:
            before = len(server.calls())
            life = Life()
            results = desk.folder / f"life{total.life_count}"
            left = kill_max - total.kill_count

            def aimed(results, aim):
                return moment(aim, results, chance, whole_s, clock)

            kills = [lambda at, aim=next(aims): aimed(at, aim) for _ in range(left)]
            if not live(life, desk, words, results, kills, image_of=image_of):
                finished = desk("run", *words, "--out", results, "--quiet")
                if finished.status != 0:
                    life.findings.append(f"ended with {finished.status}: {finished.err[-500:]}")
            outcome_file = results / "outcomes.csv"
            if not outcome_file.exists() or stable_rows(outcome_file) != undisturbed:
                life.findings.append("another outcome file")
            repeated_count, extra_count, extra_max = judge(life, server.calls(before))
            total.life_count += 1
            total.whole_count += not life.findings
            total.kill_count += len(life.images)
            total.repeated_count += repeated_count
            total.extra_count += extra_count
            total.extra_max = max(total.extra_max, extra_max)
            total.findings += life.findings
    return total


def test_killed_at_any_moment_the_run_ends_as_if_nothing_had_happened(
    desk_in, serve, sandbox, sample, ledger_image, stable_rows, chance, clock, tmp_path, tell, is_long
):
    file = sample(ROW_COUNT)
    desk = desk_in(tmp_path / "undisturbed")
    section = sandbox.both(rate_per_s=250, in_flight_max=IN_FLIGHT_MAX)
    finished = desk("run", file, *desk.using(section), "--out", "whole", "--quiet")
    assert finished.status == 0, finished.err
    undisturbed = stable_rows(desk.folder / "whole" / "outcomes.csv")
    kill_max = (1000 if is_long else 100) // RUNS_AT_ONCE

    def one(number):
        folder = tmp_path / f"worker{number}"
        folder.mkdir()
        tools = (
            desk_in, serve, folder, file, undisturbed, finished.wall_s, ledger_image, stable_rows, clock,
        )  # fmt: skip
        return kill_until(Total(), kill_max, tools, chance.random())

    with ThreadPoolExecutor(RUNS_AT_ONCE) as workers:
        totals = list(workers.map(one, range(RUNS_AT_ONCE)))

    kill_count = sum(total.kill_count for total in totals)
    harmful_count = sum(len(total.findings) for total in totals)
    for finding in (finding for total in totals for finding in total.findings):
        print(finding)  # noqa: T201 (pytest shows it for a failure)
    tell(
        "A1",
        "SIGKILL at any moment",
        tried=kill_count,
        survived=max(0, kill_count - harmful_count),
        figure=f"{sum(total.whole_count for total in totals)} of {sum(total.life_count for total in totals)} runs as undisturbed;"
        f" repeats {sum(total.repeated_count for total in totals)};"
        f" extra calls {sum(total.extra_count for total in totals) / kill_count:.1f} per kill,"
        f" at most {max(total.extra_max for total in totals)} in doubt",
        goal=f"all as undisturbed; repeats 0; extra calls per kill <= {IN_FLIGHT_MAX * API_COUNT} in flight",
    )


def test_what_was_in_flight_at_a_crash_is_sent_again_once_as_attempt_two(
    desk, serve, rows_of, ledger_image, wait_until, tmp_path, tell, is_long
):
    count, round_count = 12, 10 if is_long else 2
    survived, sent_count = 0, 0
    with serve(tmp_path / "server", "--latency", "1.5") as server:
        for number in range(round_count):
            folder = desk.folder / f"round{number}"
            file = desk.payments(rows_of(count), name=f"{number}.csv")
            words = ("run", file, "--out", folder, *desk.using(server.section(in_flight_max=count)), "--quiet")
            before = len(server.calls())
            running = desk.start(*words)
            copy = tmp_path / "copy"

            def all_are_in_doubt(folder=folder, copy=copy):
                return len(ledger_image(folder, at=copy).open) == count

            running.kill_when(all_are_in_doubt)
            finished = desk(*words)
            calls = [call["question"] for call in server.calls(before)]
            sent_count += len(calls)
            with (folder / "outcomes.csv").open() as outcomes:
                attempts = [row["check_attempts"] for row in csv.DictReader(outcomes)]
            as_promised = finished.status == 0 and attempts == ["2"] * count
            survived += as_promised and len(calls) <= 2 * count and len(set(calls)) == count
    tell(
        "A2",
        "in flight at the crash",
        tried=round_count,
        survived=survived,
        figure=f"{round_count * count} in doubt, sent again once each; {sent_count} calls; attempt 2 recorded",
        goal="each interrupted request sent again once, attempt 2 recorded",
    )
