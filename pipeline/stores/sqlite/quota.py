"""The daily cap of a server, counted for all processes of this user together.

A unit is one request, including repeats. It is taken before the request is sent and never returned: a crash
can waste a unit, but no unit is used twice. The count survives kills and power loss.

The server's clock differs from ours, and it may count a request just after midnight that was reserved just
before. So units of the last `EDGE_S` seconds before a window count in that window too. Each scope stores the
latest time that it has seen, so setting a clock back opens no new day. If a clock ran ahead, the scope counts
by that time until it is reached, or until the server's replies agree on an earlier one. While the clocks are
known to differ, units taken since the start of either day count.

The file is a SQLite database with a rollback journal, never a write-ahead log, which SQLite before 3.51.3 can
corrupt when several processes share it. It must be on a local disk, and counts only one machine: two machines
that share a client need half the cap each.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, assert_never

import anyio.to_thread

from pipeline.errors import DiskError, IncompleteError, OutputError
from pipeline.files.disk_errors import is_full_or_failed, not_writable, sqlite_code, write_failed
from pipeline.stores.protocols import Closing
from pipeline.stores.values import Window
from pipeline.wording import Sentence

EDGE_S = 30  # a request reserved this long before a window may still arrive within it
BUSY_MAX_S = 30  # how long to wait for other processes, each of which locks the file for milliseconds

_DAY_MS = 86_400_000
_EDGE_MS = EDGE_S * 1000
_KEPT_MS = 8 * _DAY_MS  # a week of history; counting needs only two days
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)

_APPLICATION_ID = int.from_bytes(b"PCQ3")
_PRAGMAS = (
    "PRAGMA journal_mode = DELETE",
    # EXTRA is FULL that also syncs the deletion of the journal. With FULL alone a power loss may undo the
    # last reservation although its request was sent.
    "PRAGMA synchronous = EXTRA",
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = OFF",
)
SCHEMA = (
    f"PRAGMA application_id = {_APPLICATION_ID}",
    """CREATE TABLE scope(
        scope TEXT PRIMARY KEY, cap INTEGER NOT NULL,
        kind TEXT NOT NULL CHECK(kind IN ('utc_day', 'rolling_24h')),
        latest_ms INTEGER NOT NULL, closed_until_ms INTEGER NOT NULL DEFAULT 0,
        ahead_ms INTEGER NOT NULL DEFAULT 0) STRICT""",  # the server's clock, as its replies agree
    # also_ms: when it was taken by the server's clock, if that is on another day; else 0. seat: how many the
    # window holds with this one. The CHECK is the last guard: not even a bug in the counting can write a seat
    # beyond the cap.
    """CREATE TABLE reservation(
        id INTEGER PRIMARY KEY, scope TEXT NOT NULL REFERENCES scope, time_ms INTEGER NOT NULL,
        cap INTEGER NOT NULL, seat INTEGER NOT NULL CHECK(seat BETWEEN 1 AND cap),
        also_ms INTEGER NOT NULL DEFAULT 0) STRICT""",
    "CREATE INDEX reservation_by_time ON reservation(scope, time_ms)",
    "CREATE INDEX reservation_by_server_time ON reservation(scope, also_ms)",
)
_TAKEN = (
    "FROM reservation WHERE scope = ?1 AND (time_ms > ?2 AND time_ms <= ?3 OR also_ms > ?2 AND also_ms <= ?3)"
)


class QuotaUse(NamedTuple):
    """How much one client has used of a server's cap, as last configured."""

    scope: str  # returned by `scopes.scope_of`
    window: Window
    used_count: int
    cap: int
    closed: bool  # True if the server itself reported that the day's cap is used up
    resets_at: datetime


