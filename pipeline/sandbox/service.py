"""The service: one request in, one response out. Every path is known by exact match."""

import time
from datetime import UTC, datetime

from aiohttp import web

from pipeline.sandbox.accounts import DummyAccounts
from pipeline.sandbox.calls import Call, CallLog
from pipeline.sandbox.endpoints import (
    Answering,
    CheckEndpoint,
    DescriptionEndpoint,
    Endpoint,
    Limit,
    TokenEndpoint,
)
from pipeline.sandbox.faults.deliveries import deliver
from pipeline.sandbox.faults.injector import Injector
from pipeline.sandbox.identity import IdentityProvider
from pipeline.sandbox.limits import DailyCap, RateLimit
from pipeline.sandbox.network import Network
from pipeline.sandbox.problems import METHOD_NOT_ALLOWED, ProblemError, not_found
from pipeline.sandbox.replies import Reply
from pipeline.sandbox.responders import Responder
from pipeline.sandbox.settings import DESCRIPTION_PATH, TOKEN_PATH, SandboxSettings
from pipeline.sandbox.surface import APIS
from schemas.outcomes import Environment


class Service:
    """The three APIs on their servers, and the token endpoint."""

    def __init__(
        self,
        settings: SandboxSettings,
        identity: IdentityProvider,
        call_log: CallLog | None,
        injector: Injector | None = None,
    ) -> None:
        """Put the service together; nothing is served yet.

        Args:
            settings: how it answers.
            identity: who issues and knows the tokens.
            call_log: where each call is noted; None for nowhere.
            injector: who lets faults befall the answers; None for a server without any.
        """
        self._endpoints = _endpoints(settings, identity)
        self._call_log = call_log
        self._injector = injector

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, whatever it is."""
        version = request.version
        call = Call(
            time=time.time(),
            monotonic=time.monotonic(),
            path=request.path,
            http_version=f"{version.major}.{version.minor}",
            byte_count=request.content_length,
            has_cookie="Cookie" in request.headers,
        )
        delivery = None
        try:
            reply = await self._reply(request, call)
            # What is wrong with a request is told to the client, whatever faults there are.
            if self._injector is not None and reply.status == 200 and call.api is not None:
                reply, delivery = await self._injector.befall(call, reply)
            call.status = None if delivery else reply.status
        finally:
            # In any case: a server that stops cancels what it is doing, and the call was made.
            if self._call_log is not None:
                self._call_log.write(call)
        if delivery is not None:
            return await deliver(request, reply, delivery)
        return web.Response(status=reply.status, body=reply.body, headers=reply.headers)

    async def _reply(self, request: web.BaseRequest, call: Call) -> Reply:
        try:
            body, status = await self._answer(request, call), 200
        except ProblemError as problem:
            body, status = problem.to_json(call.path), problem.status
            call.headers.update(problem.headers)
        call.headers["Content-Type"] = "application/json"
        call.headers["X-Response-Timestamp"] = _timestamp(time.time())
        return Reply(status, call.headers, body)

    async def _answer(self, request: web.BaseRequest, call: Call) -> bytes:
        endpoint = self._endpoints.get(call.path)
        if endpoint is None:
            raise not_found()
        if request.method not in endpoint.methods:
            allowed = ", ".join(endpoint.methods)
            raise ProblemError(405, METHOD_NOT_ALLOWED, f"the method must be {allowed}", {"Allow": allowed})
        return await endpoint.answer(request, call)


def _endpoints(settings: SandboxSettings, identity: IdentityProvider) -> dict[str, Endpoint]:
    network = Network(settings.seed, is_faulty=settings.responder_faults)
    answering: dict[Environment, Answering] = {
        Environment.SANDBOX: DummyAccounts(),
        Environment.TEST: network,
        Environment.PRODUCTION: network,
    }
    rate = [RateLimit(settings.rate_per_s_max, time.monotonic)] if settings.rate_per_s_max else []
    limits: dict[Environment, list[Limit]] = {
        Environment.SANDBOX: [*rate],
        Environment.TEST: [*rate, DailyCap(settings.daily_cap, time.time)],
        Environment.PRODUCTION: [*rate],
    }
    endpoints: dict[str, Endpoint] = {
        TOKEN_PATH: TokenEndpoint(identity),
        DESCRIPTION_PATH: DescriptionEndpoint(),
    }
    for api in APIS:
        responder = Responder(
            wait_max_s=settings.responder_wait_s(api.name),
            latency_s=settings.latency_s,
            latency_spread=settings.latency_spread,
            seed=settings.seed,
        )
        for role in api.roles:
            endpoints[f"/{role.value}{api.path}"] = CheckEndpoint(
                api,
                role,
                identity=identity,
                limits=limits[role],
                answering=answering[role],
                responder=responder,
            )
    return endpoints


def _timestamp(time_s: float) -> str:
    """A moment as YYYY-MM-DDThh:mm:ss.sssZ."""
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
