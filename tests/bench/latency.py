"""Banks that take their time: many requests in flight."""

import json

from children import cost_of, payments, run, sandbox
from table import Figure

IN_FLIGHT = 2000
ROWS, ROWS_DAILY = 20_000, 10_000


def figures(folder, options):
    file = payments(folder / "latency.csv", ROWS if options.full else ROWS_DAILY)
    count = len(file.read_text().splitlines()) - 1
    with sandbox(folder / "latency", "--latency", "1", "--latency-spread", "0") as server:
        server.set(rate_per_s=5000, in_flight_max=IN_FLIGHT)
        many = cost_of(run(server, file, folder / "latency.out"))
        times = sorted(json.loads(line)["monotonic"] for line in server.log.read_text().splitlines())
    with sandbox(folder / "quick") as server:
        server.set(rate_per_s=5000, in_flight_max=64)
        few = cost_of(run(server, file, folder / "quick.out"))
    kib = (many.peak_mib - few.peak_mib) * 1024 / (IN_FLIGHT - 64)
    # Each connection has had its handshake and its first answer when as many requests again have come.
    warm = times[2 * IN_FLIGHT :]
    rate = (len(warm) - 1) / (warm[-1] - warm[0])
    yield Figure(
        f"answers after 1 s, {IN_FLIGHT:,} in flight: checks per second, once connected",
        f"{rate:,.0f}",
        "at least 1,700",
        rate >= 1700,
    )
    yield Figure(
        f"... {IN_FLIGHT:,} TLS handshakes included", f"{count / (times[-1] + 1 - times[0]):,.0f}", ""
    )
    yield Figure("... memory per request in flight", f"{kib:,.0f} KiB", "under 100 KiB", kib < 100)
