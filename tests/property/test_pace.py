"""The pace: its arithmetic for every rate, and its slots on a virtual clock."""

import asyncio
from math import floor, inf
from random import Random

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from virtual_time import VirtualLoop

from pipeline.errors import ConfigurationError
from pipeline.transport.rate_limiter import RATE_MAX_PER_S, RATE_MIN_PER_S, Pace

RATES = st.one_of(st.integers(1, RATE_MAX_PER_S), st.floats(RATE_MIN_PER_S, RATE_MAX_PER_S, allow_nan=False))


def promise_of(rate_per_s):
    """A window and the most requests that may leave in it."""
    return (1.0, floor(rate_per_s)) if rate_per_s >= 1 else (1 / rate_per_s, 1)


@pytest.mark.parametrize("rate_per_s", [0, -1, 0.09, 5001, float("inf"), float("nan")])
def test_a_rate_that_cannot_be_kept_is_a_configuration_error(rate_per_s):
    with refused(ConfigurationError, "transport.rate_out_of_range"):
        Pace(rate_per_s)


def test_rate_out_of_range_is_told_with_the_range():
    limits = {"rate_min_per_s": 0.1, "rate_max_per_s": 5000}
    with refused(ConfigurationError, "transport.rate_out_of_range", rate_per_s=5001, **limits):
        Pace(5001)


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


@examples(60)
@given(RATES, st.integers(1, 40), st.builds(Random, st.integers()))
def test_slots_keep_the_promise_from_the_first_one_on_however_late_the_timers(rate_per_s, workers, chance):
    window_s, count_max = promise_of(rate_per_s)
    times = slots(
        rate_per_s, min(2000, 3 * count_max + 3), lambda: chance.uniform(0, 0.02), workers_count=workers
    )
    assert most_in_a_window(times, window_s) <= count_max


@examples(60)
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


@examples(30)
@given(st.integers(1, 1000), st.builds(Random, st.integers()))
def test_timers_as_late_as_on_an_ordinary_machine_lose_no_rate(rate_per_s, chance):
    times = slots(rate_per_s, 5 * rate_per_s + 20, lambda: chance.uniform(0, 0.004))
    assert used(times, rate_per_s) >= 0.97


@examples(30)
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


# A rate that becomes another

SIZES = st.lists(
    st.tuples(st.floats(0.0, 3.0), st.one_of(st.just(0), st.integers(1, 200), st.floats(RATE_MIN_PER_S, 1))),
    min_size=1,
    max_size=6,
)


def resized_slots(first_rate_per_s, sizes, end_s=8.0, until_s=None):
    """When each slot was given that eight workers could get, with the rate that held then."""
    times = []

    async def main():
        clock = asyncio.get_running_loop().time
        pace = Pace(first_rate_per_s, clock=clock)
        rates = [(0.0, first_rate_per_s)]

        async def work():
            while True:
                await pace.slot()
                times.append(clock())

        workers = [asyncio.ensure_future(work()) for _ in range(8)]
        for wait_s, rate_per_s in sizes:
            await asyncio.sleep(wait_s)
            pace.resize(rate_per_s, **({} if until_s is None else {"until": until_s}))
            rates.append((clock(), rate_per_s))
        await asyncio.sleep(max(end_s - clock(), 0.0))
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        return rates

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(lambda: 0.001)) as runner:
        rates = runner.run(main())
    return times, rates


@examples(60)
@given(st.integers(1, 200), SIZES)
def test_each_slot_keeps_the_rate_that_holds_when_it_is_given_and_counts_what_left_before(first, sizes):
    times, rates = resized_slots(first, sizes)
    ended = [*(began for began, _ in rates[1:]), inf]
    for number, time in enumerate(times):
        # At the moment of a change the one rate or the other holds.
        promises = [
            promise_of(rate)
            for (began, rate), end in zip(rates, ended, strict=True)
            if rate and began - 0.002 < time < end + 0.002
        ]
        assert any(
            sum(time - earlier < window_s for earlier in times[: number + 1]) <= count_max
            for window_s, count_max in promises
        )


def test_a_rate_that_grows_again_within_the_window_forgets_nothing_that_left():
    times, _ = resized_slots(100, [(0.5, 2), (0.1, 100)], end_s=1.0)
    assert most_in_a_window(times, 1.0) <= 100


