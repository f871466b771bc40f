"""The changes themselves: each is one likely mistake, and leaves the rest of the text alone."""

import sys
from importlib import import_module
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def changes():
    """The function of that name; its folder is no package, so it is found as the command finds it."""
    folder = str(Path(__file__).parent)
    sys.path.insert(0, folder)
    try:
        return import_module("changes").changes
    finally:
        sys.path.remove(folder)


@pytest.fixture(scope="module")
def changed(changes):
    """A program -> what its mutants have instead of a part: (part, instead)."""
    return lambda program: {(change.before, change.after) for change in changes(program.encode())}


@pytest.mark.parametrize(
    ("program", "before", "after"),
    [
        ("a < b", "a < b", "(a <= b)"),
        ("a < b", "a < b", "(a >= b)"),
        ("a is None", "a is None", "(a is not None)"),
        ("a and b", "a and b", "(a or b)"),
        ("a and b", "a and b", "(a)"),
        ("not a", "not a", "(a)"),
        ("a * b", "a * b", "(a // b)"),
        ("x = 7", "7", "8"),
        ("x = 'y'", "'y'", '""'),
        ("x = Outcome.NO_MATCH", "Outcome.NO_MATCH", "Outcome.MATCH"),
        ("x = {1, 2}", "{1, 2}", "({1})"),
        ("x = {1: 2, 3: 4}", "{1: 2, 3: 4}", "({3: 4})"),
        ("f(x, key=1)", "f(x, key=1)", "(f(x))"),
        ("x.lower()", "x.lower()", "(x)"),
        ("max(x, y)", "max(x, y)", "(min(x, y))"),
        ("def f():\n    return x", "return x", "return None"),
        ("def f():\n    g()", "g()", "pass"),
        ("if x:\n    y", "if x:", "if True:"),
        ("if x:\n    y", "if x:", "if False:"),
        ("with a, b:\n    c", "with a, b:", "with a:"),
        ("try:\n    a\nexcept E:\n    b", "b", "raise"),
        ("try:\n    a\nfinally:\n    b", "b", "pass"),
        ("match x:\n    case 1:\n        y", "case 1:", "case 1 if False:"),
        ("match x:\n    case 1 if z:\n        y", "case 1 if z:", "case 1 if True:"),
        ("match x:\n    case None:\n        y", "None", "_"),
        ("match x:\n    case 1 | 2:\n        y", "1 | 2", "1"),
        ("match x:\n    case str() as y:\n        y", "str() as y", "y"),
        ("x = 'SELECT a WHERE b > ?'", "'SELECT a WHERE b > ?'", "'SELECT a WHERE b >= ?'"),
        ("x = r'a{2}'", "r'a{2}'", "r'a{3}'"),
    ],
)
def test_likely_mistake_is_made(changed, program, before, after):
    assert (before, after) in changed(program)


@pytest.mark.parametrize(
    "program",
    [
        "'''A docstring.'''",
        "import x",
        "from x import y",
        "if TYPE_CHECKING:\n    import x",
        "def f(x: 'y' = None) -> 'z': pass",
        "x = Literal['y']",
    ],
)
def test_what_no_test_could_tell_is_left_alone(changed, program):
    assert changed(program) == set()


def test_only_the_part_is_changed_and_the_text_around_it_kept_to_the_byte(changes):
    program = 'x = [  # \u20ac\n    "\u00e9", 1,\n]  # end\ny = 2\n'
    source_of = {(one.before, one.after): one.source.decode() for one in changes(program.encode())}
    assert source_of["2", "1"] == program.replace("y = 2", "y = 1")
    assert source_of["1", "2"] == program.replace(" 1,", " 2,")


def test_no_change_is_none_at_all(changes):
    source = b"try:\n    f()\nexcept E:\n    raise\n"
    found = changes(source)
    assert found
    assert source not in [one.source for one in found]


def test_changes_that_are_told_alike_are_numbered(changes):
    found = [(one.line, one.nth) for one in changes(b"x = 7\ny = 7\n") if one.after == "8"]
    assert found == [(1, 1), (2, 2)]
