"""No page speaks of the command line."""

import ast
import re
from pathlib import Path

from jinja2 import nodes
from refusals import said

import pipeline
from pipeline.desk.languages import BY_ITSELF, CARRIED, recorded, sentence_of
from pipeline.desk.rendering import environment
from pipeline.errors import InputError
from pipeline.wording import Sentence, speaking

HOUSE = Path(pipeline.__file__).parent
ROOMS = ("executors", "stages", "review", "runs", "formats", "headers", "rules", "stores", "transport")
OF_A_COMMAND_LINE = re.compile(r"(?<![\w-])--[a-z]{2,}|\bprecheck [a-z]+\b|same command")


MAY_SPEAK = re.compile(r"""--|precheck["' ]|same\W+(?:[a-z]{0,2}\W+)?command""")
"""In each file with such a text, wherever its lines are broken."""


def sentences():
    """Every text in the program that speaks of the command line, but for what only the command line shows."""
    for room in ROOMS:
        for path in (HOUSE / room).rglob("*.py"):
            text = path.read_text("utf-8")
            if not MAY_SPEAK.search(text):
                continue
            tree = ast.parse(text)
            docs = {
                node.value
                for node in ast.walk(tree)
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            }
            for node in ast.walk(tree):
                is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docs
                if is_text and " " in node.value and OF_A_COMMAND_LINE.search(node.value):
                    yield node.value


def test_no_text_in_code_speaks_of_the_command_line():
    assert set(sentences()) == set()


def test_an_error_is_a_sentence_with_a_next_step_and_no_path():
    path = Path("/srv/desk/runs/1/input/pay.csv")
    error = InputError(Sentence("config.not_utf_8_text", path=path), advice=Sentence("advice.name_format"))
    what = said("config.not_utf_8_text", "page", path="pay.csv")
    assert sentence_of(error) == f"{what}; {said('advice.name_format', 'page')}."
    assert sentence_of(InputError(Sentence("excel.no_sheets"))) == "No sheets."


def test_what_the_desk_puts_on_record_by_itself_is_shown_in_the_language_of_the_page():
    with speaking("de"):
        assert recorded(BY_ITSELF) == "das Portal"
        assert recorded(f"has left {CARRIED}") == "has left (aus der früheren Datei übernommen)"
        assert recorded("ask the desk") == "ask the desk"


def test_every_page_uses_filters_and_tests_that_there_are():
    """A name in a branch is looked up when the branch is taken, and not before."""
    pages = environment()
    paths = list((HOUSE / "desk" / "templates").glob("*.html"))
    assert len(paths) > 10
    for path in paths:
        page = pages.parse(path.read_text("utf-8"))
        assert {used.name for used in page.find_all(nodes.Filter)} <= pages.filters.keys(), path.name
        assert {used.name for used in page.find_all(nodes.Test)} <= pages.tests.keys(), path.name
