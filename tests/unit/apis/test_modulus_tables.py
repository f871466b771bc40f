"""The tables of the UK modulus check: what is read, and what is said of damaged ones."""

from datetime import date

import pytest
from refusals import refused, said

from pipeline.errors import ConfigurationError
from pipeline.rules.modulus_tables import BYTES_MAX, Method, Range, WeightedSum, read_tables

TODAY = date(2030, 1, 1)
ONES = " 1" * 14
FIRST = f"100000 100009 MOD11{ONES}"


@pytest.fixture
def tables_of(tmp_path):
    def read(weights=FIRST, substitutions="100000 100001\n"):
        for name, content in (("weights", weights), ("substitutions", substitutions)):
            (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return read_tables(tmp_path / "weights", tmp_path / "substitutions", TODAY)

    return read


@pytest.fixture
def refusal(tables_of, tmp_path):
    """Why tables are refused, without the folder that they lie in."""

    def of(**content):
        with pytest.raises(ConfigurationError) as error:
            tables_of(**content)
        return str(error.value).removeprefix(f"{tmp_path}/")

    return of


def test_a_range_has_its_checks_in_order_and_ranges_are_sorted(tables_of):
    weights = (
        f"200000 200000   DBLAL {ONES}\r\n\r\n{FIRST}\r\n200000 200000 MOD10{ONES.replace(' 1', ' -2')}\r\n"
    )

    tables = tables_of(weights)

    assert tables.ranges == (
        Range(100000, 100009, (WeightedSum(Method.MOD11, (1,) * 14),)),
        Range(200000, 200000, (WeightedSum(Method.DBLAL, (1,) * 14), WeightedSum(Method.MOD10, (-2,) * 14))),
    )
    assert tables.substitutions == {100000: 100001}


def test_an_exception_is_the_eighteenth_field(tables_of):
    [found] = tables_of(f"{FIRST} 14\n").ranges
    assert found.checks == (WeightedSum(Method.MOD11, (1,) * 14, 14),)


@pytest.mark.parametrize(
    ("weights", "why"),
    [
        ("", "weights: no lines; "),
        ("\n \n", "weights: no lines; "),
        (b"\xff\xfe1\x000\x00", "weights: not plain text; "),
        ("1\x00", "weights: not plain text; "),
        (" " * (BYTES_MAX + 1), "weights: larger than 4,000,000 bytes; "),
        (
            f"\n{FIRST} 14 1",
            "weights line 2: not 17 fields, or 18 with an exception, but 19; ",
        ),
        ("100000,100009,MOD11", "weights line 1: not 17 fields, or 18 with an exception, but 1; "),
        (FIRST.replace("100009", "10009"), "weights line 1: a sort code that is not 6 digits; "),
        (FIRST.replace("100000", "10000O"), "weights line 1: a sort code that is not 6 digits; "),
        (FIRST.replace("100000", "100010"), "weights line 1: the range ends before it starts; "),
        (FIRST.replace("MOD11", "MOD97"), "weights line 1: the method is not one of MOD10, MOD11, DBLAL; "),
        (FIRST[:-1] + "x", "weights line 1: a weight or exception that is not a whole number; "),
        (FIRST[:-1] + "1.5", "weights line 1: a weight or exception that is not a whole number; "),
        (FIRST[:-1] + "--1", "weights line 1: a weight or exception that is not a whole number; "),
        (FIRST[:-1] + "1000", "weights line 1: a weight beyond 999; "),
        (
            FIRST.replace("MOD11", "DBLAL")[:-1] + "-1",
            "weights line 1: a negative weight, which DBLAL cannot ",
        ),
        (
            f"{FIRST}\n{FIRST}\n{FIRST}",
            "weights line 3: a third check for one range, which may have only one or two; ",
        ),
        (
            f"{FIRST}\n{FIRST.replace('100000', '100009')}",
            "weights line 2: its sort codes are in another range",
        ),
        (
            f"{FIRST.replace('100000', '100009')}\n{FIRST}",
            "weights line 1: its sort codes are in another range",
        ),
        (f"{FIRST} 1", "weights line 1: a method that does not fit the exception on its line; "),
        (
            f"{FIRST} 5\n{FIRST} 5",
            "weights line 2: a method that does not fit the exception on its line; ",
        ),
    ],
)
def test_damaged_weights_are_told_by_their_line_and_what_to_do(refusal, weights, why):
    refused = refusal(weights=weights)
    assert refused.startswith(why)
    assert refused.endswith(f"; {said('rules.take_latest_tables')}")


@pytest.mark.parametrize(
    "exceptions", [("15",), ("0",), ("9",), ("11",), ("3",), ("2", "11"), ("9", "2"), ("6", "")]
)
def test_exceptions_that_this_program_does_not_know_are_refused_not_passed_over(refusal, exceptions):
    refused = refusal(weights="\n".join(f"{FIRST} {exception}" for exception in exceptions))
    assert refused.startswith(said("rules.exceptions_unknown", where=f"weights line {len(exceptions)}"))
    assert refused.endswith("); update payee-precheck")


@pytest.mark.parametrize(
    ("substitutions", "said"),
    [
        ("", "substitutions: no lines; "),
        ("100000 100001 100002", "substitutions line 1: not two sort codes but 3 fields; "),
        ("100000 1", "substitutions line 1: a sort code that is not 6 digits; "),
        ("100000 100001\n100000 100002", "substitutions line 2: a second substitute for one sort code; "),
        (FIRST, "substitutions line 1: not two sort codes but 17 fields; "),
    ],
)
def test_damaged_substitutions_are_told_by_their_line(refusal, substitutions, said):
    assert refusal(substitutions=substitutions).startswith(said)


def test_a_table_that_is_not_there_is_told(tmp_path):
    with refused(ConfigurationError, "runs.file_unreadable", "system.enoent", path="weights"):
        read_tables(tmp_path / "weights", tmp_path / "substitutions", TODAY)
