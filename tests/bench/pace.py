"""The pace where it counts: in the call log of the server, over whole runs of the command."""

import json

from children import cost_of, payments, run, sandbox
from table import Figure

SECONDS = 6
RATES_PER_S = (5, 50, 200, 1000)


def figures(folder, _options):
    for rate_per_s in RATES_PER_S:
        with sandbox(folder / f"pace{rate_per_s}") as server:
            server.set(rate_per_s=rate_per_s)
            file = payments(folder / "pace.csv", SECONDS * rate_per_s)
            cost_of(run(server, file, folder / f"pace{rate_per_s}.out"))
            calls = [json.loads(line) for line in server.log.read_text().splitlines()]
        times = sorted(call["monotonic"] for call in calls if call["api"] == "cop")
        most = most_in_a_second(times)
        # Both windows of a run count: the first second, and the whole of it.
        sustained = (len(times) - 1) / (times[-1] - times[0]) / rate_per_s
        yield Figure(
            f"{rate_per_s:,} per second: most requests in any second, at the server",
            f"{most:,}",
            f"at most {rate_per_s:,}",
            most <= rate_per_s,
        )
        yield Figure("... sustained", f"{sustained:.1%}", "at least 97 %", sustained >= 0.97)


def most_in_a_second(times):
    """The most times in any window of one second."""
    most, start = 0, 0
    for end, time in enumerate(times):
        while time - times[start] >= 1:
            start += 1
        most = max(most, end - start + 1)
    return most
