"""The pace where it counts: in the call log of the server, over whole runs of the command."""

import csv
import json
import subprocess
import sys

import pytest

SECONDS = 6


@pytest.fixture
def desk(tmp_path):
    """A sandbox in a process of its own, with a call log; its configuration, and the log."""
    folder, log = tmp_path / "sandbox", tmp_path / "calls.jsonl"
    command = [
        sys.executable,
        "-m",
        "pipeline.cli",
        "sandbox",
        "--folder",
        str(folder),
        "--call-log",
        str(log),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout.readline().startswith("https://")
        yield folder / "precheck.toml", log
        server.terminate()


def payments(path, count):
    """A file of `count` distinct questions, all for one API."""
    everything = path.with_name("everything.csv")
    command = [sys.executable, "-m", "pipeline.cli", "sandbox", "--write-payments", str(everything)]
    subprocess.run([*command, "--rows", str(count * 3 + 100)], check=True, timeout=60)
    seen = set()
    with everything.open(newline="") as source, path.open("w", newline="") as target:
        reader = csv.DictReader(source)
        writer = csv.DictWriter(target, reader.fieldnames)
        writer.writeheader()
        for row in reader:
            question = (row["sort_code"], row["account_number"])
            if all(question) and question not in seen and len(seen) < count:
                seen.add(question)
                writer.writerow(row)
    return path


def most_in_a_second(times):
    most, start = 0, 0
    for end, time in enumerate(times):
        while time - times[start] >= 1:
            start += 1
        most = max(most, end - start + 1)
    return most


@pytest.mark.bench
@pytest.mark.parametrize("rate_per_s", [5, 50, 200, 1000])
def test_the_server_never_sees_more_than_the_rate_and_nearly_all_of_it(rate_per_s, desk, tmp_path, capsys):
    configuration, log = desk
    text = configuration.read_text()
    assert "rate_per_s = 200" in text
    configuration.write_text(text.replace("rate_per_s = 200", f"rate_per_s = {rate_per_s}"))
    file = payments(tmp_path / "payments.csv", SECONDS * rate_per_s)
    command = [sys.executable, "-m", "pipeline.cli", "run", str(file), "--profile", "production"]
    command += ["--config", str(configuration), "--out", str(tmp_path / "out"), "--quiet"]
    subprocess.run(command, check=True, timeout=60)
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    times = sorted(call["monotonic"] for call in calls if call["api"] == "cop")
    sustained = (len(times) - 1) / (times[-1] - times[0])
    with capsys.disabled():
        print(
            f"\n{rate_per_s:>6,} per second: {len(times):>6,} requests, most in a second "
            f"{most_in_a_second(times):>6,}, sustained {sustained / rate_per_s:.1%}"
        )
    assert most_in_a_second(times) <= rate_per_s
