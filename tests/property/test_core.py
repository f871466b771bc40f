"""The pure core, for any payment file and any reply: nothing is lost, nothing is guessed."""

import json
import re
from collections import Counter, defaultdict
from datetime import date
from decimal import Decimal
from functools import cache

import polars as pl
import pytest
from examples import examples
from httpx import Response
from hypothesis import given
from hypothesis import strategies as st
from refusals import said

from pipeline.apis import ContractBreachError, basis_of, cop, vop
from pipeline.frames import (
    ACCEPTED,
    ANSWERS,
    OUTCOMES,
    PAYMENTS,
    REJECTS,
    WARNINGS,
    Answer,
    AnswerState,
    Check,
)
from pipeline.rules import modulus_tables
from pipeline.rules.amounts import read_amounts
from pipeline.rules.currencies import amount_faults, currency_faults
from pipeline.rules.identifiers import bic_faults, iban_faults, lei_faults
from pipeline.rules.modulus import Modulus
from pipeline.rules.modulus_tables import Method, ModulusTables, Range
from pipeline.rules.rules import RULES, RULES_BY_SUSPECTS
from pipeline.rules.warnings import WARNING_RULES
from pipeline.stages.plan import bases, plan
from pipeline.stages.resolve import resolve
from pipeline.stages.summarise import summarise
from pipeline.stages.validate import Routes, validate
from schemas.cop import AccountType
from schemas.outcomes import ApiName, Environment
from schemas.payments import FIELDS
from schemas.summary import ApiCalls, InputFile

REQUEST_ID = "3f2b8c1e-9d4a-4b6f-8e21-5a7c0d9e1f34"
TIME = "2030-01-02T03:04:05.678Z"
APIS = {api.name: api for api in (cop.API, vop.GATEWAY, vop.standard("MARWGB2LXXX"))}

# What people write, and what stands near it.
LIKELY = {
    "name": [
        "Ada Quillon",
        "Zoe\u0308 Marrow",
        "Zo\u00eb Marrow",
        " Bo ",
        "Q" * 140,
        "e\u0301" * 141,
        "=1",
        '="Bo"',
        "@Home Ltd",
    ],
    "account_type": ["personal", "Business", "Savings", "?"],
    "sort_code": ["112233", "11-22-33", "00 11 22", "12345", "1.2E+05"],
    "account_number": ["12345678", "00000001", "1234567", "1234 5678"],
    "iban": ["DE89370400440532013000", "gb29 nwbk 6016 1331 9268 19", "GB29NWBK60161331926819", "8.9E+19"],
    "bic": ["QUILDEFF", "quildeffxxx", "QUILFRPP", "MULTIPLE", "QUIL"],
    "secondary_reference": ["ROLL 7", "7" * 141],
    "lei": ["529900QUILLONMILLS66", "529900quillonmills66", "529900QUILLONMILLS67"],
    "organisation_bic": ["QUILDEFF", "?"],
    "organisation_id": ["HRB 1234", "7" * 141],
    "organisation_id_scheme": ["TXID", "coid", "VATN"],
    "organisation_id_issuer": ["Court"],
    "amount": ["5", "1,234.56", "1.234", "\u00a35", "5 EUR", "-0", "(1)", "1.005", "12 34"],
    "currency": ["GBP", "eur", "JPY", "XXX", "\u00a3", "pounds"],
    "reference": ["Invoice 12", "7" * 141],
}
TRICKY = st.sampled_from(
    ["", " ", "-", "\u00a0", "\u200b", "\ufeff", "\x00", "\u0661", "\uff11", "\ufffd", "\u0130"]
)


def values_of(field):
    likely = st.sampled_from(LIKELY.get(field, ["x"]))
    return st.one_of(st.none(), st.none(), likely, likely, likely, TRICKY, st.text(max_size=20))


