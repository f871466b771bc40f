"""What one check costs the client, beside what others would write, in turn, against the same server."""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from children import cost_of, payments, real_mix, run, sandbox
from table import Figure, spread

ROWS, ROWS_DAILY = 20_000, 5_000
ROWS_HTTPX = 1_000
"""httpx's own pool takes the longer per request, the more there are: so few rows are kind to it."""
PEERS = Path(__file__).parent / "peers"
GOALS = {"csv_httpx": 1 / 10, "requests_threads": 1 / 2.8, "bare_aiohttp": 2.4, "chosen_libraries": None}
"""Peer -> the most that this program may cost, documents for people included, as a multiple of the peer."""
REPORTS_GOAL_US = 40
START_GOAL_S = 0.7


def figures(folder, options):
    kind_us, real_us, reports_us, starts_s, server_us, walls = [], [], [], [], [], []
    per_check = {peer: [] for peer in GOALS}
    with sandbox(folder / "checks") as server:
        server.set(rate_per_s=5000, in_flight_max=64)
        kind = payments(folder / "kind.csv", ROWS if options.full else ROWS_DAILY)
        file = real_mix(kind, folder / "checks.csv")
        count = len(file.read_text().splitlines()) - 1
        one, some = (_head(file, rows) for rows in (1, ROWS_HTTPX))
        gateway = json.dumps(server.gateway())

        def peer_cpu_s(peer, rows):
            command = [sys.executable, PEERS / f"{peer}.py", rows, folder / f"{peer}.out.csv"]
            return cost_of(command, stdin=gateway).cpu_s

        for _ in range(options.rounds):
            starts_s.append(cost_of(run(server, one, folder / "one.out")).cpu_s)
            kind_us.append(
                _each_us(cost_of(run(server, kind, folder / "kind.out")).cpu_s, starts_s[-1], count)
            )
            before = server.cpu_s()
            cost = cost_of(run(server, file, folder / "checks.out"))
            server_us.append((server.cpu_s() - before) / count * 1e6)
            walls.append(count / cost.wall_s)
            real_us.append(_each_us(cost.cpu_s, starts_s[-1], count))
            documents_s = [_reports_cpu_s(folder / out) for out in ("checks.out", "one.out")]
            reports_us.append(_each_us(*documents_s, count))
            for peer in GOALS:
                rows, row_count = (some, ROWS_HTTPX) if peer == "csv_httpx" else (file, count)
                each_us = _each_us(peer_cpu_s(peer, rows), peer_cpu_s(peer, one), row_count)
                per_check[peer].append(each_us)
    start_s = min(starts_s)
    yield Figure(
        "CPU of a run of one row, its server running",
        f"{start_s:.2f} s",
        f"{START_GOAL_S} s",
        start_s <= START_GOAL_S,
    )
    yield Figure(
        f"CPU per check, ledger on, 64 in flight, start counted apart ({count:,} checks)",
        spread(kind_us, "us"),
        "",
    )
    yield Figure("... where two rows in five are to be looked at", spread(real_us, "us"), "")
    yield Figure(
        "... of which report.html, report.xlsx and attention.csv",
        spread(reports_us, "us"),
        f"at most {REPORTS_GOAL_US} us",
        median(reports_us) <= REPORTS_GOAL_US,
    )
    for peer, goal in GOALS.items():
        ratio = median(real_us) / median(per_check[peer])
        yield Figure(
            f"... as a multiple of {peer} ({spread(per_check[peer], 'us')})",
            f"{ratio:.2f}" if ratio > 0.5 else f"1/{1 / ratio:.1f}",
            "" if goal is None else f"at most {goal:.1f}" if goal > 1 else f"at most 1/{1 / goal:.1f}",
            goal is None or ratio <= goal,
        )
    yield Figure("checks per second, whole command", f"{median(walls):,.0f}", "")
    yield Figure(
        "the sandbox's own ceiling, one core",
        f"{1e6 / median(server_us):,.0f} requests per second",
        "",
    )


def _head(file, rows):
    """The first rows of a file, as a file."""
    lines = file.read_text().splitlines(keepends=True)[: rows + 1]
    head = file.with_name(f"first{rows}.csv")
    head.write_text("".join(lines))
    return head


def _each_us(cpu_s, start_s, count):
    """What each of so many checks costs beside the start, which is that of a run of one row."""
    return (cpu_s - start_s) / (count - 1) * 1e6


def _reports_cpu_s(out):
    """What no peer does: documents for people. They are a part of the command, and are measured apart."""
    command = [sys.executable, str(Path(__file__).parent / "report_cost.py"), str(out)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
