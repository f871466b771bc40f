"""No page speaks of the command line."""

import ast
import re
import signal
from pathlib import Path

import pipeline
from pipeline.desk.words import in_desk_words, sentence_of
from pipeline.errors import InputError, stopped_by
from pipeline.wording import Sentence

HOUSE = Path(pipeline.__file__).parent
ROOMS = ("executors", "stages", "review", "runs", "formats", "headers", "rules", "stores", "transport")
OF_A_COMMAND_LINE = re.compile(r"(?<![\w-])--[a-z]{2,}|\bprecheck [a-z]+\b|same command")


def sentences():
    """Every text in the program that speaks of the command line, but for what only the command line shows."""
    for room in ROOMS:
        for path in (HOUSE / room).rglob("*.py"):
            tree = ast.parse(path.read_text("utf-8"))
            docs = {
                node.value
                for node in ast.walk(tree)
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            }
            for node in ast.walk(tree):
                is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docs
                if is_text and " " in node.value and OF_A_COMMAND_LINE.search(node.value):
                    yield node.value


def test_no_sentence_of_the_program_keeps_a_word_of_the_command_line_on_a_page():
    found = set(sentences())
    assert found
    left = {text: in_desk_words(text) for text in found}
    assert {text: said for text, said in left.items() if OF_A_COMMAND_LINE.search(said)} == {}


def test_a_check_that_was_stopped_is_no_signal():
    left = f"Questions left: 1,234, as the run ended early: long: 1.csv: {stopped_by(signal.SIGTERM)}"
    assert in_desk_words(left) == "Questions left: 1,234. The check was stopped: go on when you like."


def test_an_error_is_a_sentence_with_a_next_step_and_no_path():
    path = Path("/srv/desk/runs/1/input/pay.csv")
    error = InputError(Sentence("config.not_utf_8_text", path=path), advice=Sentence("advice.name_format"))
    assert sentence_of(error) == "pay.csv: not UTF-8 text; choose its format below."
    assert sentence_of(InputError(Sentence("excel.no_sheets"))) == "No sheets."