def test_a_rate_that_grows_is_used_and_one_of_nothing_lets_nothing_leave_until_there_is_another():
    times, _ = resized_slots(5, [(1.0, 0), (1.0, 50)], end_s=6.0)
    assert not [time for time in times if 1.01 < time < 2.0]
    assert 0.9 * 50 <= sum(4.0 <= time < 5.0 for time in times) <= 50


def test_nothing_leaves_once_a_rate_has_ended():
    times, _ = resized_slots(50, [(0.5, 50)], end_s=4.0, until_s=2.0)
    assert 1.8 < max(times) < 2.0


def test_an_ended_rate_goes_on_when_it_is_set_again():
    times, _ = resized_slots(50, [(0.5, 50), (2.0, 50)], end_s=6.0, until_s=1.0)
    assert max(times) < 1.0
    again, _ = resized_slots(50, [(0.0, 0), (2.0, 50)], end_s=6.0)
    assert max(again) > 5.0


def test_where_requests_leave_none_waits_for_another_rate():
    """It has its place in flight, and is sent again once there is a rate."""

    async def main():
        clock = asyncio.get_running_loop().time
        pace = Pace(2, clock=clock)
        took = [await pace.slot_unless_ended() for _ in range(2)]
        pace.resize(2, until=0.5)
        took.append(await pace.slot_unless_ended())
        ended_at = clock()
        pace.resize(0)
        took.append(await pace.slot_unless_ended())
        pace.resize(2)
        took.append(await pace.slot_unless_ended())
        return took, ended_at, clock()

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(lambda: 0.0)) as runner:
        took, ended_at, again_at = runner.run(main())
    assert took == [True, True, False, False, True]
    assert 0.5 <= ended_at < 1.1, "no slot was taken for it"
    assert again_at - ended_at < 1.1


def test_a_rate_has_ended_at_the_very_moment_of_its_end():
    async def main(now):
        pace = Pace(5, clock=lambda: now)
        pace.resize(5, until=1.0)
        return await pace.slot_unless_ended()

    assert asyncio.run(main(0.99)) is True
    assert asyncio.run(main(1.0)) is False


def test_a_request_counts_from_when_a_busy_loop_sent_it():
    async def main():
        loop = asyncio.get_running_loop()
        pace = Pace(2, clock=loop.time)
        for _ in range(2):
            await pace.slot_unless_ended()
            loop.call_soon(loop.jump, 0.4)
            await asyncio.sleep(0.1)
        await pace.slot_unless_ended()
        return loop.time()

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(lambda: 0.0)) as runner:
        assert 1.4 < runner.run(main()) < 1.5


def test_the_same_rate_set_again_lets_no_second_burst_leave():
    async def main():
        clock = asyncio.get_running_loop().time
        pace, times = Pace(1000, clock=clock), []

        async def work():
            while True:
                await pace.slot()
                times.append(clock())

        workers = [asyncio.ensure_future(work()) for _ in range(8)]
        for _ in range(10):
            await asyncio.sleep(0.0001)
            pace.resize(1000)
        for worker in workers:
            worker.cancel()
        return times

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(lambda: 0.0)) as runner:
        assert len(runner.run(main())) <= 53


@pytest.mark.parametrize(("rate_per_s", "ends_after_s"), [(0, 5.0), (2, 0.1)])
def test_an_ended_pace_grants_nothing_and_wakes_all_who_wait(rate_per_s, ends_after_s):
    async def main():
        clock = asyncio.get_running_loop().time
        pace = Pace(2, clock=clock)
        for _ in range(2):
            await pace.slot()
        pace.resize(rate_per_s)
        waiting = [asyncio.ensure_future(pace.slot()) for _ in range(3)]
        await asyncio.sleep(ends_after_s)
        pace.end()
        took = await asyncio.wait_for(asyncio.gather(*waiting), 1.2)
        woken_at = clock()
        took += [await pace.slot(), await pace.slot_unless_ended()]
        return took, woken_at, clock()

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(lambda: 0.0)) as runner:
        took, woken_at, ended_at = runner.run(main())
    assert took == [False] * 5
    assert ended_at == woken_at, "no task waits for a slot that never comes"


def test_a_pace_that_ended_with_room_left_grants_nothing():
    async def main():
        pace = Pace(5)
        pace.end()
        return await pace.slot()

    assert asyncio.run(main()) is False


@pytest.mark.parametrize("rate_per_s", [-1, 0.09, 5001, float("nan")])
def test_a_rate_that_cannot_be_kept_is_none_to_become(rate_per_s):
    with refused(ConfigurationError, "transport.rate_out_of_range"):
        Pace(1).resize(rate_per_s)
