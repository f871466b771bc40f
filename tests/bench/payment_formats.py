"""Payment formats of a million payments: everything but the network, and a split written."""

import subprocess
import sys
from pathlib import Path
from statistics import median

from children import cost_of
from paymentfiles.pain001 import write_many
from standard_18 import File, Payment
from table import Figure, spread

FOLDER = Path(__file__).parent
MILLION, DAILY = 1_000_000, 100_000
PER_BATCH = 1_000
MIB = 1024**2
STAGES_CPU_S_MAX = {"pain.001": 30, "Standard 18": 6}
STAGES_MIB_MAX = 1024
"""Besides the file."""
SPLIT_CPU_S_MAX = {"pain.001": 8, "Standard 18": 6}


def figures(folder, options):
    count = MILLION if options.full else DAILY
    for name, write in (("pain.001", _pain001), ("Standard 18", _standard_18)):
        file = write(folder, count)
        bytes_mib = file.stat().st_size / MIB
        costs = [
            cost_of([sys.executable, FOLDER / "stages.py", file, folder / "formats.out"])
            for _ in range(options.rounds)
        ]
        split = [_split_s(file, folder) for _ in range(options.rounds)]
        cpu_s, goal_s = median(cost.cpu_s for cost in costs), STAGES_CPU_S_MAX[name]
        yield Figure(
            f"{count:,} payments of {name} ({bytes_mib:,.0f} MiB), everything but the network: CPU",
            spread([cost.cpu_s for cost in costs], "s", decimals=1),
            f"at most {goal_s} s" if options.full else "",
            cpu_s <= goal_s,
        )
        besides_mib = max(cost.peak_mib for cost in costs) - bytes_mib
        yield Figure(
            "... memory at its peak besides the file, all processes",
            f"{besides_mib:,.0f} MiB",
            f"at most {STAGES_MIB_MAX:,} MiB",
            besides_mib <= STAGES_MIB_MAX,
        )
        split_s, goal_s = median(split), SPLIT_CPU_S_MAX[name]
        yield Figure(
            "... and both files of a split: CPU besides reading it",
            spread(split, "s", decimals=1),
            f"at most {goal_s} s" if options.full else "",
            split_s <= goal_s,
        )
        file.unlink()


def _split_s(file, folder):
    command = [sys.executable, FOLDER / "splitting.py", file, folder]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _pain001(folder, count):
    path = folder / "many.xml"
    write_many(path, count, per_batch=PER_BATCH)
    return path


def _standard_18(folder, count):
    path = folder / "many.bac"
    some = (
        Payment(f"{200000 + at % 700_000:06d}", f"{at * 7919 % 10**8:08d}", 100 + at * 7919 % 4_000_000)
        for at in range(count)
    )
    path.write_bytes(File(tuple(some)).data())
    return path
