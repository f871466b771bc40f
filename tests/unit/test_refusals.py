"""Tests assert what an error says by key and values; its words are held in `test_wording.py`."""

import ast
import re
from functools import cache
from pathlib import Path, PurePath

import pytest
from refusals import refused, said, says
from trees import statements

from pipeline.errors import InputError, OutputError
from pipeline.wording import ColumnPair, Sentence
from pipeline.wording.catalogue import ENGLISH, _catalogue

TESTS = Path(__file__).resolve().parents[1]
CATALOGUES = TESTS.parent / "pipeline" / "wording" / "catalogues" / ENGLISH
OF_OTHERS = {"AssertionError", "OSError", "psycopg.errors.RaiseException"}
"""Mistakes of a caller, and what the system and the database say."""
OF_WORDS = {"unit/test_wording.py"}
"""The one place where the words of the catalogue are held."""
FOUR_WORDS = re.compile(r"[A-Za-z']+(?: [A-Za-z']+){3,}")
"""With nothing but a space between any two of them."""

SAID = Sentence(
    "files.refused_because",
    where=PurePath("/srv/pay.csv"),
    why=Sentence("headers.choose_one", pairs=[ColumnPair("name", "#1"), ColumnPair("iban", "#2")]),
)


def prose():
    """The sentences of the English catalogue that have three words."""
    for path in CATALOGUES.glob("*.po"):
        for forms in _catalogue(path.stem, ENGLISH).entries.values():
            yield from (text for text in forms if len(re.findall(r"[A-Za-z']{2,}", text)) > 2)


@cache
def phrases():
    """What stands in the English catalogue between values and marks, of four words or more."""
    texts = (re.sub(r"\{[^}]*\}", "|", text) for text in prose())
    return {phrase for text in texts for phrase in FOUR_WORDS.findall(text)}


@cache
def all_phrases():
    return "".join(f" {phrase} |" for phrase in phrases())


def is_of_the_catalogue(phrase):
    """Whether four words or more are part of a phrase of the catalogue, or have one as a part."""
    words = phrase.split()
    runs = (" ".join(words[i:j]) for i in range(len(words)) for j in range(i + 4, len(words) + 1))
    return f" {phrase} " in all_phrases() or not phrases().isdisjoint(runs)


def in_asserts(text):
    """Each phrase of the catalogue in an `assert` of a test file, and its line."""
    tests = (each.test for each in statements(ast.parse(text)) if isinstance(each, ast.Assert))
    for part in (part for test in tests for part in ast.walk(test)):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            for phrase in filter(is_of_the_catalogue, FOUR_WORDS.findall(part.value)):
                yield part.lineno, phrase


def in_prose(text):
    """Each `raises` of a test file that matches words: those of an error of ours, or of a sentence."""
    tree = ast.parse(text)
    ours = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pipeline.")
        for alias in node.names
    }
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.raises":
            for pattern in (each.value for each in call.keywords if each.arg == "match"):
                words = "".join(
                    str(part.value) for part in ast.walk(pattern) if isinstance(part, ast.Constant)
                )
                kind = ast.unparse(call.args[0])
                is_sentence = kind not in OF_OTHERS and len(re.findall(r"[A-Za-z']{2,}", words)) > 2
                if kind in ours or (is_sentence and any(re.search(words, sentence) for sentence in prose())):
                    yield call.lineno


def test_no_test_of_an_error_holds_the_words_of_the_catalogue():
    found = [
        f"{path.relative_to(TESTS)}:{line}"
        for path in sorted(TESTS.rglob("test_*.py"))
        if "match=" in (text := path.read_text("utf-8"))
        and path.relative_to(TESTS).as_posix() not in OF_WORDS
        for line in in_prose(text)
    ]
    assert found == []


def test_words_are_seen_whatever_the_error_is_called():
    assert [*in_prose("from pipeline.errors import InputError as E\npytest.raises(E, match='damaged')\n")]
    assert [*in_prose("pytest.raises(Exception, match='no such folder; check')\n")]
    assert not [*in_prose("pytest.raises(ValueError, match='no such folder of mine')\n")]


def test_no_assert_holds_the_words_of_the_catalogue():
    found = [
        f"{path.relative_to(TESTS)}:{line}: {phrase}"
        for path in sorted(TESTS.rglob("test_*.py"))
        if path.relative_to(TESTS).as_posix() not in OF_WORDS
        for line, phrase in in_asserts(path.read_text("utf-8"))
    ]
    assert found == []


def test_words_in_an_assert_are_seen_in_part_and_with_more_around_them():
    planted = [
        "with refused(): assert 'a.csv: the password does not open it; check' in text",
        "assert f'<b>{name} and all that is empty in every row</b>' == text",
        "assert seen['has the name of a module'] in 'choose another folder', 'no certificate in it'",
        "text = 'no certificate in it'",
    ]
    assert [line for line, _ in in_asserts("\n".join(planted))] == [1, 2]


def test_keys_and_values_are_found_however_deep_they_are():
    says(SAID, "files.refused_because", "headers.choose_one", where="pay.csv", why="headers.choose_one")
    says(SAID, {"no.such", "files.refused_because"}, pairs=[("name", "#1"), ("iban", "#2")])
    says(SAID, Sentence("headers.choose_one", pairs={("iban", "#2")}), where=re.compile("^/srv"))


@pytest.mark.parametrize(
    ("said", "values"),
    [
        (["files.no_home_folder"], {}),
        ([{"files.no_home_folder"}], {}),
        ([Sentence("files.refused_because", where="other.csv")], {}),
        ([], {"where": "ay.csv"}),
        ([], {"path": "pay.csv"}),
        ([], {"pairs": [("name", "#1")]}),
        ([], {"pairs": {("name", "#2")}}),
        ([], {"where": re.compile("^pay")}),
    ],
)
def test_another_key_or_value_is_seen(said, values):
    with pytest.raises(AssertionError, match=r"files\.refused"):
        says(SAID, *said, **values)


def test_the_kind_of_an_error_is_asserted_too():
    with pytest.raises(OutputError), refused(InputError, "files.refused_because"):
        raise OutputError(SAID)


def test_words_of_a_key_are_those_between_the_values_that_a_test_does_not_name():
    assert said("places.rows_and_more", rows="rows 1, 2", more_count=4) == "rows 1, 2 and 4 more"
    assert said("places.rows_and_more", more_count=4) == " and 4 more"
    assert said("places.rows", count=1, rows=["7"]) == "row 7"
    assert said("places.rows_and_more", rows=Sentence("places.rows", count=2)) == "rows "
    assert said("places.rows_and_more", rows=Sentence("places.rows", count=1, rows=["7"])) == "row 7 and "
    assert said("desk.no_role", "page", "de").startswith("Sie haben")


@pytest.mark.parametrize(
    "values",
    [{"rows": "rows 1, 2", "nobody": 4}, {"rows": Sentence("places.rows", count=2, rows=["1"], no=1)}],
)
def test_a_value_that_a_sentence_does_not_show_is_a_mistake_of_the_test(values):
    with pytest.raises(AssertionError, match="shows only"):
        said("places.rows_and_more", **values)


def test_values_that_do_not_lie_in_one_part_are_a_mistake_of_the_test():
    with pytest.raises(AssertionError, match="no part of it has all values"):
        said("bacs18.no_contra", file="pay.txt", line=3)
