"""The tables of the UK modulus check: what is read, and what is said of damaged ones."""

from datetime import date

import pytest
from refusals import refused, said

from pipeline.errors import ConfigurationError
from pipeline.rules.modulus_tables import BYTES_MAX, Method, Range, WeightedSum, read_tables
from pipeline.wording import Sentence

TODAY = date(2030, 1, 1)
ONES = " 1" * 14
FIRST = f"100000 100009 MOD11{ONES}"
OTHER = FIRST.replace("100000", "100009")
METHODS = ["MOD10", "MOD11", "DBLAL"]


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


SORT_CODE = Sentence("rules.sort_code_malformed")
NOT_WHOLE = Sentence("rules.number_not_whole")
UNFIT = Sentence("rules.method_unfit_for_exception")


@pytest.mark.parametrize(
    ("weights", "where", "why"),
    [
        ("", "weights", Sentence("rules.table_without_lines")),
        ("\n \n", "weights", Sentence("rules.table_without_lines")),
        (b"\xff\xfe1\x000\x00", "weights", Sentence("rules.not_plain_text")),
        ("1\x00", "weights", Sentence("rules.not_plain_text")),
        (" " * (BYTES_MAX + 1), "weights", Sentence("rules.table_too_large", bytes_max=4_000_000)),
        (f"\n{FIRST} 14 1", "weights line 2", Sentence("rules.field_count_wrong", fields_count=19)),
        ("100000,100009,MOD11", "weights line 1", Sentence("rules.field_count_wrong", fields_count=1)),
        (FIRST.replace("100009", "10009"), "weights line 1", SORT_CODE),
        (FIRST.replace("100000", "10000O"), "weights line 1", SORT_CODE),
        (FIRST.replace("100000", "100010"), "weights line 1", Sentence("rules.range_ends_before_start")),
        (FIRST.replace("MOD11", "MOD97"), "weights line 1", Sentence("rules.method_unknown", method=METHODS)),
        (FIRST[:-1] + "x", "weights line 1", NOT_WHOLE),
        (FIRST[:-1] + "1.5", "weights line 1", NOT_WHOLE),
        (FIRST[:-1] + "--1", "weights line 1", NOT_WHOLE),
        (FIRST[:-1] + "1000", "weights line 1", Sentence("rules.weight_too_large", weight_max=999)),
        (FIRST.replace("MOD11", "DBLAL")[:-1] + "-1", "weights line 1", Sentence("rules.weight_negative")),
        (f"{FIRST}\n{FIRST}\n{FIRST}", "weights line 3", Sentence("rules.third_check_for_range")),
        (f"{FIRST}\n{OTHER}", "weights line 2", Sentence("rules.ranges_overlap")),
        (f"{OTHER}\n{FIRST}", "weights line 1", Sentence("rules.ranges_overlap")),
        (f"{FIRST} 1", "weights line 1", UNFIT),
        (f"{FIRST} 5\n{FIRST} 5", "weights line 2", UNFIT),
    ],
)
def test_damaged_weights_are_told_by_their_line_and_what_to_do(refusal, weights, where, why):
    latest = Sentence("rules.take_latest_tables")
    assert refusal(weights=weights) == said("rules.table_invalid", where=where, why=why, latest=latest)


@pytest.mark.parametrize(
    "exceptions", [("15",), ("0",), ("9",), ("11",), ("3",), ("2", "11"), ("9", "2"), ("6", "")]
)
def test_exceptions_that_this_program_does_not_know_are_refused_not_passed_over(refusal, exceptions):
    refused = refusal(weights="\n".join(f"{FIRST} {exception}" for exception in exceptions))
    assert refused.startswith(said("rules.exceptions_unknown", where=f"weights line {len(exceptions)}"))
    assert refused.endswith("); update payee-precheck")


@pytest.mark.parametrize(
    ("substitutions", "where", "why"),
    [
        ("", "substitutions", Sentence("rules.table_without_lines")),
        (
            "100000 100001 100002",
            "substitutions line 1",
            Sentence("rules.not_two_sort_codes", fields_count=3),
        ),
        ("100000 1", "substitutions line 1", SORT_CODE),
        (
            "100000 100001\n100000 100002",
            "substitutions line 2",
            Sentence("rules.second_substitute"),
        ),
        (FIRST, "substitutions line 1", Sentence("rules.not_two_sort_codes", fields_count=17)),
    ],
)
def test_damaged_substitutions_are_told_by_their_line(refusal, substitutions, where, why):
    refused = refusal(substitutions=substitutions)
    assert refused.startswith(said("rules.table_invalid", where=where, why=why))


def test_a_table_that_is_not_there_is_told(tmp_path):
    with refused(ConfigurationError, "runs.file_unreadable", "system.enoent", path="weights"):
        read_tables(tmp_path / "weights", tmp_path / "substitutions", TODAY)
