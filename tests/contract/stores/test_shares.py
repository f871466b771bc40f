"""What every division of a server's limits keeps: rate and places, whoever joins and leaves."""

import anyio
import pytest

from pipeline.stages.ask.concurrency import ConcurrencyLimit
from pipeline.stores.values import ServerAccount
from pipeline.transport.rate_limiter import Pace, window_of

ACCOUNT = ServerAccount("cop.example|0123456789abcdef", "cop", 30, 6, window_of(30), 5.0)
EACH = 14
POSTGRES_BY_NIGHT = pytest.mark.parametrize(
    "store", ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.nightly)], indirect=True
)
"""The rules of the division are one code for all stores; the other tests show by day that SQL keeps it."""


@pytest.mark.parametrize("joins_after_s", [0.0, 0.25])
def test_all_together_keep_the_rate_and_the_places_of_the_account(store, joins_after_s):
    sent, in_flight, most = [], set(), []

    async def ask(number):
        """One process that asks, as `open_channels` has it."""
        await anyio.sleep(number * joins_after_s)
        async with store.shares().lease([ACCOUNT]) as leased:
            pace = Pace(ACCOUNT.rate_per_s, clock=store.monotonic)
            places = ConcurrencyLimit(ACCOUNT.in_flight_max, ACCOUNT.rate_per_s, store.monotonic)
            places.open()

            def use(part):
                pace.resize(part.rate_per_s, until=part.until)
                places.resize(part.in_flight_max, part.rate_per_s, kept=part.kept_slots)

            leased["cop"].follow(use, lambda: places.in_flight)

            async def send(request):
                await places.take()
                await pace.slot()
                sent.append(store.monotonic())
                in_flight.add((number, request))
                most.append(len(in_flight))
                await anyio.sleep(0.05)
                in_flight.discard((number, request))
                places.give_back()

            async with anyio.create_task_group() as requests:
                for request in range(EACH):
                    requests.start_soon(send, request)

    async def main():
        with anyio.fail_after(30):
            async with anyio.create_task_group() as processes:
                for number in range(3):
                    processes.start_soon(ask, number)

    store.run(main)
    sent.sort()
    assert len(sent) == 3 * EACH
    assert all(later - sooner >= 1 for sooner, later in zip(sent, sent[ACCOUNT.rate_per_s :], strict=False))
    assert max(most) <= ACCOUNT.in_flight_max


@POSTGRES_BY_NIGHT
def test_alone_one_has_all_of_every_account_from_the_beginning(store):
    other = ACCOUNT._replace(api="vop_gateway", rate_per_s=7, in_flight_max=2)
    parts = {}

    async def main():
        async with store.shares().lease([ACCOUNT, other]) as leased:
            for api, share in leased.items():
                share.follow(lambda part, api=api: parts.setdefault(api, part), lambda: 0)

    with_time = store.monotonic()
    store.run(main)
    assert store.monotonic() - with_time < 10
    assert {api: part[:2] for api, part in parts.items()} == {"cop": (30, 6), "vop_gateway": (7, 2)}


def test_who_comes_has_a_share_once_another_has_left(store):
    async def use(parts):
        async with store.shares().lease([ACCOUNT]) as leased:
            leased["cop"].follow(parts.append, lambda: 0)
            await anyio.sleep(0.1)

    async def main():
        with anyio.fail_after(20):
            for parts in both:
                await use(parts)

    both = [], []
    store.run(main)
    assert [{part[:2] for part in parts} for parts in both] == [{(30, 6)}] * 2


def test_a_pause_that_one_is_asked_for_is_everybodys(store):
    parts = [], []

    async def main():
        with anyio.fail_after(20):
            async with store.shares().lease([ACCOUNT]) as one, store.shares().lease([ACCOUNT]) as other:
                for leased, said in zip((one, other), parts, strict=True):
                    leased["cop"].follow(
                        lambda part, said=said: said.append((store.monotonic(), part)), lambda: 0
                    )
                began = store.monotonic()
                one["cop"].pause(2.0)
                await anyio.sleep(3.0)
                return began

    began = store.run(main)
    for said in parts:
        silent = [moment - began for moment, part in said if part[:2] == (0, 0) and moment > began]
        again = [moment - began for moment, part in said if part.rate_per_s and moment > silent[0] + began]
        assert silent[0] < 1.9
        assert 2 <= min(again) < 2.9


