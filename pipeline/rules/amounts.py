"""Read amounts, and the currency next to them, as people write them, without guessing."""

from typing import NamedTuple

import polars as pl

from pipeline.frames import MONEY
from pipeline.rules.selected_values import noted, replaced

AMOUNT = r"^-?[0-9]{1,18}(\.[0-9]{1,3}0*)?$"  # zeros as further decimals come from databases
MANY_DECIMALS = r"^-?[0-9]{1,18}\.[0-9]{4,}$"  # more than any currency has, unless they end in zeros
AMBIGUOUS = r"^-?0*[1-9][0-9]{0,2}[.,][0-9]{3}$"  # may group thousands or begin decimals
_SIDE = r"(?:\+|\(?(?i:credit|debit|haben|soll|cr|dr|db|[cdhs])\b\.?\)?)\s*"
DEBIT_OR_CREDIT = rf"^\s*{_SIDE}[:+-]*[^0-9\s]{{0,3}}\s*[.,]?[0-9]|[0-9)]\s*(?:[£€$]|[A-Z]{{3}})?\s*{_SIDE}$"
"""A mark for debit or credit, or a plus, before or after an amount."""

_PLAIN = r"^[0-9]{1,18}(\.[0-9]{1,2})?$"  # the form of most amounts, which is never ambiguous
# A group of thousands never starts with a zero: 0.500 is a half, not five hundred.
_GROUPED_ENGLISH = (
    r"^-?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]{1,3})?$|^-?[1-9][0-9]?(,[0-9]{2})+,[0-9]{3}(\.[0-9]{1,3})?$"
)
_GROUPED_EUROPEAN = r"^-?[1-9][0-9]{0,2}(\.[0-9]{3})+(,[0-9]{1,3})?$"
_GAP = "[\\s'\u2019\u00b4]"
_GROUPED_BY_GAPS = f"^-?[1-9][0-9]{{0,2}}({_GAP}[0-9]{{3}})+([.,][0-9]{{1,3}})?$"
ZERO = r"^-?0+(\.0+)?$"
OF_SEVERAL = "¤"  # replaces a word that several currencies share, such as kr
_MARK = f"[£€${OF_SEVERAL}]|[A-Za-z]{{3}}"  # a sign or code for the currency next to an amount
_WORDS = {
    r"(?:euros?|eur\.)": "EUR",
    r"(?:zł|zl)\.?": "PLN",
    r"(?:kč|kc)\.?": "CZK",
    r"s?fr\.?": "CHF",
    r"ft\.?": "HUF",
    "lei": "RON",
    "(?:лв|lv)\\.?": "BGN",
    r"(?:kr|rs|₹)\.?": OF_SEVERAL,
}
"""Currency as people write it next to an amount -> its code."""
_HAS_WORD = r"[^\x00-\x7f£€]|[A-Za-z]"
_NO_DECIMALS = r"([.,])\s*[-\x{2012}-\x{2015}]{1,2}(\s*[£€$\p{L}]*\.?\s*)$"
"""A dash in place of zero decimals: `1.250,-`; in India also `1,250/-`."""
_LESS_THAN_ONE = r"^(-?)[.,]([0-9]{1,3})$"
_MARK_FIRST = rf"^(-?)\s*(?:{_MARK})\s*([-(]?[.,]?[0-9].*)$"
_MARK_LAST = rf"^(.*[0-9)-])\s*(?:{_MARK})$"
_SIGN = f"([£€${OF_SEVERAL}])"
_CODE_FIRST = r"^[-(\s\x{2212}]*([A-Za-z]{3})\s*[-(\x{2212}]?[.,]?[0-9]"
_CODE_LAST = r"[0-9)-]\s*([A-Za-z]{3})\s*\)?$"
_MARKED = f"[£€${OF_SEVERAL}A-Za-z]"
_MINUS = r"[-(\x{2212}\x{2013}]"
_MINUS_FIRST = r"^[-\x{2212}\x{2013}]\s*([0-9£€$A-Za-z])"
_MINUS_LAST = r"^([^-(]*[0-9])\s*[-\x{2212}\x{2013}]$"
_IN_BRACKETS = r"^\(\s*(.*[0-9].*)\)$"


class Amounts(NamedTuple):
    """A column of amounts after reading."""

    text: pl.Series  # the amount with a decimal point and no grouping; ambiguous texts are unchanged
    money: pl.Series  # `frames.MONEY`: the exact amount; null if the text is not exactly one amount
    mark: pl.Series  # the sign or code next to it: £, €, $ or a code; null without one


