"""How long a person waits for the first answer."""

from statistics import median

from children import COMMAND, cost_of
from table import Figure

SAMPLE = "sample_data/payments_mixed.csv"


def figures(folder, options):
    for what, words, goal_s in (
        ("precheck --help", ["--help"], 0.3),
        (f"precheck columns {SAMPLE}", ["columns", SAMPLE], 1.0),
        ("20 rows on the embedded sandbox, cold", ["run", SAMPLE, "--out", folder / "cold", "--fresh"], 3.0),
    ):
        wall_s = median(cost_of([*COMMAND, *words]).wall_s for _ in range(options.rounds))
        yield Figure(what, f"{wall_s:.2f} s", f"under {goal_s:g} s", wall_s < goal_s)
