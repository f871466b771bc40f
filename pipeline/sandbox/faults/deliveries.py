"""Deliver a reply other than whole and at once: written to the connection by hand."""

import asyncio
import socket
import struct
from collections.abc import Iterator

from aiohttp import web

from pipeline.sandbox.faults.effects import Delivery, Ending
from pipeline.sandbox.replies import Reply

UNASKED = Reply(
    400, {"Content-Type": "application/problem+json"}, b'{"code":"FORMAT_ERROR","status":400}'
).whole()
_SETTLE_S = 0.05  # for what was written to leave, before a reset throws away what has not


async def deliver(request: web.BaseRequest, reply: Reply, delivery: Delivery) -> web.StreamResponse:
    """Write a reply by the delivery and end the connection; the server finds it gone."""
    transport = request.transport
    # The client may be gone before its answer is ready.
    if transport is not None:
        try:
            await _write(transport, reply, delivery)
        except asyncio.CancelledError:
            # The client has hung up, or the server stops.
            transport.abort()
            raise
    return web.Response()


async def _write(transport: asyncio.Transport, reply: Reply, delivery: Delivery) -> None:
    for piece in delivery.pieces(reply.head(), reply.body):
        if transport.is_closing():
            return
        transport.write(piece)
        await asyncio.sleep(delivery.pause_s)
    if delivery.ending is Ending.RESET:
        await asyncio.sleep(_SETTLE_S)
        _reset(transport)
    else:
        transport.close()


def nothing(_head: bytes, _body: bytes) -> Iterator[bytes]:
    """Not a byte."""
    yield from ()


def head_only(head: bytes, _body: bytes) -> Iterator[bytes]:
    """Status and headers, and not a byte of the body that they promise."""
    yield head


def half(head: bytes, body: bytes) -> Iterator[bytes]:
    """Half of the body that the headers promise."""
    yield head + body[: len(body) // 2]


def body_by_bytes(head: bytes, body: bytes) -> Iterator[bytes]:
    """The body, byte by byte."""
    yield head
    yield from _bytes(body)


def all_by_bytes(head: bytes, body: bytes) -> Iterator[bytes]:
    """Everything, byte by byte."""
    yield from _bytes(head + body)


def unasked(head: bytes, body: bytes) -> Iterator[bytes]:
    """The answer, then an unsolicited refusal; the connection stays open for a while."""
    yield head + body
    yield UNASKED
    yield from (b"" for _ in range(100))


def silence(_head: bytes, _body: bytes) -> Iterator[bytes]:
    """Nothing, again and again, for a minute at a pause of a second."""
    yield from (b"" for _ in range(60))


def _bytes(content: bytes) -> Iterator[bytes]:
    return (content[index : index + 1] for index in range(len(content)))


def _reset(transport: asyncio.Transport) -> None:
    """End a TCP connection by a reset, not in order."""
    own = transport.get_extra_info("socket")
    # A duplicate shares the options of the connection, and every event loop can hand out its number.
    with socket.fromfd(own.fileno(), own.family, own.type) as duplicate:
        duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
