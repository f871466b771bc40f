"""Confirmation of Payee: the UK name check by sort code and account number.

Source: API reference, CoP Gateway 1.0.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import polars as pl

from pipeline import apis
from pipeline.frames import Check, Meaning, RouteReason
from pipeline.sections import Oauth
from pipeline.wording import Sentence
from schemas.cop import (
    AccountType,
    NameVerification,
    NameVerificationRequest,
    NameVerificationResponse,
    ReasonCode,
)
from schemas.outcomes import Action, ApiName, Outcome
from schemas.strict import parse

if TYPE_CHECKING:
    import httpx

PATH = "/copgateway/v1.0/confirmation-payee/name-verification"
CORRELATION_HEADER = "x-fapi-interaction-id"
CLOSE_MATCHES = frozenset({ReasonCode.MBAM, ReasonCode.BAMM, ReasonCode.PAMM})
ACCOUNT_TYPES_FOUND = {
    ReasonCode.BANM: AccountType.BUSINESS,
    ReasonCode.BAMM: AccountType.BUSINESS,
    ReasonCode.PANM: AccountType.PERSONAL,
    ReasonCode.PAMM: AccountType.PERSONAL,
}
"""Code that says the account type differs from the one in the question -> the actual type."""


class Cop(Oauth):
    """The section of the CoP Gateway."""

    name: ClassVar[ApiName] = ApiName.COP

    api: Literal["gateway"] = "gateway"


def request(check: Check, request_id: str, time: str) -> httpx.Request:
    """Build the request for a check with a name and an account type (API reference, section "Headers").

    `request_id` is a UUID v4 in lower case; `time` is UTC, as `YYYY-MM-DDThh:mm:ss.sssZ`.
    """
    if check.name is None or check.account_type is None:
        raise AssertionError("a CoP check has a name and an account type")
    body = NameVerificationRequest(
        data=NameVerification(
            scheme_name="SortCodeAccountNumber",
            account_type=AccountType(check.account_type),
            identification=check.account,
            name=check.name,
            secondary_identification=check.secondary_reference,
        )
    )
    headers = {
        "Content-Type": "application/json",
        CORRELATION_HEADER: request_id,
        "X-Request-Timestamp": time,
    }
    return apis.post(PATH, headers, body.to_json())


def read(response: httpx.Response, _check: Check, request_id: str) -> apis.ParsedAnswer:
    """Read a 200 response (ContractBreachError: it contradicts itself or the API reference in any way)."""
    apis.require_json(response)
    apis.require_echo(response, CORRELATION_HEADER, request_id)
    try:
        report = parse(NameVerificationResponse, response.content).data.verification_report
    except ValueError:
        raise apis.ContractBreachError(
            Sentence("apis.not_of_model", model="NameVerificationResponse")
        ) from None
    match report.matched, report.reason_code, report.name or None:  # an empty name is none
        case True, None, None:
            return apis.ParsedAnswer(apis.MATCH_CODE, None)
        case False, ReasonCode() as code, str() as name if code in CLOSE_MATCHES and apis.is_visible(name):
            return apis.ParsedAnswer(code.value, name)
        case False, ReasonCode() as code, None if code not in CLOSE_MATCHES:
            return apis.ParsedAnswer(code.value, None)
        case _:
            raise apis.ContractBreachError(
                Sentence("apis.contradiction", members=["matched", "reasonCode", "name"])
            )


_NOT_COMPARED = Sentence("explain.name_not_compared")
_COMPARE_DETAILS = Sentence("explain.compare_details")


def _not_possible(
    action: Action, reason: Sentence, advice: Sentence | None = None, *, not_said: Sentence = _NOT_COMPARED
) -> Meaning:
    return Meaning(Outcome.NOT_POSSIBLE, action, reason, not_said, advice)


def _other_type(reason: Sentence, advice: Sentence) -> Meaning:
    not_said = Sentence("explain.type_differs")
    return Meaning(Outcome.NO_MATCH, Action.FIX_ACCOUNT_TYPE, reason, not_said, advice)


def _close_name_other_type(reason: Sentence) -> Meaning:
    action, advice = Action.FIX_NAME_AND_ACCOUNT_TYPE, Sentence("explain.judge_names_and_type")
    return apis.CLOSE_NAME._replace(action=action, reason=reason, advice=advice)


_MEANINGS: dict[str, Meaning] = {
    apis.MATCH_CODE: Meaning(
        Outcome.MATCH, Action.PAY, Sentence("answer.name_belongs"), Sentence("explain.match_of_cop")
    ),
    ReasonCode.ANNM: Meaning(
        Outcome.NO_MATCH, Action.ASK_PAYEE, Sentence("answer.other_name"), Sentence("explain.no_match_of_cop")
    ),
    ReasonCode.AC01: _not_possible(
        Action.CHECK_ACCOUNT_DETAILS,
        Sentence("answer.ac01"),
        _COMPARE_DETAILS,
        not_said=Sentence("explain.account_unknown"),
    ),
    ReasonCode.MBAM: apis.CLOSE_NAME,
    ReasonCode.BANM: _other_type(Sentence("answer.banm"), Sentence("explain.change_type_to_business")),
    ReasonCode.PANM: _other_type(Sentence("answer.panm"), Sentence("explain.change_type_to_personal")),
    ReasonCode.BAMM: _close_name_other_type(Sentence("answer.bamm")),
    ReasonCode.PAMM: _close_name_other_type(Sentence("answer.pamm")),
    ReasonCode.OPTO: _not_possible(Action.ASK_PAYEE, Sentence("answer.opto")),
    ReasonCode.ACNS: _not_possible(Action.ASK_PAYEE, Sentence("answer.acns")),
    ReasonCode.IVCR: _not_possible(
        Action.ADD_SECONDARY_REFERENCE, Sentence("answer.ivcr"), Sentence("explain.ask_for_reference")
    ),
    ReasonCode.CASS: _not_possible(
        Action.GET_NEW_ACCOUNT_DETAILS,
        Sentence("answer.cass"),
        Sentence("explain.ask_for_new_account"),
        not_said=Sentence("explain.name_or_new_account"),
    ),
    ReasonCode.SCNS: _not_possible(Action.ASK_PAYEE, Sentence("answer.scns")),
    ReasonCode.SECMISS: _not_possible(Action.ADD_SECONDARY_REFERENCE, Sentence("answer.secmiss")),
    ReasonCode.FOURHUN: _not_possible(
        Action.CHECK_ACCOUNT_DETAILS,
        Sentence("answer.fourhun"),
        Sentence("explain.check_details"),
        not_said=Sentence("explain.bank_did_not_take"),
    ),
    ReasonCode.NOROUTE: _not_possible(
        Action.CHECK_ACCOUNT_DETAILS,
        Sentence("answer.noroute"),
        _COMPARE_DETAILS,
        not_said=Sentence("explain.no_such_sort_code"),
    ),
    ReasonCode.HTTPERR: _not_possible(Action.RETRY_LATER, Sentence("answer.httperr"), apis.RETRY_ELSEWHERE),
}


def responder(check: Check) -> str:
    """Return the bank's sort code, the first six digits of the account."""
    return check.account[:6]


API = apis.Api(
    name=ApiName.COP,
    responder_wait_s=7.0,
    request=request,
    read=read,
    meanings={(apis.Basis.NAME, code): meaning for code, meaning in _MEANINGS.items()},
    responder=responder,
)
DECLARATION = apis.ApiDeclaration(
    name=ApiName.COP,
    key="cop",
    form="gateway",
    section=Cop,
    api=lambda _section: API,
    takes=frozenset({"name", "account_type", "secondary_reference"}),
    routes={
        RouteReason.GB_IBAN: apis.Route(pl.col("iban").str.slice(8)),
        RouteReason.SORT_CODE: apis.Route(pl.concat_str("sort_code", "account_number")),
    },
    meanings=API.meanings,
    asked={apis.Basis.NAME: "Confirmation of Payee"},
)
