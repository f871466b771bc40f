"""The pieces of the product that `make bench` measures are called as the product calls them now."""

import subprocess
import sys
from pathlib import Path

import pytest
from paymentfiles.pain001 import Batch, Payment, document

ROOT = Path(__file__).parents[2]
BENCH, SAMPLE = ROOT / "tests" / "bench", ROOT / "sample_data" / "payments_mixed.csv"


@pytest.mark.parametrize(
    ("script", "made"),
    [("stages", "outcomes.csv"), ("data_set_command", "summary.json"), ("splitting", "release.xml")],
)
def test_a_piece_that_is_measured_runs(script, made, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.csv").write_bytes(SAMPLE.read_bytes())
    message = tmp_path / "pay.xml"
    message.write_bytes(document((Batch((Payment(),) * 3),)))
    path = {"stages": SAMPLE, "data_set_command": tmp_path / "set", "splitting": message}[script]

    done = subprocess.run(
        [sys.executable, BENCH / f"{script}.py", path, tmp_path],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert (tmp_path / made).exists()
