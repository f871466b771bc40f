"""F: several hosts on one ledger in PostgreSQL, with workers that are killed, sleep, or are asked to stop."""

import os
import re
import signal
import threading
from contextlib import ExitStack

import pytest

IN_FLIGHT_MAX = 8
LATENCY_S = 0.04
"""Of a server for 200 requests a second, 8 at a time."""
WORKER_COUNT = 3
KILLS_LONG = int(os.environ.get("KILLS", "1000"))


class Crowd:
    """A run and some workers, each on a host of its own; whatever ended is started again."""

    def __init__(self, host, commands) -> None:
        self._host = host
        self._commands = commands
        self._stack = ExitStack()
        self.running = {name: self._started(name) for name in commands}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.running.values():
            if not one.has_ended:
                one.kill()
                one.communicate()
        self._stack.close()

    def _started(self, name):
        return self._stack.enter_context(self._host(name)(*self._commands[name]))

    def kill(self, pids):
        """Kill -9 those of these processes that are ours, and start their commands again: how many."""
        mine = [name for name, one in self.running.items() if one.pid in pids and not one.has_ended]
        for name in mine:
            self.running[name].kill()
        for name in mine:
            self.running[name].communicate()
            self.running[name] = self._started(name)
        return len(mine)

    def end(self):
        """Let the run come to its end, then ask the workers to stop: how each ended."""
        ends = {"run": self.running["run"].end()}
        for name, one in self.running.items():
            if name != "run":
                one.send_signal(signal.SIGTERM)
                ends[name] = one.end()
        return ends


@pytest.fixture
def crowd(desk, host, shared_profile):
    """`crowd(file, server, **limits)`: a run and workers that share it."""

    def start(file, server, out="out", **limits):
        (desk.folder / "work").mkdir(mode=0o700, exist_ok=True)
        words = shared_profile(server=server, in_flight_max=IN_FLIGHT_MAX, **limits)
        words = (*words, "--work", "work")
        commands = {f"w{number}": ("worker", *words) for number in range(WORKER_COUNT)}
        return Crowd(host, {"run": ("run", file, *words, "--out", out), **commands})

    return start


@pytest.fixture
def rows_of(postgres, ledger_database):
    def rows(query):
        with postgres.connect(ledger_database) as connection:
            return connection.execute(query).fetchall()

    return rows


@pytest.fixture
def slow_server(serve, tmp_path):
    """A server that takes its time, so that a kill hits requests in flight."""
    with serve(tmp_path / "slow", "--latency", str(LATENCY_S)) as running:
        yield running


@pytest.fixture
def books(slow_server, rows_of):
    """`books(count)`: what the server and the ledger say of so many questions."""

    def balance(count):
        answers = {
            question: (request_id, time)
            for question, request_id, time in rows_of(
                "SELECT encode(question, 'hex'), request_id, extract(epoch FROM answer.time::timestamptz)"
                " FROM precheck.answer JOIN precheck.intent USING (run, question, attempt)"
            )
        }
        asked_about = dict(rows_of("SELECT request_id, encode(question, 'hex') FROM precheck.intent"))
        calls = slow_server.questions()
        repeated = 0
        for call in calls:
            answered_by, answered_at = answers.get(asked_about[call["request_id"]], (None, 0))
            repeated += answered_by not in {None, call["request_id"]} and call["time"] > answered_at
        return {
            "lost": count - len(answers),
            "repeated": repeated,
            "in doubt": len(calls) - len({call["question"] for call in calls}),
        }

    return balance


