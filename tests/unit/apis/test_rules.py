"""The rule table: every rule is broken by a row that breaks nothing else."""

from collections import Counter
from datetime import date

import pytest
from tables import for_each

from pipeline.rules.modulus import Modulus
from pipeline.rules.modulus_tables import Method, ModulusTables, Range, WeightedSum
from pipeline.rules.rules import DEFECTS, RULES
from pipeline.rules.unasked import SENTENCES, code_of
from pipeline.stages.validate import Routes, validate
from pipeline.wording import Sentence
from schemas.outcomes import ApiName

UK = {"name": "Ada Quillon", "sort_code": "112233", "account_number": "12345678"}
IBAN = {"name": "Quillon Mills BV", "iban": "DE89370400440532013000"}
BOTH = Routes([ApiName.COP, ApiName.VOP_GATEWAY])
STANDARD = Routes([ApiName.COP, ApiName.VOP_STANDARD], send_remittance=True)
_LAST_DIGIT = WeightedSum(Method.MOD10, (0,) * 13 + (1,))  # what ends in 0 passes
_TABLES = ModulusTables((Range(0, 999999, (_LAST_DIGIT,)),), {}, date(2030, 1, 1), "", "")
MODULUS = BOTH._replace(modulus=Modulus(_TABLES, is_old=False))

