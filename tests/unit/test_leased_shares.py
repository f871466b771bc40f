"""A share of an account, and what its process tells the others by it."""

import time

import anyio

from pipeline.stores.leased_shares import LeasedShare, Waiting, leased_shares
from pipeline.stores.sharing import ShareRenewal
from pipeline.stores.values import ServerAccount

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
            return ShareRenewal(wish.kept._replace(requests=30, places=6), 0.0, 0.0, None, 0)

        def new_share(account):
            return LeasedShare(account, lambda: renew, ticks=time.monotonic)

        waiting = Waiting(lambda _: None)
        with anyio.fail_after(10):
            async with leased_shares([ACCOUNT], new_share, every_s=30.0, waiting=waiting) as shares:
                shares["cop"].pause(7.0)
                await under_way.wait()

    anyio.run(main)
    assert [(wish.wants, wish.pause_s) for wish in wishes if wish.pause_s] == [(True, 7.0), (False, 7.0)]
