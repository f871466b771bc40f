"""Serve the desk on a loopback port, or on a Unix socket behind a team's proxy."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from itertools import chain
from pathlib import Path

from aiohttp import web

from pipeline.desk import checks, demo
from pipeline.desk.context import CONTEXT, Context
from pipeline.desk.guards import guard
from pipeline.desk.languages import BY_ITSELF
from pipeline.desk.pages import audit, checking, entering, releasing, reviewing, searching
from pipeline.desk.pages import files as file_pages
from pipeline.desk.refusals import Missing
from pipeline.desk.rendering import IS_DEMO
from pipeline.desk.retention import forget_old, resume_capped
from pipeline.errors import ConfigurationError, OutputError
from pipeline.wording import Sentence
from schemas.desk import Deed

FORM_BYTES_MAX = 1024**2
SHUTDOWN_MAX_S = 1.0
CLEANING_INTERVAL_S = 3600.0
_STATIC = {
    "report.css": ("pipeline.reports", "templates/report.css", "text/css"),
    "desk.css": ("pipeline.desk", "static/desk.css", "text/css"),
    "desk.js": ("pipeline.desk", "static/desk.js", "text/javascript"),
    "icon.svg": ("pipeline.desk", "static/icon.svg", "image/svg+xml"),
}
"""Name -> path and type of each static file; they are the same for every user, and all our own."""


def application(context: Context) -> web.Application:
    """Build the aiohttp application of one desk."""
    app = web.Application(middlewares=[guard], client_max_size=FORM_BYTES_MAX)
    app[CONTEXT] = context
    app[IS_DEMO] = context.home.path.name.startswith(demo.PREFIX)
    pages = (entering, file_pages, checking, reviewing, searching, releasing, audit)
    every = chain.from_iterable(page.routes for page in pages)
    for route in (*every, web.get("/static/{name}", _static)):
        assert isinstance(route, web.RouteDef)
        path = context.access.prefix + route.path
        app.add_routes([web.RouteDef(route.method, path, route.handler, route.kwargs)])
    return app


async def _static(request: web.Request) -> web.Response:
    found = _STATIC.get(request.match_info["name"])
    if found is None:
        raise Missing(Sentence("desk.no_such_file"))
    package, path, kind = found
    text = files(package).joinpath(*path.split("/")).read_text("utf-8")
    return web.Response(text=text, content_type=kind, charset="utf-8")


def loopback(port: int) -> socket.socket:
    """Open a socket on the loopback address; port 0 means any free port (OutputError: the port is taken)."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind(("127.0.0.1", port))
    except OSError as error:
        opened.close()
        raise OutputError(
            Sentence("desk.cannot_listen_on_port", port=port, why=error),
            advice=Sentence("desk.close_desk_or_change_port"),
        ) from error
    return opened


def unix_socket(path: Path) -> socket.socket:
    """Open a Unix socket for its owner and group: the proxy (ConfigurationError: path too long or in use)."""
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket():
            path.unlink()
        before = os.umask(0o117)
        try:
            opened.bind(str(path))
        finally:
            os.umask(before)
    except OSError as error:
        opened.close()
        raise ConfigurationError(Sentence("desk.cannot_listen_on_socket", path=path, why=error)) from error
    return opened


async def serve(
    context: Context,
    listening: socket.socket,
    stopped: Callable[[], Awaitable[object]],
    started: Callable[[], None],
) -> None:
    """Serve until `stopped` returns; call `started` when ready. Running checks outlive the desk."""
    if count := context.home.attend():
        context.record_of(BY_ITSELF, Deed.PURGED, unfinished_upload_count=count)
    cleaning = asyncio.create_task(_attend(context))
    runner = web.AppRunner(application(context), access_log=None, shutdown_timeout=SHUTDOWN_MAX_S)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        started()
        await stopped()
    finally:
        cleaning.cancel()
        await runner.cleanup()
        await asyncio.gather(*context.sending, return_exceptions=True)


async def _attend(context: Context) -> None:
    """Every hour, resume capped checks and delete what the configuration no longer keeps."""
    keep_days, record = context.settings.keep_days, context.record_of
    start = partial(checks.start, environment=context.child_environment)
    while True:
        folders = await asyncio.to_thread(context.home.folders)
        if keep_days is not None:
            await asyncio.to_thread(forget_old, folders, keep_days, context.clock(), record)
        await asyncio.to_thread(resume_capped, folders, context.clock, start, record)
        await asyncio.sleep(CLEANING_INTERVAL_S)


def run(
    context: Context,
    listening: socket.socket,
    started: Callable[[], None],
    on_stop: Callable[[Callable[[], None]], None],
) -> None:
    """Run `serve` in an event loop; `on_stop` receives a function that a signal handler must call."""

    async def main() -> None:
        asked = asyncio.Event()
        loop = asyncio.get_running_loop()

        def stop() -> None:
            loop.call_soon_threadsafe(asked.set)

        on_stop(stop)
        await serve(context, listening, asked.wait, started)

    asyncio.run(main())
