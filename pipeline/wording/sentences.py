"""A sentence as data (its key in a catalogue, and values) and in words."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from errno import errorcode
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, Self, TypeAlias, TypeGuard

from pipeline.wording.catalogue import ENGLISH, entry_of
from schemas.localized import LocalizedText


class SurfaceKind(StrEnum):
    """The surface that shows a sentence. Catalogues may have different words for each."""

    ANY = ""  # logs, documents and evidence
    COMMAND = "command"  # names options and commands
    PAGE = "page"  # names buttons and pages of the desk


class Moment(str):
    """A time in a document: UTC, ISO 8601 with Z. `{time}` shows it to the minute, `{time:iso}` in full."""

    __slots__ = ()


class ColumnPair(NamedTuple):
    """A field such as `name`, and its column: a header such as `Payee`, or a position such as `#2`."""

    field: str
    column: str


ANY_COLUMN = "HEADER"  # stands for a header that the user knows
PLACE = "#"  # precedes the position of a column, counted from 1
_KEY = re.compile(r"[a-z0-9_]+\.[a-z0-9_]+")
Value: TypeAlias = (
    "str | int | float | Decimal | date | PurePath | ColumnPair | Sentence | Sequence[Value] | None"
)


class Sentence:
    """A message to the user, as data: `Sentence("csv.empty", file="payroll.csv")`.

    `str()` returns it in English, for logs and documents; `words`, for a surface and in any language.
    """

    __slots__ = ("key", "values")

    def __init__(self, key: str, /, **values: "Value | OSError") -> None:
        """Take the key, `ROOM.name`, of `catalogues/LANGUAGE/ROOM.po`, and the values.

        A path is shown in full on a command line, by its last part on a page. The number `count` chooses
        singular or plural. A system error becomes its reason, a document's text its sentence.
        """
        self.key = key
        self.values: Mapping[str, Value] = {
            name: _of_system(value) if isinstance(value, OSError) else _of_document(value)
            for name, value in values.items()
        }

    def __repr__(self) -> str:
        """Show only the names of the values, which may be personal data."""
        return f"Sentence({', '.join([repr(self.key), *self.values])})"

    def __str__(self) -> str:
        return words(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sentence) and (self.key, self.values) == (other.key, other.values)

    def __hash__(self) -> int:
        return hash(self.key)

    def having(self, **values: "Value") -> Self:
        """Return the same sentence with more values, such as its file."""
        return type(self)(self.key, **{**self.values, **values})

    def renamed(self, old: str, new: str) -> Self:
        """Return the same sentence with another name for the same thing, such as a path for a file.

        >>> str(Sentence("advice.either", one="a.csv", other="b.csv").renamed("a.csv", "jan/a.csv"))
        'jan/a.csv, or b.csv'
        """
        return type(self)(
            self.key, **{name: _renamed(value, old, new) for name, value in self.values.items()}
        )

    def lists(self, name: str) -> "Sequence[Value]":
        """Return the list of this name from its values or a nested sentence's; empty without one."""
        mine = self.values.get(name)
        if _is_several(mine):
            return mine
        within = (value.lists(name) for value in self.values.values() if isinstance(value, Sentence))
        return next(filter(None, within), ())

    def as_data(self) -> list[Any]:
        """Return the sentence as JSON data; `of_data` reads it back."""
        return [self.key, {name: _as_data(value) for name, value in self.values.items()}]

    def as_text(self) -> str:
        """Return the JSON data as text."""
        return json.dumps(self.as_data(), ensure_ascii=False)

    def recorded(self) -> LocalizedText:
        """Return the sentence for a document."""
        return LocalizedText.of(str(self), self.as_data())

    @classmethod
    def of_data(cls, data: list[Any]) -> Self:
        """Read a sentence that `as_data` returned (ValueError: it is something else)."""
        match data:
            case [str(key), {**values}] if _KEY.fullmatch(key):
                return cls(key, **{str(name): _of_data(value) for name, value in values.items()})
            case _:
                raise ValueError("no sentence")

    @classmethod
    def of_document(cls, text: LocalizedText) -> Self:
        """Read a document's sentence; where another version wrote one that we lack, its English text."""
        said = cls.of_data(text.sentence)
        try:
            require_words(said)
        except ValueError:
            return cls("advice.recorded", text=str(text))
        return said


