"""Labels of rows below the payments, such as totals, counts or the file's author.

The whole cell must be a label, alone or with a figure: a payee such as Total Energies starts like one.
"""

import re
import unicodedata
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from pipeline.headers.words import COUNTED, COUNTS, NOTES, NOTES_ALONE, SUBTOTALS, TOTALS


class LabelKind(StrEnum):
    """What a row that is not a payment holds."""

    TOTAL = "total"
    SUBTOTAL = "subtotal"
    COUNT = "count"
    NOTE = "note"


class Label(NamedTuple):
    """A label, found in a cell."""

    kind: LabelKind
    words: str  # as in `words.toml`
    figure: str | None  # a number next to the label, in the same cell
    currency: str | None  # ISO 4217 code, if the cell names one


_CURRENCIES = ("gbp", "eur", "usd", "chf", "sek", "nok", "dkk", "pln", "czk", "huf", "ron", "bgn", "isk")
_SIGNS = {"£": "GBP", "€": "EUR"}


def fold(text: str) -> str:
    """Normalise a label for comparison: lower case, no accents, single spaces, no ornaments.

    >>> fold(" *** Total général: ")
    'total general:'
    """
    plain = unicodedata.normalize("NFKD", text.casefold().replace("ı", "i"))  # noqa: RUF001 (Turkish)
    without_marks = "".join(character for character in plain if not unicodedata.combining(character))
    return " ".join(without_marks.split()).strip("*=_#~- ")


def label_of(cell: str) -> Label | None:
    """Return the label if the whole cell is one; else None.

    >>> label_of("Totals:"), label_of("Total Energies")
    (Label(kind=<LabelKind.TOTAL: 'total'>, words='totals', figure=None, currency=None), None)
    """
    if len(cell) > _CHARS_MAX:
        return None
    folded = fold(cell)
    if not folded.startswith(tuple(_spelling())):  # building the patterns takes time, and few cells need them
        return None
    for kind, pattern in _patterns().items():
        found = pattern.fullmatch(folded)
        if found is None:
            continue
        parts = found.groupdict()
        sign = next((parts[name] for name in ("code", "before", "after") if parts.get(name)), None)
        currency = None if sign is None else _SIGNS.get(sign, sign.upper())
        words = parts["words"] or parts["free"]
        return Label(kind, _spelling()[words], parts.get("figure"), currency)
    return None


_CHARS_MAX = 200


@cache
def _patterns() -> dict[LabelKind, re.Pattern[str]]:
    code = "|".join(_CURRENCIES)
    sign = rf"{code}|[£€$]"
    figure = r"(?P<figure>-?[0-9][0-9.,' ]*)"
    amount = rf"(?: ?\(?(?P<code>{code})\)?)? ?[:=]? ?(?:(?P<before>{sign})? ?{figure} ?(?P<after>{sign})?)?"
    counted = _any([word for _, words in COUNTED.values() for word in words])
    freely = [note for note in NOTES if note not in NOTES_ALONE]
    note = rf"(?P<words>{_any(NOTES)})(?: ?[:=].*)?|(?P<free>{_any(freely)}) .*"
    return {
        LabelKind.COUNT: re.compile(rf"(?P<words>{_any(COUNTS)}) ?[:=]? ?{figure}?"),
        LabelKind.SUBTOTAL: re.compile(rf"(?P<words>{_any(SUBTOTALS)}){amount}"),
        LabelKind.TOTAL: re.compile(rf"(?P<words>{_any(TOTALS)})(?: ?\([0-9]+ (?:{counted})\))?{amount}"),
        LabelKind.NOTE: re.compile(note),
    }


def _any(labels: tuple[str, ...] | list[str]) -> str:
    return "|".join(re.escape(fold(label)) for label in sorted(set(labels), key=len, reverse=True))


@cache
def _spelling() -> dict[str, str]:
    """Folded label -> its spelling in `words.toml`."""
    return {fold(label): label for label in (*NOTES, *COUNTS, *SUBTOTALS, *TOTALS)}
