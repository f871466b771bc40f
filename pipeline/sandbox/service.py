"""The service: turns one request into one response, with parts made from the settings of a sandbox."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from aiohttp import web
from cryptography import x509

from pipeline.sandbox import problems
from pipeline.sandbox.accounts import DummyAccounts, Rehearsal
from pipeline.sandbox.endpoints import CheckEndpoint, DescriptionEndpoint, Endpoint, TokenService
from pipeline.sandbox.faults.effects import deliver
from pipeline.sandbox.faults.injector import Injector
from pipeline.sandbox.http_connection import HttpConnection, Reply
from pipeline.sandbox.identity import IdentityProvider
from pipeline.sandbox.journal import Call, CallLog, Journal, Visit
from pipeline.sandbox.limits import DailyCap, RateLimit
from pipeline.sandbox.network import Network, Responder
from pipeline.sandbox.settings import APIS, DESCRIPTION_PATH, TOKEN_PATH, Clock, SandboxSettings
from schemas.outcomes import Environment
from schemas.problem import ProblemCode
from schemas.strict import timestamp


@dataclass(frozen=True, slots=True)
class Conditions:
    """The settings of a sandbox that can be changed while it serves."""

    injector: Injector
    daily_cap: DailyCap  # the daily cap of role test
    rate: RateLimit
    clock: Clock


def conditions_of(settings: SandboxSettings, identity: IdentityProvider, *, elsewhere: str) -> Conditions:
    """Return a sandbox's initial conditions; faults redirect to the base URL `elsewhere`."""
    clock = Clock()
    return Conditions(
        Injector(settings, elsewhere=elsewhere, revoke_tokens=identity.revoke_all),
        DailyCap(settings.daily_cap, clock.now),
        RateLimit(settings.rate_per_s_max, time.monotonic),
        clock,
    )


@dataclass(frozen=True, slots=True)
class Service:
    """The three APIs on their servers, and the token endpoint."""

    endpoints: Mapping[str, Endpoint]  # by path
    conditions: Conditions
    recorders: Sequence[CallLog | Journal]
    request_wait_s: float

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer any request."""
        call = self._call(request)
        delivery = None
        try:
            reply = await self._reply(request, call)
            # Faults do not affect bad requests.
            if reply.status == 200 and call.api is not None:
                reply, delivery = await self.conditions.injector.befall(call, reply)
            call.status = None if delivery else reply.status
            call.retry_after_s = _retry_after_s(reply, time.time())
        finally:
            # A stopping server cancels this task, but the call was made and must be recorded.
            call.answered = time.monotonic()
            call.is_abandoned = request.transport is None
            self._note(call)
        if delivery is not None:
            return await deliver(request, reply, delivery)
        return _Response(reply)

    def refuse_unread(self, status: int, visit: Visit) -> Reply:
        """Record unreadable bytes, and answer with the error."""
        problem = problems.format_error(
            "the request is not well-formed HTTP/1.1, or its head is too long", problems.Refusal.HTTP
        )
        if status == 408:
            problem = problems.too_slow("the head of the request", self.request_wait_s)
        if status == 500:
            detail = "a technical problem prevented execution"
            problem = problems.ProblemError(500, ProblemCode.SERVER_ERROR, detail)
        call = Call(time.time(), time.monotonic(), path="", http_version="", connection=visit.number)
        call.refused, call.status = problem.refusal, problem.status
        call.answered = call.monotonic
        if status != 500:  # otherwise the request is recorded already
            self._note(call)
        return self._refused(problem, call)

    def _call(self, request: web.BaseRequest) -> Call:
        connection, version = request.protocol, request.version
        assert isinstance(connection, HttpConnection)
        return Call(
            time=time.time(),
            monotonic=time.monotonic(),
            path=request.path if request.path in self.endpoints else problems.shown_path(request.path),
            http_version=f"{version.major}.{version.minor}",
            method=request.method,
            connection=connection.visit.number,
            waiting_count=connection.waiting_count,
            byte_count=request.content_length,
            has_cookie="Cookie" in request.headers,
        )

    async def _reply(self, request: web.BaseRequest, call: Call) -> Reply:
        try:
            body = await self._answer(request, call)
        except problems.ProblemError as problem:
            call.refused = problem.refusal
            return self._refused(problem, call)
        return self._dated(Reply(200, call.headers, body))

    async def _answer(self, request: web.BaseRequest, call: Call) -> bytes:
        endpoint = self.endpoints.get(request.path)
        if endpoint is None:
            raise problems.not_found()
        endpoint.recognise(request, call)
        if request.method not in endpoint.methods:
            allowed = ", ".join(endpoint.methods)
            detail = f"the method must be {allowed}"
            raise problems.ProblemError(
                405, problems.METHOD_NOT_ALLOWED, detail, {"Allow": allowed}, problems.Refusal.METHOD
            )
        return await endpoint.answer(request, call)

    def _refused(self, problem: problems.ProblemError, call: Call) -> Reply:
        headers = {**call.headers, **problem.headers}
        return self._dated(Reply(problem.status, headers, problem.to_json(call.path or "/")))

    def _dated(self, reply: Reply) -> Reply:
        now = datetime.fromtimestamp(self.conditions.clock.now(), UTC)
        return reply.with_headers(Content_Type="application/json", X_Response_Timestamp=timestamp(now))

    def _note(self, call: Call) -> None:
        for recorder in self.recorders:
            recorder.write(call)


def service_of(  # noqa: PLR0913 (its parts)
    settings: SandboxSettings,
    conditions: Conditions,
    identity: IdentityProvider,
    authority: x509.Certificate,
    *,
    url: str,
    recorders: Sequence[CallLog | Journal],
) -> Service:
    """Build the service at a URL under these conditions; `authority` issues client certificates."""
    endpoints: dict[str, Endpoint] = {
        TOKEN_PATH: TokenService(identity, settings.request_wait_s),
        DESCRIPTION_PATH: DescriptionEndpoint(url),
    }
    network = Network(settings.seed, is_faulty=settings.responder_faults)
    dummies = Rehearsal() if settings.rehearse else DummyAccounts()
    for api in APIS:
        responder = Responder(settings, api.name)
        for role in api.roles:
            is_test = role is Environment.TEST
            endpoints[f"/{role.value}{api.path}"] = CheckEndpoint(
                api,
                role,
                identity=identity,
                authority=authority,
                limits=[conditions.rate, conditions.daily_cap] if is_test else [conditions.rate],
                answering=dummies if role is Environment.SANDBOX else network,
                responder=responder,
                clock=conditions.clock,
                settings=settings,
            )
    return Service(endpoints, conditions, recorders, settings.request_wait_s)


class _Response(web.Response):
    """A reply with no headers but its own: aiohttp would add Content-Type."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(status=reply.status, body=reply.body, headers=reply.headers)
        self._is_described = "Content-Type" in reply.headers
        if reply.headers.get("Connection") == "close":
            self.force_close()

    async def _prepare_headers(self) -> None:
        await super()._prepare_headers()
        if not self._is_described:
            self.headers.popall("Content-Type", None)


def _retry_after_s(reply: Reply, now_s: float) -> float | None:
    value = reply.headers.get("Retry-After")
    if value is None:
        return None
    try:
        return max(map(float, value.split(",")))  # the header may be repeated
    except ValueError:
        pass
    try:
        return parsedate_to_datetime(value).timestamp() - now_s
    except (ValueError, OverflowError):  # the year may be impossible
        return None
