"""Patterns of accounts, in cells and within lines of text.

A payment's cell is assigned to the field that it looks like, even against its header. A line that is not a
payment, such as a title or a total, must not contain an account.
"""

import re
from collections.abc import Iterable

import polars as pl

from pipeline.headers.words import COUNTRIES
from pipeline.rules.identifiers import HYPHENS

IBAN = r"^(?i:IBAN:?)?[A-Za-z]{2}[0-9]{2}[A-Za-z0-9]{11,30}$"
"""Pattern of an IBAN without blanks and punctuation; VAT numbers such as NL001234567B01 are shorter."""
PUNCTUATION = rf"[\s{HYPHENS}./:]"
_IBAN_LENGTH_MIN = 15
_CODE_DIGITS, _COMBINED_DIGITS = 6, 14

# Cells of payments.


def by_cell(payments: pl.DataFrame, *, of_any_country: bool = False) -> pl.DataFrame:
    """Move each account to the field that it looks like, and drop repeated ones.

    An IBAN under the header of an account number is an IBAN; digits under the header of an IBAN are a UK
    account. Next to an IBAN, an account number without a sort code, or the sort code and account number of
    the IBAN itself, is not a second account. Two different accounts stay, and are rejected later.

    With `of_any_country`, the sort codes come from a column of any country's bank codes: longer ones, and
    those next to an IBAN of another country, are dropped. Rows and their order stay; cells too, except that a
    sort code and account number in one cell are separated.
    """
    payments = _with_ibans_in_place(payments)
    if of_any_country:
        iban, is_long = _compact("iban"), _compact("sort_code").str.len_chars() > _CODE_DIGITS
        is_other = (iban.str.contains(IBAN) & ~iban.str.contains("^(?:IBAN:?)?GB")).fill_null(value=False)
        payments = payments.with_columns(sort_code=pl.when(~is_other & ~is_long).then("sort_code"))
    payments = _with_digits_in_place(payments)
    return _without_second_account(_with_combined_accounts_split(payments))


def _compact(field: str) -> pl.Expr:
    return pl.col(field).str.replace_all(PUNCTUATION, "").str.to_uppercase()


def _longest(column: pl.Series) -> int:
    longest = column.str.len_bytes().max()
    return int(longest) if isinstance(longest, int) else 0


def _with_ibans_in_place(payments: pl.DataFrame) -> pl.DataFrame:
    if _longest(payments["account_number"]) < _IBAN_LENGTH_MIN:
        return payments
    is_iban = _compact("account_number").str.contains(IBAN) & pl.col("iban").is_null()
    return payments.with_columns(
        iban=pl.when(is_iban).then("account_number").otherwise("iban"),
        account_number=pl.when(~is_iban).then("account_number"),
    )


def _with_digits_in_place(payments: pl.DataFrame) -> pl.DataFrame:
    if not payments["iban"].str.contains(_DIGIT_FIRST).any():
        return payments
    digits = _compact("iban")
    is_account = pl.col("account_number").is_null() & (
        (digits.str.contains(r"^[0-9]{8}$") & pl.col("sort_code").is_not_null())
        | digits.str.contains(_DOMESTIC)
        | pl.col("iban").str.contains(_BEFORE_BANK)
    )
    return payments.with_columns(
        account_number=pl.when(is_account).then("iban").otherwise("account_number"),
        iban=pl.when(~is_account.fill_null(value=False)).then("iban"),
    )


_DIGIT_FIRST = r"^[^A-Za-z]*[0-9]"  # a cell that starts with a digit; no IBAN does
_DOMESTIC = r"^[0-9]{14}$|^[0-9]{24}$|^[0-9]{26}$"
"""Digits that are not an IBAN, and accounts in national notations."""
_BEFORE_BANK = r"^[0-9-]{2,17}/[0-9]{4}$"  # a Czech or Slovak account before its bank code
_HYPHEN = rf"[{HYPHENS}]?\s?"
_SORT_CODE_AND_ACCOUNT = (
    rf"^([0-9]{{2}}){_HYPHEN}([0-9]{{2}}){_HYPHEN}([0-9]{{2}})[\s/,;{HYPHENS}]*([0-9]{{8}})$"
)


def _with_combined_accounts_split(payments: pl.DataFrame) -> pl.DataFrame:
    """Split cells with sort code and account number, in the column of either or next to the IBAN of both.

    Cells under the header of account numbers alone need a sign of the UK, and are split later.
    """
    if max(map(_longest, (payments["account_number"], payments["sort_code"]))) < _COMBINED_DIGITS:
        return payments
    account, code = pl.col("account_number"), pl.col("sort_code")
    cell = pl.when(account.is_null()).then(code).otherwise(account)
    own_code = pl.concat_str(cell.str.extract(_SORT_CODE_AND_ACCOUNT, group) for group in (1, 2, 3))
    is_own = pl.when(code.is_null()).then(_compact("iban").str.contains("^(?:IBAN)?(?:GB|IE)"))
    combined = is_own.otherwise(account.is_null() | (_compact("sort_code") == own_code))
    combined = (combined & own_code.is_not_null()).fill_null(value=False)
    return payments.with_columns(
        sort_code=pl.when(combined).then(own_code).otherwise(code),
        account_number=pl.when(combined).then(cell.str.extract(_SORT_CODE_AND_ACCOUNT, 4)).otherwise(account),
    )


