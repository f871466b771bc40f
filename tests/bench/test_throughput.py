"""How fast a whole run is on this machine, against a sandbox in a process of its own over TLS.

The figures depend on the machine; what is asserted is only that the run was a whole one.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from schemas.strict import parse
from schemas.summary import Summary

ROWS = 10_000
RATE_PER_S = 5000


class Measured(NamedTuple):
    summary: Summary
    wall_s: float
    cpu_s: float
    peak_mib: float


@pytest.fixture
def sandbox_configuration(tmp_path):
    command = [sys.executable, "-m", "pipeline.cli", "sandbox", "--folder", str(tmp_path / "sandbox")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout.readline().startswith("https://")
        path = tmp_path / "sandbox" / "precheck.toml"
        path.write_text(path.read_text().replace("rate_per_s = 200", f"rate_per_s = {RATE_PER_S}"))
        yield path
        server.terminate()


def measure(payments: Path, configuration: Path, out: Path) -> Measured:
    """Run the command on a file, and take the operating system's account of it."""
    command = [sys.executable, "-m", "pipeline.cli", "run", str(payments), "--profile", "production"]
    command += ["--config", str(configuration), "--out", str(out), "--quiet", "--json"]
    before = os.times()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return Measured(
        summary=parse(Summary, output),
        wall_s=os.times().elapsed - before.elapsed,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mib=usage.ru_maxrss / 1024,
    )


@pytest.mark.bench
def test_a_whole_run_without_a_rate_limit(tmp_path, sandbox_configuration, capsys):
    payments = tmp_path / "payments.csv"
    command = [sys.executable, "-m", "pipeline.cli", "sandbox", "--write-payments", str(payments)]
    subprocess.run([*command, "--rows", str(ROWS)], check=True, timeout=60)
    measured = measure(payments, sandbox_configuration, tmp_path / "out")
    calls = sum(call.request_count for call in measured.summary.calls)
    assert measured.summary.complete
    assert calls == sum(call.question_count for call in measured.summary.calls)
    with capsys.disabled():
        print(f"\n{'rows':>10} {'calls':>8} {'wall s':>8} {'calls/s':>8} {'CPU s':>8} {'peak MiB':>9}")
        print(
            f"{ROWS:>10,} {calls:>8,} {measured.wall_s:>8.1f} {calls / measured.wall_s:>8,.0f} "
            f"{measured.cpu_s:>8.1f} {measured.peak_mib:>9,.0f}"
        )
