"""What an error says, as keys and values: its words are held in `tests/unit/test_wording.py` alone."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from string import Formatter
from typing import TypeVar

import pytest

from pipeline.errors import PrecheckError
from pipeline.wording import ENGLISH, Sentence, SurfaceKind, Value
from pipeline.wording.catalogue import entry_of
from pipeline.wording.sentences import _spoken

Kind = TypeVar("Kind", bound=Exception)


@contextmanager
def refused(
    kind: type[Kind], /, *said: "str | Sentence | set[str]", **values: object
) -> Iterator[pytest.ExceptionInfo[Kind]]:
    """The block ends in this error, which says this: see `says`."""
    with pytest.raises(kind) as raised:
        yield raised
    says(raised.value, *said, **values)


def says(what: Exception | Sentence, /, *said: "str | Sentence | set[str]", **values: object) -> None:
    """Assert that an error or a sentence, or a sentence within it, has these keys and values.

    A sentence among the keys is there with at least its values; of a set of keys, one is there.
    """
    parts = [part for each in _sentences(what) for part in _parts(each)]
    lacking: list[object] = [one for one in said if not any(_has(part, one) for part in parts)]
    for name, value in values.items():
        if not any(name in part.values and _is(part.values[name], value) for part in parts):
            lacking.append((name, value))
    assert not lacking, f"{lacking} in {[part.as_data() for part in parts]}"


def said(key: str, surface: str = "command", language: str = ENGLISH, /, **values: "Value") -> str:
    """Return what a surface ("", "command" or "page") says by this key and these values.

    If the sentence, or a sentence within it, has more values, this is its longest part between those that
    has all of these.

    >>> said("places.rows_and_more", rows="rows 1, 2", more_count=4)
    'rows 1, 2 and 4 more'
    >>> said("places.rows_and_more", more_count=4)
    ' and 4 more'
    """
    part = _part(_said(Sentence(key, **values), SurfaceKind(surface), language))
    assert re.search(r"\w\w", part), f"{key}: nothing is said between the values that are lacking"
    return part.replace(_MARK, "")


_GAP, _MARK = "\0", "\1"


def _part(whole: str) -> str:
    """Return the longest part between gaps that has all marks."""
    parts = [part for part in whole.split(_GAP) if part.count(_MARK) == whole.count(_MARK)]
    assert parts, f"no part of it has all values: {whole!r}"
    return max(parts, key=len)


def _said(one: Sentence, surface: SurfaceKind, language: str) -> str:
    """Return a sentence with a gap for each value that it lacks, and a mark before each that it has."""
    count = one.values.get("count", 0)
    assert isinstance(count, int)
    entry = entry_of(one.key, count, surface, language)
    shown = ""
    named = {"count"}
    for text, name, style, _ in Formatter().parse(entry):
        shown += text
        named.add(name or "count")
        if name not in one.values:
            shown += _GAP if name else ""
            continue
        value = one.values[name]
        if isinstance(value, Sentence):
            within = _said(value, surface, language)
            shown += within.replace(_part(within), _MARK + _part(within), 1)
        else:
            shown += _MARK + format(_spoken(value, surface, language), style or "")
    assert {*one.values} <= named, f"{one.key} shows only {named}"
    return shown


def _sentences(what: Exception | Sentence) -> list[Sentence]:
    if isinstance(what, Sentence):
        return [what]
    said = what.messages if isinstance(what, PrecheckError) else what.args
    return [each for each in said if isinstance(each, Sentence)]


def _parts(value: "Value") -> Iterator[Sentence]:
    match value:
        case Sentence():
            yield value
            yield from _parts(list(value.values.values()))
        case [*several]:
            for each in several:
                yield from _parts(each)


def _has(part: Sentence, expected: "str | Sentence | set[str]") -> bool:
    if not isinstance(expected, Sentence):
        return part.key == expected or (isinstance(expected, set) and part.key in expected)
    values = expected.values.items()
    return part.key == expected.key and all(_is(part.values.get(name), value) for name, value in values)


def _is(value: object, expected: object) -> bool:
    """Whether a value is this: a path by its name, a sentence by its key, a list by a set of its items."""
    match value, expected:
        case _, re.Pattern():
            return expected.search(str(value)) is not None
        case Sentence(), _:
            return isinstance(expected, str | Sentence) and _has(value, expected)
        case PurePath(), str():
            return expected in (value.name, str(value))
        case [*several], set():
            return all(any(_is(one, each) for one in several) for each in expected)
        case [*several], [*each]:
            return len(several) == len(each) and all(map(_is, several, each))
        case _:
            return value == expected
