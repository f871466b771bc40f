"""`make bench`: measure the figures of docs/dev/performance.md here, beside what others would write.

The daily form takes less of what grows with rows; `--full` is what the page shows. Each figure stands beside
the last one in docs/dev/figures.csv, and one that is more than a tenth worse fails.

Everything is measured from outside: whole commands as child processes against one sandbox in a process of
its own, over TLS, with the ledger on. Processor time is the operating system's account of a child; it is
the figure to trust where other work goes on, and wall times are upper bounds.
"""

import argparse
import sys
import time
import traceback
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

import checks
import data_sets
import desk_pages
import evenness
import floors
import frames
import history
import latency
import ledger
import pace
import payment_formats
import shared_ledger
import shares
import starts
from table import WORSE_MAX, Figure, printed, write_page

SECTIONS = {
    "checks": checks,
    "pace": pace,
    "shares": shares,
    "latency": latency,
    "frames": frames,
    "data sets": data_sets,
    "formats": payment_formats,
    "ledger": ledger,
    "shared-ledger": shared_ledger,
    "starts": starts,
    "desk": desk_pages,
    "floors": floors,
}


def main():
    """Measure, print the table, and say by the exit status whether a figure is worse than the last one.

    With `--full` every figure has to be at its goal, too.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=SECTIONS, action="append", help="measure these alone")
    parser.add_argument("--rounds", type=int, default=3, help="of what is measured several times")
    parser.add_argument("--full", action="store_true", help="with a million payments of each format")
    parser.add_argument(
        "--long", action="store_true", help="10 to 20 million rows and 10 million checks, too"
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="add to docs/dev/figures.csv; with --full, to the page",
    )
    options = parser.parse_args()
    options.full |= options.long
    figures: list[Figure] = []
    is_whole = True
    loops = evenness.samples()
    with TemporaryDirectory(prefix="precheck-bench-") as folder:
        for name in options.only or SECTIONS:
            began = time.monotonic()
            try:
                figures.extend(SECTIONS[name].figures(Path(folder), options))
            except (Exception, SystemExit):  # noqa: BLE001 (what was measured until then is shown, and nothing is written)
                traceback.print_exc()
                options.write, is_whole = False, False
            loops += evenness.samples()
            print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    loop_ms = 1000 * median(loops)
    figures = [history.judged(figure, loop_ms) for figure in figures]
    compared = [*history.against_last(figures, loop_ms), (evenness.figure(loops), None)]
    print(printed(compared))
    if options.write:
        history.append(figures, loop_ms)
        history.draw()
        if options.full:
            write_page(compared)
    is_worse = any(ratio is not None and ratio > WORSE_MAX for _, ratio in compared)
    return int(is_worse or not is_whole or (options.full and not all(figure.holds for figure in figures)))


if __name__ == "__main__":
    sys.exit(main())
