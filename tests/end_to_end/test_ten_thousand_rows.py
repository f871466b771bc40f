"""A file of a size that treasuries have, against the simulated network."""

import re
from collections import Counter

import polars as pl
import pytest

from schemas.summary import Summary

ROW_COUNT = 10_000
RATE_PER_S = 2000


@pytest.mark.nightly
def test_ten_thousand_rows_give_one_outcome_each_and_one_call_per_distinct_question(desk, serve, tmp_path):
    file = desk.folder / "many.csv"
    written = desk("sandbox", "--write-payments", file, "--rows", ROW_COUNT, "--seed", 3)
    with serve(tmp_path / "server", "--seed", 3) as network:
        limits = {"rate_per_s": RATE_PER_S, "in_flight_max": 128}
        sections = {api: network.section("production", api, **limits) for api in ("cop", "vop")}
        words = ("--config", desk.configuration(fast=sections), "--profile", "fast")
        planned = desk("plan", file, *words)
        assert network.call_count == 0

        finished = desk("run", file, *words, "--json", "--quiet")

        calls = network.questions()
    assert (written.status, finished.status) == (0, 0)
    summary = Summary.model_validate_json(finished.out)
    promised = {
        api: int(count.replace(",", ""))
        for api, count in re.findall(r"(cop|vop_gateway) +[\d,]+ +([\d,]+)", planned.out)
    }
    assert Counter(call["api"] for call in calls) == promised
    assert {call["status"] for call in calls} == {200}
    assert len({call["question"] for call in calls}) == len(calls)
    assert {call.api.value: call.request_count for call in summary.calls} == promised

    before = pl.read_csv(file, infer_schema=False)
    after = pl.read_csv(desk.folder / "many.precheck" / "outcomes.csv", infer_schema=False)
    assert after.select(before.columns).equals(before)
    assert after["check_outcome"].null_count() == 0
    counts = Counter(after["check_outcome"].to_list())
    assert counts == {total.outcome.value: total.row_count for total in summary.outcomes if total.row_count}
    assert counts["match"] > ROW_COUNT / 2
    assert counts["close_match"]
    assert counts["no_match"]
    assert counts["not_possible"]
    assert not counts.keys() & {"deferred", "unanswered"}

    # The same question has the same answer, whichever row asks it.
    asked_by = ["name", "account_type", "sort_code", "account_number", "iban", "secondary_reference"]
    answers = after.group_by(asked_by).agg(pl.col("check_id").n_unique())
    assert answers["check_id"].max() == 1


def arrivals(sandbox, since):
    """When questions came to the server, by its stamps: seconds since the epoch."""
    return [call["time"] for call in sandbox.questions(since)]


def keeps(rate_per_s, left, arrived):
    """Whether no second saw more requests than agreed, as far as a busy machine can tell.

    A server that gets no processor stamps arrivals late, and those of more than a second together. So the
    windows are looked at where requests left. Arrivals are held to what no delay can excuse: by the end of
    each second since the first one left, so many can have come and no more.
    """
    left, arrived = sorted(left), sorted(arrived)
    windows = zip(left, left[rate_per_s:], strict=False)
    too_soon = [number for number, time in enumerate(arrived) if time < left[0] + number // rate_per_s]
    return not too_soon and all(later - earlier >= 1 for earlier, later in windows)


@pytest.mark.nightly
def test_the_rate_is_kept_in_every_second_of_a_run(desk, sandbox, network_payments):
    rate_per_s = 40
    section = sandbox.section("production", "cop", rate_per_s=rate_per_s)
    file = desk.payments(network_payments(120))
    before = sandbox.call_count

    desk("run", file, "--config", desk.configuration(paced={"cop": section}), "--profile", "paced", "--quiet")

    left, arrived = desk.departures("payments.precheck"), arrivals(sandbox, before)
    assert len(left) == len(arrived) == 120
    assert keeps(rate_per_s, left, arrived)


@pytest.mark.nightly
def test_two_runs_at_once_keep_the_rate_together(desk, sandbox, network_payments):
    rate_per_s = 1  # the slower, the longer a run's last requests count
    rows = network_payments(4)
    files = [desk.payments(rows[:2], name="one.csv"), desk.payments(rows[2:], name="two.csv")]
    section = sandbox.section("production", "cop", rate_per_s=rate_per_s)
    words = ("--config", desk.configuration(paced={"cop": section}), "--profile", "paced")
    before = sandbox.call_count

    with desk.start("run", files[0], *words) as one, desk.start("run", files[1], *words) as two:
        assert [one.end().status, two.end().status] == [0, 0]

    left = desk.departures("one.precheck") + desk.departures("two.precheck")
    arrived = arrivals(sandbox, before)
    assert len(left) == len(arrived) == 4
    assert keeps(rate_per_s, left, arrived)
