"""The folder of a run: the fixed name of every file in it, defined once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

LEDGER = "ledger.db"
STORE = "store.json"
"""The shared ledger's run to which the folder belongs; absent if it has its own ledger."""
SUMMARY = "summary.json"
MANIFEST = "manifest.json"
SIGNATURE = "manifest.json.sig"
"""The Ed25519 signature of the bytes of the manifest, 64 bytes, if it is signed."""
APPROVALS = "approvals.json"
REPORT_HTML = "report.html"
REPORT_XLSX = "report.xlsx"
ATTENTION = "attention.csv"
REPORTS = (REPORT_HTML, REPORT_XLSX, ATTENTION)
"""Reports for people; all hold names."""
OTHER_NAMES = "changes.csv"
"""For a list of payees: each name that differs at the bank."""
PAIN002, PAIN002_SIMULATED = "pain002.xml", "pain002.simulated.xml"
"""The report for bank software, if requested; the second name if a sandbox answered."""
CORRECTIONS = "corrections.csv"
HOLD_REASONS = "hold_reasons.csv"
BANK_REPORTS = "bank_report-*"
"""The copies of a bank's reports."""
PAYEES = "payees.csv"
"""Keyed hashes of payees and accounts, for comparison with a later run."""
CHANGES = "changes.jsonl"
"""Changes since an earlier run, with masked names."""
REASONS = "reasons.jsonl"
"""The sentences of each reason, for pages in other languages; they may hold masked names."""
WARNED = "warned.parquet"
"""The warnings of a data set's rows; for a file, the summary has them."""
OPTIONAL = (WARNED, PAYEES, CHANGES, REASONS, OTHER_NAMES, PAIN002, PAIN002_SIMULATED)
"""Files that only some runs write."""
CORRECTED: Final = "corrected"
FAMILY = "family.txt"
"""Where a file corrected or held here was checked, line by line, if not next to the folder."""
FAMILY_LOCK = ".family.lock"
"""The lock of a split, in the folder of every run with these payments."""
OUTCOMES = "outcomes"
"""The folder of the outcome files of a data set, one for each of its parts."""
DATA_SET = "data_set.json"
"""The parts of a data set when its run began."""
RELEASE: Final = "release"
HOLD: Final = "hold"
"""Payment files: the suffix is that of the input, after `.simulated` if a sandbox answered."""
PARTS: Final = ".parts"
"""The suffix of folders of payment files, if the input is a data set."""


def outcome_name(suffix: str) -> str:
    """The name of an outcome file, such as `outcomes.csv`."""
    return f"outcomes{suffix}"


def pain002_name(*, simulated: bool) -> str:
    """The name of the report for bank software, which shows if a sandbox answered."""
    return PAIN002_SIMULATED if simulated else PAIN002


def bank_report_name(number: int, suffix: str) -> str:
    """The name of a copy of a bank's report, counted from 1, such as `bank_report-1.xml`."""
    return BANK_REPORTS.replace("*", f"{number}{suffix}")


def kept_workbook(number: int) -> str:
    """The name under which a workbook with a user's changes is kept when it is rewritten."""
    return f"report.changed-{number}.xlsx"


def files_of_review(folder: Path) -> Iterator[Path]:
    """Files of `precheck fix` and `precheck split`; out of date once answers change."""
    for pattern in (CORRECTIONS, HOLD_REASONS, f"{CORRECTED}.*", f"{RELEASE}.*", f"{HOLD}.*"):
        yield from sorted(folder.glob(pattern))


def files_with_returned_names(folder: Path) -> Iterator[Path]:
    """The files that hold names returned by banks, besides the outcome file."""
    reports = (REPORT_HTML, REPORT_XLSX, OTHER_NAMES, PAIN002, PAIN002_SIMULATED, BANK_REPORTS)
    names = (*reports, CORRECTIONS, f"{CORRECTED}.*")
    for pattern in names:
        yield from sorted(folder.glob(pattern))