SYSTEM_ERRORS = frozenset(
    {
        *("eacces", "eaddrinuse", "eaddrnotavail", "ebusy", "econnrefused", "econnreset"),
        *("edquot", "eexist", "efbig", "ehostunreach", "einval", "eio", "eisdir", "eloop"),
        *("emfile", "enametoolong", "enetunreach", "enoent", "enospc", "enotdir", "enotempty"),
        *("enxio", "eperm", "erofs", "estale", "etimedout", "gaierror"),
    }
)
"""System errors with words in `system.po`; loaded early: no file may be readable after such an error."""


def _of_system(error: OSError) -> "Sentence | str":
    """Return the message of a system error, in the language of the sentence, without its path."""
    name = errorcode.get(error.errno or 0, type(error).__name__).lower()
    return Sentence(f"system.{name}") if name in SYSTEM_ERRORS else error.strerror or name


def _of_document(value: "Value") -> "Value":
    """Return the sentence of a document's text, even within a list, so that it can be translated."""
    if isinstance(value, LocalizedText):
        return Sentence.of_document(value)
    if _is_several(value) and any(isinstance(one, LocalizedText) for one in value):
        return list(map(_of_document, value))
    return value


def _renamed(value: "Value", old: str, new: str) -> "Value":
    match value:
        case Sentence():
            return value.renamed(old, new)
        case str() | PurePath():
            return new if str(value) == old else value
        case _:
            return value


_TAGGED: Sequence[tuple[str, type, Callable[[Any], Any], Callable[[Any], "Value"]]] = (
    ("moment", Moment, str, Moment),
    ("decimal", Decimal, str, Decimal),
    ("day", date, date.isoformat, date.fromisoformat),
    ("path", PurePath, str, PurePath),
    ("pair", ColumnPair, list, lambda pair: ColumnPair(*pair)),
    ("sentence", Sentence, Sentence.as_data, Sentence.of_data),
)
"""Types that JSON lacks: tag, type, and functions to write and read each."""


def _as_data(value: "Value") -> Any:  # noqa: ANN401 (what JSON may hold)
    for tag, kind, written, _ in _TAGGED:
        if isinstance(value, kind):
            return {tag: written(value)}
    return [_as_data(one) for one in value] if _is_several(value) else value


def _of_data(data: Any) -> "Value":  # noqa: ANN401 (what JSON may hold)
    match data:
        case str() | int() | float() | None:
            return data
        case [*several]:
            return [_of_data(one) for one in several]
        case {**tagged} if len(tagged) == 1:
            [(name, text)] = tagged.items()
            for tag, _, _, read in _TAGGED:
                with suppress(TypeError, ArithmeticError):
                    if tag == name:
                        return read(text)
    raise ValueError("no value of a sentence")


def _is_several(value: "Value") -> "TypeGuard[Sequence[Value]]":
    return not isinstance(value, str) and isinstance(value, Sequence)


def words(sentence: Sentence, surface: SurfaceKind = SurfaceKind.ANY, language: str = ENGLISH) -> str:
    """Return a sentence in words; most have the same words on every surface.

    >>> words(Sentence("advice.choose_format", choices=["bacs18", "pain001"]), SurfaceKind.COMMAND)
    'choose one of bacs18, pain001 with --input-format'
    """
    count = sentence.values.get("count", 0)
    assert isinstance(count, int), f"{sentence.key}: its count is no number"
    spoken = {name: _spoken(value, surface, language) for name, value in sentence.values.items()}
    return entry_of(sentence.key, count, surface, language).format_map(spoken)


def require_words(*sentences: Sentence) -> None:
    """Refuse sentences that are not in the catalogues with these values (ValueError)."""
    try:
        for one in sentences:
            words(one)
    except (AssertionError, KeyError, OSError) as error:
        raise ValueError("no words for it") from error


