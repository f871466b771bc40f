"""What a forger with write access to a folder can do who knows the format, and has no signing key."""

import hashlib
import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pipeline.stores.sqlite import seals
from pipeline.stores.sqlite.ledger_file import _SCHEMA as SCHEMA

_TRIGGERS = [part for part in SCHEMA.split("CREATE TRIGGER ") if part.startswith(("answer_", "reuse_"))]


@contextmanager
def forging(path: Path, *, reseals: bool = True) -> Iterator[sqlite3.Connection]:
    """A ledger without its triggers; afterwards its triggers and, on request, its seals are made anew."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        [run_key] = db.execute("SELECT run_key FROM run").fetchone()
        seals.register_seal(db, run_key)
        for [name] in db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        yield db
        if reseals:
            db.execute(
                "UPDATE answer SET name_seal = name_seal(name_salt, matched_name) WHERE matched_name <> ''"
            )
        for table in seals.SEALED if reseals else ():
            fresh = seals.new_seal(table)
            db.execute(f"UPDATE {table} SET seal = {fresh} WHERE substr(seal, 1, 32) IS NOT {fresh}")
        for trigger in _TRIGGERS:
            db.execute(f"CREATE TRIGGER {trigger.strip()}")


def forge(path: Path, *changes: str) -> None:
    """Change a ledger, seals and all."""
    with forging(path) as db:
        for change in changes:
            db.execute(change)


def fit_manifest(folder: Path) -> None:
    """Have the manifest of a folder say what its ledger and its outcome file are now."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    with closing(sqlite3.connect(folder / "ledger.db")) as db:
        manifest["ledger"]["digests"] = seals.digests(db, manifest["ledger"]["finish_count"])
    outcomes = folder / manifest["outcome_file"]["name"]
    if outcomes.exists():
        sha256 = hashlib.sha256(outcomes.read_bytes()).hexdigest()
        manifest["outcome_file"] |= {"sha256": sha256, "byte_count": outcomes.stat().st_size}
    path.write_text(json.dumps(manifest))


_PLACES = {"os.rename": 1, "open": 0}
"""Of the path, among what Python's audit events say."""
_watchers: list[Callable[[str, tuple], None]] = []


def _see(event: str, said: tuple) -> None:
    if _watchers and event in _PLACES and isinstance(said[_PLACES[event]], str | os.PathLike):
        _watchers[-1](event, said)


@contextmanager
def swapped_after(event: str, path: Path, swap: Callable[[], object]) -> Iterator[None]:
    """Have someone else write into a folder while this process works: when it opens the next file after it
    has opened this one (`open`), or has given it its name (`os.rename`)."""

    def watch(seen: str, said: tuple) -> None:
        if armed and seen == "open":
            _watchers.clear()
            swap()
        elif seen == event and Path(said[_PLACES[event]]).resolve() == path:
            armed.append(path)

    armed: list[Path] = []
    if not _hooked:
        sys.addaudithook(_see)
        _hooked.append(_see)
    _watchers.append(watch)
    yield
    assert not _watchers, "nothing was swapped"


_hooked: list[Callable[[str, tuple], None]] = []
