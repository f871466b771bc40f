"""Large files: everything but the network, in a process of its own, on one core."""

import sys
from pathlib import Path
from statistics import median

import polars as pl
from children import cost_of, payments
from table import Figure, spread

STAGES = Path(__file__).parent / "stages.py"
MILLION = 1_000_000
SIZES = {MILLION // 100: None, MILLION // 10: None, MILLION: (4, 1024)}
"""Rows of CSV -> the most CPU seconds and MiB."""
SIZES_LONG = {10 * MILLION: (60, 4096)}
"""Rows of Parquet, which is what files of this size should be."""


def figures(folder, options):
    sizes = SIZES | (SIZES_LONG if options.long else {})
    for rows, goals in sizes.items():
        file = payments(folder / "some.csv", rows, cop_only=False)
        if rows in SIZES_LONG:
            file = _as_parquet(file)
        rounds = options.rounds if (options.full and rows in SIZES) or rows < MILLION else 1
        costs = [cost_of([sys.executable, STAGES, file, folder / "frames.out"]) for _ in range(rounds)]
        cpu_s, peak_mib = median(cost.cpu_s for cost in costs), max(cost.peak_mib for cost in costs)
        file.unlink()
        name = f"{rows:,} rows of {file.suffix[1:]}, everything but the network, one core"
        cpu = Figure(f"{name}: CPU", spread([cost.cpu_s for cost in costs], "s", decimals=2), "")
        peak = Figure("... memory at its peak, all processes", f"{peak_mib:,.0f} MiB", "")
        if goals:
            cpu_s_max, mib_max = goals
            cpu = cpu._replace(goal=f"at most {cpu_s_max} s", holds=cpu_s <= cpu_s_max)
            peak = peak._replace(goal=f"at most {mib_max:,} MiB", holds=peak_mib <= mib_max)
        yield cpu
        yield peak


def _as_parquet(file):
    path = file.with_suffix(".parquet")
    pl.scan_csv(file, infer_schema=False).sink_parquet(path)
    file.unlink()
    return path
