"""Daily caps of accounts, counted for all hosts in the transaction that writes the intents.

A unit is one request, repeats included; exactly one is taken per intent, by any number of processes, whatever
kills them. Units are counted as in `sqlite.quota`, by the clock of the database: units of the last `EDGE_S`
seconds before a window count in it too, and time moves back only after a clock ran ahead and a server's
replies agree on an earlier time. Units are counted by the second, rounded up, also in the server's day if
that differs. Functions of the ledger's owner, in `schema.sql`, count them: no role of a run can reduce the
count.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import psycopg

from pipeline.stores.postgres.connection import Database
from pipeline.stores.postgres.queries import STATEMENTS
from pipeline.stores.shared import AccountCap

EDGE_S = 30
"""How long before a window a unit may have been taken whose request is still on its way."""
_DAY_S = 86_400

_TAKE = "SELECT precheck.cap_take(%s, %s, %s, %s)"
_NOW = """
SELECT used, counted_from, closed_until, latest, precheck.cap_opens(now)
FROM precheck.cap_now(%s, %s, %s) AS now
"""
_CLOSE = "SELECT precheck.cap_close(%s, %s, %s)"
_GO_BY = "SELECT precheck.cap_go_by(%s, %s, %s, %s)"
_UNIT = STATEMENTS["daily_caps.unit"]


class _Count(NamedTuple):
    """A cap at one moment. Times are seconds since the epoch."""

    used: int
    counted_from: int
    """Units taken up to this second are in no window any more."""
    closed_until: int
    now: float
    opens: float
    """The start of the next window that does not overlap with this one, nor with the server's."""


class DailyCaps:
    """The caps of one process's accounts, from which the transaction of its intents takes units."""

    def __init__(self, caps: Mapping[str, AccountCap]) -> None:
        """Take the caps by the APIs of their accounts; accounts without a cap are left out."""
        self._caps = caps

    def take(self, db: psycopg.Connection, wanted: Sequence[str]) -> Sequence[bool]:
        """Take a unit for each intent whose account has a cap, in the transaction that writes intents."""
        wishes = Counter(api for api in wanted if api in self._caps)
        # All processes take them in the same order, so that no two wait for each other.
        left = {
            api: _row(db, _TAKE, *self._caps[api], wishes[api])[0]
            for api in sorted(wishes, key=lambda api: self._caps[api].scope)
        }
        granted = []
        for api in wanted:
            granted.append(left.get(api, 1) > 0)
            if api in left:
                left[api] -= 1
        return granted


class PostgresCap:
    """The cap of one account, for the gate; `DailyCaps` takes its units when an intent is written."""

    def __init__(self, database: Database, cap: AccountCap) -> None:
        self._database = database
        self._cap = cap

    async def resets_at(self) -> datetime:
        """When units return: UTC midnight, or in a rolling window the next unit's return, or now."""
        return await self._database.run_in_thread(self._resets_at)

    async def is_spent(self) -> bool:
        """True if no unit is left now, whichever process took the last."""
        count = await self._database.run_in_thread(self._count)
        return count.now < count.closed_until or count.used >= self._cap.cap

    async def close_for_today(self) -> None:
        """Record that the server reports the cap as used up: for all hosts, for this UTC day or 24 hours."""
        await self._database.run_in_thread(lambda db: db.execute(_CLOSE, self._cap))

    async def go_by(self, server_now: datetime) -> None:
        """Count in the server's day too: its replies agree on this time.

        Units taken since either day began count. After the database's clock ran ahead, the latest time is set
        back, but never to before that clock. No server's reply closes a cap for longer than a day.
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
                [second] = _row(db, _UNIT, cap.scope, count.counted_from, excess_count + 1)
                free_at = second + _DAY_S + EDGE_S
            else:
                free_at = count.now
        return datetime.fromtimestamp(max(free_at, count.closed_until), UTC)

    def _count(self, db: psycopg.Connection) -> _Count:
        """The present count of a cap, locked until the end of the transaction."""
        return _Count(*_row(db, _NOW, *self._cap))


def _row(db: psycopg.Connection, query: str, *values: object) -> tuple[Any, ...]:
    row = db.execute(query.encode(), values).fetchone()
    assert row is not None
    return row