def _without_second_account(payments: pl.DataFrame) -> pl.DataFrame:
    has_both = payments.select(
        (
            pl.col("iban").is_not_null()
            & pl.any_horizontal(pl.col("sort_code", "account_number").is_not_null())
        ).any()
    ).item()
    if not has_both:
        return payments
    is_other_iban = (
        _compact("account_number").str.contains(IBAN) & (_compact("account_number") != _compact("iban"))
    ).fill_null(value=False)
    iban, sort_code, number = (_compact(field) for field in ("iban", "sort_code", "account_number"))
    own_digits = iban.str.replace(r"^IBAN", "").str.slice(8, _COMBINED_DIGITS)
    holds_uk_digits = iban.str.replace(r"^IBAN", "").str.contains(r"^(?:GB|IE)")
    same = holds_uk_digits & (own_digits == pl.concat_str(sort_code, number))
    same_bank = ~holds_uk_digits | (own_digits.str.head(6) == sort_code)
    is_no_second = (pl.col("iban").is_not_null() & ~is_other_iban) & (
        pl.col("sort_code").is_null() | same | (pl.col("account_number").is_null() & same_bank)
    )
    is_no_second = is_no_second.fill_null(value=False)
    return payments.with_columns(
        pl.when(~is_no_second).then(field).alias(field) for field in ("sort_code", "account_number")
    )


# Lines of text.

_RULE = re.compile(r"([^\w\s]|_)\1\1")


def is_ruled(cells: Iterable[str]) -> bool:
    """True if a line only separates others: no letter or digit, and three equal signs in succession.

    >>> is_ruled(["-----", ""]), is_ruled(["---+---"]), is_ruled(["Ada", "---"]), is_ruled(["-", "-"])
    (True, True, False, False)
    """
    text = " ".join(cells)
    return _RULE.search(text) is not None and not any(map(str.isalnum, text))


def holds_account(text: str) -> bool:
    """True if a text holds a valid IBAN, or a sort code and eight digits.

    >>> holds_account("Debit account 12-34-56 12345678"), holds_account("Run 202611 of 20261122")
    (True, False)
    """
    if _COMBINED.search(text) or any(_starts_with_iban(found[0]) for found in _IBAN.finditer(text)):
        return True
    sort_codes, numbers = _SORT_CODE.findall(text), _ACCOUNT_NUMBER.findall(text)
    if all(code.isdigit() for code in sort_codes):
        # Next to plain digits, eight digits that are a date count as one: a batch and its date are not an
        # account.
        numbers = [number for number in numbers if not _DAY.fullmatch(number)]
    return bool(sort_codes and numbers)


def is_iban(text: str) -> bool:
    """True if a text is a valid IBAN, in any notation."""
    compact = "".join(filter(str.isalnum, text)).upper()
    return _starts_with_iban(compact) and len(compact) == IBAN_LENGTHS[compact[:2]]


def _starts_with_iban(text: str) -> bool:
    """True if a text starts with a valid IBAN, of its country's length and with correct check digits."""
    compact = re.sub("[ -]", "", text).upper()
    length = IBAN_LENGTHS.get(compact[:2], 0)
    iban = compact[:length]
    if not 0 < length == len(iban) or not (iban.isascii() and iban.isalnum()):
        return False  # a name such as `Siân` also begins like an IBAN
    return int("".join(str(int(character, 36)) for character in iban[4:] + iban[:4])) % 97 == 1


_SORT_CODE = re.compile(r"(?<!\d)(?:\d{2}-\d{2}-\d{2}|\d{2} \d{2} \d{2}|\d{6})(?!\d)")
_ACCOUNT_NUMBER = re.compile(r"(?<!\d)\d{8}(?!\d)")
_COMBINED = re.compile(r"(?<!\d)\d{14}(?!\d)")
_DAY = re.compile(r"(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
_IBAN = re.compile(r"(?<![A-Z0-9])[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]){11,30}", re.IGNORECASE | re.ASCII)
IBAN_LENGTHS = {country: int(length) for length, its in COUNTRIES.items() for country in its.split()}
"""Country -> length of its IBANs. A copy of the data in schwifty that `rules.identifiers` uses, which takes
longer to load than a small file to read; a test compares them.
"""