BROKEN = [
    ("row", "ROW_BLANK", {"defect": "ROW_BLANK"}, BOTH),
    ("row", "ROW_TOO_LONG", {**UK, "defect": "ROW_TOO_LONG"}, BOTH),
    ("row", "ROW_MERGED", {**UK, "defect": "ROW_MERGED"}, BOTH),
    ("row", "ROW_COMMENTED", {**UK, "defect": "ROW_COMMENTED"}, BOTH),
    ("row", "ROW_CONTINUED", {**UK, "defect": "ROW_CONTINUED"}, BOTH),
    ("row", "LINE_TOO_LONG", {**UK, "defect": "LINE_TOO_LONG"}, BOTH),
    ("row", "LINE_TOO_SHORT", {**UK, "defect": "LINE_TOO_SHORT"}, BOTH),
    ("row", "AMOUNT_MALFORMED", {**UK, "defect": "AMOUNT_MALFORMED"}, BOTH),
    ("row", "CODE_UNKNOWN", {**UK, "defect": "CODE_UNKNOWN"}, BOTH),
    ("row", "DAY_MALFORMED", {**UK, "defect": "DAY_MALFORMED"}, BOTH),
    ("row", "DIRECT_DEBIT", {**UK, "defect": "DIRECT_DEBIT"}, BOTH),
    ("row", "CHEQUE", {"name": "Ada Quillon", "defect": "CHEQUE"}, BOTH),
    ("row", "PROXY", {"name": "Ada Quillon", "defect": "PROXY"}, BOTH),
    *(
        ("row", code_of(key), {"name": "Ada Quillon", "defect": key}, BOTH)
        for key in SENTENCES
        if key.startswith("ACCOUNT_")
    ),
    ("row", "SORT_CODES_DIFFER", {**UK, "defect": "SORT_CODES_DIFFER"}, BOTH),
    ("row", "ELEMENT_TWICE", {**UK, "defect": "ELEMENT_TWICE"}, BOTH),
    *(
        (field, "CELL_ERROR", {**UK, field: error}, BOTH)
        for field, error in {
            "sort_code": "#N/A",
            "account_number": "#REF!",
            "name": "#N/A",
            "account_type": "#n/a",
            "secondary_reference": "#DIV/0!",
            "amount": "#VALUE!",
            "currency": "#NULL!",
        }.items()
    ),
    *(
        (field, "CELL_ERROR", {**IBAN, "organisation_id": "7", field: "#N/A"}, BOTH)
        for field in ("iban", "bic", "lei", "organisation_bic", "organisation_id", "organisation_id_issuer")
    ),
    (
        "organisation_id_scheme",
        "CELL_ERROR",
        {**IBAN, "organisation_id": "7", "organisation_id_scheme": "#N/A"},
        BOTH,
    ),
    *(
        (field, "INVISIBLE_CHARACTER", {**row, field: f"{row[field]}\u200b"}, BOTH)
        for row, field in ((UK, "sort_code"), (UK, "account_number"), (IBAN, "iban"))
    ),
    ("reference", "CELL_ERROR", {**IBAN, "reference": "#N/A"}, STANDARD),
    ("account_number", "ACCOUNT_MISSING", {"name": "Ada Quillon"}, BOTH),
    ("iban", "ACCOUNT_AMBIGUOUS", {**UK, **IBAN}, BOTH),
    ("sort_code", "SORT_CODE_MISSING", {**UK, "sort_code": None}, BOTH),
    ("account_number", "ACCOUNT_NUMBER_MISSING", {**UK, "account_number": None}, BOTH),
    ("sort_code", "SORT_CODE_DAMAGED", {**UK, "sort_code": "11223"}, BOTH),
    *(
        (field, code, {**row, field: "see below"}, BOTH)
        for row, field, code in (
            (UK, "sort_code", "SORT_CODE_FORMAT"),
            (UK, "account_number", "ACCOUNT_NUMBER_FORMAT"),
            (IBAN, "iban", "IBAN_FORMAT"),
        )
    ),
    ("sort_code", "SORT_CODE_FORMAT", {**UK, "sort_code": "1122334"}, BOTH),
    ("sort_code", "SORT_CODE_FORMAT", {**UK, "sort_code": "1122-3344"}, BOTH),
    ("account_number", "ACCOUNT_NUMBER_DAMAGED", {**UK, "account_number": "1234567"}, BOTH),
    ("account_number", "ACCOUNT_NUMBER_FORMAT", {**UK, "account_number": "123456789"}, BOTH),
    ("account_number", "ACCOUNT_NUMBER_FORMAT", {**UK, "account_number": "12-34-56"}, BOTH),
    ("account_number", "ACCOUNT_NUMBER_FORMAT", {**UK, "account_number": "A/C 1234-5678"}, BOTH),
    ("iban", "IBAN_DAMAGED", {**IBAN, "iban": "8.93704E+19"}, BOTH),
    ("iban", "IBAN_FORMAT", {**IBAN, "iban": "89370400440532013000"}, BOTH),
    ("iban", "IBAN_COUNTRY", {**IBAN, "iban": "ZZ89370400440532013000"}, BOTH),
    ("iban", "IBAN_LENGTH", {**IBAN, "iban": "DE8937040044053201300"}, BOTH),
    ("iban", "IBAN_STRUCTURE", {**IBAN, "iban": "DE8937040044053201300O"}, BOTH),
    ("iban", "IBAN_CHECK_DIGITS", {**IBAN, "iban": "DE88370400440532013000"}, BOTH),
    ("name", "NAME_MISSING", {**UK, "name": None}, BOTH),
    ("name", "NAME_TOO_LONG", {**UK, "name": "Q" * 141}, BOTH),
    ("name", "CONTROL_CHARACTER", {**UK, "name": "Ada\x00Quillon"}, BOTH),
    ("name", "INVISIBLE_CHARACTER", {**UK, "name": "Ada\u200bQuillon"}, BOTH),
    ("name", "DAMAGED_TEXT", {**UK, "name": "Ad\ufffd Quillon"}, BOTH),
    ("name", "DAMAGED_TEXT", {**UK, "name": "Ada \ue000 Quillon"}, BOTH),
    ("name", "NAME_FORMULA", {**UK, "name": "=VLOOKUP(B7;Names;2)"}, BOTH),
    ("name", "NAME_NO_NAME", {**UK, "name": "+44 20 7946 0000"}, BOTH),
    ("account_type", "ACCOUNT_TYPE", {**UK, "account_type": "Joint"}, BOTH),
    ("secondary_reference", "SECONDARY_REFERENCE_TOO_LONG", {**UK, "secondary_reference": "7" * 141}, BOTH),
    ("secondary_reference", "CONTROL_CHARACTER", {**UK, "secondary_reference": "7\x1b1"}, BOTH),
    ("secondary_reference", "INVISIBLE_CHARACTER", {**UK, "secondary_reference": "7\u202e1"}, BOTH),
    ("secondary_reference", "DAMAGED_TEXT", {**UK, "secondary_reference": "7\ufffd1"}, BOTH),
    ("secondary_reference", "DAMAGED_TEXT", {**UK, "secondary_reference": "7\ue0001"}, BOTH),
    ("bic", "BIC_FORMAT", {**IBAN, "bic": "QUILDEF"}, BOTH),
    ("bic", "BIC_FORMAT", {**IBAN, "bic": "MULTIPLE"}, BOTH),
    ("lei", "LEI_CHECK_DIGITS", {**IBAN, "lei": "529900QUILLONMILLS67"}, BOTH),
    ("organisation_bic", "ORGANISATION_BIC_FORMAT", {**IBAN, "organisation_bic": "QUILDEF"}, BOTH),
    ("organisation_bic", "ORGANISATION_BIC_FORMAT", {**IBAN, "organisation_bic": "PERSONAL"}, BOTH),
    ("organisation_id", "ORGANISATION_ID_MISSING", {**IBAN, "organisation_id_scheme": "TXID"}, BOTH),
    ("organisation_id", "IDENTIFICATION_TOO_LONG", {**IBAN, "organisation_id": "7" * 141}, BOTH),
    (
        "organisation_id_issuer",
        "IDENTIFICATION_TOO_LONG",
        {**IBAN, "organisation_id": "7", "organisation_id_issuer": "7" * 141},
        BOTH,
    ),
    *(
        (field, code, {**IBAN, "organisation_id": "7", field: f"7{bad}7"}, BOTH)
        for field in ("organisation_id", "organisation_id_issuer")
        for code, bad in (
            ("CONTROL_CHARACTER", "\x85"),
            ("INVISIBLE_CHARACTER", "\u2066"),
            ("DAMAGED_TEXT", "\ufffd"),
            ("DAMAGED_TEXT", "\ue000"),
        )
    ),
    ("reference", "REFERENCE_TOO_LONG", {**IBAN, "reference": "7" * 141}, STANDARD),
    ("reference", "CONTROL_CHARACTER", {**IBAN, "reference": "7\n7"}, STANDARD),
    ("reference", "INVISIBLE_CHARACTER", {**IBAN, "reference": "7\u20287"}, STANDARD),
    ("reference", "DAMAGED_TEXT", {**IBAN, "reference": "7\ufffd7"}, STANDARD),
    ("reference", "DAMAGED_TEXT", {**IBAN, "reference": "7\ue0007"}, STANDARD),
    (
        "organisation_id_scheme",
        "IDENTIFICATION_SCHEME",
        {**IBAN, "organisation_id": "7", "organisation_id_scheme": "VATN"},
        BOTH,
    ),
    ("amount", "AMOUNT_AMBIGUOUS", {**UK, "amount": "1.234"}, BOTH),
    ("amount", "AMOUNT_FORMAT", {**UK, "amount": "12 34"}, BOTH),
    ("amount", "AMOUNT_FORMAT", {**UK, "amount": "12.34 CR"}, BOTH),
    ("amount", "AMOUNT_NEGATIVE", {**UK, "amount": "-5.00"}, BOTH),
    ("amount", "AMOUNT_ZERO", {**UK, "amount": "0.00"}, BOTH),
    ("amount", "AMOUNT_DECIMALS", {**UK, "amount": "0.001"}, BOTH),
    ("currency", "CURRENCY_FORMAT", {**UK, "currency": "pounds"}, BOTH),
    ("currency", "CURRENCY_UNKNOWN", {**UK, "currency": "XXX"}, BOTH),
    ("amount", "AMOUNT_CURRENCY", {**UK, "amount": "€5.00", "currency": "GBP"}, BOTH),
    ("account_number", "MODULUS", UK, MODULUS),
    ("iban", "MODULUS", {"name": "Ada Quillon", "iban": "GB82WEST12345698765432"}, MODULUS),
    ("iban", "NO_API", IBAN, BOTH._replace(apis=[ApiName.COP])),
    ("iban", "NO_API", {**IBAN, "iban": "GB82WEST12345698765432"}, BOTH._replace(apis=[ApiName.VOP_GATEWAY])),
    ("sort_code", "NO_API", UK, BOTH._replace(apis=[ApiName.VOP_GATEWAY])),
    ("bic", "RESPONDER_BIC_UNKNOWN", {**IBAN, "iban": "DE36000000000000000000"}, STANDARD),
    ("iban", "OUT_OF_REACH", IBAN, BOTH._replace(vop_countries=("FR",))),
    ("name", "OUT_OF_ALPHABET", {**IBAN, "name": "Άδα"}, BOTH._replace(vop_names="latin")),
]


