"""Disks, clocks, chance and ledgers for the command of tests/desk.py."""

import resource
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from desk import COMMAND, COMMAND_MAX_S


class Image(NamedTuple):
    """What a ledger held at one moment, read from a copy: to open a ledger changes it."""

    is_sound: bool
    intents: frozenset[str]
    """Correlation ids of the requests that may have left."""
    answered: frozenset[str]
    """Of these, the ids of those that brought a final answer."""
    open: frozenset[str]
    """Of these, the ids of those with neither answer nor failure."""


NOTHING = Image(is_sound=True, intents=frozenset(), answered=frozenset(), open=frozenset())


def read_ledger(folder: Path, at: Path) -> Image:
    """Copy what a run left in its folder, and read the ledger there."""
    shutil.rmtree(at, ignore_errors=True)
    if not (folder / "ledger.db").exists():
        return NOTHING
    at.mkdir()
    for name in ("ledger.db", "ledger.db-wal"):
        if (folder / name).exists():
            shutil.copy(folder / name, at / name)
    with closing(sqlite3.connect(at / "ledger.db")) as db:
        sound = db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = db.execute(
            "SELECT intent.request_id, answer.intent IS NOT NULL, failure.intent IS NOT NULL FROM intent"
            " LEFT JOIN answer ON answer.intent = intent.id LEFT JOIN failure ON failure.intent = intent.id"
        ).fetchall()
    return Image(
        sound,
        frozenset(request_id for request_id, _, _ in rows),
        frozenset(request_id for request_id, is_answered, _ in rows if is_answered),
        frozenset(request_id for request_id, is_answered, has_failed in rows if not is_answered | has_failed),
    )


@pytest.fixture(scope="session")
def ledger_image():
    """`ledger_image(folder, at=copy)`: what the ledger of a folder holds now."""
    return read_ledger


@pytest.fixture(scope="session")
def sample(tmp_path_factory):
    """`sample(count)`: a payment file of all kinds, with every outcome that the network gives."""
    folder = tmp_path_factory.mktemp("sample")

    def write(count):
        path = folder / f"sample_{count}.csv"
        if not path.exists():
            words = ("sandbox", "--write-payments", path, "--rows", count)
            subprocess.run([*COMMAND, *map(str, words)], check=True, timeout=COMMAND_MAX_S)
        return path

    return write


@pytest.fixture
def small_disk(tmp_path):
    """`small_disk(kib)`: a folder on a disk of that size, and how to make it larger. Needs root."""
    mounted = []

    def make(kib, name="disk"):
        folder = tmp_path / name
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=0700", "tmpfs", folder],
            capture_output=True,
            check=False,
        )
        if done.returncode:
            pytest.skip("no right to mount a small disk: run as root")
        mounted.append(folder)

        def remount(options):
            subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)

        return folder, remount

    yield make
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture(scope="session")
def file_size_limit():
    """`file_size_limit(byte_count)`: for `limits=`; the form of a full disk that needs no root."""

    def limits(byte_count):
        def set_them():
            # Without this the signal ends the process, and what is tried is another thing.
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (byte_count, byte_count))

        return set_them

    return limits
