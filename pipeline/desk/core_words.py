"""What the program says everywhere, in the language of a page: fixed tables by sentence, and what has values.

Sentences of errors that name columns, files or servers are no table, and stay English.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from markupsafe import Markup, escape

from pipeline.desk import footer_words
from pipeline.desk.languages import (
    date,
    gettext,
    gettext_noop,
    has_translation,
    moment,
    money,
    number,
)
from pipeline.desk.words import in_desk_words
from pipeline.headers.meaning import header_rules
from pipeline.headers.readings import spoken
from pipeline.wording import language
from schemas.outcomes import Outcome
from schemas.payments import FIELDS
from schemas.places import Places

_N = gettext_noop
ASKED = (*(_N("account"), _N("responder bic"), _N("remittance"), _N("row")),)
"""Fields of a question that a payment does not have."""
ENDINGS = (_N("answered"), _N("refused"), _N("failed"), _N("in doubt"))
"""How a request ended."""
_HEADERS = (
    *(_N("header not known"), _N("empty in every row"), _N("your own side, never asked about")),
    _N("ignored"),
    *(_N("by its cells"), _N("never the payee"), _N("no name in its cells")),
    _N("nobody says whose account, so taken for your own beside the payee's"),
    *(_N("no %(field)s in its cells"), _N("%(header)s is read instead")),
)
"""Why a column is read as it is, or is not."""
_SENTENCES = (
    _N("** (%(num)s character)"),
    _N("** (%(num)s characters)"),
    _N("Questions left: %(num)s. Go on."),
    _N("Questions left: %(num)s. The check was stopped: go on when you like."),
    _N("Questions left: %(num)s; the daily cap of %(cap)s is used up. Go on after %(time)s UTC (days needed "
       "at this cap: %(days)s)."),
    _N("Questions given up after %(runs)s runs: %(num)s; ask the provider what is wrong with them, then ask "
       "about them again."),
    _N("The file says %(said)s (%(where)s) and has %(found)s; it may be cut or changed."),
    _N("characters %(first)s to %(last)s"),
    _N("GBP, by the format"),
    _N("pain.001 (ISO 20022 credit transfers)"),
)  # fmt: skip
"""What else has values in it: how to go on, and what the look at the evidence finds."""
_MONEY = r"[0-9,]+(?:\.[0-9]+)? (?:[A-Z]{3}|\(no currency\))"
_COUNT = f"[0-9,]+ (?:{'|'.join(outcome.replace('_', ' ') for outcome in Outcome)})"
_DAY = re.compile("20[0-9]{2}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(f"{_DAY.pattern}[ T][0-9]{{2}}:[0-9]{{2}}")
_PLACES = {"line": _N("line %(num)s"), "sheet row": _N("sheet row %(num)s")}
"""Where a row stands in its file, by the unit."""
_INSTEAD = {"map": _N("chosen by hand")}
"""What the desk says in other words."""


def fixed() -> list[str]:
    """The sentences and words of the program's tables, as the desk has them in English, each once."""
    return list(dict.fromkeys([in_desk_words(text) for text in _of_tables()]))


@cache
def _in_tables() -> dict[str, str]:
    """A text of the tables -> the same in the words of the desk."""
    return {text: in_desk_words(text) for text in (*_of_tables(), *_SENTENCES, *_HEADERS)} | _INSTEAD


def _of_tables() -> Iterator[str]:
    yield from (outcome.replace("_", " ") for outcome in Outcome)
    yield from map(spoken, FIELDS)
    yield from header_rules()


def of_program(text: str) -> Markup:
    """What the program says, translated where the desk can, and marked as English where it cannot.

    Words of a catalogue are in the language of the page already, and are markup.
    """
    if isinstance(text, Markup):
        return text
    return as_it_stands(_in_tables().get(text) or in_desk_words(text))


def as_it_stands(english: str) -> Markup:
    """The same of a sentence that has no words of the command line, but may have those of a file."""
    if language() == "en":
        return escape(english)
    said = translated(english) if english else english
    return escape(said) if said is not None else Markup('<span lang="en">{}</span>').format(english)


def or_as_it_stands(text: str) -> str:
    """A text of the program translated where the desk can, and else as it stands: it may be of a file."""
    return translated(text) or text


def translated(text: str) -> str | None:
    """A sentence of the desk, or several, in the language of the page; None where some of it is not known."""
    if language() != "en" and has_translation(text):
        return gettext(text)
    said, at = [], 0
    while at < len(text):
        found = _next(text, at)
        if found is None:
            return None
        end, sentence = found
        said.append(sentence)
        at = end + 1  # the blank between two sentences
    return " ".join(said)


def _next(text: str, at: int) -> tuple[int, str] | None:
    for known in _known():
        found = known.pattern.match(text, at)
        if found is not None:
            return found.end(), known.sentence(found)
    return None


class _Known(NamedTuple):
    """Sentences of one form."""

    pattern: re.Pattern[str]
    sentence: Callable[[re.Match[str]], str]
    """In the language of the page."""


@cache
def _known() -> tuple[_Known, ...]:
    """All forms, those before others that say more."""
    sentences = [text for text in fixed() if text.endswith(".")]
    return (
        _Known(_whole(footer_words.PATTERN), footer_words.in_words),
        _Known(_whole(_alternatives(sentences)), lambda found: gettext(found[0])),
        _Known(_whole(f"{_MONEY}(?:, {_MONEY})*"), _amounts),
        _Known(_whole(f"([0-9,]+): ({_COUNT}(?:, {_COUNT})*)"), _counts),
        *(_with_values(text) for text in (*_SENTENCES, *_HEADERS)),
    )


def _alternatives(texts: list[str]) -> str:
    return "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))


def _whole(pattern: str) -> re.Pattern[str]:
    return re.compile(f"(?:{pattern})(?= |$)")


def _as_pattern(message: str, *, named: bool = False) -> str:
    value = r"(?P<\1>.+?)" if named else "(?:.+?)"
    return re.sub(r"%\\\((\w+)\\\)s", value, re.escape(message))


def _with_values(message: str) -> _Known:
    def sentence(found: re.Match[str]) -> str:
        values = {name: _value(name, text) for name, text in found.groupdict().items()}
        return gettext(message, **values)

    return _Known(_whole(_as_pattern(message, named=True)), sentence)


def _value(name: str, text: str) -> str:
    """A value in a sentence: numbers as the language writes them, words of ours translated."""
    if name == "field":
        return gettext(text)
    if name in ("day", "time"):
        return _time(text)
    return _figure(text) if re.fullmatch("[0-9]{1,3}(,[0-9]{3})*", text) else text


def _time(text: str) -> str:
    """A day, or a time with or without its zone, which is UTC."""
    if _TIME.match(text) is None:
        return date(text) if _DAY.fullmatch(text) else text
    return moment(text) if text.endswith("Z") else moment(text).removesuffix(" UTC")


def place_in_words(row: int, places: Places | None) -> str:
    """The place of a row in its file; empty where the format has none."""
    if places is None:
        return ""
    known = _PLACES.get(places.unit)
    return places.text(row) if known is None else gettext(known, num=places.of(row))


def _amounts(found: re.Match[str]) -> str:
    return ", ".join(map(money, found[0].split(", ")))


def _counts(found: re.Match[str]) -> str:
    """A number of rows, and how many of them have each outcome."""
    pairs = (pair.split(" ", 1) for pair in found[2].split(", "))
    return f"{_figure(found[1])}: " + ", ".join(f"{_figure(count)} {gettext(what)}" for count, what in pairs)


def _figure(text: str) -> str:
    return number(int(text.replace(",", "")))
