"""Who may read a secret: its owner, and a group of ours where root or we own it."""

import os
from types import SimpleNamespace

import pytest

from pipeline.files.private import is_private

OURS, GROUP, STRANGER = os.geteuid(), os.getegid(), 54_321


@pytest.mark.parametrize(
    ("mode", "owner", "group", "expected"),
    [
        (0o600, OURS, STRANGER, True),
        (0o400, STRANGER, STRANGER, True),
        (0o640, OURS, GROUP, True),
        (0o440, 0, GROUP, True),  # as Kubernetes mounts it
        (0o640, 0, STRANGER, False),
        (0o640, STRANGER, GROUP, False),
        (0o660, OURS, GROUP, False),
        (0o650, OURS, GROUP, False),
        (0o644, 0, GROUP, False),
        (0o604, OURS, GROUP, False),
    ],
)
def test_a_secret_is_read_by_us_and_at_most_one_group_of_ours(mode, owner, group, expected):
    found = SimpleNamespace(st_mode=0o100000 | mode, st_uid=owner, st_gid=group)

    assert is_private(found) is expected