@POSTGRES_BY_NIGHT
def test_a_place_that_is_taken_is_nobody_elses(store):
    async def main():
        with anyio.fail_after(30):
            async with store.shares().lease([ACCOUNT]) as one:
                taken, others = [6], []
                one["cop"].follow(lambda _: None, lambda: taken[0])

                async def join():
                    async with store.shares().lease([ACCOUNT]) as other:
                        other["cop"].follow(others.append, lambda: 0)
                        await anyio.sleep(0.1)

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(join)
                    await anyio.sleep(1.5)
                    assert not others, "there was no place"
                    taken[0] = 4
                return others[0]

    assert store.run(main)[1] <= 2


@POSTGRES_BY_NIGHT
def test_an_account_with_nothing_left_to_ask_is_left_to_others_before_the_rest(store):
    """Who still asks one server keeps nobody from another that it has asked everything."""
    slow = ACCOUNT._replace(api="vop_gateway", scope="vop.example|0123456789abcdef")
    only = ACCOUNT._replace(in_flight_max=1)  # as one at a time has it

    async def main():
        parts = []
        with anyio.fail_after(20):
            async with store.shares().lease([only, slow]) as first:
                kept = []
                first["vop_gateway"].follow(kept.append, lambda: 0)
                first["cop"].leave()
                async with store.shares().lease([only]) as second:
                    second["cop"].follow(parts.append, lambda: 0)
                    await anyio.sleep(0.1)
                return parts[-1], kept[-1]

    others, kept = store.run(main)
    assert others[:2] == (30, 1)
    assert kept[:2] == (30, 6)


@POSTGRES_BY_NIGHT
def test_who_has_left_an_account_has_a_part_of_it_again_beside_who_came_meanwhile(store):
    async def main():
        parts = {"first": [], "second": []}
        with anyio.fail_after(20):
            async with store.shares().lease([ACCOUNT]) as first:
                first["cop"].follow(parts["first"].append, lambda: 0)
                first["cop"].leave()
                async with store.shares().lease([ACCOUNT]) as second:
                    second["cop"].follow(parts["second"].append, lambda: 0)
                    assert await first["cop"].rejoin()
                    await anyio.sleep(2.5)
        return parts["first"][-1], parts["second"][-1]

    assert [part[:2] for part in store.run(main)] == [(15, 3)] * 2


@POSTGRES_BY_NIGHT
def test_who_has_left_an_account_does_not_wait_for_who_has_all_of_it(store):
    only = ACCOUNT._replace(in_flight_max=1)

    async def main():
        parts = []
        with anyio.fail_after(20):
            async with store.shares().lease([only]) as first:
                first["cop"].follow(parts.append, lambda: 0)
                first["cop"].leave()
                async with store.shares().lease([only]) as second:
                    kept = []
                    second["cop"].follow(kept.append, lambda: 0)
                    assert not await first["cop"].rejoin()
                    await anyio.sleep(1.2)
                    assert kept[-1][:2] == (30, 1), "it keeps all of it"
                assert await first["cop"].rejoin()
        return parts[-1]

    assert store.run(main)[:2] == (30, 1)


@POSTGRES_BY_NIGHT
def test_a_pause_is_told_by_who_leaves(store):
    async def main():
        paused = anyio.Event()
        with anyio.fail_after(20):
            async with store.shares().lease([ACCOUNT]) as one, store.shares().lease([ACCOUNT]) as other:
                other["cop"].follow(lambda part: part.rate_per_s or paused.set(), lambda: 0)
                assert not paused.is_set(), "it has its share before"
                one["cop"].pause(5.0)
                one["cop"].leave()
                await paused.wait()

    store.run(main)
