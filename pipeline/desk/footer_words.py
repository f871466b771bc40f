"""Rows of a payment file that are no payments, in the language of a page: totals, counts, headers again."""

import re
from collections.abc import Mapping

from pipeline.desk.languages import gettext, gettext_noop, money, number

_N = gettext_noop
_PLACES: Mapping[str, str] = {
    "Row": _N("Row %(num)s"),
    "Line": _N("Line %(num)s"),
    "Sheet row": _N("Sheet row %(num)s"),
}
PATTERN = (
    r"(?P<unit>Row|Line|Sheet row) (?P<num>[0-9]+) is no payment"
    r'(?: \("(?P<label>.*?)"\))?(?:: (?P<why>.+?))?\.'
)
_WHY = (
    _N("it repeats the headers"),
    _N("text below the totals"),
    _N("it says %(said)s, the sum of the payments"),
    _N("it says %(said)s, and the payments add up to %(found)s; make sure that none is missing"),
    _N("it counts %(said)s payments"),
    _N("it counts %(said)s payments, and there are %(found)s; make sure that none is missing"),
)
_NOTHING, _AND = _N("nothing"), _N("%(one)s and %(other)s")


def in_words(found: re.Match[str]) -> str:
    """A sentence that `PATTERN` has found, in the language of the page."""
    unit, figure, label, why = found.groups()
    place = gettext(_PLACES[unit], num=number(int(figure)))
    if label is not None:
        place = f"{place} (“{label}”)"
    if why is None:
        return gettext("%(place)s is no payment.", place=place)
    return gettext("%(place)s is no payment: %(why)s.", place=place, why=_why(why))


def _why(text: str) -> str:
    for message in _WHY:
        values = re.sub(r"%\\\((\w+)\\\)s", r"(?P<\1>.+)", re.escape(message))
        if (found := re.fullmatch(values, text)) is not None:
            return gettext(message, **{name: _figures(value) for name, value in found.groupdict().items()})
    return text


def _figures(text: str) -> str:
    """Counts and amounts as the language writes them."""
    if text == "nothing":
        return gettext(_NOTHING)
    if re.fullmatch("[0-9]{1,3}(?:,[0-9]{3})*", text):
        return number(int(text.replace(",", "")))
    first, *others = [money(one).strip() for one in text.split(" and ")]
    for other in others:
        first = gettext(_AND, one=first, other=other)
    return first
