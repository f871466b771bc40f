"""`precheck plan` counts a call only for what a run would still ask, and changes nothing to find out."""

import json

import pytest
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

JANUARY, FEBRUARY = "january.csv", "february.csv"


@pytest.fixture
def begun(desk, sandbox, network_payments):
    """A file of ten questions whose run has three answers, and what `precheck plan` says of it."""
    file = desk.payments(network_payments(10), name=JANUARY)
    assert desk.ran("run", file, *sandbox.using("sandbox"), "--limit", 3, "--quiet").status == 75
    return file


def text_of(planned):
    assert planned.status == 0, planned.err
    return said_by(planned)


def said_by(command):
    return " ".join((command.out + command.err).split())


def calls(planned):
    """What the column of calls says of CoP."""
    [line] = [line for line in planned.out.splitlines() if line.startswith("cop ")]
    return int(line.split()[2])


def test_answers_in_the_folder_of_the_run_are_no_calls_any_more(desk, sandbox, begun):
    before = sandbox.call_count
    kept = (desk.folder / "january.precheck" / "ledger.db").read_bytes()
    planned = desk("plan", begun, *sandbox.using("sandbox"))
    assert calls(planned) == 7
    assert said("terminal.saved_by_answers", count=3) in text_of(planned)
    elsewhere = desk("plan", begun, *sandbox.using("sandbox"), "--out", "elsewhere")
    assert calls(elsewhere) == 10
    assert "earlier run" not in text_of(elsewhere)
    assert not (desk.folder / "elsewhere").exists()
    assert (desk.folder / "january.precheck" / "ledger.db").read_bytes() == kept
    assert sandbox.call_count == before


def test_plan_and_run_count_the_same_calls(desk, sandbox, begun):
    before = sandbox.call_count
    planned = desk("plan", begun, *sandbox.using("sandbox"))
    assert desk("run", begun, *sandbox.using("sandbox"), "--quiet").status == 0
    assert len(sandbox.questions(before)) == calls(planned)
    done = desk("plan", begun, *sandbox.using("sandbox"))
    assert calls(done) == 0
    assert said("terminal.saved_by_answers", count=10) in text_of(done)


def test_a_price_makes_no_other_run_and_only_calls_that_are_left_cost(desk, sandbox, begun):
    sections = {
        "cop": sandbox.section("sandbox", "cop", price_per_call="0.15 GBP"),
        "vop": sandbox.section("sandbox", "vop", price_per_call="0.2 EUR"),
    }
    words = (begun, *desk.using(**sections))
    planned = desk("plan", *words)
    assert calls(planned) == 7
    assert said("terminal.cost", total="1.05 GBP", prices="cop 0.15 GBP a call") in text_of(planned)
    forecast = json.loads(desk("plan", *words, "--json").out)
    assert forecast["costs"] == [{"amount": "1.05", "currency": "GBP"}]
    assert [api["cost"] for api in forecast["apis"]] == forecast["costs"]
    before = sandbox.call_count
    assert desk("run", *words, "--quiet").status == 0
    assert len(sandbox.questions(before)) == 7
    assert "Cost: 0.00 GBP" in text_of(desk("plan", *words))


def test_a_price_that_is_none_is_a_mistake_in_the_configuration(desk, sandbox, begun):
    words = desk.using(cop=sandbox.section("sandbox", "cop", price_per_call="0,15 GBP"))
    for command in (("plan", begun), ("doctor",)):
        refused = desk(*command, *words)
        assert refused.status == 78
        assert 'mine.toml: profiles.mine.cop.price_per_call = "0,15 GBP": ' + said(
            "config.must_be_price"
        ) in said_by(refused)


def test_matches_that_would_be_used_again_are_counted_apart_and_none_is_recorded(desk, sandbox):
    uk = {"account_type": "Personal", "sort_code": "001122", "account_number": "00012345"}
    match = uk | {"payment_id": "P1", "name": "Avery Thornwood"}
    no_match = uk | {"payment_id": "P2", "name": "Rowan Blackmere"}
    words = sandbox.using("sandbox")
    assert desk("run", desk.payments([match, no_match], name=JANUARY), *words, "--quiet").status == 0
    file = desk.payments([no_match, match, match | {"name": "Avery Thornwoods"}], name=FEBRUARY)
    again = ("--reuse-from", "january.precheck")
    planned = desk("plan", file, *words, *again)
    assert calls(planned) == 2
    assert said("terminal.saved_by_matches", count=1) in text_of(planned)
    assert calls(desk("plan", file, *words, *again, "--reuse-max-age", "0d")) == 3
    assert not (desk.folder / "february.precheck").exists()
    before = sandbox.call_count
    assert desk("run", file, *words, *again, "--quiet").status == 0
    assert len(sandbox.questions(before)) == 2


def test_a_plan_refuses_what_the_run_would_refuse(desk, sandbox, begun):
    words = (*sandbox.using("sandbox"), "--reuse-from")
    assert said("jobs.reuse_from_own_folder") in desk("plan", begun, *words, "january.precheck").err
    assert desk("plan", begun, *words, "nowhere").status == 2


def test_the_folder_of_another_run_is_told_and_nothing_in_it_is_counted(
    desk, sandbox, begun, network_payments
):
    file = desk.payments(network_payments(4), name=FEBRUARY)
    planned = desk("plan", file, *sandbox.using("sandbox"), "--out", "january.precheck")
    assert calls(planned) == 4
    assert said("jobs.folder_of_another_run") in text_of(planned)


def test_a_damaged_ledger_is_told_and_nothing_in_it_is_counted(desk, sandbox, begun):
    ledger = desk.folder / "january.precheck" / "ledger.db"
    ledger.write_bytes(ledger.read_bytes().replace(b"AC01", b"MTCH"))
    planned = desk("plan", begun, *sandbox.using("sandbox"))
    assert calls(planned) == 10
    assert said("terminal.not_counted") in text_of(planned)
    assert said("advice.start_over") in text_of(planned)


def test_a_run_at_work_is_told_and_left_alone(desk, sandbox, network_payments):
    file = desk.payments(network_payments(10), name=JANUARY)
    words = desk.using(cop=sandbox.section(rate_per_s=4))
    before = sandbox.call_count
    with desk.start("run", file, *words, "--quiet") as running:
        sandbox.wait_for_calls(1, since=before)
        with running.stopped():
            planned = desk("plan", file, *words)
        assert running.end().status == 0
    assert calls(planned) == 10
    assert f"process {running.pid} on" in text_of(planned)
    assert said("files.folder_in_use") in text_of(planned)
