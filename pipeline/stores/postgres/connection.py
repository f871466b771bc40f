"""A connection to PostgreSQL that reconnects after it is lost, within a time limit.

Work on it must be idempotent, because the connection may be lost between COMMIT and its reply.
"""

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from errno import errorcode
from typing import Any, Self, TypeVar

import anyio.to_thread
import psycopg
import structlog
from psycopg import errors

from pipeline.errors import ConfigurationError, IncompleteError, PrecheckError
from pipeline.stores.postgres.address import LedgerAddress
from pipeline.stores.postgres.schema import STATEMENTS
from pipeline.stores.protocols import Closing, StoreClocks
from pipeline.wording import Sentence
from schemas.strict import timestamp

_PAUSES_S = (0.1, 0.2, 0.4, 0.8, 1.6)  # pauses between attempts to connect; the last one is repeated
_CONNECTING = {
    "autocommit": True,
    "prepare_threshold": 0,  # each statement here is used again and again
    "connect_timeout": 5,
    "client_encoding": "utf8",
    "application_name": "precheck",
    "target_session_attrs": "read-write",
    # A silent server is detected within seconds.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
# Commits survive a power loss. A process that was stopped inside a transaction does not block the others.
# A lock that another session holds for longer counts as an unavailable server.
_SYSTEM_TEXTS = {os.strerror(number): number for number in errorcode}
"""The text of a system error, as libpq quotes it -> its errno, for translation."""
_REFUSALS = {
    "root certificate file": Sentence("stores.ca_file_invalid"),
    "password authentication failed": Sentence("stores.password_refused"),
    "no password supplied": Sentence("stores.password_missing"),
    "no pg_hba.conf entry": Sentence("stores.not_in_hba"),
    'role "(?P<name>.*)" does not exist': Sentence("stores.no_user", name=""),
    'role "(?P<name>.*)" is not permitted to log in': Sentence("stores.may_not_log_in", name=""),
    'database "(?P<name>.*)" does not exist': Sentence("stores.no_database", name=""),
    "certificate verify failed": Sentence("stores.certificate_untrusted"),
    "server certificate for": Sentence("stores.certificate_of_other"),
    "does not support SSL": Sentence("stores.no_tls"),
    "permission denied for database": Sentence("stores.may_not_connect"),
}
"""Pattern in an error message of libpq or the server while connecting -> problem, remedy."""

T = TypeVar("T")
Params = Sequence[Any] | Mapping[str, Any]
Work = Callable[[psycopg.Connection], T]

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def first_row(db: psycopg.Connection, query: str, values: Params = ()) -> tuple[Any, ...] | None:
    """Return the first row of a result, which is sent in binary form; None if there is none."""
    return db.cursor(binary=True).execute(query.encode(), values).fetchone()


def only_row(db: psycopg.Connection, query: str, values: Params = ()) -> tuple[Any, ...]:
    """Return the row of a result that always has one."""
    row = first_row(db, query, values)
    assert row is not None
    return row


class _Outage:
    """A process's connections that wait for the server, and since when, to announce an outage only once."""

    def __init__(self) -> None:
        self._since: dict[int, tuple[datetime, float]] = {}
        self._began = 0.0
        self._lock = threading.Lock()

    def wait(self, connection: int, clocks: StoreClocks, place: str) -> tuple[datetime, float]:
        """Return when a connection began to wait, and how long it should; announce the start of an outage."""
        with self._lock:
            is_first = not self._since
            since, began = self._since.setdefault(connection, (clocks.now(), clocks.monotonic()))
            if is_first:
                self._began = began
        if is_first and clocks.wait_max_s > 0:
            log.warning(
                "the ledger's database does not answer; nothing is sent until it does",
                server=place,
                wait_max_s=round(clocks.wait_max_s),
            )
        return since, clocks.monotonic() - began

    def end(self, connection: int, clocks: StoreClocks, place: str) -> None:
        """Record that a connection is back; announce the end of the outage with the last one."""
        with self._lock:
            is_last = self._since.pop(connection, None) is not None and not self._since
        if is_last and clocks.wait_max_s > 0:
            waited_s = round(clocks.monotonic() - self._began)
            log.warning(
                "the ledger's database answers again; the run goes on", server=place, waited_s=waited_s
            )

    def forget(self, connection: int) -> None:
        with self._lock:
            self._since.pop(connection, None)


class Database(Closing):
    """One connection, used by one piece of work at a time, from any thread; opened when first used."""

    def __init__(self, address: LedgerAddress, clocks: StoreClocks, *, user: str | None = None) -> None:
        self.address = address
        self.clocks = clocks
        self._user = {} if user is None else {"user": user}
        self._connection: psycopg.Connection | None = None
        self.was_lost = False  # true after the server ended a connection: only then may it have lost data
        self._outage = _Outage()
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def another(self) -> Self:
        """Return a second connection to the same server."""
        twin = type(self)(self.address, self.clocks)
        twin._user = self._user  # noqa: SLF001 (same class)
        twin._outage = self._outage  # noqa: SLF001
        return twin

    def close(self) -> None:
        """Close the connection, and end all waiting for one. Safe to call twice."""
        self._closing.set()
        self._outage.forget(id(self))
        with self._lock:
            self._forget()

    @property
    def is_connected(self) -> bool:
        """True if there is a connection, as far as is known."""
        return self._connection is not None and not self._connection.closed

    def run(self, work: Work[T]) -> T:
        """Run `work`, retrying until the server answers (IncompleteError: the timeout); `work` may run twice.

        ConfigurationError: the server refuses access, or has no ledger of this version.
        """
        tries = 0
        while True:
            try:
                with self._lock:
                    done = work(self._connected())
            except psycopg.Error as error:
                if not self._is_lost(error):
                    raise self._explained(error) from error
                since, waited_s = self._outage.wait(id(self), self.clocks, self.address.place)
                if self._closing.is_set() or waited_s >= self.clocks.wait_max_s:
                    raise self._away(since, error) from None
                self._closing.wait(_PAUSES_S[min(tries, len(_PAUSES_S) - 1)])
                tries += 1
            else:
                self._outage.end(id(self), self.clocks, self.address.place)
                return done

    def try_once(self, work: Work[T]) -> T | None:
        """Run `work` if the server answers now; otherwise return None."""
        try:
            with self._lock:
                return work(self._connected())
        except psycopg.Error as error:
            if self._is_lost(error):
                return None
            raise
        except ConfigurationError:  # access refused, which a later write will report
            return None

    async def run_in_thread(self, work: Work[T]) -> T:
        """Like `run`, in a thread. If a task is cancelled, it is unknown whether its work was done."""
        return await anyio.to_thread.run_sync(self.run, work, abandon_on_cancel=True)

    def _connected(self) -> psycopg.Connection:
        if self._connection is not None and self._connection.closed:
            self._connection = None
        if self._connection is None:
            if self._closing.is_set():
                raise psycopg.OperationalError("closed")
            parameters = {**_CONNECTING, **self.address.parameters(), **self._user}
            try:
                self._connection = psycopg.connect(**parameters)  # type: ignore[arg-type]
            except psycopg.OperationalError as error:
                for pattern, what in _REFUSALS.items():
                    if (found := re.search(pattern, str(error))) is not None:
                        why = what.having(**found.groupdict())
                        message = Sentence("stores.refused", place=self.address.place, why=why)
                        raise ConfigurationError(message) from None
                raise
            self._connection.execute(STATEMENTS["connection.settings"])
        return self._connection

    def _is_lost(self, error: psycopg.Error) -> bool:
        """True if the server is gone or ended the connection; a connection in doubt is closed here."""
        with self._lock:
            is_lost = (
                isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
                or self._connection is None
                or self._connection.closed
            )
            if is_lost:
                self.was_lost = True
                self._forget()
        return is_lost

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _explained(self, error: psycopg.Error) -> Exception:
        """Return an error with advice for the user if the cause is known, or else the error itself, a bug."""
        match error:
            case errors.UndefinedTable() | errors.InvalidSchemaName():
                where = {"place": self.address.place, "database": repr(self.address.database)}
                return ConfigurationError(Sentence("stores.database_without_ledger", **where))
            case errors.ForeignKeyViolation() if self.was_lost:
                return self.has_forgotten()
            case errors.InsufficientPrivilege():
                return ConfigurationError(Sentence("stores.role_lacks_permission", place=self.address.place))
            case _:
                return error

    def has_forgotten(self) -> IncompleteError:
        """Return the error for acknowledged data that the server has lost."""
        return IncompleteError(
            Sentence("stores.database_lost_records", place=self.address.place),
            advice=Sentence("stores.check_database_and_rerun"),
        )

    def _away(self, since: datetime, error: psycopg.Error) -> PrecheckError:
        reason = (str(error).splitlines() or [""])[0].rpartition(": ")[2]
        return IncompleteError(
            Sentence(
                "stores.database_not_answering",
                place=self.address.place,
                timestamp=timestamp(since),
                reason=OSError(_SYSTEM_TEXTS[reason], reason) if reason in _SYSTEM_TEXTS else reason,
            )
        )
