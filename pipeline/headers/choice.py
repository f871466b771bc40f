"""A choice among columns that could be one field, and the refusal where the choice is open."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pipeline.headers.cells import ColumnCells

HEADER_QUOTED_LENGTH_MAX = 40


class ColumnChoice(NamedTuple):
    """From which columns a field is read."""

    field: str
    sources: tuple[tuple[str, ...], ...]
    """The first that is filled in a row counts; each is a header, or the headers of a name in parts."""
    rule: str
    others: tuple[str, ...] = ()
    """Headers that could have been this field, and are not."""
    notes: tuple[str, ...] = ()
    """What a person may want to know of it, as sentences."""
    rules: Mapping[str, str] = {}
    """Header -> its own rule, where the sources have different ones."""
    why_not: Mapping[str, str] = {}
    """Header -> why it is not this field, of columns that no file of their kind is read from."""

    def how_of(self, header: str) -> str:
        """By which rule this header is read."""
        return self.rules.get(header, self.rule)


class ColumnsRefused(Exception):  # noqa: N818 (no error of the program: it becomes a ColumnsError, with the file's name)
    """Why the columns of a file cannot be read without `--map`: a sentence without the file.

    Attributes:
        field: for which the choice is open; empty where it is not about one.
        candidates: the columns that it could be.
    """

    def __init__(self, sentence: str, field: str = "", candidates: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.field = field
        self.candidates = tuple(candidates)


def either(
    field: str, candidates: Sequence[tuple[str, ...]], cells: ColumnCells, *, what: str, maps: str = ""
) -> ColumnsRefused:
    """The refusal of candidates that differ, with values, and what to do instead.

    Values are shortened: the sentence may end in a log. `precheck columns` has them whole.

    Args:
        field: That they could be.
        candidates: Headers; those of a name in parts together.
        cells: Of the file.
        what: It is, in words: "the payee".
        maps: What else to say with `--map`, where the candidates are not what one would say.
    """
    shown = " and ".join(_with_values(headers, cells) for headers in candidates)
    said = maps or " or ".join(map_option(field, headers) for headers in candidates)
    return ColumnsRefused(
        f"{shown} differ, and either could be {what}; choose one with {said}",
        field,
        [header for headers in candidates for header in headers],
    )


def _with_values(headers: Sequence[str], cells: ColumnCells) -> str:
    values = ", ".join(map(shortened, cells.joined_values(headers)))
    return f"{'+'.join(map(quoted, headers))} ({values})"


def map_option(field: str, headers: Sequence[str]) -> str:
    """The option that has a field read from these headers.

    >>> map_option("name", ["First name", "Surname"])
    '--map "name=First name+Surname"'
    """
    return f"--map {_word(f'{field}={plus(headers)}')}"


def plus(headers: Sequence[str]) -> str:
    """Headers as `--map` takes them."""
    return "+".join(headers)


def _word(text: str) -> str:
    """A word of a command line, quoted where it needs it and safe to show."""
    safe = quoted(text, length_max=3 * HEADER_QUOTED_LENGTH_MAX)
    return safe if re.search(r"[^\w=+.#-]", text) else safe[1:-1]


def quoted(header: str, *, length_max: int = HEADER_QUOTED_LENGTH_MAX) -> str:
    """A header, safe to show: no control character, no long number, not without end."""
    printable = "".join(character if character.isprintable() else "?" for character in header)
    return f'"{re.sub("(?:[0-9][ -]?){5,}", "#####", printable)[:length_max]}"'


def shortened(value: str) -> str:
    """A cell by its looks: an account by its last four characters, a name by its initials.

    >>> shortened("12345678"), shortened("Quillon Marrow Ltd")
    ('**5678', 'Q… M… L…')
    """
    compact = "".join(filter(str.isalnum, value))
    if sum(map(str.isdecimal, compact)) * 2 > len(compact):
        return f"**{compact[-4:]}" if len(compact) >= 7 else f"{len(compact)} characters"
    return " ".join(f"{word[0]}…" for word in value.split()[:4] if word[0].isprintable())
