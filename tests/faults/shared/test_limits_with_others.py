"""Row A7: two processes on one cap and one rate, while the server or what is before it misbehaves."""

import pytest
from sharers import most_in_a_second

from pipeline.sandbox.iban import compose

CAP, RATE, ROWS = 40, 20, 50
LATE_ARRIVALS = 1.2
"""What a busy machine may add to a second at the server: requests that left before it."""
TRIALS = {
    "refusals that are not the API's": ("html-400:probability=0.3",),
    "replies that no request asked for": ("unasked-400:probability=0.3",),
    "odd stamps": tuple(
        f"stamp-{moment}:after={after},for=1"
        for after, moment in enumerate(("18-hours-ago", "next-summer", "year-1", "year-9999"), start=1)
    ),
    "the other API out of reach": ("close-in-handshake",),
    "a pause": ("503-seconds:after=5,for=1",),
}


class Apart:
    """Sections of a profile: CoP at one server, VoP at another."""

    def __init__(self, cop, vop):
        self._servers = {"cop": cop, "vop": vop}

    def section(self, role, api, **limits):
        return self._servers[api].section(role, api, **limits)


@pytest.mark.parametrize("store", ["SQLite", "PostgreSQL"])
def test_two_processes_keep_cap_and_rate_whatever_comes_back(
    store, desk, serve, tmp_path, network_payments, host, shared_profile, tell
):
    """Twice two runs of a file each: the second pair has only what the cap left."""
    is_shared, seen, uk = store == "PostgreSQL", {}, network_payments(2 * ROWS)
    ibans = [
        {"payment_id": f"V{number}", "name": f"Payee {number}", "iban": compose("NL", f"RABO{number:010d}")}
        for number in range(2 * ROWS)
    ]
    for number, (name, faults) in enumerate(TRIALS.items()):
        chosen = [word for fault in faults for word in ("--fault", fault)]
        with serve(tmp_path / f"{number}", *chosen) as server, serve(tmp_path / f"{number}b") as healthy:
            is_away, rows = "out of reach" in name, uk
            limits = {"daily_cap": CAP, "rate_per_s": RATE, "in_flight_max": 8}
            if is_away:
                rows, limits = ibans, limits | {"apis": ("cop", "vop"), "server": Apart(server, healthy)}
            else:
                limits["server"] = server
            words = shared_profile(f"{number}.toml", ledger=is_shared, **limits)
            files = [desk.payments([*rows[at::2], uk[at]], f"{number}-{at}.csv") for at in range(2)]
            for _ in range(2):
                starts = [
                    host("ab"[at] if is_shared else "a")("run", file, *words) for at, file in enumerate(files)
                ]
                ends = []
                for start in starts:
                    with start as running:
                        ends.append(running.end().status)
            calls = [call["monotonic"] for call in (healthy if is_away else server).questions()]
            seen[name] = len(calls), most_in_a_second(calls), ends
    good = [
        name for name, (count, most, ends) in seen.items()
        if CAP - 4 <= count <= CAP and most <= RATE * LATE_ARRIVALS and set(ends) == {75}
    ]  # fmt: skip
    tell(
        "A7", f"two processes by {store} while others misbehave: {', '.join(TRIALS)}", tried=len(TRIALS),
        survived=len(good),
        figure=f"{[count for count, *_ in seen.values()]} requests at a cap of {CAP}; at most "
        f"{max(most for _, most, _ in seen.values())} came in any second, of {RATE}; "
        f"exits {[ends for *_, ends in seen.values()]}",
        goal=f"{CAP}, exit 75; <= {RATE * LATE_ARRIVALS:g} come in any second",
    )  # fmt: skip
