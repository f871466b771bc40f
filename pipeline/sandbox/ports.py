"""The ports of a sandbox: TLS, then HTTP, then the service."""

import asyncio
import itertools
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from pipeline.sandbox.faults.effects import ConnectionFault
from pipeline.sandbox.http_connection import HttpConnection
from pipeline.sandbox.intake import BODY_BYTES_MAX
from pipeline.sandbox.journal import Journal, Visit
from pipeline.sandbox.service import Service
from pipeline.sandbox.tls_handshake import SecuredConnection

_BACKLOG = 2048  # connections; a client may open all its connections at once
_SHUTDOWN_S = 1.0  # for answers in progress


@dataclass(frozen=True, slots=True)
class Port:
    """A listening address and its TLS settings."""

    word: str  # its name in the journal; empty for the serving port
    listener: socket.socket
    context: ssl.SSLContext


@asynccontextmanager
async def served(
    service: Service,
    ports: Sequence[Port],
    journal: Journal | None,
    request_wait_s: float,
    meets: Callable[[ConnectionFault], bool],
) -> AsyncIterator[None]:
    """Serve on every port during the block; then give answers in progress a second to finish."""
    loop = asyncio.get_running_loop()
    make_request = partial(web.BaseRequest, loop=loop, client_max_size=BODY_BYTES_MAX)
    numbers = itertools.count(1)
    server = web.Server(service.handle, request_factory=make_request)

    def accept(port: Port) -> SecuredConnection:
        visit = Visit(next(numbers), port.word)
        if journal is not None:
            journal.visits.append(visit)
        make_protocol = partial(HttpConnection, server, service.refuse_unread, visit, request_wait_s)
        return SecuredConnection(port.context, make_protocol, visit, request_wait_s, meets)

    listening = [
        await loop.create_server(partial(accept, port), sock=port.listener, backlog=_BACKLOG)
        for port in ports
    ]
    try:
        yield
    finally:
        for each in listening:
            each.close()
        await asyncio.sleep(0)  # lets requests that have already arrived begin
        server.pre_shutdown()
        await server.shutdown(_SHUTDOWN_S)
