"""A real PostgreSQL for tests: `fsync` on, unprivileged, on a free loopback port, gone with the session.

`postgres` is the server, `ledger_database` a database for one test with the tables of the ledger in it, and
`proxy_to` a way to it that can be cut wherever a test likes.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

OWNER, RUNNER = "keeper", "runner"
LEDGER_KEY = SecretStr("the key that these tests hide names under")
STATE = [
    "SELECT version, salt, hidden_key FROM precheck.store",
    "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE tgenabled <> 'O'",
    """SELECT count(*) FROM pg_db_role_setting
    WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())""",
]
"""What a test may have changed of a ledger that is no line."""


def programs():
    """The folder of initdb and pg_ctl, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class PostgresServer:
    """One server, with databases for tests."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self.port = _free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="precheck-postgres-"))
        self._data, self._log = self.folder / "data", self.folder / "log"
        self._numbers = count(1)
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        self._call(
            "initdb",
            "-D",
            self._data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        )
        settings = [
            f"port = {self.port}",
            "listen_addresses = '127.0.0.1'",
            f"unix_socket_directories = '{self.folder}'",
            "shared_buffers = 32MB",
            "max_connections = 60",
            "fsync = on",
            "autovacuum_naptime = 1h",
        ]
        with (self._data / "postgresql.conf").open("a") as file:
            file.write("\n".join(settings) + "\n")

    @property
    def _unprivileged(self):
        """What stands before a command, as the server does not run as root."""
        ours = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        return ours if os.geteuid() == 0 else []

    def _call(self, program, *words):
        command = [*self._unprivileged, self._programs / program, *words]
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(self.folder)}
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout

    def _control(self, *words):
        # Its output is a pipe of ours no longer than pg_ctl runs: the server writes to its log.
        self._call("pg_ctl", "-D", self._data, "-l", self._log, "-s", "-w", *words)

    def start(self):
        self._control("start")

    def stop(self, how="fast"):
        """`fast` ends every connection; `immediate` is a crash."""
        self._control("stop", "-m", how)

    def restart(self, how="immediate"):
        self.stop(how)
        self.start()

    def url(self, database, user=RUNNER, port=None):
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}"

    def connect(self, database="postgres", user="postgres"):
        """A connection of the test's own, as the superuser unless said."""
        return psycopg.connect(self.url(database, user), autocommit=True)

    def require_roles(self):
        with self.connect() as db:
            db.execute(f"CREATE ROLE {OWNER} LOGIN")
            db.execute(f"CREATE ROLE {RUNNER} LOGIN")

    def empty_database(self, template="template0"):
        """A new database, which the owner of ledgers owns, by its name."""
        name = f"test_{next(self._numbers)}"
        with self.connect() as db:
            db.execute(f"CREATE DATABASE {name} OWNER {OWNER} TEMPLATE {template}")
        return name

    @contextmanager
    def requiring_passwords(self):
        """Let the role of the runs in by its password alone until the block ends."""
        rules = self._data / "pg_hba.conf"
        before = rules.read_text()
        with self.connect() as db:
            db.execute(f"ALTER ROLE {RUNNER} PASSWORD 'right'")
            try:
                rules.write_text(f"host all {RUNNER} all scram-sha-256\n{before}")
                db.execute("SELECT pg_reload_conf()")
                self._wait_for_rules(is_there=True)
                yield
            finally:
                rules.write_text(before)
                db.execute("SELECT pg_reload_conf()")
                self._wait_for_rules(is_there=False)

    def _wait_for_rules(self, *, is_there):
        """Until a new connection is judged by the rules as they are now."""
        for _ in range(200):
            try:
                psycopg.connect(self.url("postgres", RUNNER), password="wrong", passfile="/dev/null").close()
                is_strict = False
            except psycopg.OperationalError:
                is_strict = True
            if is_strict == is_there:
                return
            time.sleep(0.05)
        raise AssertionError("the server does not read its pg_hba.conf")

    @contextmanager
    def replicated(self):
        """Have an asynchronous replica until the block ends: one that only receives what is written."""
        words = ["-D", self.folder, "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "--no-loop"]
        command = [*self._unprivileged, self._programs / "pg_receivewal", *words]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as receiving, self.connect() as db:
            try:
                for _ in range(200):
                    [count_] = db.execute("SELECT count(*) FROM pg_stat_replication").fetchone()
                    if count_:
                        break
                    time.sleep(0.05)
                yield db
            finally:
                receiving.terminate()

    def close(self):
        with suppress(AssertionError):  # a test may have stopped it
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres():
    """The server, with the two roles of a ledger."""
    found = programs()
    if found is None:
        pytest.skip("no PostgreSQL; `make tools` fetches it")
    server = PostgresServer(found)
    try:
        server.start()
        server.require_roles()
        yield server
    finally:
        server.close()


class LedgerDatabases:
    """Databases with the tables of a ledger, under `LEDGER_KEY`; used again, as a copy takes a second.

    One in which a test has changed more than lines is not."""

    def __init__(self, postgres):
        from pipeline.stores.postgres import cared_for

        self._postgres = postgres
        self._template = postgres.empty_database()
        with cared_for(postgres.url(self._template, OWNER), clocks(20.0)) as care:
            care.create(LEDGER_KEY, grant_to=RUNNER)
        self._pristine = self._state(self._template)
        self._free = []

    def take(self):
        """One without a line, by its name."""
        return self._free.pop() if self._free else self._postgres.empty_database(self._template)

    def put_back(self, name):
        with suppress(psycopg.OperationalError):  # a test may have stopped the server
            self.empty(name)
            if self._state(name) == self._pristine:
                self._free.append(name)

    def empty(self, name):
        """Delete every line, and end every connection."""
        with self._postgres.connect(name) as db:
            db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            db.execute("SET session_replication_role = replica")  # no trigger
            kinds = dict.fromkeys(("r", "S"), "")
            for kind in kinds:
                kinds[kind] = db.execute(
                    "SELECT oid::regclass::text FROM pg_class"
                    " WHERE relnamespace = 'precheck'::regnamespace AND relkind = %s",
                    (kind,),
                ).fetchall()
            with db.transaction():
                for (table,) in kinds["r"]:
                    if table != "precheck.store":
                        db.execute(f"DELETE FROM {table}")
                for (sequence,) in kinds["S"]:
                    db.execute("SELECT setval(%s, 1, false)", (sequence,))

    def _state(self, name):
        with self._postgres.connect(name) as db:
            return [db.execute(query).fetchall() for query in STATE]


@pytest.fixture(scope="session")
def ledger_databases(postgres):
    """Where tests get a ledger of their own from."""
    return LedgerDatabases(postgres)


def clocks(wait_max_s=20.0):
    """Real clocks for a store."""
    from datetime import UTC, datetime

    from pipeline.stores.protocols import StoreClocks

    return StoreClocks(lambda: datetime.now(UTC), time.monotonic, wait_max_s)


def database_of(postgres, name, user=RUNNER, *, port=None, wait_max_s=20.0):
    """The product's own connection to a database."""
    from pipeline.stores.postgres.address import parsed
    from pipeline.stores.postgres.connection import Database

    return Database(parsed(postgres.url(name, user, port)), clocks(wait_max_s))


@pytest.fixture
def ledger_database(ledger_databases):
    """The name of a database of this test's own, with the tables of a ledger."""
    name = ledger_databases.take()
    yield name
    ledger_databases.put_back(name)


@pytest.fixture
def proxy_to():
    """Ways to a port, each closed at the end of the test: `proxy_to(port) -> CuttingProxy`."""
    made = []

    def make(port):
        made.append(CuttingProxy(port))
        return made[-1]

    yield make
    for proxy in made:
        proxy.close()


class CuttingProxy:
    """A TCP proxy to PostgreSQL that loses connections on purpose.

    `cut_reply(needle)`: the next request with these bytes in it is carried out, and its reply is lost.
    `cut_request(needle)`: the connection ends before the request arrives. `cut_reply_of(number)` counts
    requests from 1, whatever is in them. Each happens once. `close_door` and `open_door`: no new connection,
    and the end of those that there are.
    """

    def __init__(self, port):
        self._to = port
        self._connections = []
        self._needle, self._is_reply, self._left = None, False, 0
        self.cut_count = 0
        self.seen = threading.Event()
        self._lock = threading.Lock()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._door = None
        self.open_door()

    def cut_reply(self, needle):
        self._needle, self._is_reply = needle, True

    def cut_request(self, needle):
        self._needle, self._is_reply = needle, False

    def cut_reply_of(self, number, *, or_request=False):
        self._needle, self._is_reply, self._left = b"", not or_request, number

    def open_door(self):
        door = socket.create_server(("127.0.0.1", self.port))
        self._door = door
        threading.Thread(target=self._accept, args=(door,), daemon=True).start()

    def close_door(self):
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        with self._lock:
            ending, self._connections = self._connections, []
        for one in ending:
            _end(one)

    def close(self):
        with suppress(OSError):
            self.close_door()

    def _accept(self, door):
        while True:
            try:
                client, _ = door.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._connections += [client, server]
            losing = threading.Event()
            threading.Thread(target=self._ask, args=(client, server, losing), daemon=True).start()
            threading.Thread(target=self._reply, args=(client, server, losing), daemon=True).start()

    def _is_due(self):
        self._left -= 1
        return self._left <= 0

    def _ask(self, client, server, losing):
        for data in _read(client):
            if self._needle is not None and self._needle in data and self._is_due():
                self._needle = None
                self.cut_count += 1
                if not self._is_reply:
                    break
                losing.set()
            try:
                server.sendall(data)
            except OSError:
                break
        _end(client)
        _end(server)

    def _reply(self, client, server, losing):
        for data in _read(server):
            if losing.is_set():
                # ReadyForQuery ends a reply: what was asked for is done, and committed.
                if data.endswith((b"Z\0\0\0\x05I", b"Z\0\0\0\x05T", b"Z\0\0\0\x05E")):
                    break
                continue
            try:
                client.sendall(data)
            except OSError:
                break
        _end(client)
        _end(server)


def _read(end):
    while True:
        try:
            data = end.recv(1 << 16)
        except OSError:
            return
        if not data:
            return
        yield data


def _end(one):
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
