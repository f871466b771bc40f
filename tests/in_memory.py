"""The pages of a desk in this process: no port that others use, no process of its own."""

import os
from datetime import UTC, datetime
from itertools import count

from aiohttp.test_utils import TestClient, TestServer

from pipeline.config.file import DeskSection
from pipeline.desk.access import LocalAccess, Sessions, new_link
from pipeline.desk.context import Context
from pipeline.desk.folders import DeskHome
from pipeline.desk.server import application

LASTS = {"idle_max_s": 60, "max_s": 3600}
_NUMBERS = count(1)


def _noon():
    return datetime(2031, 1, 1, 12, tzinfo=UTC)


async def visit(home, steps, *, prefix="", now=_noon):
    """Serve a desk; `steps` are made by somebody who has a link to it, whose token is `token`."""
    desk = DeskHome(home)
    desk.make()
    access = LocalAccess(1, Sessions(home, **LASTS, clock=lambda: 0.0, chance=lambda: "session"), prefix)
    context = Context(desk, DeskSection(), access, now, lambda: f"{next(_NUMBERS):010x}", dict(os.environ))
    new_link(home, "Mara", "token", 0.0)
    async with TestClient(TestServer(application(context))) as client:
        object.__setattr__(access, "port", client.port)
        origin = {"Origin": f"http://127.0.0.1:{client.port}"}

        async def ask(method, path, data=None, **fields):
            answer = await client.request(
                method, path, headers=origin, allow_redirects=False, data=data or fields or None
            )
            return answer, await answer.text()

        await steps(ask)
