"""Whether a file is being checked: who looks is not taken for who checks."""

import fcntl

from pipeline.desk.checks import is_running
from pipeline.desk.folders import FileFolder


def test_two_who_look_at_once_do_not_take_each_other_for_a_check(tmp_path):
    folder = FileFolder("20260101000000aaaaaaaaaa", tmp_path)
    assert not is_running(folder)
    with folder.lock.open("w") as another:
        fcntl.flock(another, fcntl.LOCK_SH)  # as one who looks holds it for a moment
        assert not is_running(folder)
        fcntl.flock(another, fcntl.LOCK_EX)
        assert is_running(folder)
