"""`make demo-many`, shorter: it counts for itself, and fails where a promise is broken."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from postgres import programs

DEMO = Path(__file__).parents[1] / "demo_many.py"


@pytest.fixture
def temporary():
    """A folder that the user of the database may enter, too."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.nightly
@pytest.mark.skipif(programs() is None, reason="no PostgreSQL; `make tools` fetches it")
def test_a_file_shared_by_three_processes_of_which_one_is_killed(temporary):
    done = subprocess.run(
        [sys.executable, DEMO, "--rows", "160", "--lease", "2"],
        env=os.environ | {"TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"host-2 is killed with -9, after \d+ requests of all hosts", done.stdout)
    assert "160 rows, 160 outcomes: " in done.stdout
    assert "0 questions were asked again after their answer was on record" in done.stdout
    assert re.search(r"verdict of the sandbox: 1\d rules kept, 0 broken", done.stdout)
    assert [path.name for path in temporary.iterdir()] == []
