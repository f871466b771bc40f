"""The folder of a run: the fixed names of the files that are made of its answers."""

from collections.abc import Iterator
from pathlib import Path

REPORT_HTML = "report.html"
REPORT_XLSX = "report.xlsx"
CORRECTIONS = "corrections.csv"
HOLD_REASONS = "hold_reasons.csv"
CORRECTED, RELEASE, HOLD = "corrected", "release", "hold"
"""Payment files: the suffix is that of the input, after `.simulated` where the answers were."""


def files_of_review(folder: Path) -> Iterator[Path]:
    """What `precheck fix` and `precheck split` have left; other answers make it untrue."""
    for pattern in (CORRECTIONS, HOLD_REASONS, f"{CORRECTED}.*", f"{RELEASE}.*", f"{HOLD}.*"):
        yield from sorted(folder.glob(pattern))


def files_with_returned_names(folder: Path) -> Iterator[Path]:
    """What holds names that banks returned, beside the outcome file."""
    for pattern in (REPORT_HTML, REPORT_XLSX, CORRECTIONS, f"{CORRECTED}.*"):
        yield from sorted(folder.glob(pattern))
