"""A server that answers as a test says, in the place of a connection; and questions to ask of it."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
import polars as pl
from httpx import Request, Response

from pipeline.errors import CredentialsError
from pipeline.frames import CHECKS
from pipeline.transport.retry import NetworkFailure
from pipeline.transport.tokens import Token
from pipeline.wording import Sentence

MATCHED = {"data": {"verificationReport": {"matched": True}}}


def good(request: Request, body=None) -> Response:
    return Response(
        200,
        headers={"content-type": "application/json", **ids_of(request)},
        content=json.dumps(body or MATCHED).encode(),
    )


def problem(status: int, code: str = "SERVER_ERROR", **headers: str) -> Response:
    """Problem details in the form of the API; the sender gives them the id of the request."""
    content = json.dumps({"code": code, "status": status}).encode()
    return Response(status, headers={"content-type": "application/problem+json", **headers}, content=content)


def ids_of(request: Request) -> dict[str, str]:
    return {name.lower(): value for name, value in request.headers.items() if "id" in name.lower()}


@dataclass
class Said:
    """One request, as the sender saw it."""

    request: Request
    nth: int
    """Which request for its question, from 1."""
    token: Token | None
    time: float = field(default_factory=anyio.current_time)

    @property
    def name(self):
        document = json.loads(self.request.read())
        return document["data"]["name"] if "data" in document else document["party"]["name"]


class FakeSender:
    """Answers by a function of what was said; a NetworkFailure that it returns is raised."""

    def __init__(
        self,
        reply: Callable[[Said], Awaitable[Response]],
        *,
        has_tokens: bool = False,
        connects_s: Callable[[str], float] = lambda _name: 0,
    ) -> None:
        self._reply = reply
        self._connects_s = connects_s
        self._token = Token("first", 1) if has_tokens else None
        self.said: list[Said] = []
        self._said_counts: Counter[bytes] = Counter()
        self.renewed_count = 0
        self.dropped_count = 0
        self.in_flight_count = self.in_flight_most = 0

    async def token(self):
        return self._token

    async def renew(self, rejected):
        if rejected == self._token:
            if self.renewed_count:
                raise CredentialsError(
                    Sentence(
                        "jobs.part_unusable",
                        problem="server: HTTP 401 for a token that was renewed a moment ago",
                    )
                )
            self.renewed_count += 1
            self._token = Token(f"renewed {self.renewed_count}", rejected.generation + 1)
        return self._token

    async def send(self, request, *, deadline_s, token=None, may_leave=None):  # noqa: ARG002 (as Sender)
        said = Said(request, 1 + self._said_counts[request.read()], token)
        await anyio.sleep(self._connects_s(said.name))
        if may_leave is not None and not may_leave():
            raise NetworkFailure("held")
        said.time = anyio.current_time()
        self.said.append(said)
        self._said_counts[request.read()] += 1
        self.in_flight_count += 1
        self.in_flight_most = max(self.in_flight_most, self.in_flight_count)
        try:
            await anyio.lowlevel.checkpoint()
            reply = await self._reply(said)
        finally:
            self.in_flight_count -= 1
        if isinstance(reply, NetworkFailure):
            raise reply
        if reply.headers.get("content-type") == "application/problem+json":
            echoing = {**ids_of(request), **reply.headers}
            return Response(reply.status_code, headers=echoing, content=reply.content)
        return reply

    async def drop_connections(self):
        self.dropped_count += 1


def always(*replies):
    """The nth request for a question gets the nth reply, and then the last one again; None is a good one."""

    async def reply(said):
        chosen = replies[min(said.nth, len(replies)) - 1]
        return good(said.request) if chosen is None else chosen

    return reply


def checks(how_many: int, first: int = 1, api: str = "cop") -> pl.DataFrame:
    numbers = range(first, first + how_many)
    rows = [
        {"check": n, "api": api, "account": f"{n:014d}", "name": f"Payee {n}", "account_type": "Personal"}
        for n in numbers
    ]
    return pl.DataFrame(rows, schema=CHECKS)
