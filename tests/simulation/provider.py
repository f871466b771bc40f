"""A simulated provider: a gateway, the banks behind it, its identity provider, and its own books.

It keeps what it received and what it gave, with times, so that the rules can be judged at the server.
"""

import asyncio
import json
from asyncio import Future
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from random import Random
from typing import NamedTuple
from uuid import UUID

import httpx
from simulation.dialects import COP, Dialect
from simulation.payments import ACCOUNT_TYPE, payee_of, row_of
from simulation.weather import Weather
from simulation.world import Process, World

from pipeline.errors import IncompleteError
from pipeline.stores.sharing import LEASE_S
from pipeline.transport.pool import _Protocol
from pipeline.transport.retry import FRESH_CONNECTION
from pipeline.transport.tokens import TokenUnavailable
from pipeline.wording import Sentence
from schemas.strict import timestamp
from schemas.token import TokenRequest, TokenResponse

BANK_WAIT_S = 5.0
"""How long the provider waits for a bank."""
PAUSE_MAX_S = 60.0
"""The longest pause that anybody keeps; after a longer wish a run ends."""
_ODD_SHARE = 0.2
_UNASKED = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
DEADLINE_S = COP.api.responder_wait_s + 1
"""How long a client waits for a reply."""


class Departure(NamedTuple):
    """A request that left."""

    time_s: float
    process: str
    request_id: str
    row: int
    token: str
    is_fresh: bool
    """On a connection of its own."""


class AgreedLimits(NamedTuple):
    """What may be sent from a time on."""

    from_s: float
    rate: int
    places: int
    in_flight_before: int
    """The most at a time under the limits before."""


Reply = httpx.Response | Exception | None
"""What comes back: a response, a broken connection, or nothing."""


class Met(NamedTuple):
    """A fault that a request met."""

    name: str
    reply: Reply
    takes_s: float = 0.0


