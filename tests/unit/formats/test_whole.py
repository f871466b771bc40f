"""Files that appear whole or not at all."""

import contextlib
import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import refused, said

from pipeline.errors import DiskError, OutputError
from pipeline.files.atomic import write_atomically
from pipeline.wording import Sentence


def write(path, data=b"new"):
    with write_atomically(path) as file:
        file.write(data)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_file_has_its_name_only_when_it_is_whole(tmp_path):
    path = tmp_path / "outcomes.csv"
    with write_atomically(path) as file:
        file.write(b"half")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == b"half"
    assert names_in(tmp_path) == ["outcomes.csv"]


def test_an_error_leaves_the_earlier_file_and_nothing_else(tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_bytes(b"old")
    with contextlib.suppress(KeyboardInterrupt), write_atomically(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["outcomes.csv"]


def test_only_the_owner_can_read_it_whatever_the_earlier_file_allowed(tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_bytes(b"old")
    path.chmod(0o644)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_was_written_can_be_read_back_before_it_is_seen(tmp_path):
    with write_atomically(tmp_path / "outcomes.csv") as file:
        file.write(b"abc")
        file.seek(1)
        assert file.read() == b"bc"


def test_a_part_that_a_killed_run_left_is_replaced(tmp_path):
    (tmp_path / "outcomes.csv.part").write_bytes(b"left by a killed run, and longer")
    write(tmp_path / "outcomes.csv")
    assert (tmp_path / "outcomes.csv").read_bytes() == b"new"
    assert names_in(tmp_path) == ["outcomes.csv"]


@pytest.mark.parametrize("name", ["outcomes.csv", "outcomes.csv.part"])
def test_nothing_is_written_through_a_symbolic_link(tmp_path, name):
    other = tmp_path / "other"
    other.write_bytes(b"precious")
    (tmp_path / name).symlink_to(other)
    if name == "outcomes.csv":
        with refused(OutputError, "files.symbolic_link", "files.remove_it", path="outcomes.csv"):
            write(tmp_path / "outcomes.csv")
    else:
        write(tmp_path / "outcomes.csv")
    assert other.read_bytes() == b"precious"


def test_a_dangling_symbolic_link_is_refused(tmp_path):
    (tmp_path / "outcomes.csv").symlink_to(tmp_path / "nowhere")
    with refused(OutputError, "files.name_taken_by", "files.symbolic_link"):
        write(tmp_path / "outcomes.csv")
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_of_this_name_is_refused(tmp_path):
    (tmp_path / "outcomes.csv").mkdir()
    with refused(OutputError, "files.name_taken_by", "files.not_a_plain_file"):
        write(tmp_path / "outcomes.csv")


def test_a_missing_folder_is_an_output_error(tmp_path):
    with refused(OutputError, "files.not_writable", "system.enoent", path="outcomes.csv"):
        write(tmp_path / "missing" / "outcomes.csv")


def test_a_folder_that_may_not_be_written_is_an_output_error():
    with refused(OutputError, "files.not_writable"):
        write(Path("/proc/outcomes.csv"))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_failing_disk_is_told_from_a_wrong_place(tmp_path, number):
    with (
        refused(DiskError, "files.not_writable_make_room", path="outcomes.csv"),
        write_atomically(tmp_path / "outcomes.csv"),
    ):
        raise OSError(number, os.strerror(number))
    assert names_in(tmp_path) == []


FILL_UP = """
import resource, signal, sys
from pathlib import Path
from pipeline.errors import DiskError
from pipeline.files.atomic import write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with write_atomically(Path(sys.argv[1])) as file:
        file.write(b"x" * 200_000)
except DiskError as error:
    print(error)
"""


def test_a_disk_that_takes_no_more_is_a_disk_error_and_leaves_nothing(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FILL_UP, tmp_path / "outcomes.csv"], capture_output=True, text=True, check=True
    )
    full = said("files.not_writable_make_room", "", path="outcomes.csv", reason=Sentence("system.efbig"))
    assert full in done.stdout
    assert names_in(tmp_path) == []
