"""The catalogues have words for all that the program says, in every language, and for nothing else."""

import ast
import json
import re
from itertools import chain
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.pofile import read_po

import pipeline.wording
from pipeline.errors import InputError
from pipeline.wording import ColumnPair, Sentence, SurfaceKind, require_words, words
from schemas.payments import FIELDS, IGNORE

ROOT = Path(pipeline.wording.__file__).parents[1]
CATALOGUES = Path(pipeline.wording.__file__).parent / "catalogues"
LANGUAGES = ("en", "de", "fr")
FAMILIES = {f"field.{field}" for field in (*FIELDS, IGNORE)}
"""Keys that are made of a value."""


def entries(language):
    """(key, surface) -> the words of an entry, a form for each plural."""
    found = {}
    for path in sorted((CATALOGUES / language).glob("*.po")):
        with path.open("rb") as file:
            for message in read_po(file, locale=language):
                if message.id:
                    key = message.id if isinstance(message.id, str) else message.id[0]
                    said = (message.string,) if isinstance(message.string, str) else message.string
                    assert key.startswith(f"{path.stem}."), f"{key} is in {path.name}"
                    found[key, message.context or ""] = said
    return found


def said_in_code():
    """Key -> the names of the values of each place that says it; None where they are not written there."""
    found = {}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name("Sentence"), args=[ast.Constant(str(key))], keywords=values):
                    names = {value.arg for value in values}
                    found.setdefault(key, []).append(None if None in names else names)
                case ast.Constant(str(key)) if re.fullmatch(r"[a-z0-9_]+\.[a-z0-9_]+", key):
                    found.setdefault(key, [])
    return found


ENGLISH, SAID = entries("en"), said_in_code()
KEYS = {key for key, _ in ENGLISH}


def values_of(text):
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_every_sentence_of_the_code_has_words():
    assert sorted({key for key, places in SAID.items() if places} - KEYS) == []


def test_no_words_are_left_that_no_code_says():
    assert sorted(KEYS - SAID.keys() - FAMILIES) == []


@pytest.mark.parametrize("key", sorted(KEYS & SAID.keys()))
def test_words_name_only_values_that_every_place_gives(key):
    named = set(
        chain.from_iterable(
            map(values_of, chain.from_iterable(ENGLISH[each] for each in ENGLISH if each[0] == key))
        )
    )
    for given in SAID[key]:
        assert given is None or named <= given, f"{key}: {named - given}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_names_no_option_and_no_command(language):
    pages = {key: said for (key, surface), said in entries(language).items() if surface == SurfaceKind.PAGE}
    assert {
        key for key, said in pages.items() if re.search(r"(?<![\w-])--[a-z]|\bprecheck [a-z]", " ".join(said))
    } == set()


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_each_language_has_the_same_entries_with_the_same_values(language):
    here = entries(language)
    assert sorted(here) == sorted(ENGLISH)
    differ = {
        key: (said, here[key])
        for key, said in ENGLISH.items()
        if set().union(*map(values_of, said)) != set().union(*map(values_of, here[key]))
    }
    assert differ == {}


def test_numbers_and_lists_are_written_as_the_language_does():
    many = Sentence(
        "rules.many_names",
        where="a",
        rows=["1", "2"],
        places="",
        more_count=0,
        names_max=3,
        account_count=1234,
    )
    assert "1,234" in words(many)
    assert "1.234" in words(many, language="de")
    pairs = Sentence("headers.choose_one", pairs=[ColumnPair("name", "#1"), ColumnPair("iban", "#2")])
    assert words(pairs, SurfaceKind.COMMAND) == "choose one with --map name=#1 or --map iban=#2"


def test_a_sentence_crosses_a_border_as_data():
    said = Sentence(
        "headers.choose_one",
        pairs=[ColumnPair("name", "#1"), Sentence("headers.the_payee"), Path("a"), 1, None],
    )
    again = Sentence.of_data(json.loads(json.dumps(said.as_data())))
    assert [str(again), again.key] == [str(said), said.key]
    for wrong in (["../x.y", {}], ["no_room", {}], ["a.b"], {"a": 1}, ["a.b", {"x": {"odd": 1}}]):
        with pytest.raises(ValueError, match="no "):
            Sentence.of_data(wrong)
    with pytest.raises(ValueError, match="no words"):
        require_words(Sentence("nobody.says_this"))


def test_a_path_is_shown_whole_on_a_command_line_and_by_its_last_part_on_a_page():
    error = InputError(Sentence("files.no_such_folder", folder=Path("/srv/runs/pay")))
    assert "/srv/runs/pay" in error.sentence(SurfaceKind.COMMAND)
    assert "/srv" not in error.sentence(SurfaceKind.PAGE)
