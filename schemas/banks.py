"""The answers of each bank in a file: some banks are stricter than others."""

from schemas.strict import OwnDocument


class BankOutcomes(OwnDocument):
    """The answers of one responding bank."""

    bank: str
    """Country and bank code as in its IBANs, or a UK sort code."""
    answered_count: int
    match_count: int
    close_match_count: int
    no_match_count: int
    not_possible_count: int

    @property
    def match_percent(self) -> int:
        """The percentage of answers that were matches."""
        return round(100 * self.match_count / self.answered_count)
