"""Workers: they ask what a run leaves them, and whatever ends them, nothing is lost or repeated."""

import re
import signal
import socket
import subprocess
import time

import pytest
from refusals import said

COUNT = 200
SLOW_PER_S = 40
IN_FLIGHT_MAX = 8


@pytest.fixture
def file(desk, network_payments):
    return desk.payments(network_payments(COUNT))


@pytest.fixture
def run(file, shared_profile, host):
    """`run("a")`: a run on a host, which leaves its questions to workers; the folder has the host's name."""
    return lambda name: host(name)(
        "run", file, *shared_profile(rate_per_s=SLOW_PER_S), "--out", name, "--work", "work"
    )


@pytest.fixture
def worker(shared_profile, host):
    """`worker("b")`: a worker on a host."""
    return lambda name, *more: host(name)(
        "worker", *shared_profile(rate_per_s=SLOW_PER_S), "--work", "work", *more
    )


@pytest.fixture
def work(desk):
    """The work folder; there before anything is in it."""
    folder = desk.folder / "work"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def held_chunks(in_ledger):
    return lambda: in_ledger(
        "SELECT count(*) FROM precheck.chunk WHERE holder IS NOT NULL AND done_at IS NULL"
    )


@pytest.fixture
def answer_count(in_ledger):
    return lambda: in_ledger("SELECT count(*) FROM precheck.answer")


def test_a_run_and_a_worker_share_its_questions_and_nothing_of_them_is_left_behind(
    desk, sandbox, file, run, worker, work, wait_until
):
    before = sandbox.call_count

    with worker("b", "--metrics", "b.prom") as helper:
        wait_until((desk.folder / "b.prom").exists)  # it looks for work, however busy this machine is
        with run("a") as checking:
            done = checking.end()
        helper.send_signal(signal.SIGTERM)
        helped = helper.end()

    assert (done.status, helped.status) == (0, 0), (done.err, helped.err)
    assert len(sandbox.questions(before)) == COUNT
    begun, taken_up, *_ = helped.err.splitlines()
    assert "Z " + said("jobs.notice_helping") + " (profile: mine, work: work, ledger: postgres" in begun
    assert re.search(
        rf"Z {said('executors.working_on_questions')} \(run: [0-9a-f-]{{36}}, round: 1, chunks: \d\)$",
        taken_up,
    )
    by_worker = int(helped.err.split("precheck: ")[1].split()[0])
    assert 0 < by_worker < COUNT
    asked = re.findall(
        r"^precheck_live_requests_total\{(.*)\} (.*)$", (desk.folder / "b.prom").read_text(), re.MULTILINE
    )
    labels = f'api="cop",host="{socket.gethostname()}",process="b",profile="mine"'
    assert [(",".join(sorted(told.split(","))), float(count)) for told, count in asked] == [
        (labels, by_worker)
    ]
    assert list(work.iterdir()) == []
    assert desk("verify", "a", "--input", file).status == 0
    alone = desk("run", file, *sandbox.using("production"), "--out", "alone")
    assert alone.status == 0
    assert desk.stable_outcomes("a") == desk.stable_outcomes("alone")


def test_what_lies_in_the_work_folder_is_for_its_owner_only(desk, run, work, wait_until):
    with run("a") as checking:
        wait_until(lambda: list(work.glob("*/work.json")))
        found = list(work.rglob("*"))
        modes = {path.name: path.stat().st_mode & 0o777 for path in found}
        checking.kill()
        checking.communicate()

    assert {mode for name, mode in modes.items() if "." in name} == {0o600}
    assert {mode for name, mode in modes.items() if "." not in name} == {0o700}


def test_a_work_folder_that_others_can_look_into_is_refused(sandbox, run, worker, work, in_ledger):
    work.chmod(0o755)
    before = sandbox.call_count

    with worker("b") as helper, run("a") as checking:
        ends = [helper.end(), checking.end()]

    assert [end.status for end in ends] == [73, 73], ends
    assert all(said("runs.work_folder_open_to_others") in end.err for end in ends)
    assert all("run `chmod 700 work`" in end.err for end in ends)
    assert (sandbox.call_count, in_ledger("SELECT count(*) FROM precheck.run")) == (before, 0)


