import asyncio
import copy
import errno
import gc
import gzip
import json
import ssl
import time
import traceback
import warnings
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

import anyio
import httpx
import pytest
from aiohttp import web
from refusals import refused, says

from pipeline.apis import post
from pipeline.errors import ConfigurationError, CredentialsError, IncompleteError, TlsError
from pipeline.transport import UNREAD
from pipeline.transport.client import Client
from pipeline.transport.exchange import exchange as exchange_by
from pipeline.transport.exchange import transport_of
from pipeline.transport.rate_limiter import Pace
from pipeline.transport.retry import NetworkFailure
from pipeline.transport.tls import client_context
from pipeline.transport.tokens import Tokens
from schemas.token import TokenRequest, TokenResponse

BODY = b'{"data":{"name":"Ada Example"}}'
ASK = post("/check", {"Content-Type": "application/json", "x-fapi-interaction-id": "7"}, BODY)


def httpx_itself(context, connections_max):
    limits = httpx.Limits(max_connections=connections_max)
    return httpx.AsyncHTTPTransport(verify=context, trust_env=False, limits=limits)


@pytest.fixture(scope="module", autouse=True)
def _little_to_collect():
    """What tests before these have left is looked at once, and not again after each of them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=[transport_of, httpx_itself], ids=["aiohttp", "httpx"])
def loopback(request, loopback):
    """What the client promises, it promises over any transport of httpx."""
    loopback = copy.copy(loopback)
    loopback.open_transport = request.param
    yield loopback
    if request.param is httpx_itself:
        # What it forgets to close when a handshake fails must not be told by whichever test is next.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


def client_of(loopback, port, **options):
    context = options.pop("context", None) or client_context(ca_file=loopback.authority.ca_file)
    base_url = options.pop("base_url", f"https://127.0.0.1:{port}")
    in_flight_max = options.pop("in_flight_max", 4)
    carried = {"in_flight_max": in_flight_max, "open_transport": loopback.open_transport}
    return Client(base_url, context=context, **carried, **options)


async def exchange(loopback, handler, *, deadline_s=5.0, **options):
    """One request to a server that answers with `handler`."""
    async with loopback.serving(handler) as port, client_of(loopback, port, **options) as client:
        return await client.send(ASK, deadline_s=deadline_s)


async def failure_of(client, error=NetworkFailure, *, deadline_s=5.0):
    with pytest.raises(error) as caught:
        await client.send(ASK, deadline_s=deadline_s)
    return caught.value


async def read_request(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line), 0
    )
    return head, await reader.readexactly(length)


def tokens_of(*values):
    answers = [TokenResponse.model_validate({"access_token": value, "expires_in": 3600}) for value in values]

    async def fetch(_request):
        return answers.pop(0)

    return Tokens(
        fetch,
        TokenRequest(
            grant_type="client_credentials", client_id="client", client_secret="hush", scope="s/.default"
        ),
    )


def test_a_request_arrives_as_it_was_written_and_the_response_comes_back_whole(loopback):
    seen = {}

    async def handler(request):
        seen.update(method=request.method, path=request.path_qs, body=await request.read())
        seen.update(headers=request.headers)
        return web.json_response({"ok": True}, headers={"X-Response-Timestamp": "now"})

    response = anyio.run(exchange, loopback, handler)

    assert (seen["method"], seen["path"], seen["body"]) == ("POST", "/check", BODY)
    assert seen["headers"]["Accept"] == "application/json"
    assert seen["headers"]["Accept-Encoding"] == "identity"
    assert seen["headers"]["Content-Type"] == "application/json"
    assert seen["headers"]["x-fapi-interaction-id"] == "7"
    assert seen["headers"]["User-Agent"].startswith("payee-precheck/")
    assert "Authorization" not in seen["headers"]
    assert response.status_code == 200
    assert json.loads(response.content) == {"ok": True}
    assert response.headers["x-response-timestamp"] == "now"
    assert response.headers["content-type"].startswith("application/json")


def test_a_base_url_may_have_a_path_of_its_own(loopback):
    paths = []

    async def handler(request):
        paths.append(request.path_qs)
        return web.Response()

    async def main():
        async with loopback.serving(handler) as port:
            for prefix in ("/test", "/test/"):
                url = f"https://127.0.0.1:{port}{prefix}"
                async with client_of(loopback, port, base_url=url) as client:
                    await client.send(ASK, deadline_s=5)

    anyio.run(main)
    assert paths == ["/test/check"] * 2


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "ftp://127.0.0.1",
        "127.0.0.1",
        "https://",
        "https://user:hush@127.0.0.1",
        "https://127.0.0.1/?a=hush",
        "https://127.0.0.1/?",
        "https://127.0.0.1/#hush",
        "https://127.0.0.1:port",
        "",
    ],
)
def test_an_address_that_is_not_plainly_https_is_a_configuration_error(url):
    with refused(ConfigurationError, what="base_url") as caught:
        Client(url, context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), in_flight_max=1)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("status", [201, 204, 301, 302, 307, 400, 401, 404, 429, 500, 504])
def test_every_status_is_a_response_and_sent_once(loopback, status):
    calls = []

    async def handler(request):
        calls.append(request.path)
        return web.Response(status=status, headers={"Location": "https://127.0.0.1:1/elsewhere"})

    assert anyio.run(exchange, loopback, handler).status_code == status
    assert calls == ["/check"]


def test_no_cookie_is_ever_sent_back(loopback):
    cookies = []

    async def handler(request):
        cookies.append(request.headers.get("Cookie"))
        response = web.Response()
        response.set_cookie("sid", "1")
        return response

    async def main():
        async with loopback.serving(handler) as port, client_of(loopback, port) as client:
            for _ in range(3):
                await client.send(ASK, deadline_s=5)

    anyio.run(main)
    assert cookies == [None] * 3


def test_proxies_and_netrc_of_the_environment_are_ignored(loopback, monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password hush\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    authorisations = []

    async def handler(request):
        authorisations.append(request.headers.get("Authorization"))
        return web.Response()

    async def proxy(reader, _writer):
        pytest.fail("the proxy was called")

    async def main():
        async with loopback.talking_plainly(proxy) as proxy_port:
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy", "all_proxy"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{proxy_port}")
            monkeypatch.setenv("NO_PROXY", "")
            return await exchange(loopback, handler)

    assert anyio.run(main).status_code == 200
    assert authorisations == [None]


def test_connections_are_kept_for_the_next_request(loopback):
    ports = set()

    async def handler(request):
        ports.add(request.transport.get_extra_info("peername")[1])
        return web.Response(text="{}")

    async def main():
        async with loopback.serving(handler) as port, client_of(loopback, port) as client:
            for _ in range(5):
                await client.send(ASK, deadline_s=5)

    anyio.run(main)
    assert len(ports) == 1


def test_there_are_never_more_connections_than_requests_allowed_in_flight(loopback):
    ports = set()

    async def main():
        three_at_once = asyncio.Barrier(3)

        async def handler(request):
            ports.add(request.transport.get_extra_info("peername")[1])
            await three_at_once.wait()
            return web.Response(text="{}")

        async with (
            loopback.serving(handler) as port,
            client_of(loopback, port, in_flight_max=3) as client,
            anyio.create_task_group() as group,
        ):
            for _ in range(12):
                group.start_soon(lambda: client.send(ASK, deadline_s=5))

    anyio.run(main)
    assert len(ports) == 3


def test_connections_are_not_used_again_once_dropped(loopback):
    ports = []

    async def main():
        held, go_on = anyio.Event(), anyio.Event()

        async def handler(request):
            ports.append(request.transport.get_extra_info("peername")[1])
            if len(ports) == 1:
                held.set()
                await go_on.wait()
            return web.Response(text="{}")

        async with loopback.serving(handler) as port, client_of(loopback, port) as client:
            statuses = []

            async def under_way():
                statuses.append((await client.send(ASK, deadline_s=5)).status_code)

            async with anyio.create_task_group() as group:
                group.start_soon(under_way)
                await held.wait()
                await client.drop_connections()
                await client.send(ASK, deadline_s=5)
                go_on.set()
            await client.send(ASK, deadline_s=5)
            return statuses

    assert anyio.run(main) == [200], "the exchange under way must end on its own"
    first, second, third = ports
    assert first != second == third


class TestTheRateAtTheDoor:
    def test_requests_that_are_ready_together_leave_one_by_one(self, loopback):
        arrivals = []

        async def handler(_request):
            arrivals.append(time.monotonic())
            return web.Response(text="{}")

        async def main():
            async with (
                loopback.serving(handler) as port,
                client_of(loopback, port, door=Pace(20), in_flight_max=24) as client,
            ):
                started = time.monotonic()
                async with anyio.create_task_group() as group:
                    for _ in range(24):
                        group.start_soon(lambda: client.send(ASK, deadline_s=5))
            return started

        started = anyio.run(main)
        assert len(arrivals) == 24
        assert sum(arrival - started < 1 for arrival in arrivals) <= 20

    def test_a_request_whose_deadline_ends_at_the_door_is_not_sent_and_its_connection_is_closed(
        self, loopback
    ):
        requests = []

        async def main():
            gone = anyio.Event()

            async def session(reader, writer):
                requests.append(await read_request(reader))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                await writer.drain()
                assert await reader.read() == b""
                gone.set()

            async with (
                loopback.talking(session) as port,
                client_of(loopback, port, door=Pace(0.1)) as client,
            ):
                await client.send(ASK, deadline_s=5)
                kind = (await failure_of(client, deadline_s=0.1)).kind
                with anyio.fail_after(2):
                    await gone.wait()
                return kind

        assert anyio.run(main) == "deadline"
        assert len(requests) == 1

    def test_a_request_whose_share_has_ended_by_then_is_held_at_the_door(self, loopback):
        requests = []

        async def main():
            async def session(reader, writer):
                requests.append(await read_request(reader))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                await writer.drain()

            door = Pace(50)
            async with loopback.talking(session) as port, client_of(loopback, port, door=door) as client:
                kinds = []
                for ending in ({"rate_per_s": 0}, {"rate_per_s": 50, "until": door.clock()}):
                    door.resize(**ending)
                    kinds.append((await failure_of(client, deadline_s=5)).kind)
                door.resize(50)
                await client.send(ASK, deadline_s=5)
                return kinds

        assert anyio.run(main) == ["held", "held"]
        assert len(requests) == 1

    def test_a_request_that_may_not_leave_any_more_is_not_sent_and_its_connection_is_kept(self, loopback):
        connections, requests = [], []

        async def main():
            async def session(reader, writer):
                connections.append(writer)
                for _ in range(2):
                    requests.append(await read_request(reader))
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                    await writer.drain()

            async with loopback.talking(session) as port, client_of(loopback, port) as client:
                await client.send(ASK, deadline_s=5)
                with pytest.raises(NetworkFailure) as held:
                    await client.send(ASK, deadline_s=5, may_leave=lambda: False)
                await client.send(ASK, deadline_s=5, may_leave=lambda: True)
                return held.value.kind

        assert anyio.run(main) == "held"
        assert len(requests) == 2
        if loopback.open_transport is transport_of:  # httpx's own closes it
            assert len(connections) == 1


class TestAResponseThatCannotBeUsed:
    def test_a_body_above_the_limit_is_not_read_to_its_end(self, loopback):
        async def handler(_request):
            return web.Response(body=b"x" * 300_000)

        response = anyio.run(exchange, loopback, handler)
        assert response.extensions[UNREAD].key == "transport.body_oversized"
        assert not response.content

    def test_a_body_at_the_limit_is_read(self, loopback):
        async def handler(_request):
            return web.Response(body=b"x" * 65_536)

        assert len(anyio.run(exchange, loopback, handler).content) == 65_536

    @pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "Identity, gzip"])
    def test_a_body_in_an_encoding_is_refused_unopened(self, loopback, encoding):
        async def handler(_request):
            return web.Response(body=gzip.compress(bytes(10_000)), headers={"Content-Encoding": encoding})

        response = anyio.run(exchange, loopback, handler)
        assert response.extensions[UNREAD].key == "transport.body_encoded"
        assert not response.content

    @pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
    @pytest.mark.parametrize(
        "rest",
        [
            b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00",
            b"Content-Length: 300000\r\n\r\n" + b"x" * 300_000,
            b"Content-Length: 100\r\n\r\n<html>",
            b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
        ],
        ids=["encoded", "oversized", "cut", "cut in a chunk"],
    )
    def test_a_status_that_is_no_answer_counts_with_its_pause_whatever_its_body(self, loopback, status, rest):
        async def session(reader, writer):
            await read_request(reader)
            writer.write(b"HTTP/1.1 %d X\r\nRetry-After: 7\r\n" % status + rest)
            await writer.drain()

        async def main():
            async with loopback.talking(session) as port, client_of(loopback, port) as client:
                return await client.send(ASK, deadline_s=5)

        response = anyio.run(main)
        assert (response.status_code, response.content) == (status, b"")
        assert response.headers["retry-after"] == "7"

    @pytest.mark.parametrize(("status", "expected"), [(429, 429), (200, "deadline"), (400, "deadline")])
    def test_a_body_that_never_ends_costs_only_replies_that_need_their_body(self, loopback, status, expected):
        async def session(reader, writer):
            await read_request(reader)
            writer.write(b"HTTP/1.1 %d X\r\nContent-Length: 100\r\n\r\n{" % status)
            await writer.drain()
            await reader.read()

        async def main():
            async with loopback.talking(session) as port, client_of(loopback, port) as client:
                try:
                    return (await client.send(ASK, deadline_s=0.5)).status_code
                except NetworkFailure as failure:
                    return failure.kind

        assert anyio.run(main) == expected

    @pytest.mark.parametrize(
        "reply",
        [
            b"",
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
            b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
            b"SSH-2.0-server\r\n",
        ],
    )
    def test_a_reply_that_breaks_off_or_is_no_http_is_broken_and_the_connection_dropped(
        self, loopback, reply
    ):
        sessions = []

        async def session(reader, writer):
            sessions.append(await read_request(reader))
            writer.write(reply)
            await writer.drain()

        async def main():
            async with loopback.talking(session) as port, client_of(loopback, port) as client:
                return [(await failure_of(client)).kind for _ in range(2)]

        assert anyio.run(main) == ["broken"] * 2
        assert len(sessions) == 2, "one connection per request, and no request sent twice"

    def test_a_connection_that_the_server_closed_is_not_silently_tried_again(self, loopback):
        requests = []

        async def session(reader, writer):
            requests.append(await read_request(reader))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()
            requests.append(await read_request(reader))

        async def main():
            async with loopback.talking(session) as port, client_of(loopback, port) as client:
                assert (await client.send(ASK, deadline_s=5)).content == b"{}"
                return (await failure_of(client)).kind

        assert anyio.run(main) == "broken"
        assert len(requests) == 2

    def test_a_response_that_comes_unasked_is_never_taken_for_the_next_answer(self, loopback):
        if loopback.open_transport is httpx_itself:
            pytest.skip("httpx 0.28 takes it for the next answer; its correlation id tells")

        async def session(reader, writer):
            await read_request(reader)
            one = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
            writer.write(one + b"first" + one + b"extra")
            await writer.drain()
            await read_request(reader)
            writer.write(one + b"later")
            await writer.drain()

        async def main():
            async with loopback.talking(session) as port, client_of(loopback, port) as client:
                return [(await client.send(ASK, deadline_s=5)).content for _ in range(2)]

        assert anyio.run(main) == [b"first", b"first"], "the second request must have a new connection"


class TestTheDeadline:
    def test_a_body_that_drips_ends_at_the_deadline_and_its_connection_with_it(self, loopback):
        async def main():
            gone = anyio.Event()

            async def session(reader, writer):
                await read_request(reader)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                # A client that closes with bytes unread resets the connection.
                with anyio.move_on_after(3) as patience, suppress(ConnectionResetError):
                    while not reader.at_eof():
                        writer.write(b"x")
                        await writer.drain()
                        with anyio.move_on_after(0.02):
                            await reader.read(1)
                if not patience.cancelled_caught:
                    gone.set()

            async with loopback.talking(session) as port, client_of(loopback, port) as client:
                started = anyio.current_time()
                # Long enough for the handshake of a busy machine, which is a part of it.
                failure = await failure_of(client, deadline_s=1)
                elapsed = anyio.current_time() - started
                with anyio.fail_after(2):
                    await gone.wait()
                return failure.kind, elapsed

        kind, elapsed = anyio.run(main)
        assert kind == "deadline"
        assert 1 <= elapsed < 2

    def test_a_server_that_never_answers_the_handshake_ends_at_the_deadline(self, loopback):
        async def session(reader, _writer):
            await reader.read()

        async def main():
            async with loopback.talking_plainly(session) as port, client_of(loopback, port) as client:
                return (await failure_of(client, deadline_s=0.2)).kind

        assert anyio.run(main) == "deadline"


def test_too_few_open_files_are_called_that():
    class Full(httpx.AsyncBaseTransport):
        async def handle_async_request(self, _request):
            raise httpx.ConnectError("no socket") from OSError(errno.EMFILE, "Too many open files")

    with refused(IncompleteError, "transport.open_files_limit_reached"):
        anyio.run(partial(exchange_by, Full(), httpx.Request("GET", "https://cop.example"), deadline_s=1))


def test_a_port_where_nobody_listens_is_a_failure_to_connect(loopback):
    async def nobody(_reader, _writer): ...

    async def main():
        async with loopback.talking_plainly(nobody) as port:
            pass
        async with client_of(loopback, port) as client:
            return (await failure_of(client)).kind

    assert anyio.run(main) == "connect"


def test_a_connection_closed_during_the_handshake_is_worth_another_try(loopback):
    async def session(reader, _writer):
        await reader.read(1)

    async def main():
        async with loopback.talking_plainly(session) as port, client_of(loopback, port) as client:
            return (await failure_of(client)).kind

    assert anyio.run(main) in {"connect", "tls"}


class TestTrust:
    def refusal(self, loopback, server_context, client=None):
        """What is said of a server that must get no request; its handshake loop would swallow one."""

        async def main(port):
            async with client_of(loopback, port, context=client) as sender:
                return await failure_of(sender, TlsError)

        with loopback.blocking(server_context) as port:
            return anyio.run(main, port)

    def test_a_server_of_another_authority_is_not_trusted(self, loopback):
        context = loopback.server_context(loopback.stranger.issue("server"))
        says(self.refusal(loopback, context), "transport.name_issuing_authority", authority="ca_file")

    def test_a_private_authority_replaces_all_others_and_is_not_trusted_by_default(self, loopback):
        found = self.refusal(loopback, loopback.context, client_context())
        says(found, "transport.name_issuing_authority", authority="ca_file")

    def test_an_expired_server_is_not_trusted(self, loopback):
        pair = loopback.authority.issue("expired", not_after=datetime(2021, 1, 1, tzinfo=UTC))
        says(self.refusal(loopback, loopback.server_context(pair)), "transport.untrusted_expired")

    def test_a_server_for_another_host_is_not_trusted(self, loopback):
        pair = loopback.authority.issue("other-host", hosts=("pay.example",))
        found = self.refusal(loopback, loopback.server_context(pair))
        says(found, "transport.check_host", address="base_url")

    def test_a_server_of_an_old_version_is_refused(self, loopback):
        context = loopback.server_context(loopback.pair, restricted=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("DEFAULT@SECLEVEL=0")
        says(self.refusal(loopback, context), "transport.tls_version_too_old")

    def test_a_server_with_other_suites_only_is_refused(self, loopback):
        pair = loopback.authority.issue("rsa", rsa_key=True)
        context = loopback.server_context(pair, restricted=False)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")
        says(self.refusal(loopback, context), "transport.no_suite_or_no_certificate")

    def test_a_port_that_speaks_no_tls_is_refused(self, loopback):
        async def session(_reader, writer):
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await writer.drain()

        async def main():
            async with loopback.talking_plainly(session) as port, client_of(loopback, port) as client:
                return await failure_of(client, TlsError)

        says(anyio.run(main), "transport.does_not_speak_tls")


class TestTheToken:
    def test_the_current_token_travels_in_the_authorization_header(self, loopback):
        seen = []

        async def handler(request):
            seen.append(request.headers["Authorization"])
            return web.Response()

        anyio.run(lambda: exchange(loopback, handler, tokens=tokens_of("first")))
        assert seen == ["Bearer first"]

    def test_a_401_is_a_response_and_a_renewed_token_is_used_by_all_from_then_on(self, loopback):
        seen = []

        async def handler(request):
            seen.append(request.headers["Authorization"])
            return web.Response(status=200 if seen[-1] == "Bearer second" else 401)

        async def main():
            async with (
                loopback.serving(handler) as port,
                client_of(loopback, port, tokens=tokens_of("first", "second")) as client,
            ):
                token = await client.token()
                statuses = [(await client.send(ASK, deadline_s=5, token=token)).status_code]
                renewed = await client.renew(token)
                statuses.append((await client.send(ASK, deadline_s=5, token=renewed)).status_code)
                statuses.append((await client.send(ASK, deadline_s=5)).status_code)
                statuses.append((await client.send(ASK, deadline_s=5, token=token)).status_code)
                return statuses

        assert anyio.run(main) == [401, 200, 200, 401]
        assert seen == ["Bearer first", "Bearer second", "Bearer second", "Bearer first"]

    def test_a_fresh_replacement_that_is_refused_too_is_a_matter_of_credentials(self, loopback):
        async def handler(_request):
            return web.Response(status=401)

        async def main():
            async with (
                loopback.serving(handler) as port,
                client_of(loopback, port, tokens=tokens_of("first", "second")) as client,
            ):
                token = await client.token()
                await client.send(ASK, deadline_s=5, token=token)
                renewed = await client.renew(token)
                await client.send(ASK, deadline_s=5, token=renewed)
                with pytest.raises(CredentialsError):
                    await client.renew(renewed)

        anyio.run(main)


def test_a_failure_shows_nothing_of_the_request_even_in_a_traceback(loopback):
    async def session(reader, _writer):
        await read_request(reader)

    async def main():
        async with (
            loopback.talking(session) as port,
            client_of(loopback, port, tokens=tokens_of("sesame")) as client,
        ):
            return await failure_of(client)

    failure = anyio.run(main)
    lines = traceback.TracebackException.from_exception(failure, capture_locals=False).format(chain=True)
    text = "".join(lines) + repr(failure) + str(failure)
    assert failure.__context__ is None
    assert failure.__cause__ is None
    assert "Example" not in text
    assert "sesame" not in text
