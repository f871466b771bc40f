"""The effects of faults: changes of the reply, waits, and other ways of sending it.

Bodies that contradict the reference also contain a match, to expose clients that read only that part.
"""

import asyncio
import gzip
import json
import socket
import struct
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from enum import Enum, auto
from functools import wraps
from math import ceil
from typing import Concatenate, ParamSpec

from aiohttp import web

from pipeline.sandbox.http_connection import Reply
from pipeline.sandbox.problems import ProblemError
from schemas.outcomes import ApiName
from schemas.strict import timestamp

Json = Mapping[str, object]
Said = ParamSpec("Said")

LOGIN_PAGE = b"<!DOCTYPE html><html><title>Sign in</title><body><form method=post>...</form></body></html>"
REFUSAL_PAGE = (
    b"<html><head><title>400 No required SSL certificate was sent</title></head><body><center>"
    b"<h1>400 Bad Request</h1></center><center>No required SSL certificate was sent</center></body></html>"
)
"""An error page like nginx's."""
PADDING_BYTES = 4 * 1024 * 1024
_PADDING = b" " * PADDING_BYTES  # white space, so that the body remains valid JSON
HEADER_PADDING = "x" * 200 * 1024  # the value of a header that is too long for any client to accept
_SETTLE_S = 0.05  # time for written data to leave, before a reset discards the rest


@dataclass(frozen=True, slots=True)
class Scene:
    """What a change needs to know about the exchange and its server."""

    path: str
    api: ApiName | None  # None for the token endpoint
    correlation_header: str  # the header that carries the correlation id; empty for the token endpoint
    responder_wait_s: float  # how long the gateway waits for a silent responder; 0 for the token endpoint
    elsewhere: str  # the base URL of another port of this server
    revoke_tokens: Callable[[], None]
    swap: Callable[[Reply], Awaitable[Reply]]  # swaps the replies to two requests in flight


Change = Callable[[Reply, Scene], Reply | Awaitable[Reply]]  # returns the reply to send, perhaps later


@dataclass(frozen=True, slots=True)
class Delivery:
    """Another way of sending the reply; the connection cannot be used afterwards."""

    pieces: Callable[[bytes, bytes], Iterable[bytes]]  # (head, body) -> the pieces to write
    pause_s: float = 0.0  # after each piece
    is_reset: bool = False  # True if a TCP reset ends the connection


class ConnectionFault(Enum):
    """A fault that affects every connection."""

    HALF_CLOSE = auto()  # when the client closes its side, the server keeps the other side open
    CLOSE_IN_HANDSHAKE = auto()  # the server closes the connection instead of completing the handshake
    LATE_CERTIFICATE = auto()  # the client certificate is requested only when a request has arrived


Effect = Change | Delivery | ConnectionFault


def _change(
    make: Callable[Concatenate[Reply, Scene, Said], Reply | Awaitable[Reply]],
) -> Callable[Said, Change]:
    """Turn a function of reply, scene and other arguments into a factory of changes."""

    @wraps(make)
    def change(*words: Said.args, **named: Said.kwargs) -> Change:
        return lambda reply, scene: make(reply, scene, *words, **named)

    return change


@_change
def problem(reply: Reply, scene: Scene, status: int, code: str, detail: str) -> Reply:
    """Send problem details instead of the answer."""
    return replace(reply, status=status, body=ProblemError(status, code, detail).to_json(scene.path))


@_change
def retry_after(reply: Reply, _scene: Scene, wait_s: int, *, as_date: bool = False) -> Reply:
    """Add Retry-After, as seconds or as a date."""
    if not as_date:
        return reply.with_headers(Retry_After=str(wait_s))
    until = datetime.fromtimestamp(ceil(time.time() + wait_s), UTC)
    return reply.with_headers(Retry_After=format_datetime(until, usegmt=True))


@_change
def status(reply: Reply, _scene: Scene, code: int, body: bytes | None = None) -> Reply:
    """Send another status, and another body if given."""
    return replace(reply, status=code, body=reply.body if body is None else body)


@_change
def body(reply: Reply, _scene: Scene, content: bytes, content_type: str = "application/json") -> Reply:
    """Replace the body."""
    return replace(reply, body=content).with_headers(Content_Type=content_type)


