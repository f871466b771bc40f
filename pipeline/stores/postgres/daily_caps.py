"""Daily caps of accounts, counted for all hosts in the transaction that records a request's intent.

Units are counted as in `sqlite.quota`, by the clock of the database, in whole seconds, rounded up. Functions
in `schema.sql` that belong to the ledger's owner count them, so no run's role can reduce a count.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import psycopg

from pipeline.stores.postgres.connection import Database, only_row
from pipeline.stores.postgres.schema import STATEMENTS
from pipeline.stores.protocols import AccountCap

EDGE_S = 30  # a unit taken this long before a window may belong to a request that arrives within the window
_DAY_S = 86_400

_TAKE = "SELECT precheck.cap_take(%s, %s, %s, %s)"
_NOW = """
SELECT used, counted_from, closed_until, latest, precheck.cap_opens(now)
FROM precheck.cap_now(%s, %s, %s) AS now
"""
_CLOSE = "SELECT precheck.cap_close(%s, %s, %s)"
_GO_BY = "SELECT precheck.cap_go_by(%s, %s, %s, %s)"


class _Count(NamedTuple):
    """The count of a cap at one moment. Times are seconds since the epoch."""

    used: int
    counted_from: int  # units taken up to this second are outside every window
    closed_until: int
    now: float
    opens: float  # the start of the next window that overlaps neither with this one nor with the server's


def take_units(
    caps: Mapping[str, AccountCap], db: psycopg.Connection, wanted: Sequence[str]
) -> Sequence[bool]:
    """Take a unit for each intent, given by its API, whose account has a cap; in the intents' transaction."""
    wishes = Counter(api for api in wanted if api in caps)
    # All processes take caps in the same order, so that no two wait for each other.
    left = {
        api: only_row(db, _TAKE, (*caps[api], wishes[api]))[0]
        for api in sorted(wishes, key=lambda api: caps[api].scope)
    }
    granted = []
    for api in wanted:
        granted.append(left.get(api, 1) > 0)
        if api in left:
            left[api] -= 1
    return granted


class PostgresCap:
    """The cap of one account, for the gate; `take_units` counts when intents are written."""

    def __init__(self, database: Database, cap: AccountCap) -> None:
        self._database = database
        self._cap = cap

    async def resets_at(self) -> datetime:
        """When units become available: UTC midnight or, in a rolling window, the next expiry, maybe now."""
        return await self._database.run_in_thread(self._resets_at)

    async def is_spent(self) -> bool:
        count = await self._database.run_in_thread(self._count)
        return count.now < count.closed_until or count.used >= self._cap.cap

    async def close_for_today(self) -> None:
        """Record for all hosts that the server reports the cap as used up: for this UTC day, or 24 hours."""
        await self._database.run_in_thread(lambda db: db.execute(_CLOSE, self._cap))

    async def go_by(self, server_now: datetime) -> None:
        """Count in the server's day too: units taken since the start of either day count.

        If the database's clock had run ahead, the latest time is set back, but never to before that clock. No
        server's reply closes a cap for longer than a day.
        """
        parameters = (*self._cap, server_now.timestamp())
        await self._database.run_in_thread(lambda db: db.execute(_GO_BY, parameters))

    def _resets_at(self, db: psycopg.Connection) -> datetime:
        cap = self._cap
        with db.transaction():
            count = self._count(db)
            excess_count = count.used - cap.cap
            if cap.window == "utc_day" or cap.cap == 0:
                free_at = count.opens
            elif excess_count >= 0:
                [second] = only_row(
                    db, STATEMENTS["daily_caps.unit"], (cap.scope, count.counted_from, excess_count + 1)
                )
                free_at = second + _DAY_S + EDGE_S
            else:
                free_at = count.now
        return datetime.fromtimestamp(max(free_at, count.closed_until), UTC)

    def _count(self, db: psycopg.Connection) -> _Count:
        """Return the current count of a cap, locked until the end of the transaction."""
        return _Count(*only_row(db, _NOW, self._cap))
