"""Show the use of this user's daily caps, for `precheck quota`."""

from collections.abc import Iterator
from datetime import datetime

from pipeline.config import Profile
from pipeline.config.file import read, usual
from pipeline.connections import quota_path, scope_for
from pipeline.errors import ConfigurationError
from pipeline.runs.manifest import masked_client
from pipeline.stores.sqlite.quota import QuotaUse, usage
from pipeline.wording import Sentence


def cap_uses(now: datetime) -> tuple[list[tuple[str, int, int, datetime]], list[Sentence]]:
    """Return (server and client, used, cap, next day) of each daily cap of this user, and shared caps."""
    profiles = _profiles()
    clients = dict(_clients(profiles))
    own = [
        (_whose(use.scope, clients.get(use.scope)), use.used_count, use.cap, use.resets_at)
        for use in quota_usage(now)
    ]
    return own, [
        Sentence("jobs.cap_is_shared", profile=name, ledger=profile.ledger)
        for name, profile in profiles.items()
        if profile.ledger is not None and any(server.cap is not None for server in profile.servers)
    ]


def _whose(scope: str, client: str | None) -> str:
    host, _, _ = scope.partition("|")
    return scope if client is None else f"{host} ({client})"


def _profiles() -> dict[str, Profile]:
    """Return the profiles of the usual configuration; none if it has a mistake, which `doctor` reports."""
    path = usual()
    try:
        return {} if path is None else read(path).profiles
    except ConfigurationError:
        return {}


def _clients(profiles: dict[str, Profile]) -> Iterator[tuple[str, str]]:
    """Yield (scope, its profiles and its client)."""
    servers = [(name, server) for name, profile in profiles.items() for server in profile.servers]
    for scope in {scope_for(server) for _, server in servers}:
        mine = [(name, server) for name, server in servers if scope_for(server) == scope]
        listed = ", ".join(f"{name} {server.name}" for name, server in mine)
        yield scope, f"{listed}; client {masked_client(mine[0][1].client)}"


def quota_usage(now: datetime) -> list[QuotaUse]:
    """Return the use of each daily cap of this user, by server and client."""
    return usage(quota_path(), now)
