"""The UK modulus check, against one that takes an account at a time and follows the specification's words."""

from datetime import date

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.rules.modulus import states
from pipeline.rules.modulus_tables import read_tables

SIMPLE = ("MOD10", "MOD11", "DBLAL")
KINDS = [
    *([(method, None)] for method in SIMPLE),
    *([(method, number)] for method in SIMPLE for number in (7, 8)),
    [("DBLAL", 1)],
    [("MOD11", 4)],
    [("MOD11", 14)],
    *([(one, None), (two, None)] for one in SIMPLE for two in SIMPLE),
    *([(one, None), ("DBLAL", 3)] for one in SIMPLE),
    [("MOD11", 2), ("MOD11", 9)],
    [("MOD11", 5), ("DBLAL", 5)],
    [("MOD11", 6), ("DBLAL", 6)],
    [("MOD11", 10), ("MOD11", 11)],
    [("MOD11", 12), ("MOD10", 13)],
    [("MOD11", 12), ("MOD11", 13)],
]
"""What the checks of one range can be: method and exception of each."""


def by_hand(lines, pairs, sort_code, number):
    """What the tables say of one account: `passes`, `fails` or `not_covered`."""
    found = [line.split() for line in lines]
    checks = [fields for fields in found if fields[0] <= sort_code <= fields[1]]
    if not checks:
        return "not_covered"
    exceptions = [fields[17] if len(fields) == 18 else "" for fields in checks]
    first = _comes_out(checks[0], exceptions[0], pairs, sort_code, number)
    if len(checks) == 1:
        return "passes" if first else "fails"
    second = _comes_out(checks[1], exceptions[1], pairs, sort_code, number)
    if exceptions in (["2", "9"], ["10", "11"], ["12", "13"]):
        return "passes" if first or second else "fails"
    return "passes" if first and second else "fails"


def _comes_out(fields, exception, pairs, sort_code, number):
    a, c, g, h = number[0], number[2], number[6], number[7]
    if exception == "3" and c in "69":
        return True
    if exception == "6" and a in "45678" and g == h:
        return True
    sort_code = {"5": pairs.get(sort_code), "8": "090126", "9": "309634"}.get(exception) or sort_code
    method, weights = fields[2], _weights(fields, exception, number)
    modulus = 11 if method == "MOD11" else 10
    total = _total(method, weights, sort_code + number) + (27 if exception == "1" else 0)
    remainder = total % modulus
    if exception == "4":
        return remainder == int(number[6:])
    if exception == "5":
        digit = int(g if method == "MOD11" else h)
        return digit == 0 if remainder == 0 else modulus - remainder == digit
    if exception == "14" and remainder != 0:
        return h in "019" and _total(method, weights, sort_code + "0" + number[:7]) % modulus == 0
    return remainder == 0


def _weights(fields, exception, number):
    weights, g = [int(weight) for weight in fields[3:17]], number[6]
    if exception == "2" and number[0] != "0":
        weights = [0, 0, 1, 2, 5, 3, 6, 4, 8, 7, 10, 9, 3, 1]
    is_old = exception == "7" or (exception == "10" and number[:2] in {"09", "99"})
    if g == "9" and (is_old or (exception == "2" and number[0] != "0")):
        weights[:8] = [0] * 8
    return weights


def _total(method, weights, digits):
    total = 0
    for weight, digit in zip(weights, digits, strict=True):
        product = weight * int(digit)
        total += sum(map(int, str(product))) if method == "DBLAL" else product
    return total


STEP = 8_263
"""Between two sort codes, so that every digit of theirs counts."""
SORT_CODES = st.integers(0, 120).map(lambda number: f"{number * STEP:06}")
"""Few of them, so that accounts lie in, between and beside the ranges."""
NUMBERS = st.lists(st.sampled_from("0123456789" + "0169" * 4), min_size=8, max_size=8).map("".join)
"""With the digits that exceptions speak of more often than others."""


@st.composite
def tables(draw):
    """The lines of the weights, and the substitutions."""
    bounds = sorted(draw(st.lists(st.integers(0, 120), min_size=2, max_size=16, unique=True)))
    lines = []
    for start, end in zip(bounds[::2], bounds[1::2], strict=False):
        for method, exception in draw(st.sampled_from(KINDS)):
            least = 0 if method == "DBLAL" else -3
            weights = draw(st.lists(st.integers(least, 12) | st.just(128), min_size=14, max_size=14))
            fields = [f"{start * STEP:06}", f"{end * STEP:06}", method, *map(str, weights)]
            lines.append("  ".join([*fields, *([str(exception)] if exception else [])]))
    return lines, draw(st.dictionaries(SORT_CODES, SORT_CODES, min_size=1, max_size=20))


def written(folder, lines, pairs):
    (folder / "weights.txt").write_text("\r\n".join(lines) + "\r\n")
    (folder / "substitutions.txt").write_text("".join(f"{one} {other}\n" for one, other in pairs.items()))
    return read_tables(folder / "weights.txt", folder / "substitutions.txt", date(2030, 1, 1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@given(said=tables(), accounts=st.lists(st.tuples(SORT_CODES, NUMBERS), min_size=20, max_size=80))
def test_a_column_of_accounts_is_judged_as_each_of_them_alone(folder, said, accounts):
    found = states(pl.Series([code + number for code, number in accounts]), written(folder, *said))

    assert found.to_list() == [by_hand(*said, code, number) for code, number in accounts]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_exception_is_met_by_accounts_that_pass_and_others_that_fail(folder, kind):
    lines = []
    for method, exception in kind:
        weights = "2 1 3 1 2 4 7 6 5 4 3 2 0 0" if exception in {4, 5} else "1 2 3 7 1 3 2 7 6 5 4 3 2 1"
        lines.append(f"123456 123456 {method} {weights} {exception or ''}".strip())
    pairs = {"123456": "234567"}
    digits = "0123456789"
    numbers = [
        f"{a}{b}{c}38{e}{g}{h}"
        for a in "0479"
        for b in "19"
        for c in "69"
        for e in "0369"
        for g in digits
        for h in digits
    ]

    found = states(pl.Series([f"123456{number}" for number in numbers]), written(folder, lines, pairs))

    assert found.to_list() == [by_hand(lines, pairs, "123456", number) for number in numbers]
    assert set(found) == {"passes", "fails"}
