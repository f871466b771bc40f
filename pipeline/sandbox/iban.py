"""IBANs: structure by country, and check digits (ISO 13616, ISO 7064 MOD 97-10), used by LEIs too."""

import string

_LENGTHS = {
    "AD": 24, "AT": 20, "BE": 16, "BG": 22, "CH": 21, "CY": 28, "CZ": 24, "DE": 22, "DK": 18,
    "EE": 20, "ES": 24, "FI": 18, "FR": 27, "GB": 22, "GI": 23, "GR": 27, "HR": 21, "HU": 28,
    "IE": 22, "IS": 26, "IT": 27, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MT": 31,
    "NL": 18, "NO": 15, "PL": 28, "PT": 25, "RO": 24, "SE": 24, "SI": 19, "SK": 24, "SM": 27,
    "VA": 22,
}  # fmt: skip
"""Country -> length of its IBANs; for other countries, any length up to 34."""

_LETTERS_AS_NUMBERS = str.maketrans({letter: str(ord(letter) - 55) for letter in string.ascii_uppercase})


def is_valid(iban: str) -> bool:
    """True if the IBAN has its country's length and correct check digits; the caller checks its characters.

    >>> is_valid("DE89370400440532013000"), is_valid("DE88370400440532013000")
    (True, False)
    """
    length = _LENGTHS.get(iban[:2])
    return (length is None or len(iban) == length) and has_right_check_digits(iban[4:] + iban[:4])


def has_right_check_digits(text: str) -> bool:
    """True if a text of capitals and digits ends with correct MOD 97-10 check digits, as an LEI does.

    >>> has_right_check_digits("SIMU0000000000000183"), has_right_check_digits("SIMU0000000000000184")
    (True, False)
    """
    return _remainder(text) == 1


def compose(country: str, bban: str) -> str:
    """Compose an IBAN from a country and a national account number."""
    return f"{country}{check_digits(bban + country)}{bban}"


def check_digits(text: str) -> str:
    """Compute the two MOD 97-10 check digits for a text of capitals and digits."""
    return f"{98 - _remainder(text + '00'):02d}"


def _remainder(text: str) -> int:
    return int(text.translate(_LETTERS_AS_NUMBERS)) % 97
