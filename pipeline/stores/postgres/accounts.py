"""The accounts of a ledger at one moment: who has what of them, and what is used of their caps."""

from datetime import UTC, datetime
from typing import NamedTuple

import psycopg

from pipeline.stores.division_json import from_json
from pipeline.stores.sharing import HeldShare

_ACCOUNTS = """
SELECT scope, api, division::text, greatest(latest, extract(epoch FROM clock_timestamp())::float8)
FROM precheck.account ORDER BY scope, api
"""
_CAPS = "SELECT scope, kind, used, cap, closed_until, latest FROM precheck.daily_cap ORDER BY scope"


class DividedAccount(NamedTuple):
    """One API of a server, for one client."""

    scope: str
    """Server and client, in the canonical spelling."""
    api: str
    shares: list[HeldShare]
    """Of the processes at work, in the order in which they came."""
    paused_s: float
    """How long the server wants nothing to be sent; 0 where it does not."""


class CountedCap(NamedTuple):
    """The daily cap of one client of a server, as it was counted last."""

    scope: str
    window: str
    used: int
    cap: int
    is_closed: bool
    """Whether the server itself reported that the day's cap is used up."""
    counted_at: datetime


def accounts_of(db: psycopg.Connection) -> list[DividedAccount]:
    """Who has what of which account now."""
    accounts = []
    for scope, api, content, now in db.execute(_ACCOUNTS):
        division = from_json(content)
        shares = sorted((each for each in division.shares if each.until > now), key=lambda each: each.order)
        accounts.append(DividedAccount(scope, api, shares, max(division.paused_until - now, 0.0)))
    return accounts


def caps_of(db: psycopg.Connection) -> list[CountedCap]:
    """What is used of which cap; what has left the window since the last request is still in it."""
    return [
        CountedCap(scope, kind, used, cap, latest < closed_until, datetime.fromtimestamp(latest, UTC))
        for scope, kind, used, cap, closed_until, latest in db.execute(_CAPS)
    ]
