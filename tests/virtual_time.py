"""Event loops whose clock jumps to the next timer: the waits of a test take no time."""

import asyncio
import selectors

import anyio
import anyio.to_thread

ROUND_S = 1e-9
"""What a round of a loop takes if it has nothing to wait for."""


def never_late():
    """How late a timer is: not at all."""
    return 0.0


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that never waits for a timer: its clock jumps there, and beyond by `lateness_s()`.

    It does wait for its threads, and its clock stops meanwhile.
    """

    def __init__(self, lateness_s=never_late, *, start_s=0.0):
        self.now_s = start_s
        self.threads = None
        """The limiter that counts the threads at work."""
        self._lateness_s = lateness_s
        super().__init__(_JumpingSelector(self))

    def time(self):
        return self.now_s

    def jump(self, wait_s):
        self.now_s += wait_s + self._lateness_s() if wait_s else ROUND_S


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop):
        super().__init__()
        self._loop = loop

    def select(self, timeout=None):
        if timeout != 0 and (threads := self._loop.threads) is not None and threads.borrowed_tokens:
            return super().select()
        if timeout is None:
            return super().select()
        self._loop.jump(timeout)
        return super().select(0)


class _VirtualTime:
    """One time for all loops of a process of tests, one after the other."""

    def __init__(self):
        self._loop = None
        self._ended_s = 0.0

    def monotonic(self):
        """Seconds that never go back, between two loops too."""
        return self._ended_s if self._loop is None else self._loop.time()

    def run(self, main, *arguments):
        """As `anyio.run`, in virtual time."""

        async def counted():
            self._loop.threads = anyio.to_thread.current_default_thread_limiter()
            return await main(*arguments)

        def made():
            self._loop = VirtualLoop(start_s=self._ended_s)
            return self._loop

        try:
            return anyio.run(counted, backend_options={"loop_factory": made})
        finally:
            self._ended_s, self._loop = self.monotonic(), None


VIRTUAL = _VirtualTime()
