"""`make bench`: measure the figures of docs/dev/performance.md here, beside what others would write.

Everything is measured from outside: whole commands as child processes against one sandbox in a process of
its own, over TLS, with the ledger on. Processor time is the operating system's account of a child; it is
the figure to trust where other work goes on, and wall times are upper bounds.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

import checks
import data_sets
import desk_pages
import evenness
import frames
import latency
import ledger
import pace
import payment_formats
import shared_ledger
import shares
import starts
from table import Figure, printed, write_page

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
}


def main():
    """Measure, print the table, and say by the exit status whether every figure is at its goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=SECTIONS, action="append", help="measure these alone")
    parser.add_argument("--rounds", type=int, default=3, help="of what is measured several times")
    parser.add_argument(
        "--long", action="store_true", help="10 to 20 million rows and 10 million checks, too"
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/dev/performance.md")
    options = parser.parse_args()
    figures: list[Figure] = []
    loops = evenness.samples()
    with TemporaryDirectory(prefix="precheck-bench-") as folder:
        for name in options.only or SECTIONS:
            print(f"{name} ...", file=sys.stderr, flush=True)
            figures += SECTIONS[name].figures(Path(folder), options)
            loops += evenness.samples()
    figures.append(evenness.figure(loops))
    print(printed(figures))
    if options.write:
        write_page(figures)
    return int(not all(figure.holds for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
