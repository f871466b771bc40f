"""Large files: everything but the network, in a process of its own, on one core."""

import sys
from pathlib import Path

import polars as pl
from children import cost_of, payments
from table import Figure

STAGES = Path(__file__).parent / "stages.py"
MILLION = 1_000_000
SIZES = {MILLION // 100: None, MILLION // 10: None, MILLION: (4, 1024)}
"""Rows of CSV -> the most CPU seconds and MiB."""
SIZES_LONG = {10 * MILLION: (60, 4096)}
"""Rows of Parquet, which is what files of this size should be."""


def figures(folder, options):
    sizes = SIZES | (SIZES_LONG if options.long else {})
    everything = payments(folder / "everything.csv", max(sizes), cop_only=False)
    for rows, goals in sizes.items():
        file = _sized(everything, rows, ".csv" if rows in SIZES else ".parquet")
        cost = cost_of([sys.executable, STAGES, file, folder / "frames.out"])
        file.unlink()
        name = f"{rows:,} rows of {file.suffix[1:]}, everything but the network, one core"
        cpu = Figure(f"{name}: CPU", f"{cost.cpu_s:.1f} s", "")
        peak = Figure("... memory at its peak, all processes", f"{cost.peak_mib:,.0f} MiB", "")
        if goals:
            cpu_s, mib = goals
            cpu = cpu._replace(goal=f"at most {cpu_s} s", holds=cost.cpu_s <= cpu_s)
            peak = peak._replace(goal=f"at most {mib:,} MiB", holds=cost.peak_mib <= mib)
        yield cpu
        yield peak


def _sized(everything, rows, suffix):
    """The first rows of the file."""
    path = everything.with_name(f"some{suffix}")
    some = pl.scan_csv(everything, infer_schema=False).head(rows)
    some.sink_csv(path) if suffix == ".csv" else some.sink_parquet(path)
    return path
