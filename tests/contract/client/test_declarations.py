"""What each API declares of itself: its section, the fields it is sent, the accounts it is asked about."""

import polars as pl
import pytest

from pipeline.apis import Basis, ContractBreachError, RouteReason, cop, vop
from pipeline.apis.registry import APIS
from pipeline.apis.registry import DECLARED as SOURCES
from schemas.outcomes import ApiName

IDENTIFICATION = {
    *("lei", "organisation_bic", "organisation_id"),
    *("organisation_id_scheme", "organisation_id_issuer"),
}
DECLARED = {
    ApiName.COP: ("cop", "gateway", {"name", "account_type", "secondary_reference"}),
    ApiName.VOP_GATEWAY: ("vop", "gateway", {"name"}),
    ApiName.VOP_STANDARD: ("vop", "standard", {"name", "responder_bic", "remittance"}),
}
PAYMENT = pl.DataFrame(
    {"sort_code": ["010203"], "account_number": ["00456789"], "iban": ["GB29NWBK60161331926819"]}
)
BY_IBAN = {RouteReason.IBAN: "GB29NWBK60161331926819"}
IBANS = BY_IBAN | dict.fromkeys([RouteReason.GB_IBAN], "GB29NWBK60161331926819")
ACCOUNTS = {
    ApiName.COP: {RouteReason.GB_IBAN: "60161331926819", RouteReason.SORT_CODE: "01020300456789"},
    ApiName.VOP_GATEWAY: BY_IBAN,
    ApiName.VOP_STANDARD: BY_IBAN,
}


@pytest.mark.parametrize("name", APIS)
def test_each_api_is_known_by_its_name_its_section_and_what_it_takes(name):
    declaration, (key, form, takes) = APIS[name], DECLARED[name]

    assert (declaration.name, declaration.section.name, declaration.key) == (name, name, key)
    assert declaration.form == form
    assert declaration.takes - IDENTIFICATION == takes
    assert (declaration.takes >= IDENTIFICATION) == (name is not ApiName.COP)
    assert "Verification" in declaration.asked[Basis.NAME] or name is ApiName.COP


@pytest.mark.parametrize("name", APIS)
def test_each_route_asks_about_the_account_that_the_payment_names(name):
    routes = APIS[name].routes

    asked = {reason: PAYMENT.select(route.account).item() for reason, route in routes.items()}
    assert asked == ACCOUNTS[name]


def test_a_banks_own_report_is_read_as_verification_even_of_uk_accounts():
    declaration = vop.BANK_REPORT

    assert SOURCES[declaration.name] is declaration is SOURCES[ApiName.BANK_REPORT]
    assert declaration.takes == IDENTIFICATION | {"name"}
    assert declaration.meanings is APIS[ApiName.VOP_GATEWAY].meanings
    asked = {reason: PAYMENT.select(route.account).item() for reason, route in declaration.routes.items()}
    assert asked == {**IBANS, RouteReason.SORT_CODE: "01020300456789"}


def test_what_an_api_is_called_stands_beside_its_codes():
    assert APIS[ApiName.COP].asked == {Basis.NAME: "Confirmation of Payee"}
    assert APIS[ApiName.VOP_GATEWAY].asked == {
        Basis.NAME: "Verification of Payee, asked by name",
        Basis.IDENTIFICATION: "Verification of Payee, asked by identification",
    }


def test_a_breaker_goes_by_the_bank_that_answers(check_of):
    iban = check_of(api=ApiName.VOP_GATEWAY, account="DE89370400440532013000")
    named = check_of(api=ApiName.VOP_STANDARD, account="DE89370400440532013000", responder_bic="COBADEFFXXX")

    assert cop.responder(check_of(account="01020300456789")) == "010203"
    assert vop.responder(iban) == "DE3704"
    assert vop.responder(named) == "COBADEFFXXX"


def test_a_section_of_the_standard_api_says_who_asks_and_which_banks_it_knows():
    section = vop.VopStandard.model_construct(requesting_bic="PREXGB2LXXX")

    assert (section.client, dict(section.banks), section.sends_remittance) == ("PREXGB2LXXX", {}, False)
    assert cop.Cop.model_fields["api"].default == "gateway"
    assert APIS[ApiName.VOP_STANDARD].api(section).name is ApiName.VOP_STANDARD
    with pytest.raises(AssertionError):
        APIS[ApiName.VOP_STANDARD].api(cop.Cop.model_construct())


def test_a_breach_names_the_model_or_the_members_that_contradict_each_other(
    response_of, check_of, request_id
):
    def said(read, document, check):
        with pytest.raises(ContractBreachError) as caught:
            read(response_of(document), check, request_id)
        return caught.value.rule.values

    iban = check_of(api=ApiName.VOP_GATEWAY, account="DE89370400440532013000")
    contradiction = b'{"data": {"verificationReport": {"matched": true, "name": "A"}}}'
    members = ["partyNameMatch", "matchedName", "partyIdMatch"]

    assert said(cop.read, b"{}", check_of())["model"] == "NameVerificationResponse"
    assert said(cop.read, contradiction, check_of())["members"] == ["matched", "reasonCode", "name"]
    assert said(vop.read, b"[]", iban)["model"] == "VerificationOfPayeeResponse"
    found = said(vop.read, b'{"partyNameMatch": "MTCH", "matchedName": "A"}', iban)
    assert [*found["members"]] == members


@pytest.mark.parametrize(
    ("code", "key"),
    [
        ("AC01", "explain.account_unknown"),
        ("CASS", "explain.name_or_new_account"),
        ("FOURHUN", "explain.bank_did_not_take"),
        ("NOROUTE", "explain.no_such_sort_code"),
    ],
)
def test_some_codes_do_not_say_more_than_that_nothing_was_compared(code, key):
    assert cop.API.meanings[Basis.NAME, code].not_said.key == key


def test_an_api_takes_accounts_of_one_kind():
    routes = {**APIS[ApiName.COP].routes, **APIS[ApiName.VOP_GATEWAY].routes}
    with pytest.raises(AssertionError, match=r"^cop: two kinds of accounts"):
        APIS[ApiName.COP]._replace(routes=routes).check()
