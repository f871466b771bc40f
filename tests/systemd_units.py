"""Units of the documentation, as systemd reads them."""

import shutil
import subprocess
import sys

import pytest

PROGRAM = "/opt/precheck/bin/precheck"
"""Where the documentation says that the program is."""
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here"
)


def systemd_on(text, file):
    """What `systemd-analyze verify` finds about a unit, and how it ends.

    Args:
        text: the unit, with a program that is not installed here.
        file: where it is written, in a folder of the test's own.
    """
    program = file.with_name("precheck")
    program.symlink_to(sys.executable)
    file.write_text(text.replace(PROGRAM, str(program)))
    done = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr
