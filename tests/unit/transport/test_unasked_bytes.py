"""Connections with bytes that no request asked for, and the replies that are the only ones of theirs."""

from contextlib import suppress

import anyio
import pytest
from tables import for_each

from pipeline.apis import post
from pipeline.transport.client import Client
from pipeline.transport.retry import FRESH_CONNECTION, REQUEST_ID, NetworkFailure
from pipeline.transport.tls import client_context

ASK = post("/check", {"Content-Type": "application/json"}, b"{}")
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"
UNASKED = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nbad"


class SlowDoor:
    """Keeps every request waiting for a moment once it has its connection."""

    async def slot_unless_ended(self):
        await anyio.sleep(0.2)
        return True


def client_of(loopback, port, **options):
    context = client_context(ca_file=loopback.authority.ca_file)
    return Client(f"https://127.0.0.1:{port}", context=context, in_flight_max=4, **options)


async def answer(reader, writer, *, reply=GOOD, then=b""):
    await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(2)
    writer.write(reply)
    await writer.drain()
    if then:
        await anyio.sleep(0.02)
        writer.write(then)
        await writer.drain()


def ask_of(loopback, session, count, *, pause_s=0.1, fresh=False, strays=None, **options):
    """What so many requests brought, one after the other: (status, body).

    With a semaphore of strays, the next request waits until one more has been written.
    """

    async def main():
        seen = []
        async with loopback.talking(session) as port, client_of(loopback, port, **options) as client:
            for _ in range(count):
                request = post("/check", {}, b"{}")
                if fresh:
                    request.extensions[FRESH_CONNECTION] = True
                try:
                    response = await client.send(request, deadline_s=3)
                    said = response.status_code, response.content
                except NetworkFailure as failure:
                    said = failure.kind
                seen.append(said)
                if strays is not None:
                    with anyio.fail_after(10):
                        await strays.acquire()
                await anyio.sleep(pause_s)
        return seen

    return anyio.run(main)


@pytest.mark.parametrize(
    "stray",
    [UNASKED, UNASKED[:30], b"\r\n", b"x", GOOD, b"HTTP/1.1 408 Timeout\r\nConnection: close\r\n\r\n"],
)
def test_a_connection_that_carries_bytes_between_two_requests_is_not_used_again(loopback, stray):
    strays = anyio.Semaphore(0)

    async def session(reader, writer):
        for _ in range(4):
            with suppress(ConnectionError):
                await answer(reader, writer, then=stray)
            strays.release()

    assert ask_of(loopback, session, 4, pause_s=0.05, strays=strays) == [(200, b"good")] * 4


@pytest.mark.parametrize("pause_s", [0, 0.01, 0.02, 0.025])
def test_at_no_moment_are_such_bytes_half_a_reply(loopback, pause_s):
    """They may come while the next request leaves: then they pass for its reply, without its id."""

    async def session(reader, writer):
        for _ in range(3):
            await answer(reader, writer, then=UNASKED)

    for said in ask_of(loopback, session, 3, pause_s=pause_s):
        assert said in {(200, b"good"), (400, b"bad")}


def test_bytes_that_come_while_a_request_waits_at_the_door_are_found_as_well(loopback):
    async def session(reader, writer):
        await answer(reader, writer)
        await anyio.sleep(0.1)
        writer.write(UNASKED)
        await answer(reader, writer)

    seen = ask_of(loopback, session, 2, pause_s=0, door=SlowDoor())
    assert seen == [(200, b"good")] * 2


def test_a_server_that_always_speaks_first_gets_no_request_and_is_not_connected_to_for_ever(loopback):
    connections, requests = [], []

    async def session(reader, writer):
        connections.append(1)
        writer.write(b"220 ready\r\n")
        requests.append(await reader.read(1))

    async def main():
        async with loopback.talking(session) as port, client_of(loopback, port, door=SlowDoor()) as client:
            with pytest.raises(NetworkFailure) as caught:
                await client.send(ASK, deadline_s=3)
            return caught.value.kind

    assert anyio.run(main) == "connect"
    assert len(connections) == 2
    assert b"".join(requests) == b""


def test_a_request_can_have_a_connection_of_its_own(loopback):
    connections = []

    async def session(reader, writer):
        connections.append(1)
        while True:
            await answer(reader, writer)

    ask_of(loopback, session, 3)
    assert len(connections) == 1
    ask_of(loopback, session, 3, fresh=True)
    assert len(connections) == 1 + 3


def test_a_connection_of_its_own_on_which_the_server_speaks_first_carries_no_request(loopback):
    """Its 400 may come when the request has left already: it is waited for."""

    async def session(reader, writer):
        await anyio.sleep(0.05)
        writer.write(UNASKED)
        await answer(reader, writer)

    assert ask_of(loopback, session, 1, fresh=True) == ["connect"]


def test_a_reply_in_the_same_segment_as_the_last_one_is_no_reply_to_the_next_request(loopback):
    async def session(reader, writer):
        while True:
            await answer(reader, writer, reply=GOOD + UNASKED)

    assert ask_of(loopback, session, 3, pause_s=0) == [(200, b"good")] * 3


def test_a_refusal_before_another_reply_to_the_same_request_is_no_refusal(loopback):
    async def session(reader, writer):
        await answer(reader, writer, reply=UNASKED + GOOD)

    assert ask_of(loopback, session, 2, fresh=True) == ["broken"] * 2


def test_a_reply_of_class_one_hundred_is_followed_by_another(loopback):
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"

    async def session(reader, writer):
        await answer(reader, writer, reply=early)
        await anyio.sleep(0.05)
        writer.write(GOOD)
        while True:
            await answer(reader, writer, reply=early + GOOD)

    assert ask_of(loopback, session, 3) == [(200, b"good")] * 3


def test_a_reply_that_only_thousands_of_others_precede_is_not_waited_for(loopback):
    early = b"HTTP/1.1 103 Early Hints\r\n\r\n"

    async def session(reader, writer):
        await answer(reader, writer, reply=early * 100 + GOOD)
        await answer(reader, writer, reply=early * 5_000 + GOOD)

    first, second = ask_of(loopback, session, 2)
    assert first == (200, b"good")
    assert second in ("broken", "tls")


@pytest.mark.parametrize(
    ("echo", "connection_count"), [(b"", 3), (b"X-Request-ID: other\r\n", 3), (b"X-Request-ID: mine\r\n", 1)]
)
def test_a_refusal_that_may_be_anothers_is_the_last_reply_of_its_connection(loopback, echo, connection_count):
    connections = []
    refusal = b"HTTP/1.1 400 Bad Request\r\n" + echo + b"Content-Length: 3\r\n\r\nbad"

    async def session(reader, writer):
        connections.append(1)
        while True:
            await answer(reader, writer, reply=refusal)

    async def main():
        async with loopback.talking(session) as port, client_of(loopback, port) as client:
            for _ in range(3):
                request = post("/check", {"X-Request-ID": "mine"}, b"{}")
                request.extensions[REQUEST_ID] = "mine"
                await client.send(request, deadline_s=3)

    anyio.run(main)
    assert len(connections) == connection_count


@for_each(
    "length",
    [b"9" * 40, b"-4", b"+4", b"4.0", b"4e0", b"0x4", b"", b"4, 5", b"4\r\nContent-Length: 5", b"99"],
)
def test_a_length_that_is_none_or_is_not_the_bodys_is_a_broken_reply_and_no_answer(loopback, length):
    async def session(reader, writer):
        await answer(reader, writer, reply=b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\n\r\ngood")
        writer.close()

    [said] = ask_of(loopback, session, 1, pause_s=0)
    assert isinstance(said, str), said
