"""What an error says, as keys and values: its words are held in `tests/unit/test_wording.py` alone."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import TypeVar

import pytest

from pipeline.errors import PrecheckError
from pipeline.wording import Sentence, Value

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
