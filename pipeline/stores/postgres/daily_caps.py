"""The daily caps of accounts, counted for all hosts in the transaction that writes the intents.

A unit is one request that may leave, repeats included; as many are taken as intents are written, by however
many processes, whatever kills them. It is counted as `sqlite.quota` does, by the clock of the database: what
was taken in the last `EDGE_S` seconds before a window opens counts in that window too, and time does not go
back but after a clock that ran ahead, once a server's replies agree on an earlier time. Units are counted by
the second, rounded up, and in the server's day as well where that is another.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import ceil
from typing import Any, LiteralString, NamedTuple, assert_never

import psycopg

from pipeline.stores.postgres.connection import Database
from pipeline.stores.postgres.queries import STATEMENTS
from pipeline.stores.shared import AccountCap
from pipeline.stores.values import Window

EDGE_S = 30
"""How long before a window opens a request may still be on its way whose unit was taken."""
_DAY_S = 86_400

_ADD = "INSERT INTO precheck.daily_cap(scope, cap, kind) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
_READ = STATEMENTS["daily_caps.read"]
# The cap is that of whoever took units last: a smaller one makes no mistake of what was taken before.
_WRITE = STATEMENTS["daily_caps.write"]
_SUM = STATEMENTS["daily_caps.sum"]
_COUNT = STATEMENTS["daily_caps.count"]
_PUT_BACK = "UPDATE precheck.daily_cap SET used = used - %s WHERE scope = %s"
_UNCOUNT = "UPDATE precheck.units SET count = count - %s WHERE scope = %s AND second = %s"
_UNIT = STATEMENTS["daily_caps.unit"]
_AHEAD = STATEMENTS["daily_caps.ahead"]
_BRING_BACK = STATEMENTS["daily_caps.bring_back"]
_FORGET = "UPDATE precheck.units SET count = 0 WHERE scope = %s AND second > %s"
_CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"
_FOR_EVER = 1 << 40


class _Count(NamedTuple):
    """A cap at one moment. Times are seconds since the epoch."""

    used: int
    counted_from: int
    """What was taken in this second and before it is in no window any more."""
    closed_until: int
    now: float
    ahead: float
    """The server's clock, as its replies agree, minus that of the database."""


class DailyCaps:
    """The caps of the accounts of one process, as the transaction of its intents takes from them."""

    def __init__(self, caps: Mapping[str, AccountCap]) -> None:
        """Take the caps by the APIs of their accounts; one without a cap is left out."""
        self._caps = caps
        self._taken_at: dict[str, int] = {}  # scope -> the second that the current transaction counts in

    def take(self, db: psycopg.Connection, wanted: Sequence[str]) -> Sequence[bool]:
        """Take a unit for each intent, by its API, where its account has one left: which may be written.

        The transaction is the one that also writes the intents.
        """
        wishes = Counter(api for api in wanted if api in self._caps)
        # All processes take them in the same order, so that no two wait for one another.
        left = {
            api: self._taken(db, self._caps[api], wishes[api])
            for api in sorted(wishes, key=lambda api: self._caps[api].scope)
        }
        granted = []
        for api in wanted:
            granted.append(left.get(api, 1) > 0)
            if api in left:
                left[api] -= 1
        return granted

    def put_back(self, db: psycopg.Connection, unused: Sequence[str]) -> None:
        """Put back, in the same transaction, units whose intents were not written, by their APIs."""
        counted = Counter(self._caps[api].scope for api in unused if api in self._caps)
        for scope, count in counted.items():
            db.execute(_PUT_BACK, (count, scope))
            db.execute(_UNCOUNT, (count, scope, self._taken_at[scope]))

    def _taken(self, db: psycopg.Connection, cap: AccountCap, wish: int) -> int:
        """Take so many units, or as many as there are: how many."""
        count = _read(db, cap)
        left = 0 if count.now < count.closed_until else max(cap.cap - count.used, 0)
        taken = min(wish, left)
        if taken:
            self._taken_at[cap.scope] = ceil(count.now)
            db.execute(_COUNT, (cap.scope, ceil(count.now), taken))
        _write(db, cap, count._replace(used=count.used + taken), is_taken=taken > 0)
        return taken


