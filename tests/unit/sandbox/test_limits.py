"""The limits of the simulated servers, against a clock that the test holds."""

import pytest

from pipeline.sandbox.limits import DailyCap, RateLimit
from pipeline.sandbox.problems import ProblemError


class Clock:
    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


def refusal(limit, client="client"):
    with pytest.raises(ProblemError) as caught:
        limit.admit(client)
    return caught.value


def test_the_cap_refuses_the_next_request_and_says_when_the_day_ends():
    clock = Clock(now=10 * 86_400 + 86_000.5)
    cap = DailyCap(3, clock)
    for _ in range(3):
        cap.admit("client")
    problem = refusal(cap)
    assert (problem.status, problem.code) == (429, "TOO_MANY_REQUESTS")
    assert problem.headers == {"Retry-After": "400"}


def test_the_cap_is_each_clients_own():
    cap = DailyCap(1, Clock(now=0.0))
    cap.admit("one")
    cap.admit("other")
    assert refusal(cap, "one").status == 429


def test_the_cap_opens_again_at_midnight_utc_and_not_before():
    clock = Clock(now=86_399.9)
    cap = DailyCap(1, clock)
    cap.admit("client")
    assert refusal(cap).headers == {"Retry-After": "1"}
    clock.now = 86_400.0
    cap.admit("client")
    refusal(cap)


def test_no_window_of_one_second_holds_more_than_the_rate():
    clock = Clock(now=5.0)
    limit = RateLimit(2, clock)
    limit.admit("client")
    clock.now = 5.6
    limit.admit("client")
    clock.now = 5.9
    assert refusal(limit).headers == {"Retry-After": "1"}
    clock.now = 6.0
    limit.admit("client")
    refusal(limit)
    clock.now = 6.6
    limit.admit("client")
