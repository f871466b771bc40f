"""What every request passes, and what becomes of a mistake of our own while a page is made."""

import asyncio
from types import SimpleNamespace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from pipeline.desk.context import CONTEXT
from pipeline.desk.guards import guard
from pipeline.desk.people import ALONE, Person


async def unrecorded(_request, _refusal):
    """Puts no refusal on record."""


async def asked(handler, method="GET", **headers):
    """A page behind the guards, asked for once: status, text, headers."""
    app = web.Application(middlewares=[guard])
    app.router.add_route(method, "/", handler)
    access = SimpleNamespace(
        hosts=[],
        scheme="http",
        prefix="",
        require_peer=lambda _request: None,
        person=lambda _request, **_how: Person("Mara", ALONE),
    )
    app[CONTEXT] = SimpleNamespace(access=access, record_refusal=unrecorded)
    async with TestClient(TestServer(app)) as client:
        access.hosts.append(f"127.0.0.1:{client.port}")
        async with client.request(method, "/", headers=headers) as answer:
            return answer.status, await answer.text(), answer.headers


def test_a_mistake_is_a_page_and_its_message_stands_nowhere(capfd):
    async def mistaken(_request):
        raise RuntimeError("Ada Quillon 00012345")

    status, text, headers = asyncio.run(asked(mistaken))
    assert status == 500
    assert "Internal error" in text
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    said = capfd.readouterr().err
    assert "RuntimeError in" in said
    assert "tests.unit.desk.test_guards" in said or "test_guards:" in said
    assert "Quillon" not in said + text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),  # such as another port of this computer
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://elsewhere.example"}, 403),
        ({"Origin": "https://elsewhere.example"}, 403),
        ({}, 403),
    ],
)
def test_only_pages_of_the_desk_may_change_anything(headers, status):
    async def changed(_request):
        return web.Response()

    assert asyncio.run(asked(changed, "POST", **headers))[0] == status
