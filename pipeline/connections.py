"""Open the channels of a profile: one per API, with its server, credentials and limits.

The HTTP libraries are imported when a channel is opened: they take a quarter of the start time, and a run
that is refused or has no open question does not need them.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from platformdirs import user_state_path

from pipeline.apis import Api
from pipeline.apis.registry import APIS
from pipeline.config import Profile
from pipeline.errors import ConfigurationError, CredentialsError, IncompleteError, PrecheckError, TlsError
from pipeline.files.private import user_folder
from pipeline.sections import MutualTls, Oauth, Server, proxy_of_environment
from pipeline.stages.validate import Routes
from pipeline.stores.leased_shares import LeasedShares, LeaseTerms, WholeShare
from pipeline.stores.protocols import CapCount, Share, Shares
from pipeline.stores.scopes import scope_of
from pipeline.stores.sqlite.quota import QuotaInThreads, SqliteQuota
from pipeline.stores.sqlite.shares import local_shares
from pipeline.stores.values import ServerAccount, ShareLimits
from pipeline.transport.breaker import RESPONDER, SERVER
from pipeline.transport.certificates import inspect_certificate
from pipeline.transport.rate_limiter import Pace, window_of
from pipeline.transport.tls import ClosedAtOnceError, EnvironmentKey, client_context, preflight
from pipeline.transport.tokens import Tokens
from pipeline.wording import Sentence
from schemas.outcomes import ApiName
from schemas.token import TokenRequest

if TYPE_CHECKING:
    from pipeline.stages.ask.values import ApiChannel
    from pipeline.transport.proxy import Proxy

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_WAITS = (1 / 30, 1 / 10)  # waits before new tries at an unreachable server, as parts of its `probe_wait_s`


def quota_path() -> Path:
    """Return the file that counts the daily caps of all processes of this user."""
    return user_folder(user_state_path) / "quota.db"


def leases_path() -> Path:
    """Return the folder where all runs of this user divide the servers' limits."""
    return user_folder(user_state_path) / "turns"


def routes(profile: Profile) -> Routes:
    """Return the routes of payments under a profile; without servers, the routes of a bank's report."""
    return Routes(
        apis=tuple(server.name for server in profile.servers) or (ApiName.BANK_REPORT,),
        gb_iban_to=profile.gb_iban_to,
        default_account_type=profile.default_account_type,
        ask_by=profile.ask_by,
        send_remittance=any(server.sends_remittance for server in profile.servers),
        bic_table={start: bic for server in profile.servers for start, bic in server.banks.items()},
        vop_countries=None if profile.vop_countries == "any" else tuple(profile.vop_countries),
        vop_names=profile.vop_names,
    )


def api_of(server: Server) -> Api:
    """Return the API that a section of a profile configures."""
    return APIS[server.name].api(server)


def quota_of(server: Server, *, now: Callable[[], datetime]) -> SqliteQuota | None:
    """Return the daily cap of a server, counted across all processes of this user."""
    if server.cap is None:
        return None
    return SqliteQuota(
        quota_path(), scope=scope_for(server), cap=server.cap, window=server.cap_window, clock=now
    )


def tokens_of(server: Oauth) -> Tokens:
    """Return the source of a server's access tokens; the first is fetched later."""
    from pipeline.transport.token_endpoint import TokenEndpoint

    endpoint = TokenEndpoint(
        server.token_url,
        context=client_context(ca_file=server.ca_file),
        method=server.token_method,
        proxy=proxy_to(server, server.token_url),
    )
    request = TokenRequest(
        grant_type="client_credentials",
        client_id=server.client_id,
        client_secret=server.client_secret(),
        scope=server.scope,
    )
    return Tokens(endpoint, request)


def proxy_to(server: Server, url: str) -> Proxy | None:
    """Return the proxy for an address of a server, if any (ConfigurationError, TlsError: it is unusable)."""
    from pipeline.transport.proxy import OF_PROXY, Proxy

    if (address := server.proxy_address(url)) is None:
        return None
    parts = urlsplit(address)
    assert parts.hostname is not None
    is_secured = parts.scheme == "https"
    keys = OF_PROXY if server.proxy is None else OF_PROXY._replace(address="HTTPS_PROXY")
    return Proxy(
        parts.hostname,
        parts.port or (443 if is_secured else 80),
        client_context(ca_file=server.proxy_ca_file, ca_key=keys.authority) if is_secured else None,
        server.proxy_credentials(parts),
        keys,
    )


async def try_connection(server: Server, now: datetime, *, waits_s: Sequence[float] = ()) -> str:
    """Check our certificate and make one TLS connection without sending anything; return version and suite.

    An unreachable server is tried again after each of the waits. Same errors as `preflight`.
    """
    if isinstance(server, MutualTls):
        facts = inspect_certificate(server.client_certificate, now=now)
        if facts.problems:
            raise TlsError(Sentence("transport.certificate_problems", problems=facts.problems))
    address = urlsplit(server.base_url)
    assert address.hostname is not None
    proxy = proxy_to(server, server.base_url)
    try:
        return await preflight(
            address.hostname,
            address.port or 443,
            context_of(server),
            waits_s=waits_s,
            connect=None if proxy is None else proxy.connect,
        )
    except ClosedAtOnceError:
        if isinstance(server, MutualTls):
            raise
        raise IncompleteError(Sentence("transport.closed_during_handshake", server=address.netloc)) from None
    except IncompleteError as error:
        if proxy is None and _names_a_proxy(server.base_url):
            raise IncompleteError(Sentence("transport.proxy_unused", why=error.reason)) from None
        raise