class SqliteQuota(Closing):
    """One client's cap at a server, usable from any thread; changed caps take effect at once."""

    def __init__(
        self, path: Path, *, scope: str, cap: int, window: Window, clock: Callable[[], datetime]
    ) -> None:
        """Open the shared count, creating its file if missing (OutputError: impossible, or not a count).

        All processes and scopes of a user share the file, which is private (0600), as is its folder (0700). A
        window is a UTC day, or any 24 hours, which is safe for any day that the server counts by. DiskError:
        the disk is full, or the file is damaged or unreadable; IncompleteError: others locked it until the
        timeout.
        """
        self._path = path
        self._scope = scope
        self._cap = cap
        self._window: Window = window
        self._clock = clock
        self._first_taken: int | None = None
        self._clock_is_wrong = False
        self._one_at_a_time = threading.Lock()  # a connection can have only one transaction at a time
        self._db = self._opened()
        try:
            with self._transaction() as db:
                db.execute(
                    "INSERT INTO scope(scope, cap, kind, latest_ms) VALUES(?, ?, ?, ?)"
                    " ON CONFLICT(scope) DO UPDATE SET cap = excluded.cap, kind = excluded.kind",
                    (scope, cap, window, _ms(clock())),
                )
        except BaseException:
            self.close()
            raise

    def _opened(self) -> sqlite3.Connection:
        _create(self._path)
        return _connected(self._path)

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self._db.close()

    def reserve(self, spare_count: int = 0) -> bool:
        """See `Quota.reserve`; `spare_count` units must remain, for more important requests.

        No unit is granted if `go_by` found our clock on a different day from the server's.
        """
        with self._transaction() as db:
            count = self._count(db)
            if self._clock_is_wrong or count.closed or count.used_count + spare_count >= self._cap:
                return False
            db.execute("UPDATE scope SET latest_ms = ? WHERE scope = ?", (count.now_ms, self._scope))
            db.execute(
                "DELETE FROM reservation WHERE scope = ?1 AND max(time_ms, also_ms) < ?2",
                (self._scope, count.now_ms - _KEPT_MS),
            )
            taken = db.execute(
                "INSERT INTO reservation(scope, time_ms, cap, seat) VALUES(?, ?, ?, ?)",
                (self._scope, count.now_ms, self._cap, count.used_count + 1),
            )
            self._first_taken = self._first_taken or taken.lastrowid
        return True

    def used(self) -> int:
        """Count the units taken in the current window, by all processes."""
        with self._transaction() as db:
            return self._count(db).used_count

    def resets_at(self) -> datetime:
        """When units become available: UTC midnight or, in a rolling window, the next expiry, maybe now."""
        with self._transaction() as db:
            return _resets_at(db, self._scope, self._count(db), self._cap)

    def close_for_today(self) -> None:
        """Record that the server reports the cap as used up, for this UTC day or for 24 hours."""
        with self._transaction() as db:
            count = self._count(db)
            db.execute(
                "UPDATE scope SET latest_ms = ?, closed_until_ms = ? WHERE scope = ?",
                (count.now_ms, max(count.closed_until_ms, count.next_window_ms), self._scope),
            )

    def go_by(self, server_now: datetime) -> None:
        """Count in the server's day too, because its replies agree on this time.

        That day then includes units that this process took on another day, units of any process that are
        ahead of the server, and all units from now on. The latest time is never set ahead, so no reply closes
        a scope for longer than a day.
        """
        with self._transaction() as db:
            now_ms = _ms(server_now)
            ahead_ms = now_ms - _ms(self._clock())
            self._clock_is_wrong = abs(ahead_ms) > _DAY_MS // 2
            db.execute(
                "UPDATE reservation SET also_ms = ?2"
                " WHERE scope = ?1 AND (time_ms > ?2 + ?3 OR id >= ?4 AND time_ms <= ?5)",
                (
                    self._scope,
                    now_ms,
                    _EDGE_MS,
                    self._first_taken if self._clock_is_wrong else None,
                    _window_start_ms(self._window, now_ms) - _EDGE_MS,
                ),
            )
            db.execute(
                "UPDATE scope SET latest_ms = min(latest_ms, ?2), ahead_ms = ?3 WHERE scope = ?1",
                (self._scope, now_ms, 0 if self._clock_is_wrong else ahead_ms),
            )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._one_at_a_time, count_errors(self._path), self._db:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db

    def _count(self, db: sqlite3.Connection) -> "_Count":
        return _counted(db, self._scope, self._window, self._clock())


def usage(path: Path, now: datetime) -> list[QuotaUse]:
    """Return the usage of every scope, sorted by name; [] without a file. Same errors as `SqliteQuota`."""
    if not path.exists():
        return []
    with count_errors(path), closing(_connected(path)) as db:
        db.execute("BEGIN")  # all rows are read at the same moment
        scopes = db.execute("SELECT scope, kind, cap FROM scope ORDER BY scope").fetchall()
        return [_use(db, scope, window, cap, now) for scope, window, cap in scopes]


def _use(db: sqlite3.Connection, scope: str, window: Window, cap: int, now: datetime) -> QuotaUse:
    count = _counted(db, scope, window, now)
    return QuotaUse(scope, window, count.used_count, cap, count.closed, _resets_at(db, scope, count, cap))


class _Count(NamedTuple):
    window: Window
    now_ms: int
    closed_until_ms: int
    ahead_ms: int
    used_count: int  # reservations that count

    @property
    def closed(self) -> bool:
        return self.now_ms < self.closed_until_ms

    @property
    def start_ms(self) -> int:
        return _window_start_ms(self.window, self.now_ms)

    @property
    def next_window_ms(self) -> int:
        """The start of the next window that does not overlap with the current one."""
        if self.window == "rolling_24h":
            return self.now_ms + _DAY_MS
        server_start_ms = _window_start_ms(self.window, self.now_ms + self.ahead_ms) - self.ahead_ms
        return max(self.start_ms, server_start_ms) + _DAY_MS


