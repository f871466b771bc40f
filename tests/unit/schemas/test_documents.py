"""The documents as Python values: immutable, strict, and silent about what they hold."""

import json

import pytest
from pydantic import ValidationError

from pipeline.frames import OUTCOMES, PAYMENTS
from schemas.cop import NameVerification, NameVerificationRequest, VerificationReport
from schemas.outcomes import COLUMNS, Action, ApiName, Environment, Outcome, OutcomeColumns
from schemas.payments import FIELDS, Payment
from schemas.problem import Problem
from schemas.strict import OwnDocument, parse, parsed_or_empty
from schemas.vop import OrganisationId, Party

SECRET = "Balthasar Quillon"


def question_of(**said):
    usual = {
        "scheme_name": "SortCodeAccountNumber",
        "account_type": "Personal",
        "identification": "11223312345678",
        "name": SECRET,
    }
    return NameVerification.model_validate_json(json.dumps({**usual, **said}), by_name=True)


def test_document_does_not_change_once_it_is_made():
    with pytest.raises(ValidationError):
        question_of().name = "Bo Marrow"


@pytest.mark.parametrize(
    "said",
    [
        {"identification": "1234"},
        {"name": SECRET * 20},
        {"account_type": SECRET},
        {"secondary_identification": [SECRET]},
        {"unknown": SECRET},
    ],
)
def test_refusal_of_a_document_does_not_quote_it(said):
    with pytest.raises(ValidationError) as error:
        question_of(**said)
    assert SECRET not in str(error.value)
    assert "11223312345678" not in str(error.value)


def test_empty_text_is_not_a_text():
    for said in ({"name": ""}, {"secondary_identification": ""}):
        with pytest.raises(ValidationError):
            question_of(**said)


def test_python_values_are_not_coerced_either():
    with pytest.raises(ValidationError):
        VerificationReport(matched=1)
    with pytest.raises(ValidationError):
        OrganisationId(lei=12345678901234567890)


def test_absent_members_are_left_out_of_the_body():
    body = NameVerificationRequest(data=question_of()).to_json()
    assert b"null" not in body
    assert b"secondaryIdentification" not in body
    assert Party(name="Ada").to_json() == b'{"name":"Ada"}'


def test_wire_names_are_the_only_names_on_the_wire():
    with pytest.raises(ValueError, match="validation error"):
        parse(OrganisationId, b'{"any_bic": "QUILDEFFXXX"}')
    assert parse(OrganisationId, b'{"anyBIC": "QUILDEFFXXX"}').any_bic == "QUILDEFFXXX"


@pytest.mark.parametrize("depth", [1, 50])
def test_depth_that_a_document_may_have_is_read(depth):
    body = b'{"matched": true, "x": ' + b"[" * depth + b"]" * depth + b"}"
    assert parse(VerificationReport, body).matched is True


@pytest.mark.parametrize("depth", [1_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_depth_that_would_exhaust_a_reader_is_a_refusal_and_no_crash(depth, opening, closing):
    body = b'{"matched": true, "x": ' + opening * depth + b"1" + closing * depth + b"}"
    with pytest.raises(ValueError, match="recursion limit"):
        parse(VerificationReport, body)


# The files


def test_outcome_columns_are_those_of_the_documentation_in_their_order():
    assert COLUMNS == (
        "check_outcome",
        "check_code",
        "check_reason",
        "check_action",
        "check_matched_name",
        "check_api",
        "check_environment",
        "check_id",
        "check_time",
        "check_attempts",
    )
    assert tuple(OUTCOMES) == ("row", *COLUMNS)


def test_payment_fields_are_those_of_the_documentation_in_their_order():
    assert FIELDS == (
        "payment_id",
        "name",
        "account_type",
        "sort_code",
        "account_number",
        "iban",
        "bic",
        "secondary_reference",
        "lei",
        "organisation_bic",
        "organisation_id",
        "organisation_id_scheme",
        "organisation_id_issuer",
        "amount",
        "currency",
        "reference",
    )
    assert tuple(PAYMENTS) == ("row", "defect", *FIELDS)
    assert Payment() == Payment(**dict.fromkeys(FIELDS))


def test_words_of_the_outcome_file_are_those_that_scripts_depend_on():
    assert list(Outcome) == [
        "match",
        "close_match",
        "no_match",
        "not_possible",
        "rejected",
        "deferred",
        "unanswered",
    ]
    assert list(Action) == [
        "pay",
        "fix_name",
        "fix_account_type",
        "fix_name_and_account_type",
        "check_account_details",
        "add_secondary_reference",
        "get_new_account_details",
        "ask_payee",
        "retry_later",
        "correct_row",
    ]
    assert list(ApiName) == ["cop", "vop_gateway", "vop_standard", "bank_report"]
    assert list(Environment) == ["sandbox", "test", "production", "bank"]


def test_every_field_of_the_files_is_described():
    for model in (Payment, OutcomeColumns):
        for name, field in model.model_fields.items():
            assert field.description, name


@pytest.mark.parametrize(
    ("member", "why"),
    [
        (b'"x": 1, "x": 1', "repeats a key"),
        (b'"x": {"y": 1, "y": 2}', "repeats a key"),
        (b'"x": [{"y": 1, "y": 2}]', "repeats a key"),
        (b'"x": NaN', "a number that JSON does not have"),
        (b'"x": -Infinity', "a number that JSON does not have"),
    ],
)
def test_document_that_two_readers_could_read_differently_is_refused_with_the_reason(member, why):
    with pytest.raises(ValueError, match=why):
        parse(VerificationReport, b'{"matched": true, ' + member + b"}")


class Kept(OwnDocument):
    """A document of our own with a long list."""

    name: str
    rows: tuple[int, ...] = ()


def test_a_document_of_our_own_does_not_change_and_has_no_unknown_member():
    with pytest.raises(ValidationError, match="frozen"):
        Kept(name="x").name = "y"
    with pytest.raises(ValidationError, match="Extra inputs"):
        parse(Kept, b'{"name": "x", "other": 1}')


def test_a_list_that_nobody_needs_is_left_empty_and_the_rest_is_read_as_strictly():
    body = b'{"name": "x\xc3\xa9", "rows": [1, 2]}'
    assert parse(Kept, body).rows == (1, 2)
    assert parse(Kept, body, emptied=["rows"]) == Kept(name="xé")
    with pytest.raises(ValueError, match="repeats a key"):
        parse(Kept, b'{"name": "x", "name": "y"}', emptied=["rows"])
    with pytest.raises(ValueError, match="codec"):
        parse(Kept, b'{"name": "\xff"}', emptied=["rows"])
    with pytest.raises(ValidationError):
        parse(VerificationReport, b'{"matched": false, "reasonCode": 1}', emptied=["x"])
    assert (
        parse(VerificationReport, b'{"matched": false, "reason_code": "ANNM"}', emptied=["x"]).reason_code
        is None
    )


def test_a_body_that_is_no_such_document_has_no_members():
    assert parsed_or_empty(Problem, b'{"code": "AC01"}').code == "AC01"
    assert parsed_or_empty(Problem, b"<html>") == Problem()
    assert parsed_or_empty(Problem, b'{"code": "AC01", "code": "MTCH"}') == Problem()
