"""Which columns hold the payee's account, and what a cell of them is: its look decides, not only its header.

Sides come first: a column of our side is never asked about, and one that is marked for the payee goes before
one that is not.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from pipeline.headers.cells import Cells
from pipeline.headers.choice import Choice, either
from pipeline.headers.meaning import BARE_ACCOUNT, Meaning, Side, meaning
from pipeline.headers.spelling import fold

IBAN = r"^(?i:IBAN:?)?[A-Za-z]{2}[0-9]{2}[A-Za-z0-9]{10,30}$"
"""The look of an IBAN, without blanks and punctuation."""
_DIGITS = r"^[0-9]{6,10}$|^[0-9]{14}$"
"""The look of a UK account number, damaged ones too, and of one with its sort code."""
_SORT_CODE = r"^[0-9]{5,6}$"
_PUNCTUATION = r"[\s\-./:]"
_FIELDS = ("iban", "account_number", "sort_code")
_IBAN_LENGTH_MIN = 15
_COMBINED_DIGITS = 14


def choose(cells: Cells, said: Mapping[str, object]) -> list[Choice]:
    """The columns of the payee's account.

    Args:
        cells: The columns that `--map` does not speak of.
        said: The fields that it does speak of.

    Raises:
        Refusal: two columns could be the account and differ in a row.
    """
    candidates = {
        header: _by_look(meant, cells.sample(header))
        for header in cells.headers
        if (meant := meaning(header)).what in _FIELDS
    }
    theirs = {header: meant for header, meant in candidates.items() if meant.side is not Side.OURS}
    theirs = _without_bare(theirs, cells)
    filled = {header: meant for header, meant in theirs.items() if cells.is_filled(header)}
    # A column without any account is read where there is no other: each of its rows is told what it lacks.
    kept = _marked_first(filled, cells) if {"iban", "account_number"} & _whats(filled) else theirs
    bare = [header for header, meant in candidates.items() if _is_bare(meant) and header not in theirs]
    why_not = dict.fromkeys(bare, "nobody says whose account, so taken for your own beside the payee's")
    choices = []
    for field in _FIELDS:
        of_field = [header for header, meant in kept.items() if meant.what == field]
        if of_field and field not in said:
            others = tuple(header for header, meant in candidates.items() if meant.what == field)
            choices.append(_one(field, of_field, others, cells)._replace(why_not=why_not))
    _refuse_unread_accounts(choices, cells)
    return choices


def _by_look(meant: Meaning, sample: pl.Series) -> Meaning:
    """A column that is headed as account numbers and holds nothing but IBANs is one of IBANs."""
    if meant.what == "account_number" and len(sample) and _are_ibans(sample):
        return meant._replace(what="iban")
    return meant


def _are_ibans(sample: pl.Series) -> bool:
    return bool(sample.str.replace_all(_PUNCTUATION, "").str.contains(IBAN).all())


def _refuse_unread_accounts(choices: Sequence[Choice], cells: Cells) -> None:
    """A column of IBANs whose header nobody knows may be the payee's; the same in every row it is not."""
    chosen = next((choice for choice in choices if choice.field in ("iban", "account_number")), None)
    if chosen is None:
        return
    for header in cells.headers:
        sample = cells.sample(header)
        is_unread = meaning(header).what is None and len(sample) > 0 and _are_ibans(sample)
        first = chosen.sources[0]
        if is_unread and not cells.is_constant([header]) and cells.differ(first, [header]):
            raise either("iban", [first, (header,)], cells, what="the payee's account")


def _whats(candidates: Mapping[str, Meaning]) -> set[str | None]:
    return {meant.what for meant in candidates.values()}


def _without_bare(candidates: dict[str, Meaning], cells: Cells) -> dict[str, Meaning]:
    """`Konto` beside a column of the payee's is ours, as in `Konto; Empfänger; IBAN`."""
    payee_is_marked = any(
        meant.side is Side.PAYEE
        for header in cells.headers
        if (meant := meaning(header)).what in {*_FIELDS, "name"}
    )
    if not payee_is_marked:
        return candidates
    return {header: meant for header, meant in candidates.items() if not _is_bare(meant)}


def _is_bare(meant: Meaning) -> bool:
    return meant.plain and meant.rule == BARE_ACCOUNT


