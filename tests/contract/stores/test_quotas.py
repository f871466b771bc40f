"""What every count of a daily cap keeps: never more than the cap, by however many together."""

from datetime import UTC, datetime, timedelta

import anyio

NOON = datetime(2031, 3, 1, 12, tzinfo=UTC)
CAP = 25


def taken(quotas, tries):
    """How many units all holders get who try at the same time."""

    async def main():
        got = []

        async def take(quota):
            got.extend([await quota.reserve() for _ in range(tries)])

        async with anyio.create_task_group() as tasks:
            for quota in quotas:
                tasks.start_soon(take, quota)
        return sum(got)

    return anyio.run(main)


def test_several_holders_take_the_cap_and_no_more(store):
    assert taken(store.quotas(CAP), 20) == CAP


def test_several_holders_take_what_they_want_below_the_cap(store):
    assert taken(store.quotas(CAP), 5) == 15


def test_what_the_server_says_is_over_is_over_for_all(store):
    first, *others = store.quotas(CAP)
    assert anyio.run(first.reserve)

    anyio.run(first.close_for_today)

    assert taken([first, *others], 3) == 0


def test_a_cap_that_is_used_up_begins_anew_within_a_day(store):
    [quota, *_] = store.quotas(1)
    assert anyio.run(quota.reserve)

    assert NOON < anyio.run(quota.resets_at) <= NOON + timedelta(days=1)


def test_nothing_that_a_server_says_of_its_day_opens_or_closes_a_cap(store):
    [quota, *_] = store.quotas(1)
    reset = anyio.run(quota.resets_at)

    anyio.run(quota.go_by, NOON + timedelta(days=3))

    assert anyio.run(quota.resets_at) == reset