def _names_a_proxy(url: str) -> bool:
    """True if the environment names any kind of proxy for an address."""
    try:
        return proxy_of_environment(url) is not None
    except ConfigurationError:
        return True


def context_of(server: Server) -> ssl.SSLContext:
    """Return the TLS context of one server, with our certificate if it requires one."""
    if isinstance(server, MutualTls):
        return client_context(
            ca_file=server.ca_file,
            certificate=server.client_certificate,
            key=key if isinstance(key := server.private_key(), Path) else EnvironmentKey(*key),
            key_password=server.client_key_password(),
        )
    return client_context(ca_file=server.ca_file)


def shares_of_this_machine(terms: LeaseTerms) -> LeasedShares:
    """Return the shares of all runs of this user."""
    return local_shares(leases_path(), terms)


@asynccontextmanager
async def open_channels(
    profile: Profile,
    needed: Collection[ApiName],
    *,
    now: Callable[[], datetime],
    shares: Shares | None,
    quotas: Mapping[ApiName, CapCount] | None = None,
) -> AsyncIterator[dict[ApiName, ApiChannel]]:
    """Open the channels that a run needs, and close them afterwards (ConfigurationError: no secret).

    First take a share of each server's limits, which all runs of this user divide (IncompleteError: none came
    free), except for an embedded sandbox, which has only one user. Then try one connection to each server, as
    a refused certificate would look like a broken network on every row; an unreachable server's channel holds
    the reason. Without `quotas`, the daily caps are counted across all processes of this user.
    """
    servers = {server.name: server for server in profile.servers if server.name in needed}
    accounts = [account_of(server) for server in servers.values()]
    async with AsyncExitStack() as stack:
        leased: Mapping[str, Share] = {account.api: WholeShare(account) for account in accounts}
        if shares is not None:
            leased = await stack.enter_async_context(shares.lease(accounts))
        if quotas is None:
            quotas = {
                name: QuotaInThreads(stack.enter_context(quota))
                for name, server in servers.items()
                if (quota := quota_of(server, now=now)) is not None
            }
        yield {
            name: await _opened(server, leased[name], quotas.get(name), now=now, stack=stack)
            for name, server in servers.items()
        }


async def _opened(
    server: Server,
    share: Share,
    quota: CapCount | None,
    *,
    now: Callable[[], datetime],
    stack: AsyncExitStack,
) -> ApiChannel:
    """Open the channel to one server, within a share of its limits; it closes with the stack."""
    from pipeline.stages.ask.concurrency import ConcurrencyLimit
    from pipeline.stages.ask.values import ApiChannel
    from pipeline.transport.client import Client
    from pipeline.transport.exchange import transport_of
    from pipeline.transport.pool import connections_allowed

    tokens = tokens_of(server) if isinstance(server, Oauth) else None
    unreachable: PrecheckError | None = None
    try:
        await try_connection(server, now(), waits_s=[server.probe_wait_s * part for part in _WAITS])
    except (TlsError, CredentialsError, IncompleteError) as error:
        unreachable = error
    pace, door = Pace(server.rate_per_s), Pace(server.rate_per_s)
    concurrency = ConcurrencyLimit(server.in_flight_max, server.rate_per_s, pace.clock)

    def use(part: ShareLimits) -> None:
        for each in (pace, door):
            each.resize(part.rate_per_s, until=part.until)
        concurrency.resize(part.in_flight_max, part.rate_per_s, kept=part.kept_slots)

    share.follow(use, in_flight=lambda: concurrency.in_flight)
    if (in_flight_max := connections_allowed(server.in_flight_max)) < server.in_flight_max:
        log.warning(
            "the limit of open files allows fewer requests in flight",
            api=server.name.value, in_flight_max=in_flight_max, vital=True,
        )  # fmt: skip
    client = Client(
        server.base_url,
        context=context_of(server),
        in_flight_max=in_flight_max,
        tokens=tokens,
        door=door,
        open_transport=partial(transport_of, proxy=proxy_to(server, server.base_url)),
    )
    api = api_of(server)
    return ApiChannel(
        api=api,
        sender=await stack.enter_async_context(client),
        share=share,
        pace=pace,
        concurrency=concurrency,
        quota=quota,
        in_flight_max=in_flight_max,
        attempts_max=server.attempts_max,
        deadline_s=_deadline_s(server),
        server_patience=replace(SERVER, probe_wait_s=server.probe_wait_s),
        responder_patience=replace(RESPONDER, probe_wait_s=server.probe_wait_s),
        requester=_requester(server, now()),
        unreachable=unreachable,
    )


def _requester(server: Server, now: datetime) -> str | None:
    if not isinstance(server, MutualTls):
        return None
    facts = inspect_certificate(server.client_certificate, now=now)
    if facts.expires_soon:
        ends = facts.not_after.date().isoformat()
        log.warning(
            "the client certificate ends soon; request the next",
            api=server.name.value, ends=ends, vital=True,
        )  # fmt: skip
    return facts.organisation_identifier


def scope_for(server: Server) -> str:
    """Return the scope for counting requests to a server."""
    return scope_of(urlsplit(server.base_url).netloc, server.client)


def account_of(server: Server) -> ServerAccount:
    """Return the limits of an account at a server, for all processes together."""
    return ServerAccount(
        scope_for(server),
        server.name,
        server.rate_per_s,
        server.in_flight_max,
        window_s=window_of(server.rate_per_s),
        deadline_s=_deadline_s(server),
        daily_cap=server.cap,
        cap_window=None if server.cap is None else server.cap_window,
    )


def _deadline_s(server: Server) -> float:
    return api_of(server).responder_wait_s + server.response_margin_s
