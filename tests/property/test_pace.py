"""The pace: its arithmetic for every rate, and its slots on a virtual clock."""

import asyncio
import selectors
from math import floor
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ConfigurationError
from pipeline.transport.rate_limiter import RATE_MAX_PER_S, RATE_MIN_PER_S, Pace

RATES = st.one_of(st.integers(1, RATE_MAX_PER_S), st.floats(RATE_MIN_PER_S, RATE_MAX_PER_S, allow_nan=False))


def promise_of(rate_per_s):
    """A window and the most requests that may leave in it."""
    return (1.0, floor(rate_per_s)) if rate_per_s >= 1 else (1 / rate_per_s, 1)


@pytest.mark.parametrize("rate_per_s", [0, -1, 0.09, 5001, float("inf"), float("nan")])
def test_a_rate_that_cannot_be_kept_is_a_configuration_error(rate_per_s):
    with pytest.raises(ConfigurationError, match="rate_per_s"):
        Pace(rate_per_s)


def test_rate_out_of_range_is_told_with_the_range():
    with pytest.raises(ConfigurationError, match=r"rate_per_s: 5001 is out of range; .* from 0\.1 to 5000"):
        Pace(5001)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that never waits: its clock jumps to the next timer, and beyond it where told."""

    def __init__(self, lateness_s):
        self._now = 0.0
        self._lateness_s = lateness_s
        super().__init__(JumpingSelector(self))

    def time(self):
        return self._now

    def jump(self, timeout_s):
        # A turn of the loop takes a moment even where there is nothing to wait for.
        self._now += timeout_s + self._lateness_s() if timeout_s else 1e-9


class JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop):
        super().__init__()
        self._loop = loop

    def select(self, timeout=None):
        self._loop.jump(timeout)
        return super().select(0)


def slots(rate_per_s, count, lateness_s=lambda: 0.0, *, workers_count=1):
    """When each of `count` slots was given, in virtual seconds."""
    times = []

    async def main():
        clock = asyncio.get_running_loop().time
        pace = Pace(rate_per_s, clock=clock)

        async def work():
            while len(times) < count:
                await pace.slot()
                times.append(clock())

        await asyncio.gather(*(work() for _ in range(workers_count)))

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(lateness_s)) as runner:
        runner.run(main())
    return times


def most_in_a_window(times, window_s):
    most, start = 0, 0
    for end, time in enumerate(times):
        while time - times[start] >= window_s:
            start += 1
        most = max(most, end - start + 1)
    return most


def used(times, rate_per_s):
    """The part of the agreed rate that a run sustains, from its first slot to its last one."""
    window_s, count_max = promise_of(rate_per_s)
    return (len(times) - 1) / (times[-1] - times[0]) * window_s / count_max


@settings(max_examples=60, deadline=None)
@given(RATES, st.integers(1, 40), st.builds(Random, st.integers()))
def test_slots_keep_the_promise_from_the_first_one_on_however_late_the_timers(rate_per_s, workers, chance):
    window_s, count_max = promise_of(rate_per_s)
    times = slots(
        rate_per_s, min(2000, 3 * count_max + 3), lambda: chance.uniform(0, 0.02), workers_count=workers
    )
    assert most_in_a_window(times, window_s) <= count_max


@settings(max_examples=60, deadline=None)
@given(st.one_of(st.integers(1, 1000), st.floats(RATE_MIN_PER_S, 1)), st.builds(Random, st.integers()))
def test_arrivals_keep_the_promise_where_the_way_takes_a_little_longer_for_some(rate_per_s, chance):
    window_s, count_max = promise_of(rate_per_s)
    left_at = slots(rate_per_s, 3 * count_max + 3)
    arrived_at = sorted(time + chance.uniform(0, 0.0279 * window_s) for time in left_at)
    assert most_in_a_window(arrived_at, window_s) <= count_max


@pytest.mark.parametrize("rate_per_s", [0.1, 0.999, 1, 2.9, 5, 50, 200, 1000, 5000])
def test_at_least_97_percent_of_the_agreed_rate_is_used_with_timers_in_time(rate_per_s):
    count_max = promise_of(rate_per_s)[1]
    assert used(slots(rate_per_s, 5 * count_max + 20), rate_per_s) >= 0.97


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 1000), st.builds(Random, st.integers()))
def test_timers_as_late_as_on_an_ordinary_machine_lose_no_rate(rate_per_s, chance):
    times = slots(rate_per_s, 5 * rate_per_s + 20, lambda: chance.uniform(0, 0.004))
    assert used(times, rate_per_s) >= 0.97


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 1000), st.builds(Random, st.integers()))
def test_timers_that_are_five_times_as_late_lose_a_hundredth(rate_per_s, chance):
    times = slots(rate_per_s, 5 * rate_per_s + 20, lambda: chance.uniform(0, 0.02))
    assert used(times, rate_per_s) >= 0.96


@pytest.mark.parametrize("rate_per_s", [1, 1.5, 1.99, 2.9])
def test_no_second_holds_a_part_of_a_request(rate_per_s):
    assert most_in_a_window(slots(rate_per_s, 20), 1.0) == floor(rate_per_s)


def test_no_more_than_a_twentieth_of_a_window_leaves_at_once():
    times = slots(1000, 1000)
    assert most_in_a_window(times, 0.001) <= 52
    assert most_in_a_window(times, 0.5) <= 552
