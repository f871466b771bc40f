"""Placeholders for empty cells: a dash, `n/a`, zeros, or NOTPROVIDED instead of a BIC.

In columns of accounts, BICs and LEIs they always mean an empty cell; elsewhere they may be values.
"""

import polars as pl

CELL_ERROR = r"^(?i:#(N/A|GETTING_DATA|NAME\?|(REF|VALUE|DIV/0|NULL|NUM|SPILL|CALC|FIELD|BUSY)!))$"
FIELDS_WITH_PLACEHOLDERS = ("sort_code", "account_number", "iban", "bic", "lei", "organisation_bic")
_PUNCTUATION = r"[^\p{L}\p{N}#]"
_NOTHING = (
    rf"^{_PUNCTUATION}*$|^(?:{_PUNCTUATION}*0)+{_PUNCTUATION}*$"
    r"|^\P{L}*(?i:\\n|n[/.]?a|none|null|nil|nan|not\s?provided)\P{L}*$"
)
"""No letters or digits, only zeros, or a word for nothing; `#N/A` is a value lost in a spreadsheet."""
_IS_SOMETHING = r"[1-9#]"
"""Found in most cells, which then need no other test."""
_NO_NAME_CHARS_MAX = 16
_NO_NAME = (
    r"^[\p{P}--[@\-]][\p{P}\s]*$|^[^\p{L}#]*(?:\\N|[Nn][/.][Aa]|NA|na|NAN|NaN|nan|NIL|nil"
    r"|(?i:none|null|unknown|tb[acd]|not (?:provided|known|applicable)|notprovided))[\p{P}\p{S}\s]*$"
)
"""Placeholders for a missing name. Na, Nan and Nil are names; bare signs and `#N/A` break other rules."""
_LIKE_BICS = """\
    NOTPROVIDED PROVIDED NOTKNOWN NOTAVAIL UNAVAILABLE UNSPECIFIED BANKNAME BANKCODE DOMESTIC OVERSEAS
    BUSINESS SUPPLIER CUSTOMER CREDITOR DEPOSITS DIVIDEND BARCLAYS CITIBANK COMMERZBANK COOPBANK DEUTSCHE
    ERSTBANK EUROBANK FIRSTDIRECT HSBCBANK IBERCAJA IDEABANK KIWIBANK NATWESTBANK OPENBANK POSTBANK
    POSTFINANCE RABOBANK REVOLUTBANK SABADELL SPARBANK STARLING SWEDBANK TRIODOSBANK VIRGINMONEY"""
"""Words and bank names that look like BICs but are not in schwifty's registry of banks."""
_NO_BICS = [word.ljust(11, "X") for word in _LIKE_BICS.split()]


def without_placeholders(cells: pl.Series) -> pl.Series:
    """Replace placeholders in a column of accounts, BICs or LEIs by null."""
    some = cells.filter(~cells.str.contains(_IS_SOMETHING)).unique()
    if some.is_empty():
        return cells
    are_words = some.str.to_uppercase().str.pad_end(11, "X").is_in(_NO_BICS).fill_null(value=False)
    nothing = some.filter(some.str.contains(_NOTHING) | are_words)
    return cells if nothing.is_empty() else cells.set(cells.is_in(nothing.implode()), None)


def are_no_names(names: pl.Series) -> pl.Series:
    """True for placeholders of a missing name."""
    return (names.str.len_bytes() <= _NO_NAME_CHARS_MAX) & names.str.contains(_NO_NAME)


def without_words(bics: pl.Series) -> pl.Series:
    """Replace words that only look like BICs by null, in BICs of eleven characters from `bic11`."""
    is_word = bics.is_in(_NO_BICS).fill_null(value=False)
    return bics.set(is_word, None) if is_word.any() else bics
