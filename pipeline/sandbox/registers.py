"""The account registers of the simulated banks, computed on demand from a seed.

An account is computed from the seed, the bank and the number, so a network of any size takes no memory, and
sandboxes with the same seed have the same accounts.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeVar

from pipeline.sandbox import iban, names
from pipeline.sandbox.banks import Bank
from schemas.cop import AccountType

Chosen = TypeVar("Chosen")


class AccountStatus(Enum):
    """The status of an account at its bank, which is decided before names are compared."""

    OPEN = auto()
    ABSENT = auto()
    OPTED_OUT = auto()
    UNSUPPORTED_TYPE = auto()
    SWITCHED = auto()


_STATUSES_PER_MILLE = (
    (40, AccountStatus.ABSENT),
    (10, AccountStatus.OPTED_OUT),
    (10, AccountStatus.UNSUPPORTED_TYPE),
    (15, AccountStatus.SWITCHED),
    (925, AccountStatus.OPEN),
)


@dataclass(frozen=True, slots=True)
class RegisteredAccount:
    """A bank's record of one account."""

    status: AccountStatus
    account_type: AccountType
    name: str
    secondary_reference: str | None = None  # without it, this bank cannot check the name
    identifications: dict[str, str] = field(default_factory=dict)  # by kind, such as LEI; empty for a person

    @property
    def is_business(self) -> bool:
        """True if the account is a business account."""
        return self.account_type is AccountType.BUSINESS


def account_of(seed: int, bank: Bank, number: str) -> RegisteredAccount:
    """Return a bank's account by sort code and account number, or by IBAN, in the network of a seed."""
    draw = _Draw(f"{seed}/{bank.code}/{number}")
    status = by_share(_STATUSES_PER_MILLE, draw.below(1000))
    is_business = draw.below(100) < 35
    account_type = AccountType.BUSINESS if is_business else AccountType.PERSONAL
    is_uk = bank.country == "GB"
    name = _company_name(draw, is_uk=is_uk) if is_business else _person_name(draw, is_uk=is_uk)
    return RegisteredAccount(
        status=status,
        account_type=account_type,
        name=name,
        secondary_reference=f"ROLL{draw.below(10**8):08d}" if bank.has_roll_numbers else None,
        identifications=_identifications(draw, bank.country) if is_business and not is_uk else {},
    )


class _Draw:
    """Draws numbers one after another from the digest of a key."""

    def __init__(self, key: str) -> None:
        self._left = int.from_bytes(hashlib.blake2b(key.encode()).digest(), "big")

    def below(self, limit: int) -> int:
        self._left, drawn = divmod(self._left, limit)
        return drawn

    def one_of(self, words: tuple[str, ...]) -> str:
        return words[self.below(len(words))]


def by_share(shares: Iterable[tuple[int, Chosen]], drawn: int) -> Chosen:
    """Return the choice that a number below the sum of all shares draws."""
    for share, choice in shares:
        if drawn < share:
            return choice
        drawn -= share
    raise AssertionError(drawn)


def _person_name(draw: _Draw, *, is_uk: bool) -> str:
    pool = names.UK if is_uk else names.EUROPE
    words = [draw.one_of(pool.forenames)]
    if draw.below(4) == 0:
        words.append(draw.one_of(pool.forenames))
    return " ".join([*words, draw.one_of(pool.surnames)])


def _company_name(draw: _Draw, *, is_uk: bool) -> str:
    forms = (names.UK if is_uk else names.EUROPE).company_forms
    return f"{draw.one_of(names.COMPANY_WORDS)} {draw.one_of(names.TRADES)} {draw.one_of(forms)}"


def _identifications(draw: _Draw, country: str) -> dict[str, str]:
    stem = f"SIMU00{draw.below(10**12):012d}"
    return {"LEI": stem + iban.check_digits(stem), "TXID": f"{country}{draw.below(10**9):09d}"}
