"""A share of an account, and what its process tells the others by it."""

from math import inf

import anyio
import pytest
from virtual_time import VIRTUAL

from pipeline.stores.leased_shares import LeasedShare, Waiting, leased_shares
from pipeline.stores.sharing import NOTHING, SharePart, ShareRenewal
from pipeline.stores.values import LeaseHolder, ServerAccount

ACCOUNT = ServerAccount("cop.example|0123456789abcdef", "cop", 30, 6, 1.0, 5.0)


def test_a_pause_whose_report_is_cut_off_by_the_end_of_the_run_is_reported_as_it_leaves():
    """The server asks for a pause, the run ends by it, and its renewal has not come to the store yet."""
    wishes = []

    async def main():
        under_way = anyio.Event()

        async def renew(wish):
            wishes.append(wish)
            if wish.pause_s and wish.wants:
                under_way.set()
                await anyio.sleep_forever()
            return ShareRenewal(wish.kept._replace(requests=30, slots=6), 0.0, 0.0, None, 0)

        def new_share(account):
            return LeasedShare(account, lambda: renew, ticks=VIRTUAL.monotonic)

        waiting = Waiting(lambda _: None)
        with anyio.fail_after(10):
            async with leased_shares([ACCOUNT], new_share, every_s=30.0, waiting=waiting) as shares:
                shares["cop"].pause(7.0)
                await under_way.wait()

    VIRTUAL.run(main)
    assert [(wish.wants, wish.pause_s) for wish in wishes if wish.pause_s] == [(True, 7.0), (False, 7.0)]


def test_a_pause_that_was_told_on_leaving_is_not_told_again_on_coming_back():
    pauses = []

    async def main():
        async def renew(wish):
            pauses.append(wish.pause_s)
            return ShareRenewal(SharePart(30, 6), 0.0, 0.0, None, 0)

        def new_share(account):
            return LeasedShare(account, lambda: renew, ticks=VIRTUAL.monotonic)

        with anyio.fail_after(10):
            async with leased_shares(
                [ACCOUNT], new_share, every_s=30.0, waiting=Waiting(pytest.fail)
            ) as shares:
                shares["cop"].leave()
                shares["cop"].pause(7.0)
                assert await shares["cop"].rejoin()

    VIRTUAL.run(main)
    assert sum(pauses) == 7


class Account:
    """An account, and the holders that divide it; `others_have_all` while it has nothing for a new one."""

    def __init__(self):
        self.holder_count = 0
        self.others_have_all = False
        self.wishes = []

    def new_share(self, account):
        def new_holder():
            self.holder_count += 1
            number = self.holder_count

            async def renew(wish):
                await anyio.sleep(0.01)
                self.wishes.append((number, wish.wants))
                other = LeaseHolder("cop.example", 7) if self.others_have_all and wish.wants else None
                part = NOTHING if other or not wish.wants else SharePart(30, 6)
                return ShareRenewal(part, inf, 0.0, other, 0)

            return renew

        return LeasedShare(account, new_holder, ticks=VIRTUAL.monotonic)


def test_who_comes_back_is_another_holder_and_has_left_before():
    account, limits = Account(), []

    async def main():
        waiting = Waiting(pytest.fail)
        with anyio.fail_after(10):
            async with leased_shares([ACCOUNT], account.new_share, every_s=30.0, waiting=waiting) as shares:
                shares["cop"].follow(limits.append, lambda: 0)
                await anyio.sleep(0.1)
                shares["cop"].leave()
                assert await shares["cop"].rejoin()
                await anyio.sleep(0.1)

    VIRTUAL.run(main)
    begun, kept, left = True, True, False
    assert account.wishes == [(number, wants) for number in (1, 2) for wants in (begun, kept, left)]
    assert {part[:2] for part in limits} == {(30, 6)}


def test_who_comes_back_waits_for_nobody_and_leaves_nothing_behind_where_another_has_all():
    account = Account()

    async def main():
        waiting = Waiting(pytest.fail)
        with anyio.fail_after(10):
            async with leased_shares([ACCOUNT], account.new_share, every_s=30.0, waiting=waiting) as shares:
                shares["cop"].leave()
                account.others_have_all = True
                assert not await shares["cop"].rejoin()
                assert account.wishes[-1] == (2, False), "it wants nothing, as long as it has nothing"
                assert not await shares["cop"].rejoin()
                account.others_have_all = False
                assert await shares["cop"].rejoin()
                shares["cop"].leave()
                assert await shares["cop"].rejoin()

    VIRTUAL.run(main)
    assert [number for number, wants in account.wishes if not wants] == [1, 2, 3, 4, 5]
    assert [number for number, _ in account.wishes] == sorted(number for number, _ in account.wishes)
