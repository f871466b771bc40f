"""The pace against a real clock, in runs short enough for every day."""

import time

import anyio
import pytest

from pipeline.transport.rate_limiter import Pace


def slots(rate_per_s, seconds, workers_count):
    times = []

    async def main():
        pace = Pace(rate_per_s)

        async def work():
            while True:
                await pace.slot()
                times.append(time.monotonic())

        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as group:
                for _ in range(workers_count):
                    group.start_soon(work)

    anyio.run(main)
    return times


RATES = pytest.mark.parametrize(("rate_per_s", "workers_count"), [(5, 4), (50, 16), (200, 64), (1000, 64)])


@RATES
def test_no_second_sees_more_than_the_rate(rate_per_s, workers_count):
    times = slots(rate_per_s, 1.6, workers_count)
    windows = [sum(1 for time in times if 0 <= time - start < 1) for start in times]
    assert max(windows) <= rate_per_s


def test_the_first_slot_is_free_at_once():
    assert slots(0.1, 0.05, 4) != []


def test_a_cancelled_wait_takes_no_slot():
    async def main():
        pace = Pace(1)
        await pace.slot()
        started = time.monotonic()
        with anyio.move_on_after(0.05):
            await pace.slot()
        await pace.slot()
        return time.monotonic() - started

    assert 1 < anyio.run(main) < 2


@pytest.mark.parametrize("rate_per_s", [1, 0])
def test_once_all_is_over_nobody_waits_for_a_slot(rate_per_s):
    async def main():
        pace, had = Pace(1), []
        await pace.slot()
        pace.resize(rate_per_s)

        async def wait():
            had.append(await pace.slot())

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(wait)
            await anyio.sleep(0.01)
            pace.end()
        return had

    started = time.monotonic()
    assert anyio.run(main) == [False] * 5
    assert time.monotonic() - started < 2, "one who was asleep for its own slot, and nobody after it"
