"""The banks of the simulated network, and the accounts that each holds.

UK banks own ranges of sort codes; the others own a bank code within the IBAN. A client of VoP Standard must
find the responder's BIC itself, so most of these codes exist in a public registry; the banks are simulated.
"""

from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum, auto


class Conduct(Enum):
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


_UK_RANGES: tuple[tuple[str, str, Bank], ...] = (
    ("010000", "109999", Bank("northmere", "GB", 30)),
    ("110000", "199999", Bank("castlebrook", "GB", 25, is_lenient=True)),
    ("200000", "299999", Bank("harrowgate-vale", "GB", 20)),
    ("300000", "389999", Bank("pennant", "GB", 15, is_lenient=True)),
    ("400000", "449999", Bank("wold-and-fen", "GB", 6, has_roll_numbers=True)),
    ("450000", "499999", Bank("slowwater", "GB", 1, conduct=Conduct.SLOW)),
    ("500000", "549999", Bank("tumbledown", "GB", 1, conduct=Conduct.FAILING)),
    ("550000", "569999", Bank("stillmoor", "GB", 1, conduct=Conduct.SILENT)),
    ("570000", "589999", Bank("brittlegate", "GB", 1, conduct=Conduct.BROKEN_TLS)),
    ("600000", "699999", Bank("eastmarch", "GB", 10)),
    ("800000", "839999", Bank("glenarrow", "GB", 8)),
)
"""First and last sort code of each range; other sort codes have no participating bank."""

_STARTS = [first for first, _, _ in _UK_RANGES]

UNSUPPORTED_BRANCH = "99"
"""Ending of sort codes whose bank does not support the check or, if the account number begins with 4 or 5,
answers the gateway with an HTTP error of that class.
"""

IBAN_BANKS: tuple[Bank, ...] = (
    Bank("10010010", "DE", 12, bic="PBNKDEFFXXX"),
    Bank("37040044", "DE", 12, bic="COBADEFFXXX", is_lenient=True),
    Bank("30003", "FR", 10, bic="SOGEFRPPXXX"),
    Bank("30004", "FR", 8, bic="BNPAFRPPXXX", is_lenient=True),
    Bank("RABO", "NL", 10, bic="RABONL2UXXX"),
    Bank("ABNA", "NL", 6, bic="ABNANL2AXXX"),
    Bank("0049", "ES", 8, bic="BSCHESMMXXX"),
    Bank("03069", "IT", 8, bic="BCITITMMXXX"),
    Bank("000", "BE", 5, bic="GEBABEBBXXX", is_lenient=True),
    Bank("34000", "AT", 5, bic="RZOOAT2LXXX"),
    Bank("AIBK", "IE", 5, bic="AIBKIE2DXXX"),
    Bank("0035", "PT", 4, bic="CGDIPTPLXXX"),
    # The misbehaving banks are invented: no registry contains their codes.
    Bank("99900011", "DE", 1, bic="SLOWDEM0XXX", conduct=Conduct.SLOW),
    Bank("99900022", "DE", 1, bic="FAILDEM0XXX", conduct=Conduct.FAILING),
    Bank("99903", "FR", 1, bic="HUSHFRP0XXX", conduct=Conduct.SILENT),
    Bank("ZZTL", "NL", 1, bic="ZZTLNL20XXX", conduct=Conduct.BROKEN_TLS),
)

BBAN_PATTERNS = {
    "AT": "BBBBBNNNNNNNNNNN",
    "BE": "BBBNNNNNNNNN",
    "DE": "BBBBBBBBNNNNNNNNNN",
    "ES": "BBBBNNNNNNNNNNNNNNNN",
    "FR": "BBBBBNNNNNNNNNNNNNNNNNN",
    "IE": "BBBBNNNNNNNNNNNNNN",
    "IT": "ABBBBBNNNNNNNNNNNNNNNNN",
    "NL": "BBBBNNNNNNNNNN",
    "PT": "BBBBNNNNNNNNNNNNNNNNN",
}
"""National account numbers of the network's countries: B for the bank code, N a digit, A a letter."""

_BY_BANK_CODE = {(bank.country, bank.code): bank for bank in IBAN_BANKS}
_BY_BIC8 = {bank.bic[:8]: bank for bank in IBAN_BANKS}

UK_BANKS = tuple(bank for _, _, bank in _UK_RANGES)


def bank_of_sort_code(sort_code: str) -> Bank | None:
    """The bank that owns a sort code; None if no participant does."""
    position = bisect_right(_STARTS, sort_code) - 1
    if position < 0:
        return None
    _, last, bank = _UK_RANGES[position]
    return bank if sort_code <= last else None


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
    return next((int(first), int(last)) for first, last, owner in _UK_RANGES if owner == bank)
