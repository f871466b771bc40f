"""Two people who decide about one run at the same moment are kept apart, and no decision is lost."""

import json

import pytest
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

FOLDER = "payments.precheck"
FIX = ("fix", FOLDER, "--accept", "account_type", "--allow-simulated")
SPLIT = ("split", FOLDER, "--hold-undecided", "--allow-simulated")
REPORT = ("report", FOLDER)
ROW_COUNT = 10_000
"""Enough for a command to be met in the middle of its work."""


@pytest.fixture
def checked(desk, sandbox):
    """The desk, with the folder of a run of many rows that ask one question; their account type is wrong."""
    payee = {"name": "Avery Thornwood", "account_type": "Business", "sort_code": "001122"}
    rows = [payee | {"payment_id": f"P{number}", "account_number": "00012345"} for number in range(ROW_COUNT)]
    file = desk.payments(rows)
    assert desk.ran("run", file, *sandbox.using("sandbox"), "--quiet").status == 0
    return desk


def approvals(desk):
    path = desk.folder / FOLDER / "approvals.json"
    return [approval["by"] for approval in json.loads(path.read_bytes())] if path.exists() else []


def named(by, words):
    """The words in which someone answers for a command; a report is nobody's decision."""
    reason = ("--reason", "agreed") if words is FIX else ()
    return () if words is REPORT else ("--by", by, *reason)


@pytest.mark.parametrize(
    ("first", "second"),
    [(FIX, SPLIT), pytest.param(SPLIT, FIX, marks=pytest.mark.nightly), (FIX, REPORT)],
    ids=lambda words: words[0],
)
def test_the_second_is_told_who_is_at_work_and_changes_nothing(checked, wait_until, first, second):
    lock = checked.folder / FOLDER / ".lock"
    with checked.start(*first, *named("Mara", first)) as at_work:
        wait_until(lambda: str(at_work.pid) in lock.read_text())
        with at_work.stopped():
            assert str(at_work.pid) in lock.read_text(), "its work had ended before it was stopped"
            refused = checked(*second, *named("Noor", second))
        assert at_work.end().status == 0
    assert refused.status == 75
    [sentence] = refused.sentences
    assert f"{FOLDER}: process {at_work.pid} on" in sentence
    assert said("files.folder_in_use") in sentence
    assert approvals(checked) == ["Mara"]
    assert checked("verify", FOLDER).status == 0


def test_of_many_at_once_each_is_on_record_or_was_refused(checked):
    people = ("Mara", "Noor", "Ove", "Pia")
    running = {by: checked.start(*FIX, "--by", by, "--reason", "agreed") for by in people}
    ends = {by: command.end() for by, command in running.items()}
    assert {end.status for end in ends.values()} <= {0, 75}
    done = [by for by, end in ends.items() if end.status == 0]
    assert done
    assert sorted(approvals(checked)) == sorted(done)
    assert checked("verify", FOLDER).status == 0


@pytest.mark.parametrize(
    "words", [pytest.param(FIX, marks=pytest.mark.nightly), SPLIT], ids=lambda words: words[0]
)
def test_nobody_decides_while_a_run_is_at_work(checked, sandbox, network_payments, words):
    using = checked.using(cop=sandbox.section(rate_per_s=4))
    before = sandbox.call_count
    with checked.start(
        "run", checked.payments(network_payments(10)), *using, "--fresh", "--quiet"
    ) as running:
        sandbox.wait_for_calls(1, since=before)
        with running.stopped():
            refused = checked(*words, *(("--reason", "agreed") if words is FIX else ()))
        assert running.end().status == 0
    assert refused.status == 75
    assert f"process {running.pid} on" in refused.sentences[0]