ROWS = st.fixed_dictionaries(
    {field: values_of(field) for field in FIELDS}
    | {"defect": st.sampled_from([None] * 9 + ["ROW_BLANK", "ROW_TOO_LONG", "ROW_MERGED"])}
)
UK_ROWS = ROWS.map(lambda row: {**row, "iban": None, "defect": None, "account_type": None})
IBAN_ROWS = ROWS.map(lambda row: {**row, "sort_code": None, "account_number": None, "defect": None})
PAYMENTS_FRAMES = st.lists(st.one_of(ROWS, UK_ROWS, IBAN_ROWS), max_size=12).map(
    lambda rows: pl.DataFrame(
        [{**row, "row": number} for number, row in enumerate(rows, start=1)], schema=PAYMENTS
    )
)
_LAST_DIGIT = modulus_tables.WeightedSum(Method.MOD10, (0,) * 13 + (1,))
_TABLES = ModulusTables((Range(0, 599999, (_LAST_DIGIT,)),), {}, date(2030, 1, 1), "", "")
ROUTES = st.builds(
    Routes,
    apis=st.sampled_from(
        [
            (*cop, *vop)
            for cop in ((), (ApiName.COP,))
            for vop in ((), (ApiName.VOP_GATEWAY,), (ApiName.VOP_STANDARD,))
        ]
    ),
    gb_iban_to=st.sampled_from(["cop", "vop"]),
    default_account_type=st.sampled_from(AccountType),
    ask_by=st.sampled_from(["name", "identification"]),
    send_remittance=st.booleans(),
    bic_table=st.sampled_from([{}, {"DE37": "QUILDEFFXXX"}]),
    modulus=st.sampled_from([None, Modulus(_TABLES, is_old=False), Modulus(_TABLES, is_old=True)]),
    vop_countries=st.sampled_from([None, (), ("DE",)]),
    vop_names=st.sampled_from(["any", "latin"]),
)
bounded = examples(80)


def checks_in(frame):
    return [Check(**row) for row in frame.select(Check._fields).to_dicts()]


@bounded
@given(PAYMENTS_FRAMES, ROUTES)
def test_every_payment_is_accepted_or_rejected_and_never_both(payments, routes):
    accepted, rejects, warnings, *_ = validate(payments, routes)
    assert (accepted.schema, rejects.schema, warnings.schema) == (ACCEPTED, REJECTS, WARNINGS)
    assert accepted["row"].is_sorted()
    assert rejects["row"].is_sorted()
    sorted_out = accepted["row"].to_list() + rejects["row"].unique().to_list()
    assert sorted(sorted_out) == payments["row"].to_list()
    assert set(warnings["row"]) <= set(accepted["row"])


@bounded
@given(PAYMENTS_FRAMES, ROUTES)
def test_every_accepted_question_builds_a_request_of_its_api(payments, routes):
    accepted = validate(payments, routes).accepted
    for check in checks_in(accepted.rename({"row": "check"})):
        assert check.api in routes.apis
        request = APIS[ApiName(check.api)].request(check, REQUEST_ID, TIME)
        assert json.loads(request.read())


@bounded
@given(PAYMENTS_FRAMES, ROUTES)
def test_messages_are_sentences_of_the_rules_and_quote_nothing(payments, routes):
    _, rejects, warnings, *_ = validate(payments, routes)
    assert set(rejects["message"]) <= {str(rule.sentence) for rule in RULES}
    repeated = re.escape(said("rule.payment_repeated", row="ROW")).replace("ROW", r"row \d+")
    for message in set(warnings["message"]) - {str(rule.sentence) for rule in WARNING_RULES}:
        assert re.fullmatch(repeated, message)


PLAINLY_RIGHT = {
    "name": st.from_regex(r"\A[A-Za-z][ -~]{0,139}\Z"),
    "account_type": st.sampled_from(AccountType),
    "sort_code": st.from_regex(r"\A[0-9]{6}\Z"),
    "account_number": st.from_regex(r"\A[0-9]{8}\Z"),
    "amount": st.from_regex(r"\A[0-9]{1,18}(\.[0-9]{1,2})?\Z"),
    "currency": st.from_regex(r"\A[A-Z]{3}\Z"),
}


