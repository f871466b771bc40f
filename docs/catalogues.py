#!/usr/bin/env python3
"""Gather the sentences of the desk, and bring its catalogues up to date with them.

    python docs/catalogues.py

A new sentence is added to each catalogue without a translation, for a person to write; an unused one is
removed. `tests/unit/desk/test_catalogues.py` fails until all translations are there.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

import pipeline.desk
from pipeline.headers.readings import spoken
from pipeline.wording import LANGUAGES
from schemas.outcomes import Outcome
from schemas.payments import FIELDS

DESK = Path(pipeline.desk.__file__).parent
METHODS = [("**.py", "python"), ("**.html", "jinja2")]
OPTIONS = {"**.html": {"trimmed": "true", "newstyle_gettext": "true", "silent": "false"}}
KEYWORDS = {
    **dict.fromkeys(("_", "_N", "gettext", "gettext_noop")),
    "ngettext": (1, 2),
    "pgettext": ((1, "c"), 2),
}
WIDTH = 110
_HEADER = re.compile(
    r'^(#, fuzzy|"(Project|Report|POT|PO-Rev|Last|Language-Team|Generated).*)\n', re.MULTILINE
)
"""What would make a catalogue another one each time it is written, or says nothing."""


def catalogue_of(language: str) -> Path:
    """Where the translations into a language are."""
    return DESK / "catalogues" / f"{language}.po"


def gathered() -> Catalog:
    """All sentences of the desk, in the order in which they are found."""
    found = Catalog(project="payee-precheck", header_comment="# The sentences of the desk.")
    for message, where, context in _sentences():
        found.add(message, locations=[(where, 0)], context=context)
    return found


def _sentences() -> Iterator[tuple[str | tuple[str, ...], str, str | None]]:
    for name, _, message, _, context in sorted(
        extract_from_dir(str(DESK), METHODS, OPTIONS, KEYWORDS), key=lambda one: (one[0], one[1])
    ):
        yield message, f"pipeline/desk/{name}", context
    for message in dict.fromkeys([*(outcome.replace("_", " ") for outcome in Outcome), *map(spoken, FIELDS)]):
        yield message, "tables of the program", None


def read(language: str) -> Catalog:
    """The current translations into a language."""
    with catalogue_of(language).open("rb") as file:
        return read_po(file, locale=language)


def updated(language: str) -> bytes:
    """The catalogue of a language with every sentence of the desk in it, and no other."""
    catalogue = read(language) if catalogue_of(language).exists() else Catalog(language)
    catalogue.update(gathered(), no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    catalogue.header_comment = f"# The sentences of the desk, into {LANGUAGES[language]}."
    out = BytesIO()
    write_po(out, catalogue, width=WIDTH, no_location=True, omit_header=False, ignore_obsolete=True)
    return _HEADER.sub("", out.getvalue().decode()).encode()


if __name__ == "__main__":
    for code in LANGUAGES:
        if code != "en":
            catalogue_of(code).write_bytes(updated(code))
