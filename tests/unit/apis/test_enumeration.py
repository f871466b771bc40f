"""Signs of abuse: many names for one account, unknown accounts in sequence."""

import polars as pl
import pytest
from refusals import says

from pipeline.frames import ACCEPTED, ASSIGNMENTS, WARNINGS
from pipeline.rules.enumeration import (
    PAYEES_MAX,
    many_names,
    many_payees,
    unknown_in_sequence,
    why_refused,
)
from pipeline.wording import Sentence
from schemas.outcomes import ApiName


def accepted(*rows):
    usual = dict.fromkeys(ACCEPTED) | {"api": ApiName.COP, "account": "11223312345678"}
    return pl.DataFrame([{**usual, **row, "row": n} for n, row in enumerate(rows, start=1)], schema=ACCEPTED)


def names(*said, **more):
    return [{"name": name, **more} for name in said]


def refusal(rows):
    found = many_payees(rows).select(
        "row", field=pl.lit("name"), code=pl.lit("MANY_NAMES"), message=pl.lit(""), sentence=pl.lit("")
    )
    other = pl.DataFrame([(1, "name", "MIXED_SCRIPTS", "", "")], schema=WARNINGS, orient="row")
    return why_refused(many_names(rows, pl.concat([found, other])), where="payroll.csv")


def test_as_many_names_as_allowed_are_no_finding():
    rows = accepted(*names("A", "B", "C") * 5)
    assert many_payees(rows).is_empty()
    assert refusal(rows) is None


def test_one_name_more_marks_every_row_of_the_account_and_no_other():
    rows = accepted(*names("A", "B", "C", "D", "A"), *names("E", account="11223387654321"))
    assert many_payees(rows).rows() == [(1, 4), (2, 4), (3, 4), (4, 4), (5, 4)]


def test_case_and_white_space_make_no_new_name():
    assert many_payees(
        accepted(*names("Ada Quillon", "ADA QUILLON", "ada  quillon", "Ada\u00a0Quillon"))
    ).is_empty()


def test_an_identification_counts_like_a_name():
    rows = accepted({"name": "A"}, {"name": "B"}, {"lei": "L"}, {"organisation_id": "1"})
    assert many_payees(rows).height == PAYEES_MAX + 1


def test_a_secondary_reference_tells_accounts_apart():
    rows = [{"name": name, "secondary_reference": name} for name in "ABCDEF"]
    assert many_payees(accepted(*rows)).is_empty()


def test_the_sentence_names_rows_and_no_payee():
    rows = accepted(*names(*(f"Secret{n}" for n in range(14))))
    said = str(refusal(rows))
    says(
        refusal(rows),
        Sentence("rules.many_names", where="payroll.csv", names_max=3, account_count=1),
        Sentence("places.rows", rows=list(map(str, range(1, 11)))),
        more_count=4,
    )
    assert "Secret" not in said
    assert "112233" not in said


@pytest.fixture
def found(checks_of, check_of, answers_of):
    """(account, code) of UK questions -> the rows that are warned of."""

    def of(*asked, **changes):
        checks = checks_of(
            *(check_of(check=n, account=a, **changes) for n, (a, _) in enumerate(asked, start=1))
        )
        answers = answers_of(*({"code": code} for _, code in asked))
        assignments = pl.DataFrame(
            [(n, n) for n in range(1, len(asked) + 1)], schema=ASSIGNMENTS, orient="row"
        )
        warnings = unknown_in_sequence(checks.select("check", "account"), assignments, answers)
        assert warnings.schema == WARNINGS
        return warnings["row"].to_list()

    return of


def sequence(first, count, code="AC01"):
    return [(f"112233{first + n:08d}", code) for n in range(count)]


def test_unknown_accounts_in_sequence_are_warned_of(found):
    assert found(*sequence(5, 2, "MTCH"), *sequence(1_000, 5)) == [3, 4, 5, 6, 7]


def test_their_order_in_the_file_does_not_matter(found):
    assert found(*reversed(sequence(1_000, 5))) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "asked",
    [
        sequence(1_000, 4),
        sequence(1_000, 9, "MTCH"),
        [pair for n in range(9) for pair in sequence(n * 10, 1)],
        [*sequence(1_000, 5), *sequence(20_000, 700, "MTCH")],
    ],
    ids=["few", "known", "far apart", "below one per cent"],
)
def test_what_may_be_chance_is_not(found, asked):
    assert found(*asked) == []