@cache
def breaches_of(field):
    """Position and code of each rule about this field alone -> whether it is broken where nobody asks it."""
    return {
        (position, RULES[position].code): (RULES[position].broken.fill_null(value=True) & ~suspect).alias(
            str(position)
        )
        for suspect, positions in RULES_BY_SUSPECTS
        for position in positions
        if set(RULES[position].broken.meta.root_names()) <= {field, f"{field}_fault"}
    }


FAULTS = {
    "iban": iban_faults,
    "lei": lei_faults,
    "bic": bic_faults,
    "organisation_bic": bic_faults,
    "currency": currency_faults,
}


@pytest.mark.parametrize("field", FIELDS)
@bounded
@given(st.data())
def test_a_value_that_no_rule_is_asked_about_breaks_none(field, data):
    near = PLAINLY_RIGHT.get(field, st.nothing())
    values = pl.Series(field, data.draw(st.lists(values_of(field) | near, max_size=12)), dtype=pl.String)
    columns = [values]
    if field in FAULTS:
        columns = [values, FAULTS[field](values).alias(f"{field}_fault")]
    if field == "amount":
        text, money, mark = read_amounts(values)
        pounds = pl.Series(["GBP"] * len(values), dtype=pl.String)
        faults = amount_faults(money, mark, pounds, pounds).alias("amount_fault")
        columns = [text, money.alias("money"), faults]
    rows = pl.DataFrame(columns)
    breaches = breaches_of(field)
    for broken in rows.select(breach.any() for breach in breaches.values()).rows():
        codes = [code for (_, code), is_broken in zip(breaches, broken, strict=True) if is_broken]
        assert codes == [], values.to_list()


def test_every_rule_is_asked_once():
    asked = [position for _, positions in RULES_BY_SUSPECTS for position in positions]
    assert sorted(asked) == list(range(len(RULES)))


@bounded
@given(PAYMENTS_FRAMES, ROUTES, st.sampled_from(["file", "amount"]))
def test_every_accepted_payment_is_answered_by_exactly_the_question_it_asks(payments, routes, order):
    accepted = validate(payments, routes).accepted
    checks, assignments = plan(accepted, order)
    questions = {check.check: check._replace(check=0) for check in checks_in(checks)}
    assert len(set(questions.values())) == checks.height
    assert assignments["row"].to_list() == accepted["row"].to_list()
    asked = [check._replace(check=0) for check in checks_in(accepted.rename({"row": "check"}))]
    assert [questions[check] for check in assignments["check"]] == asked


def some_answers(draw, checks):
    """Any state and code for each question; where it is answered, a code that its API can give."""
    answers = []
    for check in checks_in(checks):
        state = draw(st.sampled_from(AnswerState))
        known = [code for basis, code in APIS[ApiName(check.api)].meanings if basis is basis_of(check)]
        code = draw(st.sampled_from(known if state is AnswerState.ANSWERED else [*known, "DAILY_CAP", "XYZ"]))
        answers.append(Answer(check.check, state, code, None, REQUEST_ID, TIME, 1))
    shuffled = draw(st.permutations(answers))
    return pl.DataFrame(shuffled, schema=ANSWERS, orient="row")


@bounded
@given(PAYMENTS_FRAMES, ROUTES, st.data())
def test_every_payment_has_one_outcome_and_a_match_only_where_a_responder_said_so(payments, routes, data):
    accepted, rejects, warnings, *_ = validate(payments, routes)
    planned = plan(accepted)
    answers = some_answers(data.draw, planned.checks)
    outcomes, _ = resolve(
        (rejects, warnings),
        (bases(planned.checks), planned.assignments),
        answers,
        APIS.values(),
        Environment.PRODUCTION,
    )
    assert outcomes.schema == OUTCOMES
    assert outcomes["row"].to_list() == payments["row"].to_list()
    said = {answer["check"]: (answer["state"], answer["code"]) for answer in answers.to_dicts()}
    matched = {
        row for row, check in planned.assignments.iter_rows() if said[check] == (AnswerState.ANSWERED, "MTCH")
    }
    assert set(outcomes.filter(pl.col("check_outcome") == "match")["row"]) == matched
    rejected = outcomes.filter(pl.col("check_api").is_null())
    assert set(rejected["row"]) == set(rejects["row"])
    assert set(rejected["check_outcome"]) <= {"rejected"}


