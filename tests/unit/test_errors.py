"""What ends a run is a sentence on the command line, and a reason on any surface."""

import pickle

import pytest

from pipeline.errors import StoppedError, UsageError

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
    assert (str(error), error.sentences, error.reason) == (sentence, (sentence,), FOLDER)


def test_an_error_that_crosses_a_process_is_the_same():
    error = UsageError(FOLDER, option="--reuse-from", advice="leave it out")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.reason, again.advice) == (str(error), FOLDER, "leave it out")


def test_whoever_stops_a_run_says_how_a_command_ends():
    assert StoppedError("pay.csv: stopped on the page", 130).exit_code == 130
