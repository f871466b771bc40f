"""Whose fault it is that a file cannot be written, and what that asks for."""

import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from refusals import refused, said, says

from pipeline.errors import DiskError, OutputError
from pipeline.files.disk_errors import (
    is_full_or_failed,
    not_writable,
    sqlite_code,
    with_own_errors,
    write_failed,
    writing,
)
from pipeline.wording import Sentence

PATH = Path("results/outcomes.csv")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_a_full_or_failing_disk_asks_for_room_and_not_for_another_place(code):
    error = not_writable(
        PATH, OSError(code, os.strerror(code), "/secret/place"), otherwise=Sentence("advice.other_path")
    )
    assert isinstance(error, DiskError)
    reason = OSError(code, os.strerror(code))
    assert str(error) == said("files.not_writable_make_room", "", path=PATH, reason=reason)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ELOOP, errno.ENOTDIR, errno.ENAMETOOLONG])
def test_a_place_that_cannot_hold_the_file_asks_for_another_one(code):
    error = not_writable(PATH, OSError(code, os.strerror(code)), otherwise=Sentence("advice.other_path"))
    assert isinstance(error, OutputError)
    what = Sentence("files.not_writable", path=PATH, reason=OSError(code, os.strerror(code)))
    step = Sentence("advice.other_path")
    assert str(error) == said("advice.reason_and_step", "", reason=what, step=step)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no disk that is always full")
def test_a_full_disk_is_the_files_own_error_whatever_polars_makes_of_it():
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        refused(DiskError, "files.not_writable_make_room"),
        writing(PATH),
        with_own_errors(full) as through,
    ):
        pl.DataFrame({"row": [1]}).write_parquet(through)


def test_too_few_open_files_is_a_limit_to_raise_and_no_matter_of_the_file():
    error = not_writable(PATH, OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
    assert error.exit_code == 75
    says(error, "transport.open_files_limit_reached")
    assert "outcomes.csv" not in str(error)


def error_of(act):
    with pytest.raises(sqlite3.Error) as caught:
        act()
    return caught.value


def test_a_full_database_is_the_disks_and_a_damaged_one_is_not(tmp_path):
    path = tmp_path / "some.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE one(x)")
        db.execute("PRAGMA max_page_count = 1")
        full = error_of(lambda: db.execute("CREATE TABLE more AS SELECT zeroblob(100000)"))
        no_table = error_of(lambda: db.execute("SELECT * FROM two"))
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        read_only = error_of(lambda: db.execute("DROP TABLE one"))
    no_file = error_of(lambda: sqlite3.connect(tmp_path))
    path.write_bytes(b"not a database, and long enough to look at" * 100)
    with closing(sqlite3.connect(path)) as db:
        no_database = error_of(lambda: db.execute("SELECT * FROM one"))
        closed = db
    is_the_disks = [is_full_or_failed(error) for error in (full, read_only, no_file, no_table, no_database)]
    assert is_the_disks == [True, True, True, False, False]
    assert not is_full_or_failed(error_of(lambda: closed.execute("SELECT 1")))
    says(write_failed(path, full), "files.not_writable_make_room", "files.disk_full", path=path)
    assert [sqlite_code(error) for error in (no_table, no_database)] == ["SQLITE_ERROR", "SQLITE_NOTADB"]
