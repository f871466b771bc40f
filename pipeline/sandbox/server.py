"""Starts the sandbox, says where it listens, and stops it.

>>> from pipeline.sandbox.server import SandboxSettings, run
>>> run(SandboxSettings(folder=Path("sandbox")), announce=print)  # doctest: +SKIP
https://127.0.0.1:40123
"""

import asyncio
import gc
import secrets
import signal
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from pipeline.errors import ConfigurationError
from pipeline.sandbox.assembly import conditions_of, service_of
from pipeline.sandbox.calls import CallLog
from pipeline.sandbox.certificates import load_client_issuer, provide_certificates
from pipeline.sandbox.configuration import secret_path, write_configuration
from pipeline.sandbox.identity import IdentityProvider, registered_clients
from pipeline.sandbox.journal import Reception
from pipeline.sandbox.ports import Port, served
from pipeline.sandbox.private_files import make_folder, write_private
from pipeline.sandbox.settings import SandboxSettings
from pipeline.sandbox.tls import server_context
from schemas.outcomes import Environment

__all__ = ["SandboxSettings", "run", "serve"]

_BACKLOG = 2048  # connections; a client may open all of its own at once


class Stop(Protocol):
    """An event that can be waited for: of asyncio or of anyio."""

    async def wait(self) -> object:
        """Return once the event is set."""


async def serve(settings: SandboxSettings, *, announce: Callable[[str], None], stop: Stop) -> None:
    """Serve until told to stop.

    Args:
        settings: where and how.
        announce: called once, with the base URL, when the server listens.
        stop: the event that ends it.

    Raises:
        ConfigurationError: the address cannot be listened on.
        TlsError: this Python cannot keep the rules of TLS.
        OutputError: the folder or the call log cannot be written.
    """
    make_folder(settings.folder)
    files = provide_certificates(
        settings.folder, settings.host, datetime.now(UTC), settings.server_certificate
    )
    context = server_context(
        files.servers,
        files.client_authority,
        is_client_certificate_required=settings.client_certificate_required,
        tls=settings.tls,
    )
    clients = registered_clients({role: _secret(settings.folder, role) for role in Environment})
    identity = IdentityProvider(clients, settings.token_life_s, time.monotonic)
    with ExitStack() as stack:
        recorders = [stack.enter_context(CallLog(settings.call_log))] if settings.call_log else []
        listener = stack.enter_context(_listen(settings.host, settings.port))
        elsewhere = stack.enter_context(_listen(settings.host, 0))
        url = _url(listener)
        write_configuration(files, url, test_daily_cap=settings.daily_cap)
        conditions = conditions_of(settings, identity, elsewhere=_url(elsewhere))
        authority = load_client_issuer(files).certificate
        service = service_of(settings, conditions, identity, authority, url=url, recorders=recorders)
        ports = [Port("", listener, context), Port("elsewhere", elsewhere, context)]
        async with served(service, ports, Reception(None), settings.request_wait_s):
            # What is here stays; a collection that walked it would hold up answers for a tenth of a second.
            gc.freeze()
            announce(url)
            await stop.wait()


def run(settings: SandboxSettings, *, announce: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM, on the fastest event loop there is.

    Args:
        settings: where and how.
        announce: called once, with the base URL, when the server listens.

    Raises:
        ConfigurationError, OutputError: as `serve`.
    """

    async def until_signalled() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        await serve(settings, announce=announce, stop=stop)

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(until_signalled())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # not on every platform
    except ImportError:
        return None
    return uvloop.new_event_loop


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"https://{f'[{host}]' if ':' in host else host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), backlog=_BACKLOG)
    except OSError as error:
        raise ConfigurationError(
            f"sandbox, {host}:{port}: cannot listen there ({error.strerror}); choose another port, or 0"
        ) from error


def _secret(folder: Path, role: Environment) -> str:
    """The client secret of a role: the one in the folder, or a new one."""
    path = secret_path(folder, role)
    if not path.is_file():
        write_private(path, secrets.token_urlsafe(32).encode())
    return path.read_text().strip()
