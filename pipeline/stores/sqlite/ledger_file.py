"""The ledger's file: created atomically, and opened only if it is intact and made by this program."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import SecretStr

from pipeline.errors import LockedError, OtherRunError, OutputError, UsageError
from pipeline.files import disk_errors
from pipeline.files.atomic import sync_folder
from pipeline.files.folder_lock import locked, require_folder, shared
from pipeline.stores.sqlite import seals
from pipeline.stores.sqlite.seals import NameEncryption, altered, damaged
from pipeline.stores.values import NO_PROOF, LedgerProof, RunIdentity
from pipeline.wording import Sentence
from schemas.outcomes import Environment

_APPLICATION_ID = int.from_bytes(b"PCL1")
_SCHEMA_VERSION = 7
_SCHEMA = f"PRAGMA application_id = {_APPLICATION_ID}; PRAGMA user_version = {_SCHEMA_VERSION};\n" + files(
    "pipeline.stores.sqlite"
).joinpath("ledger.sql").read_text("utf-8")
# Triggers are checked too: a foreign one could change lines after their seals are verified.
_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
# FULL, because with NORMAL a power loss can lose acknowledged answers. EXCLUSIVE comes first: then the
# log needs no shared memory, and other programs are locked out.
_PRAGMAS = """
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
PRAGMA secure_delete = ON;
PRAGMA trusted_schema = OFF;
PRAGMA temp_store = MEMORY;
"""


@contextmanager
def opened(  # noqa: PLR0913 (as `SqliteLedger.open`)
    path: Path,
    identity: RunIdentity | None,
    *,
    now: str,
    fresh: bool,
    secret: SecretStr | None = None,
    proof: LedgerProof = NO_PROOF,
) -> Iterator[sqlite3.Connection]:
    """Open the folder's ledger, new or existing, exclusively for this process during the block.

    Without `identity`, the existing ledger of any run is opened. A new ledger encrypts names if there is a
    secret; for an existing one, call `NameEncryption.require` to check the secret. A ledger without answers
    becomes the ledger of the run that opens it, without proof. Same errors as `SqliteLedger.open`.
    """
    with ExitStack() as stack:
        with sqlite_errors(path):
            otherwise = () if identity is None else (Sentence("advice.other_folder"),)
            stack.enter_context(locked(path.parent, now, otherwise=otherwise))
            for ours in ledger_files(path):
                disk_errors.refuse_non_file(ours)
            if fresh:
                path.unlink(missing_ok=True)
            if identity is not None and not os.path.lexists(path):
                _create(path, identity, now, secret, proof)
            _require_ours(path, *otherwise)
            # Used by the event loop's thread and by a commit's worker thread, but never by both at once.
            db = sqlite3.connect(path, isolation_level=None, timeout=0.5, check_same_thread=False)
            stack.enter_context(closing(db))
            db.executescript(_PRAGMAS)
            _require_sound(path, db, proof)
            if identity is None:
                seals.require_proved(path, db, proof)
            elif _binds(db):
                _require_same_run(path, db, identity)
                seals.require_key(path, db, proof)
                seals.require_proved(path, db, proof)
            else:
                _make_its_own(path, db, identity, now, secret)
        yield db


@contextmanager
def opened_to_read(
    path: Path, *, now: str, alone: bool = False, proof: LedgerProof = NO_PROOF
) -> Iterator[sqlite3.Connection]:
    """Open a folder's existing ledger for reading, shared with other readers unless `alone`.

    Jobs that write other files of the folder pass `alone`. The disk may be read-only, unless a killed run
    left a log that is not yet merged into the ledger: it is replayed first, as the next run would do.
    UsageError: there is no ledger. LockedError: a run, an exclusive job or, with `alone`, a reader has it.
    InputError, OutputError, DiskError: see `SqliteLedger.open`.
    """
    require_ledger(path)
    with ExitStack() as stack:
        with sqlite_errors(path):
            log = path.with_name(path.name + "-wal")
            if log.exists() and log.stat().st_size:
                with opened(path, None, now=now, fresh=False):
                    pass  # closing merges the log
            stack.enter_context(locked(path.parent, now) if alone else shared(path.parent))
            _require_ours(path)
            # No process writes while the lock is held, so SQLite needs no other files.
            address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
            db = stack.enter_context(closing(sqlite3.connect(address, uri=True, isolation_level=None)))
            db.executescript("PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY;")
            _require_sound(path, db, proof)
            seals.require_proved(path, db, proof)
        yield db


def ledger_files(path: Path) -> tuple[Path, ...]:
    """Return a ledger's file, its temporary name during creation, and the files SQLite keeps beside it."""
    return (path, *(path.with_name(path.name + suffix) for suffix in (".new", "-wal", "-shm")))


