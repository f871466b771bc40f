"""The folder of a run: the fixed name of every file in it, defined once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

LEDGER = "ledger.db"
STORE = "store.json"  # names the run in a shared ledger; absent if the folder has its own ledger
SUMMARY = "summary.json"
MANIFEST = "manifest.json"
SIGNATURE = "manifest.json.sig"  # the 64-byte Ed25519 signature of the manifest's bytes, if signed
APPROVALS = "approvals.json"
REPORT_HTML = "report.html"
REPORT_XLSX = "report.xlsx"
ATTENTION = "attention.csv"
REPORTS = (REPORT_HTML, REPORT_XLSX, ATTENTION)  # reports for people; all contain names
OTHER_NAMES = "changes.csv"  # the names that differ at the bank, for a list of payees
PAIN002, PAIN002_SIMULATED = "pain002.xml", "pain002.simulated.xml"
"""The report for bank software, if requested; the second name if a sandbox answered."""
CORRECTIONS = "corrections.csv"
HOLD_REASONS = "hold_reasons.csv"
BANK_REPORTS = "bank_report-*"  # copies of a bank's reports
PAYEES = "payees.csv"  # keyed hashes of payees and accounts, for comparison with a later run
CHANGES = "changes.jsonl"  # changes since an earlier run, with masked names
REASONS = "reasons.jsonl"  # the sentences of each reason, for other languages; they may hold masked names
WARNED = "warned.parquet"  # the warnings of a data set's rows; a single file's are in the summary
OPTIONAL = (WARNED, PAYEES, CHANGES, REASONS, OTHER_NAMES, PAIN002, PAIN002_SIMULATED)
"""Files that only some runs write."""
CORRECTED: Final = "corrected"
FAMILY = "family.txt"  # folders (one per line) of checked files that corrected or held this, if elsewhere
FAMILY_LOCK = ".family.lock"  # the lock of a split, in every run's folder with these payments
OUTCOMES = "outcomes"  # the folder of the outcome files of a data set, one for each of its parts
DATA_SET = "data_set.json"  # the parts of a data set when its run began
RELEASE: Final = "release"
HOLD: Final = "hold"  # payment files, with the input's suffix, after `.simulated` if a sandbox answered
PARTS: Final = ".parts"  # the suffix of folders of payment files, if the input is a data set


def outcome_name(suffix: str) -> str:
    """Return the name of an outcome file, such as `outcomes.csv`."""
    return f"outcomes{suffix}"


def pain002_name(*, simulated: bool) -> str:
    """Return the name of the report for bank software, which shows if a sandbox answered."""
    return PAIN002_SIMULATED if simulated else PAIN002


def bank_report_name(number: int, suffix: str) -> str:
    """Return the name of a bank report's copy, counted from 1, such as `bank_report-1.xml`."""
    return BANK_REPORTS.replace("*", f"{number}{suffix}")


def copy_before(name: str) -> str:
    """Return the name for a file's copy, kept while a job rewrites the file and its manifest."""
    return f"{name}.before"


def kept_workbook(number: int) -> str:
    """Return the name for a workbook with a user's changes, kept when it is rewritten."""
    return f"report.changed-{number}.xlsx"


def files_of_review(folder: Path) -> Iterator[Path]:
    """Yield the files of `precheck fix` and `precheck split`, which become outdated when answers change."""
    for pattern in (CORRECTIONS, HOLD_REASONS, f"{CORRECTED}.*", f"{RELEASE}.*", f"{HOLD}.*"):
        yield from sorted(folder.glob(pattern))


def files_with_returned_names(folder: Path) -> Iterator[Path]:
    """Yield the files with names from banks, except the outcome file."""
    reports = (REPORT_HTML, REPORT_XLSX, OTHER_NAMES, PAIN002, PAIN002_SIMULATED, BANK_REPORTS)
    names = (*reports, CORRECTIONS, f"{CORRECTED}.*")
    for pattern in names:
        yield from sorted(folder.glob(pattern))
