"""The words of the program: catalogues, one file for each language and room.

The `msgid` of an entry is its key. Its `msgctxt` is a surface that has words of its own for the key. Words
name values in braces: `{file}`; lists may say how they are joined: `{formats:or}`, `{headers:and}`,
`{options:each}`. An entry with `msgid_plural` has a form for each plural of its language, chosen by the value
`count`.
"""

from collections.abc import Callable
from functools import cache
from gettext import c2py
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from babel.messages import Catalog

ENGLISH = "en"


def entry_of(key: str, count: int, surface: str, language: str) -> str:
    """The words of a key, with its values still in braces."""
    catalogue = _catalogue(key.partition(".")[0], language)
    entry = catalogue.entries.get(key, context=surface or None) or catalogue.entries.get(key)
    assert entry is not None, f"no words for {key} in {language}"
    assert entry.string, f"no words for {key} in {language}"
    return entry.string if isinstance(entry.string, str) else entry.string[catalogue.plural(count)]


class _Catalogue(NamedTuple):
    """The words of a room in one language."""

    entries: "Catalog"
    plural: Callable[[int], int]
    """Count -> which of the forms of an entry says it."""


@cache
def _catalogue(room: str, language: str) -> _Catalogue:
    """The words of a room, read when the room says something for the first time."""
    from babel.messages.pofile import read_po

    with files("pipeline.wording").joinpath("catalogues", language, f"{room}.po").open("rb") as file:
        entries = read_po(file, locale=language)
    return _Catalogue(entries, c2py(entries.plural_expr))