def require_ledger(path: Path) -> None:
    """Refuse a folder without a readable run; same errors as `require_folder`."""
    require_folder(path.parent)
    if not os.path.lexists(path):
        raise UsageError(Sentence("stores.no_ledger_in_folder", parent=path.parent))


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn errors of the system and of SQLite into errors of this program."""
    try:
        yield
    except OSError as error:
        raise disk_errors.not_writable(path, error) from error
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            raise LockedError(Sentence("stores.ledger_in_use", path=path)) from error
        if disk_errors.is_full_or_failed(error):
            raise disk_errors.write_failed(path, error) from error
        raise damaged(path, disk_errors.sqlite_code(error)) from error
    except UnicodeDecodeError as error:  # SQLite quotes text from a damaged file
        raise damaged(path, Sentence("stores.found_not_utf_8")) from error


def _create(
    path: Path, identity: RunIdentity, now: str, secret: SecretStr | None, proof: LedgerProof
) -> None:
    """Create the ledger under another name and move it into place, so that it is never seen incomplete."""
    _, growing, *logs = ledger_files(path)
    for stale in (growing, *logs):
        stale.unlink(missing_ok=True)  # otherwise a log without its ledger would be replayed into the new one
    os.close(os.open(growing, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    with closing(sqlite3.connect(growing, isolation_level=None)) as db:
        db.executescript("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = FULL; BEGIN;" + _SCHEMA)
        run_key = os.urandom(32)
        name_proof = NameEncryption.under(secret, run_key, path).proof
        seals.register_seal(db, run_key, proof.signing_key(run_key))
        db.execute(seals.insertion("run"), (*identity, now, run_key, name_proof))
        db.execute("COMMIT")
    growing.rename(path)
    sync_folder(path.parent)


def _require_ours(path: Path, *otherwise: Sentence) -> None:
    """Check the file's header before SQLite opens it, so that foreign files are refused unchanged."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        header = os.pread(descriptor, 100, 0)
    finally:
        os.close(descriptor)
    if header[:16] != b"SQLite format 3\0" or int.from_bytes(header[68:72]) != _APPLICATION_ID:
        raise OutputError(
            Sentence("stores.not_a_ledger", path=path), advice=(*otherwise, Sentence("advice.start_over"))
        )
    if int.from_bytes(header[60:64]) != _SCHEMA_VERSION:
        raise OutputError(
            Sentence("stores.ledger_of_other_version", path=path),
            advice=(Sentence("stores.use_that_version"), Sentence("advice.start_over")),
        )


def _require_sound(path: Path, db: sqlite3.Connection, proof: LedgerProof) -> None:
    [finding] = db.execute("PRAGMA quick_check(1)").fetchone()
    if finding != "ok":
        raise damaged(path, finding)
    if db.execute(_OBJECTS).fetchall() != _objects():
        raise altered(path, Sentence("stores.found_other_tables"))
    runs = db.execute("SELECT run_key FROM run").fetchall()
    if len(runs) != 1:
        raise altered(path, Sentence("stores.found_no_run"))
    [[run_key]] = runs
    seals.register_seal(db, run_key, proof.signing_key(run_key))
    if (changed := seals.first_broken_seal(db)) is not None:
        raise altered(path, changed)


@cache
def _objects() -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as model:
        model.executescript(_SCHEMA)
        return model.execute(_OBJECTS).fetchall()


def _binds(db: sqlite3.Connection) -> bool:
    """True if the ledger belongs to its run, by a request, an answer, or an import that has begun."""
    [has_any] = db.execute(
        "SELECT EXISTS(SELECT 1 FROM answer) OR EXISTS(SELECT 1 FROM reuse)"
        " OR EXISTS(SELECT 1 FROM intent WHERE id NOT IN (SELECT intent FROM failure))"
        " OR EXISTS(SELECT 1 FROM run, language WHERE run.environment = ?)",
        (Environment.BANK.value,),
    ).fetchone()
    return bool(has_any)


def _make_its_own(
    path: Path, db: sqlite3.Connection, identity: RunIdentity, now: str, secret: SecretStr | None
) -> None:
    """Turn the ledger of a run without answers into a new ledger for another run."""
    *recorded, run_key, name_proof, is_sealed = db.execute(
        "SELECT input_sha256, profile_sha256, environment, run_key, name_proof,"  # noqa: S608 (a constant)
        f" seal IS {seals.new_seal('run')} FROM run"
    ).fetchone()
    names = NameEncryption.under(secret, run_key, path)
    if recorded == [*identity[:3]] and names.proves(name_proof) and is_sealed:
        return
    with db:
        db.execute("BEGIN IMMEDIATE")
        for table in ("problem", "failure", "intent", "finish", "purge", "allowance", "language", "run"):
            db.execute(f"DELETE FROM {table}")  # noqa: S608 (a constant)
        db.execute(seals.insertion("run"), (*identity, now, run_key, names.proof))


def _require_same_run(path: Path, db: sqlite3.Connection, identity: RunIdentity) -> None:
    recorded = db.execute("SELECT input_sha256, profile_sha256, environment FROM run").fetchone()
    keys = ("stores.of_other_input", "stores.of_other_profile", "stores.of_other_environment")
    for key, ours, theirs in zip(keys, identity, recorded, strict=False):
        if ours != theirs:
            raise OtherRunError(
                Sentence(key, folder=path.parent),
                advice=(Sentence("advice.other_folder"), Sentence("advice.start_over")),
            )
