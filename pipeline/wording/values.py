"""Values of sentences in words: lists, numbers and times in the format of a language."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, Self


class List(str):
    """A list in words: `{names}` is joined by commas; `{names:or}` adds a word before the last item."""

    __slots__ = ("language", "several")
    language: str
    several: Sequence[str]

    @classmethod
    def of(cls, several: Sequence[str], language: str) -> Self:
        """Return texts to join as the language does."""
        made = cls(", ".join(several))
        made.several, made.language = several, language
        return made

    def __format__(self, style: str) -> str:
        if style in _MARKS:
            return _MARKS[style].join(self.several)
        from babel.lists import format_list

        return format_list(self.several, _STYLES[style], LOCALES[self.language])


_MARKS: Mapping[str, str] = {"": ", ", "each": " ", ";": "; "}
_STYLES: Mapping[str, Literal["standard", "or"]] = {"and": "standard", "or": "or"}
LOCALES: Mapping[str, str] = {"en": "en_GB", "de": "de_DE", "fr": "fr_FR"}
_SEPARATORS: Mapping[str, str] = {"en": ",.", "de": ".,", "fr": "\u202f,"}
"""Separators of thousands and decimals."""


class Number(str):
    """A number in words: `{line}` shows bare digits; `{count:,}` and `{size:.1f}` follow the language."""

    __slots__ = ("language", "number")
    language: str
    number: float | Decimal

    @classmethod
    def of(cls, number: float | Decimal, language: str) -> Self:
        """Return this number, to be written in the format of a language."""
        made = cls(str(number))
        made.number, made.language = number, language
        return made

    def __format__(self, style: str) -> str:
        written = format(self.number, style)
        return written.translate(str.maketrans(",.", _SEPARATORS[self.language]))


class Time(str):
    """A time in words, to the minute, or `{time:seconds}`; `{time:iso}` as in documents."""

    __slots__ = ("day", "moment")
    day: str
    moment: str

    @classmethod
    def of(cls, moment: str, language: str, *, at_length: bool) -> Self:
        """Return this time, to be written for a surface and a language."""
        time = datetime.fromisoformat(moment)
        day = day_of(time.date(), language, at_length=at_length) + ("," if at_length else "")
        made = cls(f"{day} {time:%H:%M} UTC")
        made.day, made.moment = day, moment
        return made

    def __format__(self, style: str) -> str:
        match style:
            case "iso":
                return str(self.moment)
            case "seconds":
                return f"{self.day} {datetime.fromisoformat(self.moment):%H:%M:%S} UTC"
            case _:
                return str(self)


def day_of(day: date, language: str, *, at_length: bool) -> str:
    """Return a day as in documents, or with `at_length` in words."""
    if not at_length:
        return day.isoformat()
    from babel.dates import format_date

    return format_date(day, "long", locale=LOCALES[language])
