"""Whether a line that should be no payment holds an account, wherever in it."""

import re

_SORT_CODE = re.compile(r"(?<!\d)(?:\d{2}-\d{2}-\d{2}|\d{2} \d{2} \d{2}|\d{6})(?!\d)")
_ACCOUNT_NUMBER = re.compile(r"(?<!\d)\d{8}(?!\d)")
_COMBINED = re.compile(r"(?<!\d)\d{14}(?!\d)")
_DAY = re.compile(r"(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
_IBAN = re.compile(r"(?<![A-Z0-9])[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]){11,30}", re.IGNORECASE | re.ASCII)


def holds_account(text: str) -> bool:
    """Whether a text holds a valid IBAN, or a sort code and eight digits.

    >>> holds_account("Debit account 12-34-56 12345678"), holds_account("Run 202611 of 20261122")
    (True, False)
    """
    if _COMBINED.search(text) or any(_is_iban(found[0]) for found in _IBAN.finditer(text)):
        return True
    sort_codes, numbers = _SORT_CODE.findall(text), _ACCOUNT_NUMBER.findall(text)
    if all(code.isdigit() for code in sort_codes):
        # Beside plain digits, eight that are a day are one: a batch and its date are no account.
        numbers = [number for number in numbers if not _DAY.fullmatch(number)]
    return bool(sort_codes and numbers)


def _is_iban(text: str) -> bool:
    """Whether a text starts with a valid IBAN: as long as its country has it, with check digits that fit."""
    from schwifty import registry  # rarely needed, and slow to load
    from schwifty.exceptions import SchwiftyException

    compact = re.sub("[ -]", "", text).upper()
    try:
        length = registry.get_iban_spec(compact[:2]).iban_length
    except (KeyError, SchwiftyException):
        return False
    iban = compact[:length]
    digits = "".join(str(int(character, 36)) for character in iban[4:] + iban[:4])
    return len(iban) == length and int(digits) % 97 == 1
