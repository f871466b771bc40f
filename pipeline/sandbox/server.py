"""Start the sandbox on its ports (TLS, then HTTP, then the service), report its address, and stop it.

>>> from pipeline.sandbox.server import SandboxSettings, run
>>> run(SandboxSettings(folder=Path("sandbox")), announce=print)  # doctest: +SKIP
https://127.0.0.1:40123
"""

import asyncio
import gc
import itertools
import secrets
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from aiohttp import web

from pipeline.errors import ConfigurationError
from pipeline.files.private import make_folder, write_private
from pipeline.sandbox.certificates import CertificateFiles, load_client_issuer, provide_certificates
from pipeline.sandbox.configuration import secret_path, write_configuration
from pipeline.sandbox.control import SandboxControl, controlled
from pipeline.sandbox.faults.effects import ConnectionFault
from pipeline.sandbox.http_connection import HttpConnection
from pipeline.sandbox.identity import IdentityProvider
from pipeline.sandbox.intake import BODY_BYTES_MAX
from pipeline.sandbox.journal import CallLog, Journal, Visit
from pipeline.sandbox.scenarios import Scenario, scenario_named, write_scenario
from pipeline.sandbox.service import Service, conditions_of, service_of
from pipeline.sandbox.settings import APIS, CLIENT_IDS, SandboxSettings, ServerCertificate, Tls
from pipeline.sandbox.tls import SecuredConnection, server_context
from pipeline.sandbox.verdict.reports import verdict_on, write_verdict
from pipeline.sandbox.verdict.rules import ELSEWHERE
from pipeline.wording import Sentence, SurfaceKind, rendered
from schemas.outcomes import Environment

__all__ = ["SandboxSettings", "run", "serve"]

_BACKLOG = 2048  # connections; a client may open all its connections at once
_SHUTDOWN_S = 1.0  # for answers in progress


@dataclass(frozen=True, slots=True)
class Port:
    """A listening address and its TLS settings."""

    word: str  # its name in the journal; empty for the serving port
    listener: socket.socket
    context: ssl.SSLContext


def _say_nothing(_line: str) -> None:
    """Ignore the announcement."""


async def serve(
    settings: SandboxSettings,
    *,
    announce: Callable[[str], None],
    stop: asyncio.Event,
    conclude: Callable[[str], None] = _say_nothing,
) -> None:
    """Serve until asked to stop (ConfigurationError: cannot listen; TlsError; OutputError: cannot write).

    When the server listens, `announce` is called once with its base URL. At the end, if a verdict is
    requested, `conclude` is called with the verdict in one line.
    """
    make_folder(settings.folder)
    scenario = None if settings.scenario is None else scenario_named(settings.scenario)
    if scenario is not None:
        settings = scenario.settings(settings)
        write_scenario(settings.folder, scenario)
    files = provide_certificates(settings.folder, settings.host, datetime.now(UTC))
    client_secrets = {role: _secret(settings.folder, role) for role in CLIENT_IDS}
    identity = IdentityProvider(client_secrets, settings.token_life_s)
    journal = _journal(settings)
    async with AsyncExitStack() as stack:
        recorders: list[CallLog | Journal] = [] if journal is None else [journal]
        if settings.call_log is not None:
            recorders.append(stack.enter_context(CallLog(settings.call_log)))
        ports = [
            Port(word, stack.enter_context(_listen(settings.host, number)), context)
            for word, number, context in _tls_of_ports(settings, files, scenario)
        ]
        urls = {port.word: _url(port.listener) for port in ports}
        url, elsewhere = urls.pop(""), urls.pop(ELSEWHERE)
        write_configuration(files, settings, url, urls)
        conditions = conditions_of(settings, identity, elsewhere=elsewhere)
        authority = load_client_issuer(files).certificate
        service = service_of(settings, conditions, identity, authority, url=url, recorders=recorders)
        if settings.verdicts and journal is not None:
            # Replace an old verdict, which could be mistaken for this client's, and report now
            # whether the file can be written.
            _write_verdicts(settings.verdicts, journal, scenario, _say_nothing)
            # Registered before serving begins, so that it runs last and includes the last calls.
            stack.callback(_write_verdicts, settings.verdicts, journal, scenario, conclude)
        serving = _served(
            service, ports, journal, settings.request_wait_s, conditions.injector.befalls_connections
        )
        await stack.enter_async_context(serving)
        if settings.has_control and journal is not None:
            control = SandboxControl(conditions, journal, partial(verdict_on, journal, scenario))
            await stack.enter_async_context(controlled(settings.folder, control))
        # These objects stay in use; collecting them would delay answers by a tenth of a second.
        gc.freeze()
        announce(url)
        await stop.wait()


@asynccontextmanager
async def _served(
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


def _journal(settings: SandboxSettings) -> Journal | None:
    if not (settings.verdicts or settings.has_control):
        return None
    waits_s = {api.name: settings.responder_wait_s(api.name) for api in APIS}
    return Journal(responder_waits_s=waits_s, has_rate=settings.rate_per_s_max is not None)


def _write_verdicts(
    paths: Sequence[Path], journal: Journal, scenario: Scenario | None, conclude: Callable[[str], None]
) -> None:
    verdict = verdict_on(journal, scenario)
    conclude(rendered(Sentence("sandbox.verdict_line", verdict=verdict.headline()), SurfaceKind.COMMAND))
    for path in paths:
        write_verdict(path, verdict)


def _tls_of_ports(
    settings: SandboxSettings, files: CertificateFiles, scenario: Scenario | None
) -> Iterator[tuple[str, int, ssl.SSLContext]]:
    """Yield name, number and TLS context of each port: serving, redirects, faulty TLS."""

    def context(certificate: ServerCertificate, tls: Tls) -> ssl.SSLContext:
        return server_context(
            files.servers_of(certificate),
            files.client_authority,
            is_client_certificate_required=settings.client_certificate_required,
            tls=tls,
        )

    chosen = context(settings.server_certificate, settings.tls)
    yield "", settings.port, chosen
    yield ELSEWHERE, 0, chosen
    if scenario is not None and scenario.has_wrong_ports:
        for certificate in ServerCertificate:
            if certificate is not ServerCertificate.GOOD:
                yield certificate.value, 0, context(certificate, Tls.REFERENCE)
        for tls in Tls:
            if tls is not Tls.REFERENCE:
                yield tls.value, 0, context(ServerCertificate.GOOD, tls)


def run(
    settings: SandboxSettings,
    *,
    announce: Callable[[str], None],
    conclude: Callable[[str], None] = _say_nothing,
) -> None:
    """Run `serve` until SIGINT or SIGTERM, on the fastest event loop available."""

    async def until_signalled() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        await serve(settings, announce=announce, stop=stop, conclude=conclude)

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(until_signalled())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # not available on every platform
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
            Sentence("sandbox.cannot_listen", host=host, port=port, why=error)
        ) from error


def _secret(folder: Path, role: Environment) -> str:
    path = secret_path(folder, role)
    if not path.is_file():
        write_private(path, secrets.token_urlsafe(32).encode())
    return path.read_text().strip()