def _counted(db: sqlite3.Connection, scope: str, window: Window, now: datetime) -> _Count:
    latest_ms, closed_until_ms, ahead_ms = db.execute(
        "SELECT latest_ms, closed_until_ms, ahead_ms FROM scope WHERE scope = ?", (scope,)
    ).fetchone()
    now_ms = max(_ms(now), latest_ms)
    if closed_until_ms > now_ms + _DAY_MS:  # set by a clock that ran ahead: no server closes for over a day
        closed_until_ms = 0
    # The server's day may differ from ours: units taken since the start of either day count.
    start_ms = min(_window_start_ms(window, now_ms + ms) - ms for ms in (0, ahead_ms))
    bounds = start_ms - _EDGE_MS, now_ms + _EDGE_MS
    [used_count] = db.execute(f"SELECT count(*) {_TAKEN}", (scope, *bounds)).fetchone()
    return _Count(window, now_ms, closed_until_ms, ahead_ms, used_count)


def _resets_at(db: sqlite3.Connection, scope: str, count: _Count, cap: int) -> datetime:
    excess_count = count.used_count - cap
    if count.window == "utc_day" or cap == 0:
        free_ms = count.next_window_ms
    elif excess_count >= 0:
        [oldest_kept_ms] = db.execute(
            "SELECT max(iif(time_ms <= ?3, time_ms, 0), iif(also_ms <= ?3, also_ms, 0)) AS taken_ms"
            f" {_TAKEN} ORDER BY taken_ms LIMIT 1 OFFSET ?4",
            (scope, count.start_ms - _EDGE_MS, count.now_ms + _EDGE_MS, excess_count),
        ).fetchone()
        free_ms = oldest_kept_ms + _DAY_MS + _EDGE_MS
    else:
        free_ms = count.now_ms
    return _time(max(free_ms, count.closed_until_ms))


def _window_start_ms(window: Window, now_ms: int) -> int:
    match window:
        case "utc_day":
            return now_ms - now_ms % _DAY_MS
        case "rolling_24h":
            return now_ms - _DAY_MS
        case _:
            assert_never(window)


def _create(path: Path) -> None:
    """Create the folder and an empty file, private to this user, unless they exist.

    An existing file must not even be opened here: closing it would release the locks that SQLite holds on it
    elsewhere in this process.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise not_writable(path, error, otherwise=Sentence("stores.needs_state_home")) from error


def _connected(path: Path) -> sqlite3.Connection:
    if path.is_symlink() or not path.is_file():
        raise OutputError(Sentence("stores.count_file_not_regular", path=path))
    with count_errors(path):
        db = sqlite3.connect(path, isolation_level=None, timeout=BUSY_MAX_S, check_same_thread=False)
        try:
            _prepare(path, db)
        except BaseException:
            db.close()
            raise
        return db


def _prepare(path: Path, db: sqlite3.Connection) -> None:
    """Require that the file is ours and intact, or empty; create the tables in an empty one."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        [application_id] = db.execute("PRAGMA application_id").fetchone()
        [table_count] = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if table_count and application_id != _APPLICATION_ID:
            raise OutputError(Sentence("stores.not_a_count_file", path=path))
        if not table_count:
            for statement in SCHEMA:
                db.execute(statement)
    for pragma in _PRAGMAS:
        db.execute(pragma)
    [finding] = db.execute("PRAGMA quick_check(1)").fetchone()
    if finding != "ok":
        raise sqlite3.DatabaseError(finding)


@contextmanager
def count_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into errors of this program that say what to do."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise  # a bug of ours, not a disk error
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            busy = Sentence("stores.count_file_locked", path=path, busy_max_s=BUSY_MAX_S)
            raise IncompleteError(busy) from error
        if is_full_or_failed(error):
            raise write_failed(path, error) from error
        raise DiskError(Sentence("stores.count_file_damaged", path=path, error=sqlite_code(error))) from error


def _ms(time: datetime) -> int:
    return (time - _EPOCH) // _MS


def _time(ms: int) -> datetime:
    return _EPOCH + ms * _MS


class QuotaInThreads:
    """A `Quota` for tasks of an event loop, which must not block on the disk. Its owner closes it."""

    def __init__(self, quota: SqliteQuota) -> None:
        self._quota = quota

    async def reserve(self) -> bool:
        return await anyio.to_thread.run_sync(self._quota.reserve)

    async def resets_at(self) -> datetime:
        return await anyio.to_thread.run_sync(self._quota.resets_at)

    async def close_for_today(self) -> None:
        await anyio.to_thread.run_sync(self._quota.close_for_today)

    async def go_by(self, server_now: datetime) -> None:
        await anyio.to_thread.run_sync(self._quota.go_by, server_now)
