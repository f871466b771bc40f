"""The way through a proxy: what it sees, what it does not, and what its refusals mean."""

import asyncio
import copy
import ssl
from base64 import b64encode
from contextlib import asynccontextmanager, suppress

import anyio
import pytest
from aiohttp import web
from pydantic import SecretStr
from refusals import refused

from pipeline.apis import post
from pipeline.errors import CredentialsError, IncompleteError, TlsError
from pipeline.transport.client import Client
from pipeline.transport.exchange import transport_of
from pipeline.transport.proxy import Proxy
from pipeline.transport.retry import NetworkFailure
from pipeline.transport.tls import client_context, preflight
from pipeline.transport.token_endpoint import TokenEndpoint
from schemas.token import TokenRequest

NAME = "cop.example"
"""It has no address here: only the proxy knows where it is."""
LET_THROUGH = b"HTTP/1.1 200 Connection established\r\nVia: 1.1 here\r\n\r\n"
ASK = post("/check", {}, b"{}")


class Between:
    """A proxy, and all that it sees of its clients."""

    def __init__(self, loopback, *, secured=False, reply=LET_THROUGH):
        self.reply = reply
        self.heads, self.seen, self.certificates = [], b"", []
        self.secured = loopback.server_context(loopback.pair) if secured else None
        if secured:
            self.secured.load_verify_locations(loopback.authority.ca_file)
            self.secured.verify_mode = ssl.CERT_OPTIONAL
        self.trust = client_context(ca_file=loopback.authority.ca_file) if secured else None

    async def session(self, reader, writer):
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        self.certificates.append(self.secured and writer.get_extra_info("peercert"))
        writer.write(self.reply)
        if self.reply is not LET_THROUGH:
            return
        inner = await asyncio.open_connection("127.0.0.1", self.server_port)
        async with anyio.create_task_group() as both:
            both.start_soon(self._pass_on, reader, inner[1])
            both.start_soon(self._pass_on, inner[0], writer)

    async def _pass_on(self, reader, writer):
        with suppress(OSError):
            while data := await reader.read(65536):
                self.seen += data
                writer.write(data)
        writer.close()


@asynccontextmanager
async def before(loopback, between, server):
    """The proxy before a server on a port, as the client knows it."""
    between.server_port = server
    async with (
        loopback.talking(between.session, between.secured)
        if between.secured
        else (loopback.talking_plainly(between.session)) as port
    ):
        yield Proxy("127.0.0.1", port, between.trust, SecretStr("us:hush"))


def named(loopback, **options):
    """The same servers, under a name."""
    loopback = copy.copy(loopback)
    loopback.context = loopback.server_context(loopback.authority.issue("named", hosts=(NAME,)))
    loopback.trust = client_context(ca_file=loopback.authority.ca_file, **options)
    return loopback


async def answering(request):
    return web.json_response({"access_token": "sesame", "from": request.path})


@pytest.mark.parametrize("uvloop", [True, False])
@pytest.mark.parametrize("secured", [False, True])
def test_requests_reach_the_server_through_the_proxy_in_tls_of_its_own(loopback, secured, uvloop):
    loopback, between = named(loopback), Between(loopback, secured=secured)

    async def main():
        async with (
            loopback.serving(answering) as server,
            before(loopback, between, server) as proxy,
            Client(
                f"https://{NAME}:{server}",
                context=loopback.trust,
                in_flight_max=4,
                open_transport=lambda *of: transport_of(*of, proxy),
            ) as client,
        ):
            bodies = [(await client.send(ASK, deadline_s=5)).json() for _ in range(3)]
            return server, bodies

    server, bodies = anyio.run(main, backend_options={"use_uvloop": uvloop})

    assert [body["from"] for body in bodies] == ["/check"] * 3
    [head] = between.heads  # one connection carries all three
    assert head.startswith(f"CONNECT {NAME}:{server} HTTP/1.1\r\nHost: {NAME}:{server}\r\n")
    assert f"Proxy-Authorization: Basic {b64encode(b'us:hush').decode()}\r\n" in head
    assert b"sesame" not in between.seen
    assert b"/check" not in between.seen