def test_processes_that_are_killed_lose_nothing_and_repeat_no_answer(
    desk, slow_server, network_payments, crowd, books, rows_of, chance, tell, is_long
):
    kill_count, count, rate = (KILLS_LONG, 1_500, 100) if is_long else (5, 3_000, 150)
    killed, statuses, file_count = 0, set(), 0
    while killed < kill_count:  # one file after the other, as none lasts as long as so many kills
        rows = network_payments((file_count + 1) * count)[file_count * count :]
        file_count += 1
        file = desk.payments(rows, f"pay-{file_count}.csv")
        with crowd(file, slow_server, out=f"out-{file_count}", rate_per_s=rate) as many:
            while killed < kill_count and not many.running["run"].has_ended:
                threading.Event().wait(chance.uniform(0.05, 0.5))
                # Those that hold questions: others have only just been started.
                holders = rows_of(
                    "SELECT DISTINCT pid FROM precheck.chunk JOIN precheck.holder USING (holder)"
                    " WHERE done_at IS NULL AND lease_until > clock_timestamp() + interval '1 s'"
                )
                pids = [pid for [pid] in holders]
                some = chance.sample(pids, min(len(pids), chance.randint(1, 2), kill_count - killed))
                killed += many.kill(some)
            statuses |= {end.status for end in many.end().values()}
    found = books(file_count * count)
    is_well = statuses == {0} and found["lost"] == found["repeated"] == 0
    doubt_max = killed * IN_FLIGHT_MAX
    tell(
        "F1",
        f"kill -9 of a run and {WORKER_COUNT} workers, {file_count * count:,} questions",
        tried=killed,
        survived=killed if is_well and found["in doubt"] <= doubt_max else 0,
        figure=", ".join(f"{what} {number:,}" for what, number in found.items()),
        goal=f"lost 0, repeated 0, in doubt <= {doubt_max:,}: kills x in flight",
    )


def test_a_worker_that_sleeps_beyond_its_lease_changes_nothing_when_it_wakes(
    desk, slow_server, network_payments, crowd, books, in_ledger, chance, wait_until, tell, is_long
):
    stop_count, count = (20, 8_000) if is_long else (2, 1_200)
    file, slept = desk.payments(network_payments(count)), 0
    with crowd(file, slow_server, rate_per_s=100) as many:
        wait_until(lambda: in_ledger("SELECT count(*) FROM precheck.answer") > 50)
        for _ in range(stop_count):
            if many.running["run"].has_ended:
                break
            with many.running[chance.choice(["w0", "w1", "w2"])].stopped():
                threading.Event().wait(3.5)
            slept += 1
        ends = many.end()
    found = books(count)
    is_well = {end.status for end in ends.values()} == {0} and found["lost"] == found["repeated"] == 0
    tell(
        "F2",
        "a worker sleeps 3.5 s, its lease is 2 s",
        tried=slept,
        survived=slept if is_well and found["in doubt"] <= slept * IN_FLIGHT_MAX else 0,
        figure=", ".join(f"{what} {number:,}" for what, number in found.items()),
        goal=f"lost 0, repeated 0, in doubt <= {slept * IN_FLIGHT_MAX}",
    )


def test_the_database_is_restarted_while_questions_are_asked(
    desk, slow_server, network_payments, crowd, books, postgres, in_ledger, wait_until, tell
):
    count, ways = 1_200, ("fast", "immediate")
    file = desk.payments(network_payments(count))
    with crowd(file, slow_server, rate_per_s=100) as many:
        for number, how in enumerate(ways, start=1):
            so_many = number * count // 4
            wait_until(lambda so_many=so_many: in_ledger("SELECT count(*) FROM precheck.answer") > so_many)
            postgres.restart(how)
        ends = many.end()
    found = books(count)
    is_well = {end.status for end in ends.values()} == {0} and found["lost"] == found["repeated"] == 0
    in_flight = len(ways) * IN_FLIGHT_MAX
    tell(
        "F3",
        "PostgreSQL restarted: fast, immediate",
        tried=len(ways),
        survived=len(ways) if is_well and found["in doubt"] <= in_flight else 0,
        figure=", ".join(f"{what} {number:,}" for what, number in found.items()),
        goal=f"lost 0, repeated 0, in doubt <= {in_flight}",
    )


