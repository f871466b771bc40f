"""The list of planted faults fits the program: each can be planted, and its tests run by day."""

import ast
from functools import cache
from pathlib import Path

import pytest
from mutants.planted import PLANTED, Planted
from tables import for_each

ROOT = Path(__file__).resolve().parents[2]
NOT_BY_DAY = ("nightly", "faults")


@cache
def marks_by_test(file):
    """The tests of a file, and what marks each of them, as source text."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    of_all = [
        ast.unparse(node)
        for node in tree.body
        if isinstance(node, ast.Assign) and "pytestmark" in ast.dump(node)
    ]
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {test.name: " ".join([*of_all, *map(ast.unparse, test.decorator_list)]) for test in functions}


@for_each("name", PLANTED)
def test_a_planted_fault_has_its_place_and_leaves_python_behind(name):
    fault = PLANTED[name]
    source = (ROOT / fault.file).read_bytes()
    assert ast.dump(ast.parse(fault.made(source))) != ast.dump(ast.parse(source))


@for_each("name", PLANTED)
def test_a_planted_fault_is_for_tests_that_exist_and_run_by_day(name):
    assert PLANTED[name].found_by
    for file, _, test in (test.partition("::") for test in PLANTED[name].found_by):
        assert not [mark for mark in NOT_BY_DAY if mark in marks_by_test(file)[test]]


@pytest.mark.parametrize("source", [b"a\n", b"a == b\na == b\n"])
def test_a_fault_whose_place_is_gone_or_not_the_only_one_is_refused(source):
    fault = Planted("A promise.", "x.py", "a == b", "a != b", [])
    assert fault.made(b"a == b\n") == b"a != b\n"
    with pytest.raises(ValueError, match="exactly once: a == b"):
        fault.made(source)
