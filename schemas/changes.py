"""Changes since earlier runs, and those runs."""

from decimal import Decimal

from schemas.banks import BankOutcomes
from schemas.outcomes import WarningCode
from schemas.strict import OwnDocument


class EarlierRun(OwnDocument):
    """A finished run that a file was compared with."""

    folder: str
    """Its name, without its path."""
    input_name: str
    input_sha256: str
    finished: str


class Comparison(OwnDocument):
    """A comparison of a file with earlier runs, and its result. It holds no name and no account."""

    requested: str
    """The folders that the user gave, or the pattern whose newest match was used."""
    runs: list[EarlierRun]
    """Latest first; empty if no folder matched the pattern."""
    payee_count: int
    """Payments that could be compared."""
    new_count: int
    """Payments among them whose payee and account are both new."""
    banks: list[BankOutcomes] = []
    """Each bank's answers in the latest of the runs."""


class BankComparison(OwnDocument):
    """How a check and the reports of the payer's bank agree, in payments."""

    agreed_count: int
    differing_count: int
    """Each has a change with the code BANK_DIFFERS."""
    only_bank_count: int
    """Answered by the bank alone; the check has rejected, deferred or not answered them."""
    only_check_count: int
    """No report has a final status for them."""


class Change(OwnDocument):
    """A change in one payment, without whole names or accounts."""

    row: int
    code: WarningCode
    then: str | None
    """Masked; null if the payee is new, or where the earlier run no longer has it. With BANK_DIFFERS it is
    the outcome of the check, or the name that it gave."""
    now: str
    earlier: str | None
    """The folder of the earlier run, or the message id of the bank's report; None if the payee is new."""
    amount: Decimal | None = None
    currency: str | None = None
