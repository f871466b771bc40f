"""Assemble a sandbox from its settings, without serving yet."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509

from pipeline.sandbox.accounts import DummyAccounts, Rehearsal
from pipeline.sandbox.endpoints import CheckEndpoint, DescriptionEndpoint, Endpoint, TokenService
from pipeline.sandbox.faults.injector import Injector
from pipeline.sandbox.identity import IdentityProvider
from pipeline.sandbox.journal import CallLog, Journal
from pipeline.sandbox.limits import DailyCap, RateLimit
from pipeline.sandbox.network import Network, Responder
from pipeline.sandbox.service import Service
from pipeline.sandbox.settings import APIS, DESCRIPTION_PATH, TOKEN_PATH, Clock, SandboxSettings
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
    clock = Clock()
    return Conditions(
        Injector(settings, elsewhere=elsewhere, revoke_tokens=identity.revoke_all),
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
    return Service(endpoints, conditions.injector, conditions.clock, recorders, settings.request_wait_s)
