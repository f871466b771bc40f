"""Send a reply in parts or slowly, by writing to the connection directly."""

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
_SETTLE_S = 0.05  # time for written data to leave, before a reset discards the rest


async def deliver(request: web.BaseRequest, reply: Reply, delivery: Delivery) -> web.StreamResponse:
    """Send a reply in this way and end the connection, which the server then sees as closed."""
    transport = request.transport
    # The client may leave before its answer is ready.
    if transport is not None:
        try:
            await _write(transport, reply, delivery)
        except asyncio.CancelledError:
            # The client has closed the connection, or the server is stopping.
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
    """Send nothing."""
    yield from ()


def head_only(head: bytes, _body: bytes) -> Iterator[bytes]:
    """Send status and headers without the promised body."""
    yield head


def half(head: bytes, body: bytes) -> Iterator[bytes]:
    """Send half of the promised body."""
    yield head + body[: len(body) // 2]


def body_by_bytes(head: bytes, body: bytes) -> Iterator[bytes]:
    """Send the body byte by byte."""
    yield head
    yield from _bytes(body)


def all_by_bytes(head: bytes, body: bytes) -> Iterator[bytes]:
    """Send head and body byte by byte."""
    yield from _bytes(head + body)


def unasked(head: bytes, body: bytes) -> Iterator[bytes]:
    """Send the answer, then an unsolicited refusal; keep the connection open for a while."""
    yield head + body
    yield UNASKED
    yield from (b"" for _ in range(100))


def silence(_head: bytes, _body: bytes) -> Iterator[bytes]:
    """Send nothing for a minute, in steps of a second."""
    yield from (b"" for _ in range(60))


def _bytes(content: bytes) -> Iterator[bytes]:
    return (content[index : index + 1] for index in range(len(content)))


def _reset(transport: asyncio.Transport) -> None:
    """End the TCP connection with a reset."""
    own = transport.get_extra_info("socket")
    # A duplicate descriptor shares the connection's options; every event loop provides the number.
    with socket.fromfd(own.fileno(), own.family, own.type) as duplicate:
        duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
