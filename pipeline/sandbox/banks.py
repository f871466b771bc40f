"""The banks of the simulated network, and the accounts that each holds.

UK banks own ranges of sort codes; the others own a bank code within the IBAN. A client of VoP Standard must
find the responder's BIC itself, so most of these codes exist in a public registry; the banks are simulated.
"""

import tomllib
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum, auto
from importlib.resources import files

from pydantic import TypeAdapter


class Conduct(StrEnum):
    """How a bank behaves as a responder, if the sandbox lets banks misbehave."""

    STEADY = auto()
    SLOW = auto()  # answers just within the responder wait
    FAILING = auto()  # cannot check the name, or makes the gateway fail
    SILENT = auto()  # never answers: the gateway gives up after the responder wait
    BROKEN_TLS = auto()  # fails the TLS handshake with the gateway


@dataclass(frozen=True, slots=True)
class Bank:
    """A bank that answers name checks."""

    code: str  # its key in the network; the bank code within an IBAN, or an invented word for a UK bank
    country: str
    weight: int  # its share of the payments in the samples, relative to the other banks of its network
    bic: str = ""  # BIC11; empty for a UK bank, which is found by sort code
    is_lenient: bool = False  # True if a name that deviates slightly is a full match
    has_roll_numbers: bool = False  # True if names can be checked only with a secondary reference
    conduct: Conduct = Conduct.STEADY
    first: str = ""  # first and last sort code of a UK bank
    last: str = ""


_FILE = tomllib.loads((files(__package__) / "banks.toml").read_text("utf-8"))
UK_BANKS, IBAN_BANKS = (TypeAdapter(tuple[Bank, ...]).validate_python(_FILE[kind]) for kind in ("uk", "iban"))
BBAN_PATTERNS: dict[str, str] = _FILE["bban_patterns"]
"""National account numbers of the network's countries: B for the bank code, N a digit, A a letter."""

_STARTS = [bank.first for bank in UK_BANKS]
_BY_BANK_CODE = {(bank.country, bank.code): bank for bank in IBAN_BANKS}
_BY_BIC8 = {bank.bic[:8]: bank for bank in IBAN_BANKS}

UNSUPPORTED_BRANCH = "99"
"""Ending of sort codes whose bank does not support the check or, if the account number begins with 4 or 5,
answers the gateway with an HTTP error of that class.
"""


def bank_of_sort_code(sort_code: str) -> Bank | None:
    """The bank that owns a sort code; None if no participant does."""
    position = bisect_right(_STARTS, sort_code) - 1
    if position < 0:
        return None
    bank = UK_BANKS[position]
    return bank if sort_code <= bank.last else None


def bank_of_iban(iban: str) -> Bank | None:
    """The bank that an IBAN names; None if no participant is named."""
    pattern = BBAN_PATTERNS.get(iban[:2])
    if pattern is None:
        return None
    start = 4 + pattern.index("B")
    return _BY_BANK_CODE.get((iban[:2], iban[start : start + pattern.count("B")]))


def bank_of_bic(bic: str) -> Bank | None:
    """The bank with this BIC, in any branch; None if it is not a participant."""
    return _BY_BIC8.get(bic[:8])


def sort_codes(bank: Bank) -> tuple[int, int]:
    """First and last sort code of a UK bank, as numbers."""
    return int(bank.first), int(bank.last)