def _marked_first(candidates: Mapping[str, Meaning], cells: Cells) -> dict[str, Meaning]:
    """The columns of the payee's side, where any are marked; without those that hold no account at all."""
    marked = {header for header, meant in candidates.items() if meant.side is Side.PAYEE}
    kinds = {candidates[header].what for header in marked}
    # An unmarked sort code belongs to the unmarked account number beside it.
    are_pairs = any(
        meant.what == "account_number" for header, meant in candidates.items() if header not in marked
    )
    kept = {}
    for header, meant in candidates.items():
        beaten = header not in marked and (
            meant.what in kinds
            or (meant.what == "sort_code" and are_pairs and "account_number" in kinds)
            or ("iban" in kinds and meant.what != "iban")
            # An unmarked IBAN beside a marked account number may be ours, which is the same in every row.
            or ("account_number" in kinds and meant.what == "iban" and not cells.varies([header]))
        )
        if not beaten:
            kept[header] = meant
    return kept


def _one(field: str, headers: Sequence[str], others: tuple[str, ...], cells: Cells) -> Choice:
    """The one column of a field; several only where no row has two different things in them."""
    _refuse_ledger_accounts(field, headers, others, cells)
    looking = [header for header in headers if _looks_like(field, cells.sample(header))] or list(headers)
    # A supplier's account may be its number in our books.
    explicit = [header for header in looking if not meaning(header).plain] or looking
    first, *rest = explicit
    for other in rest:
        if cells.differ([first], [other]):
            raise either(field, [(first,), (other,)], cells, what=f"the payee's {_WORDS[field]}")
    sources = tuple((header,) for header in explicit)
    return Choice(field, sources, meaning(first).rule, others)


def _refuse_ledger_accounts(field: str, headers: Sequence[str], others: Sequence[str], cells: Cells) -> None:
    """`Creditor account` beside another account number may be an account in the books."""
    for header in headers:
        if field == "account_number" and any(word in fold(header) for word in _CREDIT):
            for other in others:
                if (
                    other not in headers
                    and meaning(other).side is Side.UNSAID
                    and cells.differ([header], [other])
                ):
                    raise either(field, [(header,), (other,)], cells, what="the payee's account")


_CREDIT = ("credit", "kredit", "crediteur")
_WORDS = {"iban": "IBAN", "account_number": "account", "sort_code": "sort code"}


def _looks_like(field: str, sample: pl.Series) -> bool:
    """Whether any cell could be what the field is."""
    look = _SORT_CODE if field == "sort_code" else f"{_DIGITS}|{IBAN}"
    return bool(sample.str.replace_all(_PUNCTUATION, "").str.contains(look).any())


# Of payments: which field a cell belongs to.


def by_cell(payments: pl.DataFrame) -> pl.DataFrame:
    """Payments with each account in the field of its look, and no account twice.

    An IBAN under the header of an account number is an IBAN; digits under the header of an IBAN are a UK
    account. An account number without a sort code beside an IBAN, and a sort code and account number that the
    IBAN itself holds, are no second account. Two different accounts stay, and are rejected later.

    Args:
        payments: With `sort_code`, `account_number` and `iban` as text.

    Returns:
        The same rows in the same order; cells as written, except that a sort code and account number in one
        cell stand apart.
    """
    payments = _with_ibans_in_place(payments)
    payments = _with_digits_in_place(payments)
    return _without_second_account(_with_combined_accounts_split(payments))


def _compact(field: str) -> pl.Expr:
    return pl.col(field).str.replace_all(_PUNCTUATION, "").str.to_uppercase()


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
        | digits.str.contains(rf"^[0-9]{{{_COMBINED_DIGITS}}}$")
    )
    return payments.with_columns(
        account_number=pl.when(is_account).then("iban").otherwise("account_number"),
        iban=pl.when(~is_account.fill_null(value=False)).then("iban"),
    )


_DIGIT_FIRST = r"^[^A-Za-z]*[0-9]"
"""Of a cell; no IBAN starts so."""
_SORT_CODE_AND_ACCOUNT = r"^([0-9]{2})[- ]?([0-9]{2})[- ]?([0-9]{2})[- ]?([0-9]{8})$"


def _with_combined_accounts_split(payments: pl.DataFrame) -> pl.DataFrame:
    """Sort code and account number apart, in rows that have both in account_number and no sort code."""
    if _longest(payments["account_number"]) < _COMBINED_DIGITS:
        return payments
    combined = pl.col("sort_code").is_null() & pl.col("account_number").str.contains(_SORT_CODE_AND_ACCOUNT)
    account = pl.col("account_number")
    sort_code = pl.concat_str(account.str.extract(_SORT_CODE_AND_ACCOUNT, group) for group in (1, 2, 3))
    return payments.with_columns(
        sort_code=pl.when(combined).then(sort_code).otherwise("sort_code"),
        account_number=pl.when(combined)
        .then(account.str.extract(_SORT_CODE_AND_ACCOUNT, 4))
        .otherwise("account_number"),
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