def _spoken(value: Value, surface: SurfaceKind, language: str) -> str:  # noqa: PLR0911 (a line for each kind)
    match value:
        case Moment():
            return moment_of(value, language, at_length=surface is SurfaceKind.PAGE)
        case str():
            return value
        case None:
            return words(Sentence("advice.unknown"), surface, language)
        case float() | int() | Decimal():
            return _Styled.of(str(value), lambda style: number_of(value, style, language))
        case date():
            return _day(value, language, at_length=surface is SurfaceKind.PAGE)
        case PurePath():
            return value.name if surface is SurfaceKind.PAGE else str(value)
        case ColumnPair():
            return words(_pair(value), surface, language)
        case Sentence():
            return words(value, surface, language)
        case _:
            return _list([_spoken(one, surface, language) for one in value], language)


def _pair(pair: ColumnPair) -> Sentence:
    """Return a field and its column: as an option of the command, or a choice on a page."""
    text, field = f"{pair.field}={pair.column}", Sentence(f"field.{pair.field}")
    option = f'"{text}"' if re.search(r"[^\w=+.#-]", text) else text
    if pair.column == ANY_COLUMN:
        return Sentence("advice.any_column", option=option, field=field)
    if pair.column.startswith(PLACE):
        return Sentence(
            "advice.column_by_position", option=option, field=field, place=pair.column[len(PLACE) :]
        )
    return Sentence("advice.column", option=option, field=field, column=pair.column.split("+"))


class _Styled(str):
    """A value in words, whose style a catalogue may choose.

    `{names}` is joined by commas, `{names:or}` with a word before the last item; `{line}` shows bare digits,
    `{count:,}` and `{size:.1f}` follow the language; `{time}` is to the minute, or `{time:seconds}`, and
    `{time:iso}` as in documents.
    """

    __slots__ = ("in_style",)
    in_style: Callable[[str], str]

    @classmethod
    def of(cls, plain: str, in_style: Callable[[str], str]) -> Self:
        made = cls(plain)
        made.in_style = in_style
        return made

    def __format__(self, style: str) -> str:
        return self.in_style(style)


_MARKS: Mapping[str, str] = {"": ", ", "each": " ", ";": "; "}
_STYLES: Mapping[str, Literal["standard", "or"]] = {"and": "standard", "or": "or"}
LOCALES: Mapping[str, str] = {"en": "en_GB", "de": "de_DE", "fr": "fr_FR"}
_SEPARATORS: Mapping[str, str] = {"en": ",.", "de": ".,", "fr": "\u202f,"}  # for thousands and decimals


def number_of(number: float | Decimal, style: str, language: str) -> str:
    """Return a number with the separators of a language, where the style, such as `,` or `.1f`, has some."""
    return format(number, style).translate(str.maketrans(",.", _SEPARATORS[language]))


def _list(several: Sequence[str], language: str) -> str:
    def in_style(style: str) -> str:
        if style in _MARKS:
            return _MARKS[style].join(several)
        from babel.lists import format_list

        return format_list(several, _STYLES[style], LOCALES[language])

    return _Styled.of(", ".join(several), in_style)


def moment_of(moment: Moment, language: str, *, at_length: bool) -> str:
    """Return a time in words, to the minute; `at_length` with its day as people write it."""
    time = datetime.fromisoformat(moment)
    day = _day(time.date(), language, at_length=at_length) + ("," if at_length else "")
    plain = f"{day} {time:%H:%M} UTC"
    styles = {"iso": str(moment), "seconds": f"{day} {time:%H:%M:%S} UTC"}
    return _Styled.of(plain, lambda style: styles.get(style, plain))


def _day(day: date, language: str, *, at_length: bool) -> str:
    """Return a day as in documents, or in words."""
    if not at_length:
        return day.isoformat()
    from babel.dates import format_date

    return format_date(day, "long", locale=LOCALES[language])
