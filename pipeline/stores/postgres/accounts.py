"""The accounts of a ledger at one moment: who has what of them, and what is used of their caps."""

from typing import NamedTuple

import psycopg

from pipeline.stores.division_json import from_json
from pipeline.stores.postgres.daily_caps import EDGE_S
from pipeline.stores.sharing import HeldShare

_ACCOUNTS = """
SELECT scope, api, division::text, greatest(latest, extract(epoch FROM clock_timestamp())::float8)
FROM precheck.account ORDER BY scope, api
"""
_CAPS = """
SELECT scope, cap, (
 SELECT coalesce(sum(count), 0)::int FROM precheck.units
 WHERE units.scope = daily_cap.scope AND second > greatest(
  counted_from, CASE kind WHEN 'utc_day' THEN now - now %% 86400 ELSE now - 86400 END - %s)),
 now < closed_until
FROM precheck.daily_cap, LATERAL (
 SELECT greatest(latest, extract(epoch FROM clock_timestamp()))::bigint AS now) AS clock ORDER BY scope
"""


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
    """The daily cap of one client of a server."""

    scope: str
    cap: int
    used: int
    """In the window now."""
    is_closed: bool
    """Whether the server itself reported that the day's cap is used up."""


def accounts_of(db: psycopg.Connection) -> list[DividedAccount]:
    """Who has what of which account now."""
    accounts = []
    for scope, api, content, now in db.execute(_ACCOUNTS):
        division = from_json(content)
        shares = sorted((each for each in division.shares if each.until > now), key=lambda each: each.order)
        accounts.append(DividedAccount(scope, api, shares, max(division.paused_until - now, 0.0)))
    return accounts


def caps_of(db: psycopg.Connection) -> list[CountedCap]:
    """What is used of which cap now."""
    return [CountedCap(*row) for row in db.execute(_CAPS, (EDGE_S,))]