AMOUNTS = st.one_of(st.none(), st.decimals(min_value=0, max_value=10**12, places=2).map(lambda d: f"{d:.2f}"))
CURRENCIES = st.sampled_from([None, "GBP", "gbp", "EUR", " eur"])


@bounded
@given(st.lists(st.tuples(AMOUNTS, CURRENCIES, st.sampled_from(["112233", "1122"])), max_size=30))
def test_totals_of_the_summary_add_up_to_the_money_of_the_file(rows):
    fields = [
        {"row": number, "name": "Ada Quillon", "sort_code": sort_code, "account_number": "12345678"}
        | {"amount": amount, "currency": currency}
        for number, (amount, currency, sort_code) in enumerate(rows, start=1)
    ]
    payments = pl.DataFrame([{**dict.fromkeys(PAYMENTS), **row} for row in fields], schema=PAYMENTS)
    accepted, rejects, warnings, *_ = validate(payments, Routes([ApiName.COP]))
    planned = plan(accepted)
    answers = pl.DataFrame(
        [
            Answer(check, AnswerState.ANSWERED, "ANNM" if check % 2 else "MTCH", None, REQUEST_ID, TIME, 1)
            for check in planned.checks["check"]
        ],
        schema=ANSWERS,
        orient="row",
    )
    outcomes, _ = resolve(
        (rejects, warnings),
        (bases(planned.checks), planned.assignments),
        answers,
        APIS.values(),
        Environment.SANDBOX,
    )
    calls = [
        ApiCalls(
            api=ApiName.COP, question_count=planned.checks.height, answered_before_count=0, request_count=0
        )
    ]
    summary = summarise(HEADER, payments, outcomes, warnings, calls if planned.checks.height else [])

    money = defaultdict(Decimal)
    for amount, currency, _ in rows:
        if amount is not None:
            # They are paid to UK accounts, whose currency need not be said.
            money[currency.strip().upper() if currency else "GBP"] += Decimal(amount)
    reported = defaultdict(Decimal)
    for outcome in summary.outcomes:
        for total in outcome.totals:
            reported[total.currency] += total.amount
    assert reported == money
    assert sum(outcome.row_count for outcome in summary.outcomes) == len(rows)
    counted = Counter()
    for code in summary.codes:
        counted[code.outcome] += code.row_count
    assert counted == {o.outcome: o.row_count for o in summary.outcomes if o.row_count}
    assert summary.saved_call_count == accepted.height - planned.checks.height


HEADER = {
    "tool_version": "0",
    "profile": "sandbox",
    "environment": Environment.SANDBOX,
    "started": TIME,
    "finished": TIME,
    "input": InputFile(
        name="x.csv", sha256="0", byte_count=0, row_count=0, format="csv", encoding="utf-8", columns={}
    ),
    "routes": [],
    "next_step": "run again",
}

# Replies: documents near a match, then damaged.

MEMBERS = st.sampled_from(
    [None, True, False, 1, "true", "MTCH", "CMTC", "NMTC", "NOAP", "MBAM", "ANNM", "AC01", "Ada"]
)
COP_DOCUMENTS = st.dictionaries(st.sampled_from(["matched", "reasonCode", "name", "Matched"]), MEMBERS).map(
    lambda report: {"data": {"verificationReport": report}}
)
VOP_DOCUMENTS = st.dictionaries(
    st.sampled_from(["partyNameMatch", "partyIdMatch", "matchedName", "partynamematch"]), MEMBERS
)
MATCHES = st.sampled_from(
    [
        {"data": {"verificationReport": {"matched": True}}},
        {"partyNameMatch": "MTCH"},
        {"partyIdMatch": "MTCH"},
    ]
)
TOKENS = b"""{ } [ ] " , : true false null NaN \\u0000
"matched":true, "matched":false, "partyNameMatch":"NMTC", "x":1,"""
PIECES = st.one_of(st.binary(max_size=3), st.sampled_from([*TOKENS.split(), b"\xef\xbb\xbf", b"\xff", b" "]))
EDITS = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 4), PIECES), max_size=3)


