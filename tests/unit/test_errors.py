"""What ends a run is a sentence, in which each surface has its own words for what to do."""

import pickle
import re

import pytest
from refusals import said

import pipeline.errors
from pipeline.errors import (
    CapSpentError,
    ConfigurationFileError,
    PrecheckError,
    StoppedError,
    UsageError,
    stopped_by,
)
from pipeline.stores.postgres.recording import ForgottenLinesError
from pipeline.wording import Sentence, SurfaceKind

NO_FOLDER = Sentence("files.no_such_folder", folder="{out}")


def test_a_surface_has_its_own_words_for_what_to_do():
    one, other = Sentence("advice.start_over"), Sentence("advice.choose_profile", choices=["a", "b"])
    error = UsageError(NO_FOLDER, advice=(one, other))
    shown = [error.sentence(kind).rpartition("; ")[2] for kind in SurfaceKind]
    assert shown == [said("advice.either", kind, one=one, other=other) for kind in SurfaceKind]
    assert str(error) == error.sentence(SurfaceKind.ANY)
    assert len(set(shown)) == 3


def test_braces_in_a_value_are_no_place_for_another():
    assert "{out}" in str(UsageError(NO_FOLDER))


@pytest.mark.parametrize(
    "error",
    [
        UsageError(NO_FOLDER, advice=Sentence("advice.start_over")),
        ConfigurationFileError([NO_FOLDER, NO_FOLDER.having(folder="b")]),
        CapSpentError(),
        StoppedError(stopped_by(2), 130),
    ],
)
def test_an_error_that_crosses_a_process_is_the_same(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.messages, vars(again)) == (type(error), error.messages, vars(error))


def test_whoever_stops_a_run_says_how_a_command_ends():
    assert StoppedError(stopped_by(2), 130).exit_code == 130


def test_the_tree_has_every_error_in_its_place():
    drawn, above = {}, ["PrecheckError"]
    for line in pipeline.errors.__doc__.splitlines():
        if found := re.match(r"    ((?:│   |    )*)[├└]── (\w+)", line):
            depth = len(found[1]) // 4 + 1
            above[depth:] = [found[2]]
            drawn[found[2]] = above[depth - 1]
    assert drawn == {kind.__name__: kind.__bases__[0].__name__ for kind in every_kind_of(PrecheckError)}
    stores = every_kind_of(Exception, of="pipeline.stores")
    assert {kind for kind in stores if not issubclass(kind, PrecheckError)} == {ForgottenLinesError}, (
        "what ends a store's work is in the tree; the exception never leaves the store"
    )


def every_kind_of(kind, of="pipeline.errors"):
    """The kinds of an error, however distant, that a module or package defines."""
    below = [one for child in kind.__subclasses__() for one in (child, *every_kind_of(child, of))]
    return [one for one in below if one.__module__.startswith(of)]