def codes_of(validated):
    return list(validated.rejects.select("field", "code").iter_rows())


@pytest.mark.parametrize("routes", [BOTH, STANDARD])
@pytest.mark.parametrize("row", [UK, IBAN])
def test_rows_that_the_others_change_break_no_rule(row, routes, payments_of):
    assert codes_of(validate(payments_of(row), routes)) == []


@pytest.fixture(scope="module")
def rejects_of(payments_of):
    """The rejects of each of the broken rows; those of the same routes are in one file."""
    found, left = {}, list(enumerate(BROKEN))
    while left:
        routes = left[0][1][3]
        some = [(number, row) for number, (_, _, row, others) in left if others == routes]
        left = [each for each in left if each[1][3] != routes]
        validated = validate(payments_of(*(row for _, row in some)), routes)
        assert validated.accepted.height == 0
        found |= {number: validated.rejects.filter(row=at) for at, (number, _) in enumerate(some, start=1)}
    return found


broken_rows = for_each(("number", "field", "code"), [(n, *each[:2]) for n, each in enumerate(BROKEN)])


@broken_rows
def test_row_breaks_exactly_this_rule(number, field, code, rejects_of):
    assert rejects_of[number].select("field", "code").rows() == [(field, code)]


def test_every_rule_has_a_row_that_breaks_it():
    tested = Counter((field, code) for field, code, _, _ in BROKEN)
    assert tested == Counter((rule.field, rule.code) for rule in RULES)