@pytest.mark.parametrize("uvloop", [True, False])
@pytest.mark.parametrize("secured", [False, True])
def test_preflight_and_token_endpoint_go_through_the_proxy_too(loopback, secured, uvloop):
    loopback, between = named(loopback), Between(loopback, secured=secured)
    request = TokenRequest(grant_type="client_credentials", client_id="us", client_secret="h", scope="s")

    async def main():
        async with loopback.serving(answering) as server, before(loopback, between, server) as proxy:
            said = await preflight(NAME, server, loopback.trust, connect=proxy.connect)
            endpoint = TokenEndpoint(f"https://{NAME}:{server}/token", context=loopback.trust, proxy=proxy)
            return said, await endpoint(request)

    said, token = anyio.run(main, backend_options={"use_uvloop": uvloop})

    assert said == "TLSv1.3 TLS_AES_256_GCM_SHA384"
    assert token.access_token.get_secret_value() == "sesame"
    assert len(between.heads) == 2


def test_our_certificate_is_shown_to_the_server_and_not_to_the_proxy(loopback):
    ours = loopback.authority.issue("of us behind a proxy")
    loopback = named(loopback, certificate=ours.certificate, key=ours.key)
    loopback.context.load_verify_locations(loopback.authority.ca_file)
    loopback.context.verify_mode = ssl.CERT_REQUIRED
    between, shown = Between(loopback, secured=True), []

    async def handler(request):
        shown.append(request.transport.get_extra_info("peercert"))
        return web.json_response({})

    async def main():
        async with (
            loopback.serving(handler) as server,
            before(loopback, between, server) as proxy,
            transport_of(loopback.trust, 1, proxy) as transport,
        ):
            request = post(f"https://{NAME}:{server}/check", {"Host": NAME}, b"{}")
            await (await transport.handle_async_request(request)).aread()

    anyio.run(main)

    assert "of us behind a proxy" in str(shown)
    assert between.certificates == [None]


REFUSALS = {
    "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=x\r\n\r\n": (
        CredentialsError,
        "requires a user and password",
    ),
    "HTTP/1.0 401 Unauthorized\r\n\r\n": (CredentialsError, "HTTP 401, it requires a user and password"),
    "HTTP/1.1 407 No\r\nProxy-Authenticate: Negotiate\r\n\r\n": (CredentialsError, "knows no other scheme"),
    "HTTP/1.0 403 Forbidden\r\n\r\nfilter": (TlsError, f"does not allow connections to {NAME}"),
    "HTTP/1.1 503 Away\r\n\r\n": (IncompleteError, f"HTTP 503, it cannot connect to {NAME}"),
    "": (IncompleteError, "closed the connection instead"),
    "SSH-2.0-OpenSSH_9\r\n": (TlsError, "does not answer as an HTTP proxy"),
}


@pytest.mark.parametrize("reply", REFUSALS)
def test_a_refusal_of_the_proxy_is_said_of_the_proxy(loopback, reply):
    kind, sentence = REFUSALS[reply]
    loopback, between = named(loopback), Between(loopback, reply=reply.encode())

    async def main():
        async with before(loopback, between, 443) as proxy:
            with pytest.raises(kind) as caught:
                await preflight(NAME, 443, loopback.trust, connect=proxy.connect)
            return proxy.name, str(caught.value)

    name, said = anyio.run(main)

    assert said.startswith(f"proxy {name}: ")
    assert sentence in said
    assert "hush" not in said


@pytest.mark.parametrize("reply", REFUSALS)
def test_a_request_that_the_proxy_does_not_let_through_was_not_sent(loopback, reply):
    kind, _ = REFUSALS[reply]
    loopback, between = named(loopback), Between(loopback, reply=reply.encode())

    async def main():
        async with (
            before(loopback, between, 443) as proxy,
            Client(
                f"https://{NAME}",
                context=loopback.trust,
                in_flight_max=1,
                open_transport=lambda *of: transport_of(*of, proxy),
            ) as client,
        ):
            with pytest.raises((NetworkFailure, CredentialsError, TlsError)) as caught:
                await client.send(ASK, deadline_s=5)
            return caught.value

    error = anyio.run(main)
    if kind is IncompleteError:  # of one request, which can be sent again
        assert isinstance(error, NetworkFailure)
        assert error.kind == "connect"
    else:
        assert type(error) is kind


def test_a_proxy_that_is_away_or_not_trusted_is_named(loopback):
    loopback = named(loopback)
    stranger = client_context(ca_file=loopback.stranger.ca_file)

    async def main():
        async with loopback.serving(answering) as port:
            with refused(
                TlsError, "transport.server_certificate_untrusted", server=f"https://127.0.0.1:{port}"
            ):
                await preflight(NAME, 443, loopback.trust, connect=Proxy("127.0.0.1", port, stranger).connect)
        with refused(IncompleteError, "transport.proxy_unreachable", proxy=f"http://127.0.0.1:{port}"):
            await preflight(NAME, 443, loopback.trust, connect=Proxy("127.0.0.1", port).connect)

    anyio.run(main)
