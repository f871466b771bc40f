"""A server's rate, shared by four runs at the same time: in the call log of the server."""

import json
import subprocess

from children import ENVIRONMENT, payments, run, sandbox
from pace import most_in_a_second
from table import Figure

SECONDS = 10
PROCESSES = 4
RATES_PER_S = (50, 200, 1000)


def figures(folder, _options):
    for rate_per_s in RATES_PER_S:
        with sandbox(folder / f"shares{rate_per_s}") as server:
            server.set(rate_per_s=rate_per_s)
            times = departures(folder, server, rate_per_s)
        most = most_in_a_second(times)
        yield Figure(
            f"{PROCESSES} runs share {rate_per_s:,} per second: most requests in any second, at the server",
            f"{most:,}",
            f"at most {rate_per_s:,}",
            most <= rate_per_s,
        )
        sustained = together(times, rate_per_s)
        yield Figure("... sustained", f"{sustained:.1%}", "at least 95 %", sustained >= 0.95)


def departures(folder, server, rate_per_s):
    """When the requests of all of them came to the server."""
    file = payments(folder / "shares.csv", SECONDS * rate_per_s)
    header, *rows = file.read_text().splitlines(keepends=True)
    runs = []
    for number in range(PROCESSES):
        part = folder / f"shares{rate_per_s}-{number}.csv"
        part.write_text(header + "".join(rows[number::PROCESSES]))
        words = run(server, part, folder / f"shares{rate_per_s}-{number}.out")
        runs.append(subprocess.Popen([str(word) for word in words], env=ENVIRONMENT))
    if sum(abs(each.wait()) for each in runs):
        raise SystemExit("a run did not end well")
    calls = [json.loads(line) for line in server.log.read_text().splitlines()]
    return sorted(call["monotonic"] for call in calls if call["api"] == "cop")


def together(times, rate_per_s):
    """The part of the rate that is used once all of them ask, until the first of them may have ended."""
    steady = times[int(0.4 * len(times)) : int(0.9 * len(times))]
    return (len(steady) - 1) / (steady[-1] - steady[0]) / rate_per_s
