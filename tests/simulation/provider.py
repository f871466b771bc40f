"""The simulated provider: a CoP gateway, the banks behind it, its identity provider, and its own books.

It keeps what it received and what it gave, with times, so that the rules can be judged at the server.
"""

import json
from asyncio import Future
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import httpx
from simulation.weather import Weather
from simulation.world import Process, World

from pipeline.apis import cop
from pipeline.transport.tokens import TokenUnavailable
from schemas.token import TokenRequest, TokenResponse

TRUTHS = (None, None, None, "ANNM", "MBAM", "BANM", "PAMM", "AC01", "OPTO", "SCNS")
"""What banks answer: None is a match."""
DEADLINE_S = cop.API.responder_wait_s + 1
"""How long a client waits for a reply."""


class Departure(NamedTuple):
    """A request that left."""

    time_s: float
    process: str
    request_id: str
    row: int
    token: str


@dataclass(slots=True)
class Provider:
    """One client's account at one provider."""

    world: World
    weather: Weather
    rate: int
    question_count: int
    truths: dict[int, str | None] = field(init=False)
    departures: list[Departure] = field(default_factory=list)
    arrivals_by_day: Counter[int] = field(default_factory=Counter)
    answers_given: dict[str, tuple[int, str | None]] = field(default_factory=dict)
    """Correlation id -> the row it was asked about, and the answer that left for it."""
    requests_of: Counter[int] = field(default_factory=Counter)
    in_flight: set[str] = field(default_factory=set)
    in_flight_most: int = 0
    met: Counter[str] = field(default_factory=Counter)
    pauses: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Process -> from when to when it was asked to send nothing."""
    _in_this_second: Counter[int] = field(default_factory=Counter)
    _tokens: dict[str, tuple[float, float]] = field(default_factory=dict)
    _token_count: int = 0
    _last_given: deque[tuple[str, str | None]] = field(default_factory=lambda: deque(maxlen=3))

    def __post_init__(self) -> None:
        truth = Random(self.world.seed + 1)
        self.truths = {row: truth.choice(TRUTHS) for row in range(1, self.question_count + 1)}

    async def token(self, _request: TokenRequest) -> TokenResponse:
        """The token endpoint."""
        now = self.world.now_s
        if not self.weather.is_well(now) and any(span.covers(now) for span in self.weather.token_outages):
            self.met["token endpoint out"] += 1
            raise TokenUnavailable("login.example: HTTP 503")
        self._token_count += 1
        value = f"token{self._token_count}"
        life_s = 3600 if self.weather.is_well(now) else self.weather.token_life_s
        self._tokens[value] = (now, now + life_s)
        return TokenResponse.model_validate(
            {"access_token": value, "token_type": "Bearer", "expires_in": life_s}
        )

    def depart(self, process: Process, request: httpx.Request, reply: "Future[httpx.Response]") -> str:
        """A request leaves a process; it is known by its correlation id."""
        body = json.loads(b"".join(request.stream))  # type: ignore[arg-type]
        row = int(body["data"]["identification"][6:])
        request_id = request.headers[cop.CORRELATION_HEADER]
        token = request.headers["authorization"].removeprefix("Bearer ")
        left = Departure(self.world.now_s, process.name, request_id, row, token)
        self.departures.append(left)
        self.in_flight.add(request_id)
        # A client that is dead or stands still has given it up by then.
        self.world.after(DEADLINE_S, lambda: self.in_flight.discard(request_id))
        self.in_flight_most = max(self.in_flight_most, len(self.in_flight))
        self.world.tell(process.name, f"asks about row {row} ({request_id[:8]})")
        self.world.after(self._on_its_way_s(), lambda: self._arrive(process, left, reply))
        return request_id

    def _on_its_way_s(self) -> float:
        return self.weather.latency_s / 2 + self.world.chance.uniform(0, 0.01)

    def _arrive(self, process: Process, left: Departure, reply: "Future[httpx.Response]") -> None:
        self.requests_of[left.row] += 1
        self.arrivals_by_day[int((self.world.now_s + 9 * 3600) // 86_400)] += 1
        takes_s, result = self._process(left)
        if result is None:
            return  # silence; the client's deadline ends it
        takes_s += self._on_its_way_s()

        def deliver() -> None:
            if process.is_alive and not reply.done():
                self._note_pause(process, result)
                if isinstance(result, Exception):
                    reply.set_exception(result)
                else:
                    reply.set_result(result)

        self.world.after(takes_s, deliver)

    def _note_pause(self, process: Process, result: httpx.Response | Exception) -> None:
        if isinstance(result, httpx.Response) and (wish := result.headers.get("retry-after", "")).isdigit():
            now = self.world.now_s
            self.pauses.setdefault(process.name, []).append((now, now + min(int(wish), 60)))

    def _process(self, left: Departure) -> tuple[float, httpx.Response | Exception | None]:
        """How long it takes, and what comes back: a response, a broken connection or nothing."""
        weather, chance, now = self.weather, self.world.chance, self.world.now_s
        ill = not weather.is_well(now)
        takes_s = 0.0
        if ill and chance.random() < weather.slow_share:
            self.met["slow replies"] += 1
            takes_s = weather.slow_s
        out = ill and any(span.covers(now) for span in weather.outages)
        if out:
            self.met[f"outage {weather.outage_kind}"] += 1
            match weather.outage_kind:
                case "connect":
                    return 0.0, httpx.ReadError("reset")
                case "silent":
                    return 0.0, None
                case status:
                    return takes_s, _problem(int(status))
        if ill and weather.server_rate is not None:
            second = int(now)
            self._in_this_second[second] += 1
            if self._in_this_second[second] > weather.server_rate:
                self.met["429"] += 1
                said = {} if weather.retry_after is None else {"retry-after": weather.retry_after}
                return takes_s, _problem(429, **said)
        if not self._is_good(left.token):
            self.met["401"] += 1
            return takes_s, _problem(401)
        if left.row in weather.disliked_rows:
            self.met["row turned away"] += 1
            return takes_s, _problem(403)
        if left.row in weather.refused_rows:
            self.met["row refused"] += 1
            return takes_s, _problem(400)
        if left.row in weather.failing_rows:
            self.met["row failing"] += 1
            return takes_s, _problem(500)
        if left.row in weather.broken_rows:
            self.met["row broken"] += 1
            return takes_s, _answer(left.request_id, {"data": {"verificationReport": {}}})
        bank = f"{left.row % 5:06d}"
        if ill and bank in weather.silent_banks and weather.silent_banks[bank].covers(now):
            self.met["silent bank"] += 1
            return 5.0, _problem(504)
        if ill and chance.random() < weather.error_share:
            self.met[f"HTTP {weather.error_status}"] += 1
            return takes_s, _problem(weather.error_status)
        if ill and chance.random() < weather.silent_share:
            self.met["silence"] += 1
            return takes_s, None
        if ill and chance.random() < weather.broken_share:
            self.met["broken contract"] += 1
            return takes_s, _answer(left.request_id, self._wrong())
        if ill and self._last_given and chance.random() < weather.crossed_share:
            self.met["crossed answer"] += 1
            other_id, other = chance.choice(list(self._last_given))
            return takes_s, _answer(other_id, _report(other))
        truth = self.truths[left.row]
        self.answers_given[left.request_id] = left.row, truth
        self._last_given.append((left.request_id, truth))
        if ill and chance.random() < weather.lost_share:
            self.met["lost reply"] += 1
            return takes_s, httpx.RemoteProtocolError("closed")
        return takes_s, _answer(left.request_id, _report(truth))

    def refuses_connection(self) -> bool:
        """Whether a connection cannot be made now."""
        weather = self.weather
        if weather.is_well(self.world.now_s) or not weather.refused_connection_share:
            return False
        self.met["refused connection"] += 1
        return self.world.chance.random() < weather.refused_connection_share

    def _is_good(self, token: str) -> bool:
        now = self.world.now_s
        issued, until = self._tokens.get(token, (0.0, 0.0))
        revoked = any(issued <= moment <= now for moment in self.weather.revocations)
        return (now <= until + 6 or self.weather.is_well(now)) and not revoked

    def _wrong(self) -> dict[str, object]:
        return self.world.chance.choice(
            [
                {"data": {"verificationReport": {"matched": True, "reasonCode": "ANNM"}}},
                {"data": {"verificationReport": {"matched": False, "reasonCode": "MBAM"}}},
                {"data": {"verificationReport": {"matched": False, "reasonCode": "ZZZZ"}}},
                {"data": {"verificationReport": {"matched": "true"}}},
                {},
            ]
        )

    @property
    def by_row(self) -> dict[int, list[Departure]]:
        """The requests about each row."""
        found: defaultdict[int, list[Departure]] = defaultdict(list)
        for left in self.departures:
            found[left.row].append(left)
        return found


class Wire(httpx.AsyncBaseTransport):
    """What carries the requests of one process."""

    def __init__(self, process: Process, provider: Provider) -> None:
        self._process = process
        self._provider = provider

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """As httpx's own transports, down to the event before the headers leave."""
        if self._provider.refuses_connection():
            raise httpx.ConnectError("refused")
        await request.extensions["trace"]("http11.send_request_headers.started", {})
        if not self._process.is_alive:
            raise httpx.ReadError("dead")
        reply: Future[httpx.Response] = self._process.loop.create_future()
        request_id = self._provider.depart(self._process, request, reply)
        try:
            return await reply
        finally:
            self._provider.in_flight.discard(request_id)


def _problem(status: int, **headers: str) -> httpx.Response:
    content = json.dumps({"code": "SERVER_ERROR", "status": status}).encode()
    return httpx.Response(status, headers=headers, stream=httpx.ByteStream(content))


def _answer(request_id: str, body: dict[str, object]) -> httpx.Response:
    headers = {"content-type": "application/json", cop.CORRELATION_HEADER: request_id}
    return httpx.Response(200, headers=headers, stream=httpx.ByteStream(json.dumps(body).encode()))


def _report(truth: str | None) -> dict[str, object]:
    if truth is None:
        return {"data": {"verificationReport": {"matched": True}}}
    report: dict[str, object] = {"matched": False, "reasonCode": truth}
    if truth in {"MBAM", "PAMM", "BAMM"}:
        report["name"] = "A Nother Name"
    return {"data": {"verificationReport": report}}