def test_a_database_that_stays_away_ends_the_run_and_loses_nothing(
    desk, sandbox, network_payments, host, shared_profile, proxy_to, postgres, in_ledger, wait_until, tell
):
    count = 400
    proxy = proxy_to(postgres.port)
    file, before = desk.payments(network_payments(count)), sandbox.call_count
    words = shared_profile(rate_per_s=50, port=proxy.port)
    with host("a")("run", file, *words, "--out", "a", PRECHECK_TEST_WAIT_S="3") as running:
        wait_until(lambda: in_ledger("SELECT count(*) FROM precheck.answer") > count // 4)
        proxy.close_door()
        away = running.end()
    asked = len(sandbox.questions(before))
    proxy.open_door()
    done = host("a")("run", file, *words, "--out", "a").end()
    repeated = len(sandbox.questions(before)) - count
    is_well = (away.status, done.status) == (75, 0) and f"127.0.0.1:{proxy.port}" in away.err
    tell(
        "F4",
        "PostgreSQL away for longer than a run waits",
        tried=1,
        survived=int(is_well and asked < count and repeated <= IN_FLIGHT_MAX),
        figure=f"exits {away.status}, then {done.status}; asked twice {repeated}",
        goal=f"75 naming host and port, then 0; asked twice <= {IN_FLIGHT_MAX}",
    )


def test_one_daily_cap_is_never_exceeded_by_many_processes_with_kills(
    desk, serve, tmp_path, network_payments, host, shared_profile, rows_of, chance, tell, is_long
):
    cap, kill_count = (1_000, 10) if is_long else (200, 2)
    (desk.folder / "work").mkdir(mode=0o700)
    file = desk.payments(network_payments(2 * cap))
    with serve(tmp_path / "own") as server:
        words = shared_profile(server=server, daily_cap=cap, rate_per_s=50, in_flight_max=IN_FLIGHT_MAX)
        worker = ("worker", *words, "--work", "work")
        run = ("run", file, *words, "--out", "out", "--work", "work")
        with Crowd(host, {"run": run} | {f"w{number}": worker for number in range(WORKER_COUNT)}) as many:
            killed = 0
            while killed < kill_count and not many.running["run"].has_ended:
                threading.Event().wait(chance.uniform(0.2, 1))
                pids = rows_of("SELECT pid FROM precheck.chunk JOIN precheck.holder USING (holder)")
                killed += bool(pids) and many.kill(chance.choice(pids))
            ends = many.end()
        asked = len(server.questions())
    [[intents, used]] = rows_of(
        "SELECT (SELECT count(*) FROM precheck.intent), (SELECT used FROM precheck.daily_cap)"
    )
    is_well = asked <= intents == used == cap and ends["run"].status == 75
    tell(
        "F5",
        f"a daily cap of {cap:,} under {WORKER_COUNT + 1} processes, killed {killed} times",
        tried=1,
        survived=int(is_well),
        figure=f"the server saw {asked:,}; units {used:,}, intents {intents:,}; exit {ends['run'].status}",
        goal=f"<= {cap:,} at the server; units = intents = {cap:,}; 75",
    )


def test_a_pause_that_one_host_is_asked_for_is_kept_by_all(
    desk, serve, tmp_path, network_payments, host, shared_profile, tell
):
    file = desk.payments(network_payments(400))
    with serve(tmp_path / "own", "--fault", "429-seconds:after=100,for=1") as server:
        words = shared_profile(server=server, rate_per_s=50, in_flight_max=IN_FLIGHT_MAX)
        commands = {name: ("run", file, *words, "--out", name) for name in ("a", "b")}
        with ExitStack() as stack:
            running = [stack.enter_context(host(name)(*words)) for name, words in commands.items()]
            ends = [one.end() for one in running]
        calls = server.questions()
    [paused] = [call for call in calls if call["faults"]]
    began = paused["monotonic"]
    # What had left already may arrive; whoever learns of the pause late has a renewal's time.
    inside = [call for call in calls if began + 1.2 < call["monotonic"] < began + paused["retry_after_s"]]
    is_well = [end.status for end in ends] == [0, 0] and not inside
    tell(
        "F6",
        "429 with Retry-After at one of two hosts",
        tried=1,
        survived=int(is_well),
        figure=f"{len(inside)} sent by either in its {paused['retry_after_s']:g} s, from 1.2 s after it",
        goal="0",
    )


def test_two_hosts_with_one_file_make_one_run_with_identical_outcomes(
    desk, sandbox, network_payments, host, shared_profile, rows_of, tell
):
    count, before = 600, sandbox.call_count
    file = desk.payments(network_payments(count))
    words = shared_profile(rate_per_s=60, in_flight_max=IN_FLIGHT_MAX)
    with ExitStack() as stack:
        commands = {name: ("run", file, *words, "--out", name) for name in ("a", "b")}
        running = [stack.enter_context(host(name)(*command)) for name, command in commands.items()]
        ends = [one.end().status for one in running]
    asked, [[runs]] = len(sandbox.questions(before)), rows_of("SELECT count(*) FROM precheck.run")
    is_same = desk.outcomes("a") == desk.outcomes("b")
    tell(
        "F7",
        "two hosts check one file at the same time",
        tried=1,
        survived=int(ends == [0, 0] and asked == count and runs == 1 and is_same),
        figure=f"exits {ends}, runs {runs}, requests {asked:,} for {count:,} questions, outcomes "
        f"{'identical' if is_same else 'different'}",
        goal=f"exits [0, 0], runs 1, requests {count:,}, outcomes identical",
    )


def test_hosts_with_other_limits_are_refused_before_anything_is_sent(
    desk, sandbox, network_payments, host, shared_profile, in_ledger, wait_until, tell
):
    file = desk.payments(network_payments(400))
    mine, other = shared_profile(rate_per_s=20), shared_profile("other.toml", rate_per_s=90)
    with host("a")("run", file, *mine, "--out", "a") as first:
        wait_until(lambda: in_ledger("SELECT count(*) FROM precheck.answer") > 0)
        refused = host("b")("run", file, *other, "--out", "b").end()
        first.kill()
        first.communicate()
    named = re.findall(r"process \d+ on \S+ has rate_per_s = (\d+)", refused.err)
    tell(
        "F8",
        "limits of one account that differ between hosts",
        tried=1,
        survived=int(refused.status == 78 and set(named) == {"20", "90"}),
        figure=f"exit {refused.status}, naming {' and '.join(sorted(set(named)))} a second with their hosts",
        goal="78, naming both hosts",
    )


def test_a_worker_that_is_asked_to_stop_leaves_its_questions_free_at_once(
    desk, sandbox, network_payments, host, shared_profile, rows_of, in_ledger, wait_until, tell
):
    count, before = 800, sandbox.call_count
    (desk.folder / "work").mkdir(mode=0o700)
    file = desk.payments(network_payments(count))
    words = (*shared_profile(rate_per_s=60, in_flight_max=IN_FLIGHT_MAX), "--work", "work")
    with host("a")("run", file, *words, "--out", "a") as run, host("b")("worker", *words) as worker:
        wait_until(lambda: in_ledger("SELECT count(DISTINCT holder) FROM precheck.chunk") == 2)
        worker.send_signal(signal.SIGTERM)
        stopped = worker.end()
        [[left]] = rows_of(
            "SELECT count(*) FROM precheck.chunk JOIN precheck.holder USING (holder)"
            f" WHERE done_at IS NULL AND pid = {worker.pid}"
        )
        done = run.end()
    asked = len(sandbox.questions(before))
    tell(
        "F9",
        "SIGTERM to a worker",
        tried=1,
        survived=int((stopped.status, done.status, left, asked) == (0, 0, 0, count)),
        figure=f"exit {stopped.status}, {left} chunks still its own, requests {asked:,} for {count:,}",
        goal=f"exit 0, 0 chunks, requests {count:,}",
    )
