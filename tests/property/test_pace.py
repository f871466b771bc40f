"""The pace: its arithmetic for every rate, and its slots on a virtual clock."""

import asyncio
import selectors
from math import floor
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ConfigurationError
from pipeline.transport.pace import RATE_MAX_PER_S, RATE_MIN_PER_S, Pace, bucket

RATES = st.one_of(st.integers(1, RATE_MAX_PER_S), st.floats(RATE_MIN_PER_S, RATE_MAX_PER_S, allow_nan=False))


def promise_of(rate_per_s):
    """A window and the most requests that may leave in it."""
    return (1.0, floor(rate_per_s)) if rate_per_s >= 1 else (1 / rate_per_s, 1)


@given(RATES)
def test_no_window_can_hold_more_than_was_agreed_even_when_it_runs_a_little_long(rate_per_s):
    window_s, count_max = promise_of(rate_per_s)
    burst, refill_per_s = bucket(rate_per_s)
    assert burst + refill_per_s * window_s * 1.0099 < count_max + 1


@given(RATES)
def test_at_least_97_percent_of_the_agreed_rate_is_used(rate_per_s):
    window_s, count_max = promise_of(rate_per_s)
    assert bucket(rate_per_s).refill_per_s >= 0.97 * count_max / window_s


@given(RATES)
def test_a_timer_that_is_ten_milliseconds_late_loses_no_rate(rate_per_s):
    burst, refill_per_s = bucket(rate_per_s)
    assert burst >= 1
    assert burst - 1 >= refill_per_s * 0.010 * min(1, promise_of(rate_per_s)[0])


@pytest.mark.parametrize("rate_per_s", [0, -1, 0.09, 5001, float("inf"), float("nan")])
def test_a_rate_that_cannot_be_kept_is_a_configuration_error(rate_per_s):
    with pytest.raises(ConfigurationError, match="rate_per_s"):
        Pace(rate_per_s)


@pytest.mark.parametrize(
    ("rate_per_s", "burst", "refill_per_s"),
    [
        (0.1, 1.0102, 0.098),
        (0.999, 1.0102, 0.97902),
        (1, 1.0102, 0.98),
        (2.9, 1.0204, 1.96),
        (1000, 11.2, 980),
        (5000, 52, 4900),
    ],
)
def test_bucket_of_a_rate_is_this_one(rate_per_s, burst, refill_per_s):
    assert bucket(rate_per_s) == pytest.approx((burst, refill_per_s), abs=1e-9)


def test_rate_out_of_range_is_told_with_the_range():
    with pytest.raises(ConfigurationError, match=r"rate_per_s: 5001 is out of range; .* from 0\.1 to 5000"):
        bucket(5001)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that never waits: its clock jumps to the next timer, and beyond it where told."""

    def __init__(self, lateness_s):
        self._now = 0.0
        self._lateness_s = lateness_s
        super().__init__(JumpingSelector(self))

    def time(self):
        return self._now

    def jump(self, timeout_s):
        self._now += timeout_s + self._lateness_s()


class JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop):
        super().__init__()
        self._loop = loop

    def select(self, timeout=None):
        if timeout:
            self._loop.jump(timeout)
        return super().select(0)


def slots(rate_per_s, count, lateness_s=lambda: 0.0, *, workers_count=1):
    """When each of `count` slots was given, in virtual seconds."""
    times = []

    async def main():
        pace = Pace(rate_per_s)

        async def work():
            while len(times) < count:
                await pace.slot()
                times.append(asyncio.get_running_loop().time())

        await asyncio.gather(*(work() for _ in range(workers_count)))

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(lateness_s)) as runner:
        runner.run(main())
    return times


def most_in_a_window(times, window_s):
    most, start = 0, 0
    for end, time in enumerate(times):
        while time - times[start] > window_s:
            start += 1
        most = max(most, end - start + 1)
    return most


@settings(max_examples=60, deadline=None)
@given(RATES, st.integers(1, 40), st.builds(Random, st.integers()))
def test_slots_keep_the_promise_from_the_first_one_on_however_late_the_timers(rate_per_s, workers, chance):
    window_s, count_max = promise_of(rate_per_s)
    times = slots(
        rate_per_s, min(2000, 3 * count_max + 3), lambda: chance.uniform(0, 0.02), workers_count=workers
    )
    assert most_in_a_window(times, window_s) <= count_max


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.integers(1, 1000), st.floats(RATE_MIN_PER_S, 1)), st.builds(Random, st.integers()))
def test_slots_sustain_97_percent_with_timers_as_late_as_on_an_ordinary_machine(rate_per_s, chance):
    window_s, count_max = promise_of(rate_per_s)
    count = max(20, 4 * count_max)
    times = slots(rate_per_s, count, lambda: chance.uniform(0, 0.002))
    assert (count - 1) / (times[-1] - times[0]) >= 0.97 * count_max / window_s
