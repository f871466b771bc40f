"""What has changed since earlier runs, and which runs these were."""

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
    """With what a file was compared, and what that came to. It holds no name and no account."""

    said: str
    """The folders that the user gave, or the pattern whose newest match was taken."""
    runs: list[EarlierRun]
    """Latest first; none if nothing fitted the pattern."""
    payee_count: int
    """Payments that could be compared."""
    new_count: int
    """Payments among them whose payee and account are both new."""
    banks: list[BankOutcomes] = []
    """What each bank answered in the latest of the runs."""


class Change(OwnDocument):
    """A change about one payment, without whole names or accounts."""

    row: int
    code: WarningCode
    then: str | None
    """Masked; null if the payee is new, or where the earlier run no longer has it."""
    now: str
    earlier: str | None
    """The folder of the earlier run; None if the payee is new."""
    amount: Decimal | None = None
    currency: str | None = None