@dataclass(slots=True)
class Provider:
    """One client's account at one provider."""

    world: World
    weather: Weather
    question_count: int
    dialect: Dialect = COP
    truths: dict[int, str | None] = field(init=False)
    departures: list[Departure] = field(default_factory=list)
    arrivals_by_day: Counter[int] = field(default_factory=Counter)
    answers_given: dict[str, tuple[int, str | None]] = field(default_factory=dict)
    """Correlation id -> the row it was asked about, and the answer that left for it."""
    requests_of: Counter[int] = field(default_factory=Counter)
    in_flight: set[str] = field(default_factory=set)
    in_flight_most: int = 0
    limits: list[AgreedLimits] = field(default_factory=list)
    """One after the other, as a person changed them."""
    met: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Fault, and what the process did that met it."""
    met_at: dict[str, float] = field(default_factory=dict)
    """Process -> when it met the last one."""
    met_by: dict[str, set[str]] = field(default_factory=dict)
    """Process -> those that it met."""
    bank_failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Process and bank -> how often it was told that the bank cannot be reached."""
    pauses: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Process -> from when to when it was asked to send nothing."""
    asked_wrongly: list[int] = field(default_factory=list)
    """Rows about which something else was asked than the file says."""
    taken_for_replies: list[str] = field(default_factory=list)
    """Correlation ids of requests whose reply had come before they left."""
    forgot_at: list[float] = field(default_factory=list)
    """When a store forgot who had which part of it."""
    _in_this_second: Counter[int] = field(default_factory=Counter)
    _tokens: dict[str, tuple[float, float]] = field(default_factory=dict)
    _token_count: int = 0
    _file_version: int = 1
    _last_given: deque[str] = field(default_factory=lambda: deque(maxlen=3))

    def __post_init__(self) -> None:
        self.go_by_file(1)

    def go_by_file(self, version: int) -> None:
        """Answer for the payees of this version of the file from now on."""
        self._file_version = version
        truth, truths = Random(self.world.seed + version), self.dialect.truths
        self.truths = {row: truth.choice(truths) for row in range(1, self.question_count + 1)}

    def agree(self, rate: int, places: int) -> None:
        """Allow so much from now on."""
        self.limits.append(AgreedLimits(self.world.now_s, rate, places, self.in_flight_most))
        self.in_flight, self.in_flight_most = set(), 0  # what is on its way was sent under the earlier limits

    def meet(self, process: Process, fault: str) -> None:
        """Count that a process met a fault."""
        self.met.update((fault, state) for state in ["all", *process.states()])
        self.note(process, fault)

    def note(self, process: Process, fault: str) -> None:
        """Know that a process met a fault, which may be one of its own."""
        self.met_at[process.name] = self.world.now_s
        self.met_by.setdefault(process.name, set()).add(fault)

    async def token(self, process: Process, _request: TokenRequest) -> TokenResponse:
        """The token endpoint."""
        now = self.world.now_s
        if not self.weather.is_well(now) and any(span.covers(now) for span in self.weather.token_outages):
            self.meet(process, "token endpoint out")
            raise TokenUnavailable(Sentence("transport.no_token_now", where="login.example", status=503))
        self._token_count += 1
        value = f"token{self._token_count}"
        life_s = 3600 if self.weather.is_well(now) else self.weather.token_life_s
        self._tokens[value] = (now, now + life_s)
        return TokenResponse.model_validate(
            {"access_token": value, "token_type": "Bearer", "expires_in": life_s}
        )

    def depart(
        self, process: Process, request: httpx.Request, reply: "Future[httpx.Response]", *, arrives: bool
    ) -> str:
        """A request leaves a process; it is known by its correlation id."""
        body = json.loads(b"".join(request.stream))  # type: ignore[arg-type]
        asked = self.dialect.asked(body)
        row = row_of(asked.account)
        if asked[1:] not in {(payee_of(row, self._file_version), each) for each in (ACCOUNT_TYPE, None)}:
            self.asked_wrongly.append(row)
        headers = {name.lower(): value.decode() for name, value in request.headers.raw}
        request_id = headers[self.dialect.correlation]
        token = headers[b"authorization"].removeprefix("Bearer ")
        is_fresh = request.extensions[FRESH_CONNECTION]
        left = Departure(self.world.now_s, process.name, request_id, row, token, is_fresh)
        self.departures.append(left)
        self.in_flight.add(request_id)
        # A client that is dead or stands still has given it up by then.
        self.world.after(DEADLINE_S, lambda: self.in_flight.discard(request_id))
        if not self.is_divided_twice(DEADLINE_S):
            self.in_flight_most = max(self.in_flight_most, len(self.in_flight))
        self.world.tell(process.name, f"asks about row {row} ({request_id[:8]})")
        if arrives:
            self.world.after(self._on_its_way_s(), lambda: self._arrive(process, left, reply))
        else:
            self.meet(process, "half-dead connection")
        return request_id

    def is_divided_twice(self, counts_s: float, at_s: float | None = None) -> bool:
        """Whether two processes may have used one part of it, whose requests count for so long."""
        now = self.world.now_s if at_s is None else at_s
        return any(at <= now < at + LEASE_S + counts_s for at in self.forgot_at)

    def _on_its_way_s(self) -> float:
        return self.weather.latency_s / 2 + self.world.chance.uniform(0, 0.01)

    def _arrive(self, process: Process, left: Departure, reply: "Future[httpx.Response]") -> None:
        self.requests_of[left.row] += 1
        self.arrivals_by_day[self._server_time().toordinal()] += 1
        takes_s, result = self._process(process, left)
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
        if not isinstance(result, httpx.Response) or result.status_code == 200:
            return
        now, wish = self.world.now_s, result.headers.get("retry-after", "")
        if wish.isdigit():
            until_s = now + int(wish)
        elif wish.endswith("GMT") and not self.weather.clock_jumps:  # a wrong clock reads a date otherwise
            until_s = (parsedate_to_datetime(wish) - self.world.begins_at).total_seconds()
        else:
            return
        heard_s = max(now, process.wakes_at)  # one that stands still reads nothing
        self.pauses.setdefault(process.name, []).append((heard_s, min(until_s, now + PAUSE_MAX_S)))

    def _server_time(self) -> datetime:
        return self.world.begins_at + timedelta(seconds=self.world.now_s)

    def _process(self, process: Process, left: Departure) -> tuple[float, Reply]:
        """How long it takes, and what comes back."""
        weather, chance = self.weather, self.world.chance
        takes_s = 0.0
        if self._is_ill and chance.random() < weather.slow_share:
            self.meet(process, "slow replies")
            takes_s = weather.slow_s
        for trouble in (self._outage, self._limit, self._foreign, self._row, self._bank, self._chance):
            if (met := trouble(left)) is not None:
                self.meet(process, met.name)
                if isinstance(met.reply, httpx.Response) and met.reply.status_code in {502, 504}:
                    self.bank_failures[process.name, self.bank_of(left.row)] += 1
                return takes_s + met.takes_s, met.reply
        truth = self.truths[left.row]
        self.answers_given[left.request_id] = left.row, truth
        self._last_given.append(left.request_id)
        if self._is_ill and chance.random() < weather.lost_share:
            self.meet(process, "lost reply")
            return takes_s, httpx.RemoteProtocolError("closed")
        answer = self._answer(left.request_id, self.dialect.report(truth, left.row))
        if weather.stamp_kind is not None:
            answer.headers["x-response-timestamp"] = timestamp(self._stamp(process))
        return takes_s, answer

    def _stamp(self, process: Process) -> datetime:
        """When it answers, as it says."""
        time = self._server_time()
        match self.weather.stamp_kind if self._is_ill else None:
            case "18 hours ago":
                self.meet(process, "time stamps wrong")
                return time - timedelta(hours=18)
            case "next summer":
                self.meet(process, "time stamps wrong")
                return time + timedelta(days=180)
            case "some odd" if self.world.chance.random() < _ODD_SHARE:
                self.meet(process, "odd time stamp")
                return time + timedelta(days=self.world.chance.uniform(-200, 200))
            case _:
                return time

    @property
    def _is_ill(self) -> bool:
        return not self.weather.is_well(self.world.now_s)

    def _outage(self, _left: Departure) -> Met | None:
        """The whole server is out."""
        weather = self.weather
        if not self._is_ill or not any(span.covers(self.world.now_s) for span in weather.outages):
            return None
        name = f"outage {weather.outage_kind}"
        match weather.outage_kind:
            case "connect":
                return Met(name, httpx.ReadError("reset"))
            case "silent":
                return Met(name, None)
            case status:
                return Met(name, _problem(int(status)))

    def _limit(self, left: Departure) -> Met | None:
        """Too many in this second, or a token that is not good."""
        weather = self.weather
        if self._is_ill and weather.server_rate is not None:
            second = int(self.world.now_s)
            self._in_this_second[second] += 1
            if self._in_this_second[second] > weather.server_rate:
                return Met("429", _problem(429, **self._wish()))
        if self._is_ill and any(span.covers(self.world.now_s) for span in weather.busy):
            return Met("429 to all", _problem(429, **self._wish()))
        return None if self._is_good(left.token) else Met("401", _problem(401))

    def _wish(self) -> dict[str, str]:
        """What a 429 asks for, if anything."""
        match self.weather.retry_after:
            case None:
                return {}
            case "date":
                soon = self._server_time() + timedelta(seconds=7)
                return {"retry-after": format_datetime(soon, usegmt=True)}
            case wish:
                return {"retry-after": wish}

    def _row(self, left: Departure) -> Met | None:
        """A row that is ill for ever."""
        weather = self.weather
        if left.row in weather.refused_rows:
            return Met("row refused", self._refusal(left.request_id))
        for rows, name, status in (
            (weather.disliked_rows, "row turned away", weather.disliked_status),
            (weather.failing_rows, "row failing", 500),
        ):
            if left.row in rows:
                return Met(name, _problem(status))
        if left.row in weather.broken_rows:
            return Met("row broken", self._answer(left.request_id, self.dialect.without_answer))
        return None

    @staticmethod
    def bank_of(row: int) -> str:
        """The bank of a row's payee."""
        return f"{row % 5:06d}"

    def _bank(self, left: Departure) -> Met | None:
        """A bank that does not answer the provider."""
        span = self.weather.silent_banks.get(self.bank_of(left.row))
        if self._is_ill and span is not None and span.covers(self.world.now_s):
            return Met("silent bank", _problem(504), BANK_WAIT_S)
        return None

    def _chance(self, left: Departure) -> Met | None:
        """What befalls some requests and not others."""
        weather, chance = self.weather, self.world.chance
        if not self._is_ill:
            return None
        if chance.random() < weather.error_share:
            return Met(f"HTTP {weather.error_status}", _problem(weather.error_status))
        if chance.random() < weather.silent_share:
            return Met("silence", None)
        if chance.random() < weather.broken_share:
            return Met("broken contract", self._answer(left.request_id, chance.choice(self.dialect.wrong)))
        if self._last_given and chance.random() < weather.crossed_share:
            other_id = chance.choice(list(self._last_given))
            row, truth = self.answers_given[other_id]
            return Met("crossed answer", self._answer(other_id, self.dialect.report(truth, row)))
        return None

    def _foreign(self, left: Departure) -> Met | None:
        """A refusal that is not the API's own, or not of this request."""
        if not self._befalls(self.weather.foreign_share):
            return None
        match self.weather.foreign_kind:
            case "of another request":
                return Met("refusal of another request", self._refusal(str(UUID(int=left.row, version=4))))
            case "unasked" if not left.is_fresh:
                return Met("unasked refusal", self._refusal())
            case _:
                return Met("refusal by a page", httpx.Response(400, html="<h1>400 Bad Request</h1>"))

    def out_of_reach(self, process: Process) -> IncompleteError | None:
        """Why no connection to it can be made now, as the command finds out before it asks."""
        if not self._is_ill or not any(span.covers(self.world.now_s) for span in self.weather.away):
            return None
        self.meet(process, "out of reach")
        name = self.dialect.api.name
        return IncompleteError(Sentence("transport.no_answer", hostname=name, kind="connect"))

    def refuses_connection(self, process: Process) -> bool:
        """Whether a connection cannot be made now."""
        if self.out_of_reach(process) is not None:
            return True
        is_refused = self._befalls(self.weather.refused_connection_share)
        if is_refused:
            self.meet(process, "refused connection")
        return is_refused

    def goes_half_dead(self) -> bool:
        """Whether a connection that is kept carries nothing any more, and nobody knows."""
        return self._befalls(self.weather.half_dead_share)

    def may_speak_unasked(self, process: Process, connection: "Connection") -> None:
        """Whether a middle box says something on a connection that is kept, before the next request."""
        if self._befalls(self.weather.unasked_share):
            self.meet(process, "bytes that nobody asked for")
            self.world.after(self.world.chance.uniform(0, 0.1), connection.bring_unasked)

    def _befalls(self, share: float) -> bool:
        return share > 0 and self._is_ill and self.world.chance.random() < share

    def _is_good(self, token: str) -> bool:
        now = self.world.now_s
        issued, until = self._tokens.get(token, (0.0, 0.0))
        revoked = any(issued <= moment <= now for moment in self.weather.revocations)
        return (now <= until + 6 or self.weather.is_well(now)) and not revoked

    def _refusal(self, request_id: str = "") -> httpx.Response:
        return self._answer(request_id, b'{"code": "FORMAT_ERROR", "status": 400}', status=400)

    def _answer(self, request_id: str, body: bytes, *, status: int = 200) -> httpx.Response:
        headers = [(b"content-type", b"application/json"), (self.dialect.correlation, request_id.encode())]
        return httpx.Response(status, headers=headers, stream=httpx.ByteStream(body))


