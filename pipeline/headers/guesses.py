"""Guess fields from the cells of columns if no header shows them.

Guesses are only shown to the user, never used for reading. Two candidates for a field are both shown.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import polars as pl

from pipeline.headers.cells import ColumnCells
from pipeline.headers.choice import rule_of
from pipeline.wording import PLACE, ColumnPair, Sentence
from schemas.payments import FIELDS

_IBAN = re.compile(r"(?:IBAN:?)? ?[A-Z]{2}[0-9]{2}(?:[ .-]?[A-Z0-9]){10,30}", re.IGNORECASE | re.ASCII)
_UK_ACCOUNT = re.compile(r"[0-9]{8}|[0-9]{14}|[0-9]{2}([- ]?)[0-9]{2}\1[0-9]{2}[- ]?[0-9]{8}")
_SORT_CODE = re.compile(r"[0-9]{2}([- ]?)[0-9]{2}\1[0-9]{2}")
_NUMBER = re.compile(r"[-(]?[£€$]? ?[0-9][0-9.,' ]*[)-]?")
_DECIMALS = re.compile(r"[.,][0-9]{1,2}[)-]?$")
_CURRENCY = re.compile(r"GBP|EUR|USD|CHF|PLN|SEK|DKK|NOK|CZK|HUF|RON|BGN|ISK|CAD|AUD|JPY")
_KIND = re.compile(r"personal|business|individual|private|company|corporate", re.IGNORECASE)
_BIC = re.compile(r"[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?")
_NAME = re.compile(r"[^\W\d_](?=.* .)\D*", re.DOTALL)
_MONTH, _DAY_OF_MONTH = r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12][0-9]|3[01])"
_DATE = re.compile(
    rf"(?:19|20)?[0-9]{{2}}[-/. ]?{_MONTH}[-/. ]?{_DAY_OF_MONTH}"
    rf"|{_DAY_OF_MONTH}[-/. ]?{_MONTH}[-/. ]?(?:19|20)?[0-9]{{2}}"
)
_PUNCTUATION = re.compile(r"[\s\-./:]")
_KINDS = {
    "IBANs": _IBAN,
    "account numbers": re.compile(r"[0-9]{6,10}"),
    "sort codes with account numbers": re.compile(r"[0-9]{14}"),
}


class Guess(NamedTuple):
    """A guess about a column from its cells."""

    field: str | None  # the likely field
    words: Sentence  # such as "its cells look like IBANs"
    others: tuple[str, ...] = ()  # other columns that could be this field; the user chooses


def guesses_of(cells: ColumnCells) -> dict[str, Guess]:
    """Return header -> the guess about its cells; other candidates beat dates and constant columns."""
    looks = {header: _look(cells.sample(header).to_list()) for header in cells.headers}
    looks = _with_bic(looks, cells)
    has_names = any(look.field == "name" and not cells.is_constant([at]) for at, look in looks.items())
    for field in FIELDS:
        rivals = [header for header, look in looks.items() if look.field == field]
        # Next to IBANs, eight digits that are a date are never an account number.
        is_needed = field != "account_number" or all(look.field != "iban" for look in looks.values())
        left = _without(
            rivals, lambda header: _are(_DATE, cells.sample(header).to_list()), is_needed=is_needed
        )
        looks |= dict.fromkeys(set(rivals) - set(left), Guess(None, _look_like("dates")))
        if field in ("name", "iban", "sort_code", "account_number"):
            is_name, rivals = field == "name", left
            is_needed = not has_names or field in ("name", "sort_code")  # payees differ: the account is yours
            left = _without(rivals, lambda header: cells.is_constant([header]), is_needed=is_needed)
            of_name = rule_of("the same in every row: a text, or your own name")
            of_account = rule_of("the same in every row: perhaps your own account")
            same = Guess(None, of_name if is_name else of_account)
            looks |= dict.fromkeys(set(rivals) - set(left), same)
        for header in left:
            others = tuple(other for other in left if other != header)
            looks[header] = looks[header]._replace(others=others)
    return looks


def pairs_of(looks: Mapping[str, Guess], headers: Sequence[str]) -> Sentence | None:
    """Return the `--map` pairs for these guesses: first the certain fields, then the choices.

    >>> sentence = Sentence("column.ignored")
    >>> name = Guess("name", sentence, ("#1", "#3"))
    >>> looks = {"#1": name, "#2": Guess("iban", sentence), "#3": name}
    >>> str(pairs_of(looks, ["#1", "#2", "#3"]))
    'iban=#2, and name=#1 or name=#3'
    """
    found: dict[str, list[ColumnPair]] = {}
    for header in (header for header in headers if header in looks):
        if (field := looks[header].field) is not None:
            place = ColumnPair(field, f"{PLACE}{headers.index(header) + 1}")
            found.setdefault(field, []).append(place)
    sure = [pairs[0] for pairs in found.values() if len(pairs) == 1]
    choices = [Sentence("headers.one_of_pairs", pairs=pairs) for pairs in found.values() if len(pairs) > 1]
    steps = [Sentence("headers.each_of_pairs", pairs=sure), *choices] if sure else choices
    if not steps:
        return None
    return reduce(lambda one, other: Sentence("headers.and_also", one=one, other=other), steps)


def by_place(lines: Sequence[Sequence[str]]) -> ColumnCells:
    """Return the cells of lines without headers, by position."""
    width = max(map(len, lines), default=0)
    columns = {
        f"{PLACE}{index + 1}": [cells[index] if index < len(cells) else None for cells in lines]
        for index in range(width)
    }
    return ColumnCells(pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)))


def kinds_in(values: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of accounts in these cells: "IBANs", "account numbers", ..."""
    compact = [_PUNCTUATION.sub("", value) for value in values]
    return tuple(kind for kind, look in _KINDS.items() if any(map(look.fullmatch, compact)))