@broken_rows
def test_message_quotes_no_value_of_the_row(number, field, code, rejects_of):
    sentences = {str(rule.sentence) for rule in RULES if (rule.field, rule.code) == (field, code)}
    (message,) = rejects_of[number]["message"]
    assert message in sentences


@for_each(
    ("cells", "key"),
    [
        ({"amount": amount}, "amount_mark")
        for amount in ("10.00 CR", "10.00DR", "C 10.00", "+10.00", "10,00 S", "10.00 GBP Cr.", "10.00 (CR)")
    ]
    + [({"amount": amount}, "amount_negative") for amount in ("10.00-", "(10.00)", "-10.00")]
    + [({"amount": amount}, "amount_format") for amount in ("10 K", "10.00 DR 5", "CR", "1 of 2")]
    + [({"sort_code": code}, "is_account_number") for code in ("12345678", "1234-5678")]
    + [
        ({"sort_code": code}, "sort_code_format")
        for code in ("12.34.56", "112233 (HQ)", "\uff11\uff12\uff13")
    ]
    + [({"account_number": number}, "is_sort_code") for number in ("12-34-56", "12/34/56")]
    + [
        ({"account_number": number}, "more_than_digits")
        for number in ("1234-5678", "Acc: 12345678", "12345678x")
    ]
    + [
        ({"account_number": number}, "account_number_format") for number in ("123456789", "1234-56789", "1-2")
    ],
)
def test_sentence_says_what_kind_of_thing_the_cell_holds(cells, key, payments_of):
    [message] = validate(payments_of({**UK, **cells}), BOTH).rejects["message"]
    assert message == str(Sentence(f"rule.{key}"))


def test_sentences_can_be_read_after_a_field_and_joined():
    for rule in RULES:
        assert not str(rule.sentence).endswith("."), rule.code
        assert not str(rule.sentence).startswith(" "), rule.code
        assert "  " not in str(rule.sentence), rule.code


def test_defects_of_the_reader_are_the_first_rules():
    assert tuple(SENTENCES) == DEFECTS
    assert tuple(rule.sentence for rule in RULES[: len(DEFECTS)]) == tuple(SENTENCES.values())
