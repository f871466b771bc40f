"""A sentence as data, its key in a catalogue and the values that it names; and the same in words."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from enum import StrEnum
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, Self, TypeAlias

from pipeline.wording.catalogue import ENGLISH, entry_of


class SurfaceKind(StrEnum):
    """Where a sentence is read. The catalogue may have words of its own for each."""

    ANY = ""
    """Logs, documents and evidence."""
    COMMAND = "command"
    """Names options and commands."""
    PAGE = "page"
    """Names buttons and pages of the desk."""


class ColumnPair(NamedTuple):
    """A field and the column to read it from: `name` and `Payee`, its header, or `#2`, its place."""

    field: str
    column: str


ANY_COLUMN = "HEADER"
"""Stands for a header that the user knows."""
PLACE = "#"
"""Stands before the place of a column, counted from 1."""
_KEY = re.compile(r"[a-z0-9_]+\.[a-z0-9_]+")
Value: TypeAlias = "str | int | float | date | PurePath | ColumnPair | Sentence | Sequence[Value] | None"


class Sentence:
    """What the program says, as data: `Sentence("csv.empty", file="payroll.csv")`.

    `str()` puts it into English words for logs and documents; `words` into those of a surface and a language.
    """

    __slots__ = ("key", "values")

    def __init__(self, key: str, /, **values: "Value") -> None:
        """Take the key and what the words name.

        Args:
            key: `ROOM.name`: the entry `ROOM.name` of `catalogues/LANGUAGE/ROOM.po`.
            values: a path is shown in full on a command line and by its last part on a page; the number
                called `count` chooses between singular and plural.
        """
        self.key = key
        self.values: Mapping[str, Value] = values

    def __repr__(self) -> str:
        """Name the values and do not show them: they may be personal data."""
        return f"Sentence({', '.join([repr(self.key), *self.values])})"

    def __str__(self) -> str:
        return words(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sentence) and (self.key, self.values) == (other.key, other.values)

    def __hash__(self) -> int:
        return hash(self.key)

    def having(self, **values: "Value") -> Self:
        """The same sentence with more values, such as the file that it is about."""
        return type(self)(self.key, **{**self.values, **values})

    def lists(self, name: str) -> "Sequence[Value]":
        """The list of this name among its values or those of a sentence within it; empty if there is none."""
        mine = self.values.get(name)
        if isinstance(mine, Sequence) and not isinstance(mine, str):
            return mine
        within = (value.lists(name) for value in self.values.values() if isinstance(value, Sentence))
        return next(filter(None, within), ())

    def as_data(self) -> list[Any]:
        """The sentence as JSON may hold it; `of_data` reads it back."""
        return [self.key, {name: _as_data(value) for name, value in self.values.items()}]

    @classmethod
    def of_data(cls, data: list[Any]) -> Self:
        """A sentence from what `as_data` gave.

        Raises:
            ValueError: it is something else.
        """
        match data:
            case [str(key), {**values}] if _KEY.fullmatch(key):
                return cls(key, **{str(name): _of_data(value) for name, value in values.items()})
            case _:
                raise ValueError("no sentence")


def _as_data(value: "Value") -> Any:  # noqa: ANN401 (what JSON may hold)
    match value:
        case str() | int() | float() | None:
            return value
        case date():
            return value.isoformat()
        case PurePath():
            return {"path": str(value)}
        case ColumnPair():
            return {"pair": list(value)}
        case Sentence():
            return {"said": value.as_data()}
        case _:
            return [_as_data(one) for one in value]


def _of_data(data: Any) -> "Value":  # noqa: ANN401 (what JSON may hold)
    match data:
        case str() | int() | float() | None:
            return data
        case {"path": str(path)}:
            return PurePath(path)
        case {"pair": [str(field), str(column)]}:
            return ColumnPair(field, column)
        case {"said": [*said]}:
            return Sentence.of_data(said)
        case [*several]:
            return [_of_data(one) for one in several]
        case _:
            raise ValueError("no value of a sentence")


def words(said: Sentence, surface: SurfaceKind = SurfaceKind.ANY, language: str = ENGLISH) -> str:
    """A sentence in words.

    Args:
        said: key and values.
        surface: where it is read; an entry without words for it has the same words everywhere.
        language: code of a catalogue.

    >>> words(Sentence("advice.choose_format", choices=["bacs18", "pain001"]), SurfaceKind.COMMAND)
    'choose one of bacs18, pain001 with --input-format'
    """
    count = said.values.get("count", 0)
    assert isinstance(count, int), f"{said.key}: its count is no number"
    text = entry_of(said.key, count, surface, language)
    return text.format_map({name: _spoken(value, surface, language) for name, value in said.values.items()})


def require_words(*said: Sentence) -> None:
    """Refuse sentences from another process that no catalogue has words for.

    Raises:
        ValueError: there are none, or they name other values.
    """
    try:
        for one in said:
            words(one)
    except (AssertionError, KeyError, OSError) as error:
        raise ValueError("no words for it") from error


class _List(str):
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


class _Number(str):
    """A number in words: `{line}` shows bare digits; `{count:,}` and `{size:.1f}` follow the language."""

    __slots__ = ("language", "number")
    language: str
    number: float

    @classmethod
    def of(cls, number: float, language: str) -> Self:
        """This number, to be written as the words of a language say."""
        made = cls(number)
        made.number, made.language = number, language
        return made

    def __format__(self, style: str) -> str:
        written = format(self.number, style)
        return written.translate(str.maketrans(",.", _SEPARATORS[self.language]))


def _spoken(value: Value, surface: SurfaceKind, language: str) -> str:  # noqa: PLR0911 (a line for each kind)
    """A value in words."""
    match value:
        case str():
            return value
        case None:
            return words(Sentence("advice.unknown"), surface, language)
        case float() | int():
            return _Number.of(value, language)
        case date():
            return value.isoformat()
        case PurePath():
            return value.name if surface is SurfaceKind.PAGE else str(value)
        case ColumnPair():
            return words(_pair(value), surface, language)
        case Sentence():
            return words(value, surface, language)
        case _:
            return _List.of([_spoken(one, surface, language) for one in value], language)


def _pair(pair: ColumnPair) -> Sentence:
    """A field and its column: an option of the command, or a choice beside a column of a page."""
    text, field = f"{pair.field}={pair.column}", Sentence(f"field.{pair.field}")
    option = f'"{text}"' if re.search(r"[^\w=+.#-]", text) else text
    if pair.column == ANY_COLUMN:
        return Sentence("advice.any_column", option=option, field=field)
    if pair.column.startswith(PLACE):
        return Sentence("advice.column_place", option=option, field=field, place=pair.column[len(PLACE) :])
    return Sentence("advice.column", option=option, field=field, column=pair.column.split("+"))