def _look(values: Sequence[str]) -> Guess:
    if not values:
        return Guess(None, rule_of("empty in every row"))
    for field, words, look in _LOOKS:
        if _are_mostly(look, values):
            return Guess(field, _look_like(*([words] if words else kinds_in(values))))
    if are_amounts(values):
        return Guess("amount", _look_like("amounts"))
    return Guess(None, rule_of("its cells hold nothing to check"))


def _look_like(*kinds: str) -> Sentence:
    return Sentence("column.cells_look_like", kinds=list(map(rule_of, kinds)))


_LOOKS: tuple[tuple[str | None, str, re.Pattern[str]], ...] = (
    ("iban", "IBANs", _IBAN),
    ("sort_code", "sort codes", _SORT_CODE),
    ("account_number", "", re.compile(f"{_UK_ACCOUNT.pattern}|(?i:{_IBAN.pattern})")),
    (None, "dates", _DATE),
    ("currency", "currencies", _CURRENCY),
    ("account_type", "account types", _KIND),
    ("name", "names", _NAME),
)
"""The first pattern that most cells match counts; patterns without words only describe the content."""
KINDS = {"amounts", "BICs", *(words for _, words, _ in _LOOKS if words), *_KINDS}
"""Words for what cells look like."""


def are_amounts(values: Sequence[str]) -> bool:
    """True if most cells are numbers and some have decimals, unlike counts."""
    return _are_mostly(_NUMBER, values) and any(_DECIMALS.search(value) for value in values)


def _with_bic(looks: dict[str, Guess], cells: ColumnCells) -> dict[str, Guess]:
    """Guess BICs among words of eight or eleven letters if they have the country of the IBAN next to them."""
    ibans = [header for header, look in looks.items() if look.field == "iban"]
    for header, look in looks.items():
        if look.field is None and _are_mostly(_BIC, cells.sample(header).to_list()):
            countries = cells.text(header).str.slice(4, 2)
            if any((countries == cells.text(iban).str.slice(0, 2)).any() for iban in ibans):
                looks = {**looks, header: Guess("bic", _look_like("BICs"))}
    return looks


def _without(rivals: list[str], is_unlikely: Callable[[str], bool], *, is_needed: bool = True) -> list[str]:
    """Return the likely candidates; all of them if none is likely but one is needed."""
    return [header for header in rivals if not is_unlikely(header)] or (rivals if is_needed else [])


def _are(look: re.Pattern[str], values: Sequence[str]) -> bool:
    return bool(values) and all(look.fullmatch(value) for value in values)


def _are_mostly(look: re.Pattern[str], values: Sequence[str]) -> bool:
    return sum(1 for value in values if look.fullmatch(value)) * 2 > len(values)
