"""Every sentence of the program with sample values, in each language: for native readers to check."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from importlib.resources import files
from itertools import groupby
from string import Formatter

import catalogues
from babel.messages.pofile import read_po

from pipeline.wording import ENGLISH, LANGUAGES, Moment, Sentence, SurfaceKind, Value, words

_SURFACES = {
    SurfaceKind.ANY: "everywhere",
    SurfaceKind.COMMAND: "command line",
    SurfaceKind.PAGE: "page",
}
_TIME = Moment("2030-01-02T03:04:05Z")
_BY_STYLE: Mapping[str, Value] = {
    **dict.fromkeys(("and", "or", "each", ";"), ("one", "other")),
    **dict.fromkeys(("iso", "seconds"), _TIME),
    "04o": 0o644,
}
"""The style of a value in braces -> a sample."""
_BY_NAME: Mapping[str, Value] = {
    "day": date(2030, 1, 2),
    **dict.fromkeys(("time", "since", "latest"), _TIME),
    "path": "runs/payments.csv",
    "file": "payments.csv",
    "where": "payments.csv",
}
"""The name of a value -> a sample; any other is shown by its name."""


def tables() -> str:
    """A table for each catalogue."""
    return "\n".join([*_of_rooms(), *_of_desk()]).rstrip()


def _of_rooms() -> Iterator[str]:
    for room, entries in groupby(_entries(), key=lambda entry: entry[0].partition(".")[0]):
        yield from _headed(f"`{room}`", "Key", "Where")
        for key, surface, texts in entries:
            said = Sentence(key, **samples(texts))
            in_words = [_cell(words(said, surface, language)) for language in LANGUAGES]
            yield f"| `{key}` | {_SURFACES[surface]} | {' | '.join(in_words)} |"
        yield ""


def _of_desk() -> Iterator[str]:
    others = [catalogues.read(language) for language in LANGUAGES if language != ENGLISH]
    yield from _headed("Pages of the desk")
    for message in others[0]:
        if message.id:
            found = [other.get(message.id, context=message.context) for other in others]
            texts = [message.id, *(one.string for one in found if one is not None)]
            yield f"| {' | '.join(_cell(' / '.join(_forms(text))) for text in texts)} |"


def _headed(title: str, *first: str) -> Iterator[str]:
    headers = [*first, *LANGUAGES.values()]
    yield from (f"## {title}", "", f"| {' | '.join(headers)} |", "|---" * len(headers) + "|")


def _entries() -> Iterator[tuple[str, SurfaceKind, list[str]]]:
    """(key, surface, its words in every language with values in braces) of every entry, by room."""
    folder = files("pipeline.wording").joinpath("catalogues")
    for room in sorted(path.name for path in folder.joinpath(ENGLISH).iterdir()):
        found = []
        for language in LANGUAGES:
            with folder.joinpath(language, room).open("rb") as file:
                found.append(read_po(file, locale=language))
        for message in found[0]:
            if message.id:
                key = _forms(message.id)[0]
                texts = [
                    form for each in found for form in _forms(each.get(key, context=message.context).string)
                ]
                yield key, SurfaceKind(message.context or ""), texts


def samples(texts: Iterable[str]) -> dict[str, Value]:
    """A sample of each value that words name in braces."""
    found: dict[str, Value] = {"count": 1234}
    for text in texts:
        for _, name, style, _ in Formatter().parse(text):
            if name is not None and (style or name not in found):
                found[name] = _sample(name, style or "")
    return found


def _sample(name: str, style: str) -> Value:
    if style in _BY_STYLE:
        return _BY_STYLE[style]
    if style or name == "count" or name.endswith(("_count", "_max", "_s", "_bytes")):
        return 1234
    return _BY_NAME.get(name, name.upper())


def _forms(text: str | tuple[str, ...] | list[str]) -> list[str]:
    return [text] if isinstance(text, str) else list(text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
