"""The words of the program: catalogues, one file for each language and room.

The `msgid` of an entry is its key. Its `msgctxt` is a surface that has words of its own for the key. Words
name values in braces: `{file}`; lists may say how they are joined: `{formats:or}`, `{headers:and}`,
`{options:each}`. An entry with `msgid_plural` has a form for each plural of its language, chosen by the value
`count`. The `msgid` in `helps.po` is the English text: it is in the code, and in that of click.
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
    text = text_of(key.partition(".")[0], key, count, surface, language)
    assert text, f"no words for {key} in {language}"
    return text


def text_of(room: str, key: str, count: int, surface: str, language: str) -> str:
    """The words of a key of a room; empty if the room has no such key."""
    catalogue = _catalogue(room, language)
    entry = catalogue.entries.get(key, context=surface or None) or catalogue.entries.get(key)
    forms = entry.string if entry is not None and entry.string else ""
    return forms if isinstance(forms, str) else forms[catalogue.plural(count)]


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