@_change
def rewritten(
    reply: Reply, _scene: Scene, /, rewrite: Callable[[bytes], bytes], **headers: str | None
) -> Reply:
    """Rewrite the real body, and change headers."""
    return replace(reply, body=rewrite(reply.body)).with_headers(**headers)


@_change
def verdict(reply: Reply, scene: Scene, *, cop: Json | None = None, vop: Json | None = None) -> Reply:
    """Send the verificationReport `cop` or the VerificationOfPayeeResponse `vop`, depending on the API."""
    answer = {"data": {"verificationReport": cop}} if scene.api is ApiName.COP else vop
    return replace(reply, body=json.dumps(answer).encode())


@_change
def written(reply: Reply, scene: Scene, *, cop: bytes, vop: bytes) -> Reply:
    """Like `verdict`, but with bytes that a JSON encoder would not produce."""
    if scene.api is ApiName.COP:
        return replace(reply, body=b'{"data":{"verificationReport":' + cop + b"}}")
    return replace(reply, body=vop)


@_change
def token_said(reply: Reply, _scene: Scene, /, **changes: object) -> Reply:
    """Change members of a token response; None removes a member."""
    answer = {**json.loads(reply.body), **changes}
    kept = {name: value for name, value in answer.items() if value is not None}
    return replace(reply, body=json.dumps(kept).encode())


@_change
def header(reply: Reply, _scene: Scene, /, **changes: str | None) -> Reply:
    """Change headers, with `_` for `-` in their names; None removes a header."""
    return reply.with_headers(**changes)


@_change
def echo(reply: Reply, scene: Scene, *, missing: bool = False) -> Reply:
    """Echo no correlation id, or an invented one."""
    return reply.with_headers(**{scene.correlation_header: None if missing else str(uuid.uuid4())})


@_change
def doubled_echo(reply: Reply, scene: Scene) -> Reply:
    """Echo the correlation id twice in one header, as a chain of gateways may do."""
    value = reply.headers[scene.correlation_header]
    return reply.with_headers(**{scene.correlation_header: f"{value}, {value}"})


@_change
def clock(reply: Reply, _scene: Scene, ahead_s: float) -> Reply:
    """Set X-Response-Timestamp by a wrong clock."""
    moment = datetime.fromtimestamp(time.time() + ahead_s, UTC)
    return reply.with_headers(X_Response_Timestamp=timestamp(moment))


@_change
def redirect(_reply: Reply, scene: Scene, code: int) -> Reply:
    """Redirect to the same path on another port of this server, below /elsewhere."""
    return Reply(code, {"Location": f"{scene.elsewhere}/elsewhere{scene.path}"}, b"")


@_change
async def pause(reply: Reply, scene: Scene, wait_s: float | None = None) -> Reply:
    """Wait before the reply is sent; by default, for as long as the gateway waits for a silent responder."""
    await asyncio.sleep(scene.responder_wait_s if wait_s is None else wait_s)
    return reply


@_change
async def swap(reply: Reply, scene: Scene) -> Reply:
    """Swap the replies to two requests in flight."""
    return await scene.swap(reply)


@_change
def revocation(reply: Reply, scene: Scene) -> Reply:
    """Revoke all access tokens issued so far."""
    scene.revoke_tokens()
    return reply


def padded(content: bytes) -> bytes:
    """Return the body, followed by more white space than a client should read."""
    return content + _PADDING


def bomb(content: bytes) -> bytes:
    """Return a small body that decompresses to four thousand times its size."""
    return gzip.compress(padded(content), 9)


def by_bytes(content: bytes) -> list[bytes]:
    """Return the bytes one by one, as pieces of a delivery."""
    return [content[index : index + 1] for index in range(len(content))]


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
    if not delivery.is_reset:
        transport.close()
        return
    await asyncio.sleep(_SETTLE_S)
    own = transport.get_extra_info("socket")
    # A duplicate descriptor shares the connection's options; every event loop provides the number.
    with socket.fromfd(own.fileno(), own.family, own.type) as duplicate:
        duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
