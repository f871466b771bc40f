"""The breaker and the retry budget, with time as a number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.transport.breaker import OUTAGES_MAX, RETRY_SHARE, SERVER, Breaker, Patience, RetryBudget

PATIENCE = Patience(failures_max=3, probe_wait_s=30.0, probe_wait_max_s=100.0, probes_max=3)


def failed(times, *, now=0.0, patience=PATIENCE):
    breaker = Breaker(patience)
    for _ in range(times):
        breaker.start()
        breaker.fail(now)
    return breaker


def test_breaker_stays_closed_below_its_number_of_failures():
    assert not failed(2).is_open
    assert failed(2).wait_s(0.0) == 0.0


def test_breaker_opens_at_its_number_of_failures_in_a_row():
    breaker = failed(3)
    assert breaker.is_open
    assert breaker.wait_s(0.0) == 30.0
    assert breaker.wait_s(29.0) == 1.0
    assert breaker.wait_s(30.0) == 0.0


def test_success_between_failures_starts_the_count_anew():
    breaker = failed(2)
    breaker.succeed()
    breaker.fail(0.0)
    breaker.fail(0.0)
    assert not breaker.is_open


def test_stragglers_from_before_it_opened_change_nothing():
    breaker = failed(3)
    for _ in range(50):
        breaker.fail(10.0)
    assert breaker.wait_s(30.0) == 0.0
    assert not breaker.has_given_up


def test_one_probe_leaves_and_the_others_wait_for_its_end():
    breaker = failed(3)
    breaker.start()
    assert breaker.wait_s(31.0) > 0.0


def test_probe_that_succeeds_closes_it():
    breaker = failed(3)
    breaker.start()
    breaker.succeed()
    assert not breaker.is_open
    assert breaker.wait_s(0.0) == 0.0


def test_each_probe_that_fails_doubles_the_wait_up_to_its_most():
    breaker = failed(3)
    waits = []
    now = 0.0
    for _ in range(2):
        now += breaker.wait_s(now)
        breaker.start()
        breaker.fail(now)
        waits.append(breaker.wait_s(now))
    assert waits == [60.0, 100.0]


def test_it_gives_up_after_its_number_of_probes_and_not_before():
    breaker = failed(3)
    for number in range(PATIENCE.probes_max):
        assert not breaker.has_given_up, number
        breaker.start()
        breaker.fail(1000.0)
    assert breaker.has_given_up


def test_success_forgets_the_probes_that_failed():
    breaker = failed(3)
    breaker.start()
    breaker.fail(30.0)
    breaker.start()
    breaker.succeed()
    for _ in range(3):
        breaker.start()
        breaker.fail(100.0)
    assert breaker.wait_s(100.0) == 30.0


def test_of_a_run_of_failures_there_is_no_telling_until_it_opens_or_ends():
    breaker = failed(2)
    assert breaker.was_outage(breaker.streak) is None
    breaker.succeed()
    assert breaker.was_outage(0) is False
    assert breaker.was_outage(breaker.streak) is None


def test_all_failures_of_an_outage_are_its_own_also_when_it_is_over():
    breaker = failed(3)
    assert breaker.was_outage(0) is True
    breaker.start()
    breaker.fail(30.0)
    assert breaker.was_outage(breaker.streak) is True
    breaker.start()
    breaker.succeed()
    assert breaker.was_outage(0) is True


def test_outages_beyond_their_number_count_as_any_other_trouble():
    breaker = Breaker(PATIENCE)
    for _ in range(OUTAGES_MAX + 1):
        for _ in range(PATIENCE.failures_max):
            breaker.start()
            breaker.fail(0.0)
        last = breaker.was_outage(breaker.streak)
        breaker.start()
        breaker.succeed()
    assert last is False
    assert breaker.was_outage(OUTAGES_MAX - 1) is True


def test_server_is_given_about_thirteen_minutes():
    breaker = failed(20, patience=SERVER)
    now = 0.0
    while not breaker.has_given_up:
        now += breaker.wait_s(now)
        breaker.start()
        breaker.fail(now)
    assert 12 * 60 <= now <= 13 * 60


@given(st.lists(st.sampled_from(["ask", "retry"]), max_size=300))
def test_retries_never_exceed_their_share_and_the_free_ones(moves):
    budget = RetryBudget(free=20)
    asked = retried = 0
    for move in moves:
        if move == "ask":
            budget.earn()
            asked += 1
        elif budget.spend():
            retried += 1
    assert retried <= 20 + asked * RETRY_SHARE + 1e-9


@pytest.mark.parametrize("cost", [1.0, 2.0])
def test_budget_is_spent_by_cost(cost):
    budget = RetryBudget(free=20)
    count = 0
    while budget.spend(cost):
        count += 1
    assert count == 20 / cost