def read_amounts(written: pl.Series) -> Amounts:
    """Read amounts without guessing: `1£50` and `12 34` are not amounts."""
    is_odd = ~written.str.contains(_PLAIN)
    written = replaced(written, where=is_odd, by=_with_codes)
    text = replaced(written, where=is_odd, by=_decimal_text)
    money = replaced(
        text,
        where=is_odd,
        by=lambda some: some.set(~some.str.contains(AMOUNT) | some.str.contains(AMBIGUOUS), None),
    ).cast(MONEY)
    return Amounts(text, money, noted(written, where=is_odd, by=_marks))


def _with_codes(amounts: pl.Series) -> pl.Series:
    """Replace currency words by codes, and a dash by decimals."""
    amounts = amounts.str.replace(_NO_DECIMALS, "${1}00$2").str.replace(r"([0-9])\s*/[-=]\s*$", "$1.00")
    return replaced(amounts, where=amounts.str.contains(_HAS_WORD), by=_with_words_as_codes)


def _with_words_as_codes(amounts: pl.Series) -> pl.Series:
    for word, code in _WORDS.items():
        amounts = amounts.str.replace(
            rf"(?i)^([-(\s\x{{2212}}]*){word}\s*([-(\x{{2212}}]?[.,]?[0-9].*)$", f"${{1}}{code} $2"
        )
        amounts = amounts.str.replace(rf"(?i)^(.*[0-9)-])\s*{word}\s*(\)?)\s*$", f"$1 {code}$2")
    return amounts


def exact_text(numbers: pl.Series) -> pl.Series:
    """Write numbers with a known decimal point as text; 1.500 becomes 1.5000, which cannot mean thousands."""
    return replaced(numbers, where=numbers.str.contains(AMBIGUOUS), by=lambda some: some + "0")


def _marks(amounts: pl.Series) -> pl.Series:
    is_coded = amounts.str.contains("[A-Za-z]")
    return replaced(amounts.str.extract(_SIGN), where=is_coded, by=lambda _: _codes(amounts.filter(is_coded)))


def _codes(amounts: pl.Series) -> pl.Series:
    patterns = (_SIGN, _CODE_FIRST, _CODE_LAST)
    marks = pl.coalesce(pl.col("amount").str.extract(pattern) for pattern in patterns).str.to_uppercase()
    return amounts.alias("amount").to_frame().select(marks).to_series()


def _decimal_text(amounts: pl.Series) -> pl.Series:
    # Step by step: polars would evaluate an expression again at each use.
    written = _minus_first(amounts.str.strip_prefix("'").str.strip_chars())
    unmarked = replaced(written, where=written.str.contains(_MARKED), by=_without_mark)
    unmarked = unmarked.str.replace(_LESS_THAN_ONE, "${1}0.$2")
    bare = pl.col("amount")
    text = (
        pl.when(bare.str.contains(AMBIGUOUS))
        .then(bare)
        .when(bare.str.contains(_GROUPED_ENGLISH))
        .then(bare.str.replace_all(",", "", literal=True))
        .when(bare.str.contains(_GROUPED_EUROPEAN))
        .then(bare.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True))
        .when(bare.str.contains(_GROUPED_BY_GAPS))
        .then(bare.str.replace_all(_GAP, "").str.replace(",", ".", literal=True))
        .otherwise(bare.str.replace(",", ".", literal=True))
    )
    is_plain = unmarked.str.contains(_PLAIN)
    return replaced(
        unmarked,
        where=~is_plain,
        by=lambda some: some.alias("amount").to_frame().select(text).to_series(),
    )


def _without_mark(amounts: pl.Series) -> pl.Series:
    is_first = amounts.str.contains(_MARK_FIRST)
    bare = replaced(amounts, where=is_first, by=lambda some: some.str.replace(_MARK_FIRST, "$1$2"))
    return _minus_first(replaced(bare, where=~is_first, by=lambda some: some.str.replace(_MARK_LAST, "$1")))


def _minus_first(amounts: pl.Series) -> pl.Series:
    """Put a minus in front, whether written after the amount, as a longer dash or as brackets."""
    return replaced(amounts, where=amounts.str.contains(_MINUS), by=_with_minus_first)


def _with_minus_first(amounts: pl.Series) -> pl.Series:
    for pattern in (_IN_BRACKETS, _MINUS_LAST, _MINUS_FIRST):
        amounts = amounts.str.replace(pattern, "-$1")
    return amounts
