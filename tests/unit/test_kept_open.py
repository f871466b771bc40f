"""What the files of one command share stays open as long as it is good, and no longer."""

import threading
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import anyio.lowlevel
import pytest
from refusals import refused

from pipeline.errors import IncompleteError
from pipeline.executors.kept_open import KeptOpen
from pipeline.stages.ask.values import ApiChannel, AskingTally, Closure
from pipeline.wording import Sentence
from schemas.outcomes import ApiName

COP, VOP = (SimpleNamespace(name=name) for name in (ApiName.COP, ApiName.VOP_GATEWAY))


def channel():
    return ApiChannel(*[None] * 6, in_flight_max=1, attempts_max=1, deadline_s=1)


class Opened:
    """How often channels were opened, and whether they are still open; a share may be lost meanwhile."""

    def __init__(self, error=None):
        self.count = self.open_count = 0
        self.error = error
        self.lost = anyio.Event()

    @asynccontextmanager
    async def opening(self, *servers):
        if self.error is not None:
            raise self.error
        self.count += 1
        self.open_count += 1
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._lose)
                yield {server.name: channel() for server in servers}
                tasks.cancel_scope.cancel()
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            self.open_count -= 1

    async def _lose(self):
        await self.lost.wait()
        raise IncompleteError(Sentence("errors.lease_lost"))


async def asking(kept, opened, *servers, what=None, tally=None):
    async with kept.channels(servers, opened.opening(*servers), tally or AskingTally()) as channels:
        assert set(channels) == {server.name for server in servers}
        assert all(each.stays for each in channels.values())
        if what is not None:
            await what()


def test_channels_stay_open_from_file_to_file_and_close_with_the_command():
    opened = Opened()
    with KeptOpen() as kept:
        for servers in ((COP, VOP), (COP, VOP), (VOP,)):
            kept.run(lambda servers=servers: asking(kept, opened, *servers))
        assert (opened.count, opened.open_count) == (1, 1)
    assert opened.open_count == 0


def test_another_server_needs_other_channels():
    opened = Opened()
    with KeptOpen() as kept:
        kept.run(lambda: asking(kept, opened, COP))
        kept.run(lambda: asking(kept, opened, COP, VOP))
        assert (opened.count, opened.open_count) == (2, 1)


def test_channels_of_which_one_is_closed_are_opened_again():
    opened, tally = Opened(), AskingTally()
    tally.closures[ApiName.COP] = Closure(None, "DAILY_CAP")
    with KeptOpen() as kept:
        kept.run(lambda: asking(kept, opened, COP, tally=tally))
        assert opened.open_count == 0
        kept.run(lambda: asking(kept, opened, COP))
        assert (opened.count, opened.open_count) == (2, 1)


def test_an_asking_that_fails_leaves_nothing_open():
    opened = Opened()

    async def fail():
        raise IncompleteError(Sentence("errors.cap_spent"))

    with KeptOpen() as kept:
        with pytest.raises(IncompleteError):
            kept.run(lambda: asking(kept, opened, COP, what=fail))
        assert opened.open_count == 0


def test_a_share_that_is_lost_ends_the_asking_with_its_error():
    opened = Opened()

    async def lose():
        opened.lost.set()
        await anyio.sleep_forever()

    with KeptOpen() as kept:
        kept.run(lambda: asking(kept, opened, COP))
        with refused(IncompleteError, "errors.lease_lost"):
            kept.run(lambda: asking(kept, opened, COP, what=lose))
        assert opened.open_count == 0


def test_a_share_that_is_lost_between_two_files_is_taken_again():
    opened = Opened()

    async def lose():
        opened.lost.set()
        while opened.open_count:
            await anyio.lowlevel.checkpoint()
        opened.lost = anyio.Event()

    with KeptOpen() as kept:
        kept.run(lambda: asking(kept, opened, COP))
        kept.run(lose)
        kept.run(lambda: asking(kept, opened, COP))
        assert (opened.count, opened.open_count) == (2, 1)


def test_channels_that_cannot_be_opened_say_why_and_are_tried_again():
    opened = Opened(IncompleteError(Sentence("errors.lease_lost")))
    with KeptOpen() as kept:
        with pytest.raises(IncompleteError):
            kept.run(lambda: asking(kept, opened, COP))
        opened.error = None
        kept.run(lambda: asking(kept, opened, COP))
        assert opened.count == 1


def test_the_thread_of_the_command_is_free_while_a_file_is_asked():
    is_read = threading.Event()

    async def main():
        assert await anyio.to_thread.run_sync(is_read.wait, 10)
        return "answers"

    with KeptOpen() as kept:
        kept.meanwhile = is_read.set
        assert kept.run(main) == "answers"


def test_an_interrupt_ends_what_is_asked():
    ended = []

    async def main():
        try:
            with anyio.fail_after(10):
                await anyio.sleep_forever()
        finally:
            ended.append(True)

    def interrupt():
        raise KeyboardInterrupt

    with KeptOpen() as kept:
        kept.meanwhile = interrupt
        with pytest.raises(KeyboardInterrupt):
            kept.run(main)
        assert ended == [True]
