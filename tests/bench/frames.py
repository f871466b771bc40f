"""Large files: everything but the network, in a process of its own."""

import sys
from pathlib import Path

import polars as pl
from children import cost_of, payments
from table import Figure

STAGES = Path(__file__).parent / "stages.py"
MILLION = 1_000_000
SIZES = {MILLION // 100: None, MILLION // 10: None, MILLION: (4, 1024)}
"""Rows -> the most CPU seconds and MiB."""
SIZES_LONG = {10 * MILLION: (60, 4096)}


def figures(folder, options):
    million = payments(folder / "million.csv", MILLION, cop_only=False)
    for rows, goals in (SIZES | SIZES_LONG if options.long else SIZES).items():
        file = _sized(million, rows)
        cost = cost_of([sys.executable, STAGES, file, folder / "frames.out"])
        file.unlink()
        cpu = Figure(f"{rows:,} rows, everything but the network: CPU", f"{cost.cpu_s:.1f} s", "")
        peak = Figure("... memory at its peak", f"{cost.peak_mib:,.0f} MiB", "")
        if goals:
            cpu_s, mib = goals
            cpu = cpu._replace(goal=f"at most {cpu_s} s", holds=cost.cpu_s <= cpu_s)
            peak = peak._replace(goal=f"at most {mib:,} MiB", holds=cost.peak_mib <= mib)
        yield cpu
        yield peak


def _sized(million, rows):
    """The first rows of the file, or all of them under ever other names; Parquet from a million up."""
    payments_of_a_million = pl.read_csv(million, infer_schema=False)
    if rows < MILLION:
        path = million.with_name("some.csv")
        payments_of_a_million.head(rows).write_csv(path)
        return path
    path = million.with_name("many.parquet")
    copies = [
        payments_of_a_million.with_columns(pl.col("name") + ("" if number == 0 else f" {chr(64 + number)}"))
        for number in range(rows // MILLION)
    ]
    pl.concat(copies).write_parquet(path)
    return path
