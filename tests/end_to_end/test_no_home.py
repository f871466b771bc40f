"""A user without a home: HOME is not set and the user's number has no entry, as in many containers."""

import os
import shutil

import pytest

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can be another user"
)
NO_ENTRY = 54_321
_AS_NOBODY = (
    *("setpriv", f"--reuid={NO_ENTRY}", f"--regid={NO_ENTRY}", "--clear-groups"),
    *("--inh-caps=+dac_override", "--ambient-caps=+dac_override"),  # the tests' own files are root's
    *("env", "-u", "HOME", "-u", "XDG_STATE_HOME", "-u", "XDG_CONFIG_HOME"),
)
SAID = "the user of this process has no home folder; set HOME to a folder that this user can write to"


def test_where_limits_are_counted_needs_a_home_and_nothing_else_does(desk, sandbox, network_payments):
    file, words = desk.payments(network_payments(2)), desk.using(cop=sandbox.section())
    before = sandbox.call_count

    embedded = desk("run", file, "--out", "embedded", prefix=_AS_NOBODY)
    refused = desk("run", file, *words, "--out", "refused", prefix=_AS_NOBODY)
    doctor = desk("doctor", *words, prefix=_AS_NOBODY)
    there = desk(
        "run", file, *words, "--out", "there", prefix=(*_AS_NOBODY, f"XDG_STATE_HOME={desk.folder}/s")
    )

    assert (embedded.status, refused.status, doctor.status, there.status) == (0, 78, 78, 0)
    assert SAID in refused.err
    assert SAID in doctor.out
    assert len(sandbox.questions(before)) == 2