class _Line(asyncio.Transport):
    """The transport of a connection, which carries nothing by itself."""

    def __init__(self) -> None:
        super().__init__()
        self._is_closed = False

    def is_closing(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        self._is_closed = True


@dataclass(slots=True)
class Connection:
    """A connection of one process, with the program's own reader of what comes on it."""

    reader: _Protocol
    is_half_dead: bool = False
    has_unasked: bool = False
    """Whether it brought bytes between two requests."""

    def bring_unasked(self) -> None:
        """Bytes that nobody asked for arrive."""
        if self.reader.is_connected():
            self.has_unasked = True
            self.reader.data_received(_UNASKED)


class Wire(httpx.AsyncBaseTransport):
    """What carries the requests of one process."""

    def __init__(self, process: Process, provider: Provider) -> None:
        self._process = process
        self._provider = provider
        self._kept: list[Connection] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """As httpx's own transports, down to the event before the headers leave."""
        connection = self._connection()
        await request.extensions["trace"]("http11.send_request_headers.started", {})
        if not connection.reader.is_connected():  # it brought something meanwhile
            connection = self._new()
        if not self._process.is_alive:
            raise httpx.ReadError("dead")
        reply: Future[httpx.Response] = self._process.loop.create_future()
        arrives = not connection.is_half_dead
        request_id = self._provider.depart(self._process, request, reply, arrives=arrives)
        if connection.has_unasked:
            self._provider.taken_for_replies.append(request_id)
        try:
            response = await reply
            connection.is_half_dead = self._provider.goes_half_dead()
            self._provider.may_speak_unasked(self._process, connection)
            self._kept.append(connection)
            return response
        finally:
            self._provider.in_flight.discard(request_id)

    def _connection(self) -> Connection:
        """A kept connection that can still carry a request, or a new one."""
        while self._kept:
            kept = self._kept.pop()
            if kept.reader.is_connected():
                return kept
        if self._provider.refuses_connection(self._process):
            raise httpx.ConnectError("refused")
        return self._new()

    def _new(self) -> Connection:
        new = Connection(_Protocol(self._process.loop))
        new.reader.connection_made(_Line())
        return new


def _problem(status: int, **headers: str) -> httpx.Response:
    content = b'{"code": "SERVER_ERROR", "status": %d}' % status
    return httpx.Response(status, headers=headers, stream=httpx.ByteStream(content))
