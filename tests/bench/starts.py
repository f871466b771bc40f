"""How long a person waits for the first answer, and a night for many small files."""

import csv
from itertools import islice
from statistics import median

from children import COMMAND, cost_of, payments, sandbox
from table import Figure

FILES, ROWS = 30, 10
SAMPLE = "sample_data/payments_mixed.csv"


def figures(folder, options):
    for what, words, goal_s in (
        ("precheck --help", ["--help"], 0.1),
        (f"precheck columns {SAMPLE}", ["columns", SAMPLE], 0.45),
        (f"precheck plan {SAMPLE}", ["plan", SAMPLE, "--out", folder / "plan"], 0.6),
    ):
        cpu_s = median(cost_of([*COMMAND, *words]).cpu_s for _ in range(options.rounds))
        yield Figure(f"{what}: CPU", f"{cpu_s:.2f} s", f"at most {goal_s:g} s", cpu_s <= goal_s)
    cold = [*COMMAND, "run", SAMPLE, "--out", folder / "cold", "--fresh"]
    wall_s = median(cost_of(cold).wall_s for _ in range(options.rounds))
    yield Figure("20 rows on the embedded sandbox, cold", f"{wall_s:.2f} s", "under 3 s", wall_s < 3)
    yield from _many_files(folder, options)


def _many_files(folder, options):
    """Files of ten rows for both APIs, in one command."""
    with payments(folder / "mixed.csv", FILES * ROWS, cop_only=False).open(newline="") as source:
        header, *rows = csv.reader(source)
    left, names = iter(rows), [folder / f"small{number:02}.csv" for number in range(FILES)]
    for name in names:
        with name.open("w", newline="") as file:
            csv.writer(file).writerows([header, *islice(left, ROWS)])
    with sandbox(folder / "files", "--latency", "0") as server:
        words = ["run", *names, "--profile", "sandbox", "--config", server.configuration, "--fresh"]
        runs = [cost_of([*COMMAND, *words, "--out", folder / "small"]) for _ in range(options.rounds)]
    for what, goal, spent in (
        (f"{FILES} files of {ROWS} rows in one command", 8.0, median(one.wall_s for one in runs)),
        ("... its CPU", 5.0, min(one.cpu_s for one in runs)),
    ):
        yield Figure(what, f"{spent:.1f} s", f"under {goal:g} s", spent < goal)
