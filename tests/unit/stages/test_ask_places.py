"""How many requests may be in flight, with a clock that the test moves."""

import anyio
import pytest
from virtual_time import VIRTUAL

from pipeline.stages.ask.concurrency import ALONE_MAX_S, WINDOW_MIN, ConcurrencyLimit


class Clock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def places(clock):
    made = ConcurrencyLimit(8, 20.0, clock)
    made.open()
    return made


def taken(places, wish=100):
    """How many places there are now; all of them are taken."""

    async def main():
        count = 0
        with anyio.move_on_after(0.05):
            while count < wish:
                await places.take()
                count += 1
        return count

    return VIRTUAL.run(main)


def test_behind_a_shut_door_there_is_one_place_and_another_for_who_waits_too_long(clock):
    places = ConcurrencyLimit(8, 20.0, clock)

    assert taken(places) == 1
    clock.now_s += ALONE_MAX_S + 0.1
    assert taken(places) == 1
    places.open()
    assert taken(places) == 6


def test_behind_a_shut_door_a_slow_server_gets_no_more_than_there_are_places(clock):
    places = ConcurrencyLimit(2, 20.0, clock)

    assert taken(places) == 1
    clock.now_s += ALONE_MAX_S + 0.1
    assert taken(places) == 1
    clock.now_s += ALONE_MAX_S + 0.1
    assert taken(places) == 0


def test_who_gives_a_place_back_makes_room_for_one(places):
    assert taken(places) == 8
    places.give_back()
    assert taken(places) == 1


def test_too_many_halves_what_is_in_flight_and_one_tries(places):
    assert taken(places, 6) == 6
    places.halve()
    assert places.window == 3.0
    for _ in range(6):
        places.give_back()
    assert taken(places) == 1
    places.give_back()
    places.grow()
    assert taken(places) == 3


def test_each_answer_adds_as_much_until_all_may_be_in_flight(places):
    taken(places, 4)
    places.halve()
    steps = 0
    while places.window < 8:
        before = places.window
        places.grow()
        steps += 1
        assert places.window - before == pytest.approx(0.04) or places.window == 8
    assert steps == pytest.approx(150, abs=1)


def test_below_one_in_flight_a_part_of_the_rate_leaves(places, clock):
    for _ in range(3):
        taken(places, 1)
        places.halve()
        places.give_back()
        places.grow()
    assert places.window < 0.2
    assert taken(places, 1) == 0, "a place is free, and it is too early"
    clock.now_s += 1 / (20 * 0.125)
    assert taken(places, 1) == 1


def test_there_is_always_a_little_left(places):
    for _ in range(50):
        places.halve()
    assert places.window == WINDOW_MIN


def test_places_are_taken_in_the_order_of_asking(places):
    async def main():
        order = []
        for _ in range(8):
            await places.take()

        async def ask(number):
            await places.take()
            order.append(number)

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(ask, number)
                await anyio.lowlevel.checkpoint()
            for _ in range(5):
                places.give_back()
                await anyio.sleep(0.001)
        return order

    assert VIRTUAL.run(main) == [0, 1, 2, 3, 4]


def test_fewer_places_hold_at_once_and_more_are_there_at_once(places):
    assert taken(places) == 8
    places.resize(3, 20.0)
    for _ in range(6):
        places.give_back()
    assert taken(places) == 1
    places.resize(8, 20.0)
    assert taken(places) == 5


def test_no_place_at_all_lets_nobody_leave_until_there_is_one(places):
    places.resize(0, 0.0)
    assert taken(places) == 0
    places.resize(2, 5.0)
    assert taken(places) == 2


def test_a_server_that_wants_fewer_gets_no_more_after_a_while_without_any_place(places):
    taken(places, 4)
    places.halve()
    places.grow()
    window = places.window
    places.resize(0, 0.0)
    places.resize(8, 20.0)
    assert places.window == window
    assert places.in_flight == 4


def test_a_server_that_wants_fewer_gets_no_more_because_our_part_grew(places):
    taken(places, 4)
    places.halve()
    assert places.is_slowed
    places.resize(16, 40.0)
    assert places.window == 2.0
    assert places.is_slowed


def test_once_all_is_over_nobody_waits_for_a_place_and_nobody_has_one():
    said = []

    async def main():
        places = ConcurrencyLimit(1, 20.0, lambda: 0.0)
        places.open()
        assert await places.take()

        async def wait():
            said.append(await places.take())

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(wait)
                await anyio.sleep(0.01)
                assert said == []
                places.end()
            await wait()
        return places.in_flight

    assert VIRTUAL.run(main) == 1
    assert said == [False] * 4


def test_who_waits_for_a_place_has_it_when_there_are_more():
    async def main():
        places = ConcurrencyLimit(1, 20.0, lambda: 0.0)
        places.open()
        await places.take()
        async with anyio.create_task_group() as group:
            group.start_soon(places.take)
            await anyio.sleep(0.01)
            places.resize(2, 20.0)

    async def in_time():
        with anyio.fail_after(5):
            await main()

    VIRTUAL.run(in_time)
