"""The words of the program: one catalogue for each language and room.

The `msgid` of an entry is its key. Its `msgctxt` is a surface with its own words for the key. Values are in
braces: `{file}`; lists may state how they are joined: `{formats:or}`, `{headers:and}`, `{options:each}`. An
entry with `msgid_plural` has every plural form of its language; the value `count` chooses one. In `helps.po`
the `msgid` is the English text from our code and click's.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from gettext import c2py
from importlib.resources import files
from typing import NamedTuple

ENGLISH = "en"


def entry_of(key: str, count: int, surface: str, language: str) -> str:
    """Return the words of a key, with values still in braces."""
    text = text_of(key.partition(".")[0], key, count, surface, language)
    assert text, f"no words for {key} in {language}"
    return text


def text_of(room: str, key: str, count: int, surface: str, language: str) -> str:
    """Return the words of a room's key; empty if the room has no such key."""
    catalogue = _catalogue(room, language)
    forms = catalogue.entries.get((surface, key)) or catalogue.entries.get(("", key), [""])
    return forms[0] if len(forms) == 1 else forms[catalogue.plural(count)]


class _Catalogue(NamedTuple):
    entries: Mapping[tuple[str, str], Sequence[str]]  # surface and key -> the forms of an entry
    plural: Callable[[int], int]  # count -> index of the plural form


@cache
def _catalogue(room: str, language: str) -> _Catalogue:
    text = files("pipeline.wording").joinpath("catalogues", language, f"{room}.po").read_text("utf-8")
    entries = dict(map(_entry, text.strip().split("\n\n")))
    [head] = entries.pop(("", ""))
    plural = _PLURAL.search(head)
    return _Catalogue(entries, c2py(plural[1] if plural else "n != 1"))


_PLURAL = re.compile(r"plural=([^;]+);")


def _entry(block: str) -> tuple[tuple[str, str], list[str]]:
    """Read surface, key and forms of an entry; babel would take ten times as long."""
    said: dict[str, str] = {}
    keyword = ""
    for line in block.splitlines():
        if line.startswith("#"):
            continue
        before, quote, text = line.partition('"')
        keyword = before.strip() or keyword
        said[keyword] = said.get(keyword, "") + (json.loads(quote + text) if "\\" in text else text[:-1])
    forms = [text for keyword, text in said.items() if keyword.startswith("msgstr")]
    return (said.get("msgctxt", ""), said["msgid"]), forms
