"""What payment files call the two account types of Confirmation of Payee."""

from collections.abc import Mapping

from schemas.cop import AccountType

WORDS: Mapping[str, AccountType] = {
    "personal": AccountType.PERSONAL,
    "individual": AccountType.PERSONAL,
    "person": AccountType.PERSONAL,
    "private": AccountType.PERSONAL,
    "business": AccountType.BUSINESS,
    "company": AccountType.BUSINESS,
    "corporate": AccountType.BUSINESS,
    "institution": AccountType.BUSINESS,
    "organisation": AccountType.BUSINESS,
    "organization": AccountType.BUSINESS,
}
"""Word in lower case -> the account type it means."""