class PostgresCap:
    """The cap of one account, for the gate; `DailyCaps` takes its units, where an intent is written."""

    def __init__(self, database: Database, cap: AccountCap) -> None:
        self._database = database
        self._cap = cap

    async def resets_at(self) -> datetime:
        """When there is more to take: UTC midnight, or in a rolling window the next unit's return.

        In a rolling window that is not full, that is now.
        """
        return await self._database.run_in_thread(self._resets_at)

    async def is_spent(self) -> bool:
        """Whether no unit is left now, of whichever process took the last."""
        return await self._database.run_in_thread(self._is_spent)

    async def close_for_today(self) -> None:
        """Take the server's word that nothing is left: for all hosts, in this UTC day or for 24 hours."""
        await self._database.run_in_thread(self._close)

    async def go_by(self, server_now: datetime) -> None:
        """Count in the server's day too: its replies agree on this time.

        What was taken since either day began counts. After a clock of the database that ran ahead, the latest
        time is set back, never to before that clock. Nothing that a server says closes a cap for longer than
        a day.
        """
        await self._database.run_in_thread(lambda db: self._go_by(db, server_now.timestamp()))

    def _resets_at(self, db: psycopg.Connection) -> datetime:
        cap = self._cap
        with db.transaction():
            count = _read(db, cap)
            excess_count = count.used - cap.cap
            if cap.window == "utc_day" or cap.cap == 0:
                free_at: float = _next_window(cap.window, count)
            elif excess_count >= 0:
                unit = db.execute(_UNIT, (cap.scope, count.counted_from, excess_count + 1)).fetchone()
                assert unit is not None
                free_at = unit[0] + _DAY_S + EDGE_S
            else:
                free_at = count.now
        return datetime.fromtimestamp(max(free_at, count.closed_until), UTC)

    def _is_spent(self, db: psycopg.Connection) -> bool:
        with db.transaction():
            count = _read(db, self._cap)
        return count.now < count.closed_until or count.used >= self._cap.cap

    def _close(self, db: psycopg.Connection) -> None:
        with db.transaction():
            count = _read(db, self._cap)
            until = max(count.closed_until, ceil(_next_window(self._cap.window, count)))
            _write(db, self._cap, count._replace(closed_until=until))

    def _go_by(self, db: psycopg.Connection, server_now: float) -> None:
        with db.transaction():
            count = _read(db, self._cap)
            now = max(_row(db, _CLOCK)[0], min(count.now, server_now))
            if count.now > now + EDGE_S:
                bound = now + _DAY_S
                db.execute(_BRING_BACK, {"scope": self._cap.scope, "after": bound, "second": ceil(now)})
                db.execute(_FORGET, (self._cap.scope, bound))
                if count.closed_until > bound:
                    count = count._replace(closed_until=0)
            db.execute(_AHEAD, (server_now - now, now, self._cap.scope))
            _write(db, self._cap, _read(db, self._cap)._replace(closed_until=count.closed_until))


def _read(db: psycopg.Connection, cap: AccountCap) -> _Count:
    """The count of a cap now, which nobody else changes before the end of the transaction."""
    row = db.execute(_READ, (cap.scope,)).fetchone()
    if row is None:
        db.execute(_ADD, (cap.scope, cap.cap, cap.window))
        row = db.execute(_READ, (cap.scope,)).fetchone()
    assert row is not None
    kind, used, counted_from, closed_until, now, ahead = row
    bound = int(min(_window_start(cap.window, now + s) - s for s in (0.0, ahead))) - EDGE_S
    if kind != cap.window or bound < counted_from:
        used = _units(db, cap.scope, bound, _FOR_EVER)
    elif bound > counted_from:
        used -= _units(db, cap.scope, counted_from, bound)
    return _Count(used, bound, closed_until, now, ahead)


def _units(db: psycopg.Connection, scope: str, after: int, until: int) -> int:
    return int(_row(db, _SUM, scope, after, until)[0])


def _row(db: psycopg.Connection, statement: LiteralString, *values: object) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = db.execute(statement, values).fetchone()
    assert row is not None
    return row


def _write(db: psycopg.Connection, cap: AccountCap, count: _Count, *, is_taken: bool = False) -> None:
    said = {"scope": cap.scope, "cap": cap.cap, "kind": cap.window, "is_taken": is_taken}
    db.execute(_WRITE, said | count._asdict())


def _window_start(window: Window, now: float) -> float:
    match window:
        case "utc_day":
            return now - now % _DAY_S
        case "rolling_24h":
            return now - _DAY_S
        case _:
            assert_never(window)


def _next_window(window: Window, count: _Count) -> float:
    """When the earliest window opens that has no moment in common with this one, nor with the server's."""
    if window == "rolling_24h":
        return count.now + _DAY_S
    return max(_window_start(window, count.now + s) - s for s in (0.0, count.ahead)) + _DAY_S
