"""Data sets: everything but the network, by the pool of this machine."""

import sys
from pathlib import Path

import polars as pl
from children import cost_of, payments
from table import Figure

PARTS = Path(__file__).parent / "data_set_command.py"
MILLION = 1_000_000
ROWS_PER_PART = MILLION // 2
CPU_S_PER_MILLION = 10
PEAK_MIB = 614


def figures(folder, options):
    for rows in (2 * MILLION, *((20 * MILLION,) if options.long else ())):
        data = _parts(folder / "set", rows)
        cost = cost_of([sys.executable, PARTS, data, folder / "sets.out"])
        cpu_s = cost.cpu_s / (rows / MILLION)
        name = f"{rows:,} rows in {rows // ROWS_PER_PART} Parquet parts, everything but the network"
        yield Figure(
            f"{name}: CPU per million rows",
            f"{cpu_s:.1f} s",
            f"at most {CPU_S_PER_MILLION} s",
            cpu_s <= CPU_S_PER_MILLION,
        )
        yield Figure(
            "... memory at its peak, of the largest process",
            f"{cost.largest_mib:,.0f} MiB",
            f"at most {PEAK_MIB} MiB",
            cost.largest_mib <= PEAK_MIB,
        )


def _parts(folder, rows):
    """A folder of parts; every million rows has accounts of its own, as in a file of that size."""
    folder.mkdir(exist_ok=True)
    file = payments(folder.parent / "all.csv", rows, cop_only=False)
    for number, start in enumerate(range(0, rows, ROWS_PER_PART)):
        part = pl.scan_csv(file, infer_schema=False).slice(start, ROWS_PER_PART)
        part.sink_parquet(folder / f"part-{number:04}.parquet")
    file.unlink()
    return folder
