"""Processes that ask one server by shares of its limits, and the moments at which their requests left.

A program: `python sharers.py FOLDER|URL RATE PLACES SECONDS PORT`. It asks as `open_channels` has a run ask:
one pace before a request, and one where it leaves. `Sharers` starts some of them, and a server on loopback.
"""

import asyncio
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

STAMP = struct.Struct("dq")
LATENCY_S = 0.02


def most_in_a_second(times):
    """The most times in any window of one second."""
    times, most, start = sorted(times), 0, 0
    for end, moment in enumerate(times):
        while moment - times[start] >= 1:
            start += 1
        most = max(most, end - start + 1)
    return most


class Server(threading.Thread):
    """A server on loopback: `came` has when each request came and left, and the process that it came from."""

    def __init__(self):
        super().__init__(daemon=True)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self.came = []
        self.start()

    def run(self):
        asyncio.run(self._serve())

    def has_heard(self, process, since=0.0):
        """Whether a request of this process came after that moment."""
        return any(pid == process.pid and came > since for came, _, pid in list(self.came))

    async def _serve(self):
        async def answer(reader, writer):
            try:
                while stamp := await reader.readexactly(STAMP.size):
                    left_at, pid = STAMP.unpack(stamp)
                    self.came.append((time.monotonic(), left_at, pid))
                    await asyncio.sleep(LATENCY_S)
                    writer.write(b"!")
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()

        async with await asyncio.start_server(answer, sock=self._door) as server:
            await server.serve_forever()


class Sharers:
    """Processes on one account."""

    def __init__(self, where, rate, places=40):
        self.where, self.rate, self.places = where, rate, places
        self.server = Server()
        self.processes = []

    def start(self, seconds):
        """Start one more, which asks for so long."""
        words = [self.where, self.rate, self.places, seconds, self.server.port]
        process = subprocess.Popen([sys.executable, __file__, *map(str, words)])
        self.processes.append(process)
        return process

    def left(self):
        """When requests left."""
        return sorted(left_at for _, left_at, _ in list(self.server.came))

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


@contextmanager
def sharers(where, rate, **limits):
    """Processes that are gone when the block ends."""
    made = Sharers(where, rate, **limits)
    try:
        yield made
    finally:
        made.end()


def shares_of(where, host="host"):
    """The shares of a folder of this machine, or of a ledger's database."""
    from pipeline.stores.leased_shares import LeaseTerms

    terms = LeaseTerms(lambda: datetime.now(UTC), time.monotonic, lambda _: None)
    if not where.startswith("postgresql:"):
        from pipeline.stores.sqlite.shares import local_shares

        return local_shares(Path(where), terms)
    from pipeline.stores.postgres.address import parsed
    from pipeline.stores.postgres.connection import Database
    from pipeline.stores.postgres.store import PostgresStore
    from pipeline.stores.protocols import AskingProcess, StoreClocks

    database = Database(parsed(where), StoreClocks(terms.clock, time.monotonic, 20.0))
    process = AskingProcess(uuid4(), host, os.getpid(), "0.1.0")
    return PostgresStore(database, None, process).shares(terms)  # shares need no keys


async def ask(shares, rate, places_max, seconds, port):
    """Ask for so long, as many at the same time as there are places."""
    from pipeline.stages.ask.concurrency import ConcurrencyLimit
    from pipeline.stores.values import ServerAccount
    from pipeline.transport.rate_limiter import Pace, window_of

    account = ServerAccount("localhost|c", "cop", rate, places_max, window_of(rate), 5.0)
    pace, door = Pace(rate), Pace(rate)
    places = ConcurrencyLimit(places_max, rate, pace.clock)
    places.open()

    def use(part):
        for each in (pace, door):
            each.resize(part.rate_per_s, until=part.until)
        places.resize(part.in_flight_max, part.rate_per_s, kept=part.kept_slots)

    async with shares.lease([account]) as leased:
        leased["cop"].follow(use, lambda: places.in_flight)
        until = time.monotonic() + seconds

        async def work():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while time.monotonic() < until:
                await places.take()
                await pace.slot()
                if await door.slot_unless_ended():
                    writer.write(STAMP.pack(time.monotonic(), os.getpid()))
                    await reader.readexactly(1)
                places.give_back()

        workers = [asyncio.ensure_future(work()) for _ in range(places_max)]
        await asyncio.sleep(max(until - time.monotonic(), 0))
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


if __name__ == "__main__":
    where, *numbers = sys.argv[1:]
    rate, places_max, seconds, port = (float(number) for number in numbers)
    import anyio

    anyio.run(ask, shares_of(where), rate, int(places_max), seconds, int(port))
