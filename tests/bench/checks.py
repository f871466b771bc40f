"""What one check costs the client, beside what others would write, in turn, against the same server."""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from children import cost_of, payments, run, sandbox
from table import Figure, spread

ROWS = 20_000
ROWS_HTTPX = 1_000
"""httpx's own pool takes the longer per request, the more there are: so few rows are kind to it."""
PEERS = Path(__file__).parent / "peers"
GOALS = {"csv_httpx": 1 / 12, "requests_threads": 1 / 3, "bare_aiohttp": 2.4}
"""Peer -> the most that this program may cost, as a multiple of the peer."""


def figures(folder, options):
    costs, reports_us, per_check = [], [], {peer: [] for peer in GOALS}
    with sandbox(folder / "checks") as server:
        server.set(rate_per_s=5000, in_flight_max=64)
        file = payments(folder / "checks.csv", ROWS)
        count = len(file.read_text().splitlines()) - 1
        some = file.with_name("some.csv")
        some.write_text("".join(file.read_text().splitlines(keepends=True)[: ROWS_HTTPX + 1]))
        files = {peer: (some, ROWS_HTTPX) if peer == "csv_httpx" else (file, count) for peer in GOALS}
        gateway = json.dumps(server.gateway())
        server_us = []
        for _ in range(options.rounds):
            before = server.cpu_s()
            costs.append(cost_of(run(server, file, folder / "checks.out")))
            server_us.append((server.cpu_s() - before) / count * 1e6)
            reports_us.append(_reports_cpu_s(folder / "checks.out") / count * 1e6)
            for peer, (rows, row_count) in files.items():
                command = [sys.executable, PEERS / f"{peer}.py", rows, folder / f"{peer}.out.csv"]
                per_check[peer].append(cost_of(command, stdin=gateway).cpu_s / row_count * 1e6)
    whole_us = [cost.cpu_s / count * 1e6 for cost in costs]
    ours_us = [whole - reports for whole, reports in zip(whole_us, reports_us, strict=True)]
    ours = median(ours_us)
    yield Figure(
        f"CPU per check, {count:,} checks, ledger on, 64 in flight, start included", spread(ours_us, "us"), ""
    )
    yield Figure("... and for report.html, report.xlsx and attention.csv", spread(reports_us, "us"), "")
    for peer, goal in GOALS.items():
        ratio = ours / median(per_check[peer])
        yield Figure(
            f"... as a multiple of {peer} ({spread(per_check[peer], 'us')})",
            f"{ratio:.2f}" if ratio > 0.5 else f"1/{1 / ratio:.1f}",
            f"at most {goal:.1f}" if goal > 1 else f"at most 1/{1 / goal:.0f}",
            ratio <= goal,
        )
    walls = [count / cost.wall_s for cost in costs]
    yield Figure("checks per second, whole command", f"{median(walls):,.0f}", "")
    yield Figure(
        "the sandbox's own ceiling, one core",
        f"{1e6 / median(server_us):,.0f} requests per second",
        "",
    )


def _reports_cpu_s(out):
    """What no peer does: documents for people. They are a part of the command, and are measured apart."""
    command = [sys.executable, str(Path(__file__).parent / "report_cost.py"), str(out)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
