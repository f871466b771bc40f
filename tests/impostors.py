"""A server that is not the sandbox: it answers what a test says, over real TLS."""

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

TOKEN = "canary-token-5f1d"
START_MAX_S = 60

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@contextmanager
def impostor(folder: Path, handler: Handler) -> Iterator[str]:
    """Serve a token and whatever `handler` says, while the block lasts; the address of the server.

    Args:
        folder: of a sandbox, whose certificate this server shows, so that its ca.pem is trusted here too.
            A client certificate of that sandbox is accepted and not needed.
        handler: answers every request but the one for a token.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server_ec.pem")
    context.load_verify_locations(folder / "qwac_ca.pem")
    context.verify_mode = ssl.CERT_OPTIONAL
    is_ready, inside = threading.Event(), []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/token":
            return web.json_response({"access_token": TOKEN, "token_type": "Bearer"})
        return await handler(request)

    async def serve() -> None:
        runner = web.ServerRunner(web.Server(answer), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        stop = asyncio.Event()
        inside.extend((runner.addresses[0][1], asyncio.get_running_loop(), stop))
        is_ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert is_ready.wait(START_MAX_S)
    port, loop, stop = inside
    try:
        yield f"https://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
