"""Changes since earlier runs, the runs compared, and the answers of each bank in a file."""

from decimal import Decimal

from schemas.outcomes import WarningCode
from schemas.strict import OwnDocument


class BankOutcomes(OwnDocument):
    """The answers of one responding bank."""

    bank: str  # country and bank code as in its IBANs, or a UK sort code
    answered_count: int
    match_count: int
    close_match_count: int
    no_match_count: int
    not_possible_count: int

    @property
    def match_percent(self) -> int:
        """The percentage of answers that were matches."""
        return round(100 * self.match_count / self.answered_count)


class EarlierRun(OwnDocument):
    """A finished run that a file was compared with."""

    folder: str  # name of its folder, without the path
    input_name: str
    input_sha256: str
    finished: str


class Comparison(OwnDocument):
    """A comparison of a file with earlier runs, and its result, without names or accounts."""

    requested: str  # the user's folders, or the pattern whose newest match was used
    runs: list[EarlierRun]  # latest first; empty if no folder matched the pattern
    payee_count: int  # number of payments that could be compared
    new_count: int  # number of these payments whose payee and account are both new
    banks: list[BankOutcomes] = []  # each bank's answers in the latest of the runs


class BankComparison(OwnDocument):
    """How many payments a check and the reports of the payer's bank agree on."""

    agreed_count: int
    differing_count: int  # payments that differ; each has a change with the code BANK_DIFFERS
    only_bank_count: int  # answered only by the bank; the check rejected, deferred or did not answer them
    only_check_count: int  # payments without a final status in any report


class Change(OwnDocument):
    """A change in one payment, without whole names or accounts."""

    row: int
    code: WarningCode
    then: str | None
    """The old value, masked; null if the payee is new or the value was deleted. With BANK_DIFFERS, the
    outcome of the check or the name that it returned."""
    now: str
    earlier: str | None  # earlier run's folder or bank's report; None if the payee is new
    amount: Decimal | None = None
    currency: str | None = None
