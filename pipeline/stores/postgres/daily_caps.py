"""The daily caps of accounts, counted for all hosts in the transaction that writes the intents.

A unit is one request that may leave, repeats included; as many are taken as intents are written, by however
many processes, whatever kills them. It is counted as `sqlite.quota` does, by the clock of the database: what
was taken in the last `EDGE_S` seconds before a window opens counts in that window too, and time does not go
back but after a clock that ran ahead, once a server's replies agree on an earlier time. Units are counted by
the second, rounded up, and in the server's day as well where that is another. Functions of the ledger's
owner, in `schema.sql`, count them: no role of a run can set back what was taken.
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
"""How long before a window opens a request may still be on its way whose unit was taken."""
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
    """What was taken in this second and before it is in no window any more."""
    closed_until: int
    now: float
    opens: float
    """When the earliest window opens that has no moment in common with this one, nor with the server's."""


class DailyCaps:
    """The caps of the accounts of one process, as the transaction of its intents takes from them."""

    def __init__(self, caps: Mapping[str, AccountCap]) -> None:
        """Take the caps by the APIs of their accounts; one without a cap is left out."""
        self._caps = caps

    def take(self, db: psycopg.Connection, wanted: Sequence[str]) -> Sequence[bool]:
        """Take a unit for each intent whose account has one, in the transaction that writes intents."""
        wishes = Counter(api for api in wanted if api in self._caps)
        # All processes take them in the same order, so that no two wait for one another.
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
    """The cap of one account, for the gate; `DailyCaps` takes its units, where an intent is written."""

    def __init__(self, database: Database, cap: AccountCap) -> None:
        self._database = database
        self._cap = cap

    async def resets_at(self) -> datetime:
        """When units return: UTC midnight, or in a rolling window the next unit's return, or now."""
        return await self._database.run_in_thread(self._resets_at)

    async def is_spent(self) -> bool:
        """True if no unit is left now, of whichever process took the last."""
        count = await self._database.run_in_thread(self._count)
        return count.now < count.closed_until or count.used >= self._cap.cap

    async def close_for_today(self) -> None:
        """Take the server's word that nothing is left: for all hosts, in this UTC day or for 24 hours."""
        await self._database.run_in_thread(lambda db: db.execute(_CLOSE, self._cap))

    async def go_by(self, server_now: datetime) -> None:
        """Count in the server's day too: its replies agree on this time.

        What was taken since either day began counts. After a clock of the database that ran ahead, the latest
        time is set back, never to before that clock. Nothing that a server says closes a cap for longer than
        a day.
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
