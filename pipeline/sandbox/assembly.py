"""Assemble a sandbox from its settings, without serving yet."""

import time
from dataclasses import dataclass

from cryptography import x509

from pipeline.sandbox.accounts import DummyAccounts
from pipeline.sandbox.calls import CallLog
from pipeline.sandbox.endpoints import CheckEndpoint, DescriptionEndpoint, Endpoint, TokenService
from pipeline.sandbox.faults.injector import Injector, Surroundings
from pipeline.sandbox.identity import IdentityProvider
from pipeline.sandbox.journal import Journal
from pipeline.sandbox.limits import DailyCap, RateLimit
from pipeline.sandbox.network import Network
from pipeline.sandbox.rehearsal import Rehearsal
from pipeline.sandbox.responders import Responder
from pipeline.sandbox.service import Service
from pipeline.sandbox.settings import DESCRIPTION_PATH, TOKEN_PATH, Clock, SandboxSettings
from pipeline.sandbox.surface import APIS
from schemas.outcomes import Environment


@dataclass(frozen=True, slots=True)
class Conditions:
    """The settings of a sandbox that can be changed while it serves."""

    injector: Injector
    daily_cap: DailyCap  # the daily cap of role test
    rate: RateLimit
    clock: Clock


def conditions_of(settings: SandboxSettings, identity: IdentityProvider, *, elsewhere: str) -> Conditions:
    """Return a sandbox's initial conditions; faults redirect to the base URL `elsewhere`."""
    surroundings = Surroundings(
        correlation_headers={api.name: api.correlation_header for api in APIS},
        responder_waits_s={api.name: settings.responder_wait_s(api.name) for api in APIS},
        elsewhere=elsewhere,
        revoke_tokens=identity.revoke_all,
    )
    clock = Clock()
    return Conditions(
        Injector(settings.faults, surroundings),
        DailyCap(settings.daily_cap, clock.now),
        RateLimit(settings.rate_per_s_max, time.monotonic),
        clock,
    )


def service_of(  # noqa: PLR0913 (its parts)
    settings: SandboxSettings,
    conditions: Conditions,
    identity: IdentityProvider,
    authority: x509.Certificate,
    *,
    url: str,
    recorders: list[CallLog | Journal],
) -> Service:
    """Build the service at a URL under these conditions; `authority` issues client certificates."""
    endpoints: dict[str, Endpoint] = {
        TOKEN_PATH: TokenService(identity, settings.request_wait_s),
        DESCRIPTION_PATH: DescriptionEndpoint(url),
        **_checks(settings, conditions, identity, authority),
    }
    return Service(endpoints, conditions.injector, conditions.clock, recorders, settings.request_wait_s)


def _checks(
    settings: SandboxSettings,
    conditions: Conditions,
    identity: IdentityProvider,
    authority: x509.Certificate,
) -> dict[str, CheckEndpoint]:
    network = Network(settings.seed, is_faulty=settings.responder_faults)
    answering: dict[Environment, DummyAccounts | Network] = {
        Environment.SANDBOX: Rehearsal() if settings.rehearse else DummyAccounts(),
        Environment.TEST: network,
        Environment.PRODUCTION: network,
    }
    limits: dict[Environment, list[DailyCap | RateLimit]] = {
        Environment.SANDBOX: [conditions.rate],
        Environment.TEST: [conditions.rate, conditions.daily_cap],
        Environment.PRODUCTION: [conditions.rate],
    }
    endpoints = {}
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
                authority=authority,
                limits=limits[role],
                answering=answering[role],
                responder=responder,
                clock=conditions.clock,
                settings=settings,
            )
    return endpoints