def damaged(document, edits):
    body = json.dumps(document).encode()
    for position, removed_count, piece in edits:
        body = body[:position] + piece + body[position + removed_count :]
    return body


def members_of(body):
    """The members of a document by their full path; a second reader, which keeps every repeat."""
    found = []

    def flatten(value, path):
        if isinstance(value, Pairs):
            for key, member in value:
                flatten(member, (*path, key))
        else:
            found.append((path, value))

    flatten(json.loads(body.decode("utf-8"), object_pairs_hook=Pairs), ())
    return found


class Pairs(list):
    """The members of one object, in order."""


QUESTIONS = {
    "cop": Check(1, ApiName.COP, "11223312345678", "Ada", "Personal", *[None] * 8),
    "name": Check(1, ApiName.VOP_GATEWAY, "DE89370400440532013000", "Ada", *[None] * 9),
    "identification": Check(
        1, ApiName.VOP_GATEWAY, "DE89370400440532013000", None, None, None, "X", *[None] * 6
    ),
}
THE_MATCH = {
    "cop": (("data", "verificationReport", "matched"), True),
    "name": (("partyNameMatch",), "MTCH"),
    "identification": (("partyIdMatch",), "MTCH"),
}
CONTRADICTING = {
    "cop": {("data", "verificationReport", "reasonCode"), ("data", "verificationReport", "name")},
    "name": {("matchedName",)},
    "identification": {("matchedName",)},
}


@examples(3000, by_day=300)  # an example takes 3 ms
@given(st.sampled_from(sorted(QUESTIONS)), st.one_of(MATCHES, MATCHES, COP_DOCUMENTS, VOP_DOCUMENTS), EDITS)
def test_damaged_reply_reads_as_a_match_only_if_it_still_is_a_clean_one(asked, document, edits):
    body = damaged(document, edits)
    headers = {
        "content-type": "application/json",
        "x-request-id": REQUEST_ID,
        "x-fapi-interaction-id": REQUEST_ID,
    }
    check = QUESTIONS[asked]
    try:
        reading = APIS[check.api].read(Response(200, headers=headers, content=body), check, REQUEST_ID)
    except ContractBreachError:
        return
    assert (basis_of(check), reading.code) in APIS[check.api].meanings
    if reading.code != "MTCH":
        return
    members = members_of(body)
    path, value = THE_MATCH[asked]
    assert [member for member in members if member[0] == path] == [(path, value)]
    assert members.count((path, value)) == 1
    assert not [member for member in members if member[0] in CONTRADICTING[asked] and member[1] is not None]


@pytest.mark.parametrize("asked", sorted(QUESTIONS))
def test_clean_match_is_read_as_one(asked):
    documents = {
        "cop": {"data": {"verificationReport": {"matched": True}}},
        "name": {"partyNameMatch": "MTCH"},
        "identification": {"partyIdMatch": "MTCH"},
    }
    headers = dict.fromkeys(("x-request-id", "x-fapi-interaction-id"), REQUEST_ID)
    response = Response(
        200, headers={"content-type": "application/json", **headers}, content=damaged(documents[asked], [])
    )
    assert APIS[QUESTIONS[asked].api].read(response, QUESTIONS[asked], REQUEST_ID).code == "MTCH"


@bounded
@given(st.lists(st.text(alphabet="ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", max_size=36), max_size=30))
def test_iban_without_a_fault_has_the_remainder_one_by_plain_arithmetic(texts):
    near = [
        f"DE{number:02}{text[:18].zfill(18)}" for text in texts if text.isdigit() for number in range(100)
    ]
    ibans = texts + near
    for iban, fault in zip(ibans, iban_faults(pl.Series(ibans, dtype=pl.String)), strict=True):
        if fault is None:
            assert int("".join(str(int(character, 36)) for character in iban[4:] + iban[:4])) % 97 == 1