@pytest.mark.nightly
def test_a_worker_that_is_killed_loses_nothing_and_repeats_no_answer(
    sandbox, run, worker, work, answer_count, wait_until
):
    before = sandbox.call_count

    with worker("b") as helper, run("a") as checking:
        wait_until(lambda: answer_count() > COUNT // 3)
        helper.kill()
        helper.communicate()
        done = checking.end()

    assert done.status == 0, done.err
    assert answer_count() == COUNT
    assert len(sandbox.questions(before)) - COUNT <= IN_FLIGHT_MAX


@pytest.mark.nightly
def test_a_worker_that_sleeps_beyond_its_lease_and_wakes_changes_nothing(
    sandbox, run, worker, work, answer_count, held_chunks, wait_until
):
    before = sandbox.call_count

    with worker("b") as helper, run("a") as checking:
        wait_until(lambda: answer_count() > COUNT // 3)
        with helper.stopped():
            done = checking.end()
            asked = sandbox.call_count
        helper.send_signal(signal.SIGTERM)
        helped = helper.end()

    assert (done.status, helped.status) == (0, 0), (done.err, helped.err)
    assert answer_count() == COUNT
    assert asked - before - COUNT <= IN_FLIGHT_MAX + 2, "and the tokens"
    assert len(sandbox.questions(before)) - COUNT <= IN_FLIGHT_MAX
    assert held_chunks() == 0


@pytest.mark.nightly
def test_a_worker_that_is_asked_to_stop_gives_back_what_it_has_not_asked(
    sandbox, run, worker, work, answer_count, in_ledger, wait_until
):
    with run("a") as checking:
        wait_until(lambda: answer_count() > 0)
        checking.kill()
        checking.communicate()
    with worker("b") as helper:
        wait_until(lambda: answer_count() > COUNT // 5)  # that leaves a busy machine 4 seconds
        helper.send_signal(signal.SIGTERM)
        helped = helper.end()

    assert helped.status == 0, helped.err
    # Chunks of the run that was killed are free once its leases have ended.
    held = "SELECT array_agg(DISTINCT pid) FROM precheck.chunk JOIN precheck.holder USING (holder)"
    assert in_ledger(f"{held} WHERE done_at IS NULL") in (None, [checking.pid])
    assert answer_count() < COUNT
    with worker("c", "--until-idle") as last:
        assert last.end().status == 0
    assert answer_count() == COUNT


@pytest.mark.nightly
def test_a_worker_that_is_asked_to_stop_awaits_its_requests_in_flight(
    serve, file, shared_profile, host, work, tmp_path, answer_count, in_ledger, wait_until
):
    def intent_count():
        return in_ledger("SELECT count(*) FROM precheck.intent")

    with serve(tmp_path / "slow", "--latency", 0.5, "--latency-spread", 0) as slow:
        words = (*shared_profile(server=slow, in_flight_max=IN_FLIGHT_MAX), "--work", "work")
        with host("a")("run", file, *words, "--out", "a") as checking:
            wait_until(lambda: answer_count() > 0)
            checking.kill()
            checking.communicate()
        intended, answered = intent_count(), answer_count()
        with host("b")("worker", *words) as helper:
            wait_until(lambda: intent_count() > intended)
            helper.send_signal(signal.SIGTERM)
            helped = helper.end()
        asked = intent_count() - intended

    assert helped.status == 0, helped.err
    assert answer_count() - answered == asked > 0, "every request that left has its answer"
    assert helped.err.endswith(f"precheck: {asked} question{'s' * (asked != 1)} answered\n")


@pytest.mark.nightly
def test_a_run_that_waits_for_another_host_ends_by_one_ctrl_c(
    desk, serve, network_payments, shared_profile, host, work, tmp_path, in_ledger, wait_until
):
    files = [desk.payments(network_payments(20 + n), f"{n}.csv") for n in range(2)]
    with serve(tmp_path / "slow", "--latency", 0.5, "--latency-spread", 0) as slow:
        words = (*shared_profile(server=slow, in_flight_max=1), "--work", "work")
        with host("a")("run", files[0], *words, "--out", "a") as asking:
            wait_until(lambda: slow.call_count > 2)
            with host("b")("run", files[1], *words, "--out", "b") as waiting:
                wait_until(lambda: in_ledger("SELECT count(*) FROM precheck.chunk") == 2)
                time.sleep(1)  # it looks for its share of the account, and there is none
                waiting.send_signal(signal.SIGINT)
                began = time.monotonic()
                ended = waiting.end()
                took_s = time.monotonic() - began
            asking.kill()
            asking.communicate()

    assert ended.status == 128 + signal.SIGINT, ended.err
    assert took_s < 5


@pytest.mark.nightly
def test_the_database_crashes_while_questions_are_asked_and_nothing_is_lost(
    sandbox, run, worker, work, postgres, answer_count, wait_until
):
    before = sandbox.call_count

    with worker("b") as helper, run("a") as checking:
        wait_until(lambda: answer_count() > COUNT // 3)
        postgres.restart("immediate")
        done = checking.end()
        helper.send_signal(signal.SIGTERM)
        helped = helper.end()

    assert (done.status, helped.status) == (0, 0), (done.err, helped.err)
    assert answer_count() == COUNT
    assert len(sandbox.questions(before)) - COUNT <= 2 * IN_FLIGHT_MAX


@pytest.mark.nightly
def test_a_worker_goes_on_when_the_database_is_back_that_was_away_for_longer_than_it_waits(
    sandbox, file, shared_profile, host, work, postgres, proxy_to, answer_count, wait_until
):
    proxy, before = proxy_to(postgres.port), sandbox.call_count
    direct = shared_profile(rate_per_s=SLOW_PER_S)
    with host("a")("run", file, *direct, "--out", "a", "--work", "work") as checking:
        wait_until(lambda: answer_count() > 0)
        checking.kill()
        checking.communicate()
    words = shared_profile("proxied.toml", rate_per_s=SLOW_PER_S, port=proxy.port)
    with host("b")("worker", *words, "--work", "work", PRECHECK_TEST_WAIT_S="2") as helper:
        wait_until(lambda: answer_count() > COUNT // 3)
        proxy.close_door()
        answered = answer_count()
        with pytest.raises(subprocess.TimeoutExpired):
            helper.wait(6)
        proxy.open_door()
        wait_until(lambda: answer_count() == COUNT)
        helper.send_signal(signal.SIGTERM)
        helped = helper.end()

    assert helped.status == 0, helped.err
    assert "nothing can be asked now" in helped.err
    assert f"127.0.0.1:{proxy.port}: the ledger's database" in helped.err
    assert answered < COUNT
    assert len(sandbox.questions(before)) - COUNT <= 2 * IN_FLIGHT_MAX
