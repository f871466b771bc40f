"""The service: one request in, one response out. Every path is known by exact match."""

import time
from datetime import UTC, datetime

from aiohttp import web

from pipeline.sandbox.accounts import DummyAccounts
from pipeline.sandbox.calls import Call, CallLog
from pipeline.sandbox.endpoints import Answering, CheckEndpoint, Endpoint, Limit, TokenEndpoint
from pipeline.sandbox.faults import Responder
from pipeline.sandbox.identity import IdentityProvider
from pipeline.sandbox.limits import DailyCap, RateLimit
from pipeline.sandbox.network import Network
from pipeline.sandbox.problems import METHOD_NOT_ALLOWED, NOT_FOUND, ProblemError
from pipeline.sandbox.settings import TOKEN_PATH, SandboxSettings
from pipeline.sandbox.surface import APIS
from schemas.outcomes import ApiName, Environment


class Service:
    """The three APIs on their servers, and the token endpoint."""

    def __init__(
        self, settings: SandboxSettings, identity: IdentityProvider, call_log: CallLog | None
    ) -> None:
        """Put the service together; nothing is served yet.

        Args:
            settings: how it answers.
            identity: who issues and knows the tokens.
            call_log: where each call is noted; None for nowhere.
        """
        self._endpoints = _endpoints(settings, identity)
        self._call_log = call_log

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, whatever it is."""
        version = request.version
        call = Call(
            time=time.time(),
            monotonic=time.monotonic(),
            path=request.path,
            http_version=f"{version.major}.{version.minor}",
        )
        try:
            body = await self._answer(request, call)
            call.status = 200
        except ProblemError as problem:
            body = problem.to_json(call.path)
            call.status = problem.status
            call.headers.update(problem.headers)
        finally:
            # In any case: a server that stops cancels what it is doing, and the call was made.
            if self._call_log is not None:
                self._call_log.write(call)
        call.headers["Content-Type"] = "application/json"
        call.headers["X-Response-Timestamp"] = _timestamp(time.time())
        return web.Response(status=call.status, body=body, headers=call.headers)

    async def _answer(self, request: web.BaseRequest, call: Call) -> bytes:
        endpoint = self._endpoints.get(call.path)
        if endpoint is None:
            raise ProblemError(404, NOT_FOUND, "there is nothing at this path")
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
    endpoints: dict[str, Endpoint] = {TOKEN_PATH: TokenEndpoint(identity)}
    for api in APIS:
        is_cop = api.name is ApiName.COP
        responder = Responder(
            wait_max_s=settings.cop_responder_wait_s if is_cop else settings.vop_responder_wait_s,
            latency_s=settings.latency_s,
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
