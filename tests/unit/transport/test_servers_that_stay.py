"""A server may keep a connection open after our close_notify (RFC 8446): nothing waits for its end."""

import ssl
import time

import anyio
import pytest
from refusals import refused

from pipeline.apis import post
from pipeline.transport.client import Client
from pipeline.transport.ping import ping
from pipeline.transport.tls import client_context, preflight
from pipeline.transport.token_endpoint import TokenEndpoint
from schemas.token import TokenRequest

REQUEST = TokenRequest(grant_type="client_credentials", client_id="me", client_secret="hush", scope="s")


async def by_preflight(port, context):
    await preflight("127.0.0.1", port, context)


async def by_a_question(port, context):
    async with Client(f"https://127.0.0.1:{port}", context=context, in_flight_max=2) as client:
        await client.send(post("/check", {"Content-Type": "application/json"}, b"{}"), deadline_s=5)


async def by_a_question_whose_connection_is_dropped(port, context):
    async with Client(f"https://127.0.0.1:{port}", context=context, in_flight_max=2) as client:
        await client.send(post("/check", {"Content-Type": "application/json"}, b"{}"), deadline_s=5)
        await client.drop_connections()


async def by_a_token(port, context):
    with refused(Exception, "transport.token_answer_not_json"):
        await TokenEndpoint(f"https://127.0.0.1:{port}/", context=context)(REQUEST)


async def by_a_ping(port, context):
    await ping(f"https://127.0.0.1:{port}", "start", context=context)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("use_uvloop", [False, True], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize(
    "visit",
    [by_preflight, by_a_question, by_a_question_whose_connection_is_dropped, by_a_token, by_a_ping],
)
def test_nobody_waits_for_the_end_of_a_connection(loopback, visit, use_uvloop, version):
    server = loopback.server_context(loopback.pair)
    server.maximum_version = version
    context = client_context(ca_file=loopback.authority.ca_file)
    with loopback.staying(server) as port:
        started = time.monotonic()
        anyio.run(visit, port, context, backend_options={"use_uvloop": use_uvloop})
        assert time.monotonic() - started < 3
