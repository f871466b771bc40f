"""A rate that four runs share at the same time: where requests leave, and in the call log of the server."""

import json
import sqlite3
import subprocess
from contextlib import closing
from datetime import datetime

from children import ENVIRONMENT, payments, run, sandbox
from pace import most_in_a_second
from table import Figure

SECONDS = 10
PROCESSES = 4
RATES_PER_S = (50, 200, 1000)
JOINED_S = 3
"""After that, each of them has its part."""


def figures(folder, options):
    for rate_per_s in RATES_PER_S if options.full else RATES_PER_S[-1:]:
        with sandbox(folder / f"shares{rate_per_s}") as server:
            server.set(rate_per_s=rate_per_s)
            left = departures(folder, server, rate_per_s)
            calls = [json.loads(line) for line in server.log.read_text().splitlines()]
        most = most_in_a_second(sorted(call["monotonic"] for call in calls if call["api"] == "cop"))
        yield Figure(
            f"{PROCESSES} runs share {rate_per_s:,} per second: most requests in any second, at the server",
            f"{most:,}",
            f"at most {rate_per_s:,}",
            most <= rate_per_s,
        )
        sustained = used(left) / rate_per_s
        yield Figure("... sustained", f"{sustained:.1%}", "at least 95 %", sustained >= 0.95)


def departures(folder, server, rate_per_s):
    """When the requests of each run left, by its own ledger: seconds since the epoch."""
    file = payments(folder / "shares.csv", SECONDS * rate_per_s)
    header, *rows = file.read_text().splitlines(keepends=True)
    runs, outs = [], []
    for number in range(PROCESSES):
        part = folder / f"shares{rate_per_s}-{number}.csv"
        part.write_text(header + "".join(rows[number::PROCESSES]))
        outs.append(folder / f"shares{rate_per_s}-{number}.out")
        words = [str(word) for word in run(server, part, outs[-1])]
        runs.append(subprocess.Popen(words, env=ENVIRONMENT, stderr=subprocess.DEVNULL))
    if sum(abs(each.wait()) for each in runs):
        raise SystemExit("a run did not end well")
    return [sorted(_times(out / "ledger.db")) for out in outs]


def used(left):
    """How many requests left in a second while all of the runs asked."""
    begin, end = max(times[0] for times in left) + JOINED_S, min(times[-1] for times in left)
    if end <= begin:
        raise SystemExit("the runs did not ask at the same time")
    return sum(begin < time <= end for times in left for time in times) / (end - begin)


def _times(ledger):
    with closing(sqlite3.connect(ledger)) as db:
        return [datetime.fromisoformat(time).timestamp() for (time,) in db.execute("SELECT time FROM intent")]
