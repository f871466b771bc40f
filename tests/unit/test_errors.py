"""What ends a run is a sentence, in which each surface has its own words for what to do."""

import pickle
import re

import pytest

import pipeline.errors
from pipeline.cli.advice import OPTIONS
from pipeline.errors import Advice, ColumnPair, InputError, Phrase, PrecheckError, StoppedError, UsageError
from pipeline.stores.postgres.recording import ForgottenLinesError

FOLDER = "out: the folder of this very run"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({}, FOLDER),
        ({"option": "--reuse-from"}, f"--reuse-from {FOLDER}"),
        ({"advice": "leave it out"}, f"{FOLDER}; leave it out"),
        ({"option": "--reuse-from", "advice": "leave it out"}, f"--reuse-from {FOLDER}; leave it out"),
    ],
)
def test_the_words_of_the_command_line_stand_around_the_reason(words, sentence):
    error = UsageError(FOLDER, **words)
    assert (str(error), error.sentences(), error.reason) == (sentence, (sentence,), FOLDER)


def test_only_the_command_line_names_its_options():
    error = UsageError(
        "no run", advice=("take a copy", Advice.START_OVER, Advice.CHOOSE_PROFILE), choices="ab"
    )
    assert str(error) == "no run; take a copy, or start over, or pick one of a, b"
    assert error.sentences(OPTIONS) == (
        "no run; take a copy, or start over with --fresh, or pick one of a, b with --profile",
    )


def test_braces_in_a_reason_are_no_place_for_choices():
    error = UsageError("{choices}/in.csv", advice="look at {choices}", choices=["a"])
    assert error.sentences(OPTIONS) == ("{choices}/in.csv; look at {choices}",)


def test_columns_are_named_as_each_surface_asks_for_them():
    one_of = Phrase.joined(" or ", [Phrase.of(ColumnPair("name=#1")), Phrase.of(ColumnPair("name={}"))])
    error = InputError("pay.csv: {}", advice=("rename one", Phrase.of("choose one with ", one_of)))
    neutral = "pay.csv: {}; rename one, or choose one with name=#1 or name={}"
    assert (str(error), error.sentences()) == (neutral, (neutral,))
    for same in (error, pickle.loads(pickle.dumps(error))):
        assert same.sentences(OPTIONS) == (
            "pay.csv: {}; rename one, or choose one with --map name=#1 or --map name={}",
        )


@pytest.mark.parametrize("advice", Advice)
def test_no_surface_but_the_command_line_reads_of_options(advice):
    assert "--" not in advice
    assert "precheck " not in advice


def test_an_error_that_crosses_a_process_is_the_same():
    error = UsageError(FOLDER, option="--reuse-from", advice="leave it out")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.reason, again.advice) == (str(error), FOLDER, ("leave it out",))


def test_whoever_stops_a_run_says_how_a_command_ends():
    assert StoppedError("pay.csv: stopped on the page", 130).exit_code == 130


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
