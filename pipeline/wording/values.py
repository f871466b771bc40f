"""Values of sentences in words: lists, numbers and times, as a language writes them."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, Self


class List(str):
    """A list in words: `{names}` is joined by commas; `{names:or}` has a word before the last."""

    __slots__ = ("language", "several")
    language: str
    several: Sequence[str]

    @classmethod
    def of(cls, several: Sequence[str], language: str) -> Self:
        """These texts, to be joined as the words of a language say."""
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
"""What stands between thousands, and before decimals."""


class Number(str):
    """A number in words: `{line}` shows bare digits; `{count:,}` and `{size:.1f}` follow the language."""

    __slots__ = ("language", "number")
    language: str
    number: float | Decimal

    @classmethod
    def of(cls, number: float | Decimal, language: str) -> Self:
        """This number, to be written as the words of a language say."""
        made = cls(str(number))
        made.number, made.language = number, language
        return made

    def __format__(self, style: str) -> str:
        written = format(self.number, style)
        return written.translate(str.maketrans(",.", _SEPARATORS[self.language]))


class Time(str):
    """A time in words, with its minute or `{time:seconds}`; `{time:iso}` as documents have it."""

    __slots__ = ("day", "moment")
    day: str
    moment: str

    @classmethod
    def of(cls, moment: str, language: str, *, at_length: bool) -> Self:
        """This time, as it is written on a surface in a language."""
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
    """A day as documents have it; at length, as people write it."""
    if not at_length:
        return day.isoformat()
    from babel.dates import format_date

    return format_date(day, "long", locale=LOCALES[language])
