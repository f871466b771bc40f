"""Confirmation of Payee: the UK name check by sort code and account number.

Source: API reference, CoP Gateway 1.0.1.
"""

from pipeline.apis import (
    MATCH_CODE,
    Api,
    Basis,
    ContractBreachError,
    Meaning,
    Reading,
    require_echo,
    require_json,
)
from pipeline.frames import Check
from schemas.cop import (
    AccountType,
    NameVerification,
    NameVerificationRequest,
    NameVerificationResponse,
    ReasonCode,
)
from schemas.outcomes import Action, ApiName, Outcome
from schemas.strict import parse
from schemas.wire import Request, Response

PATH = "/copgateway/v1.0/confirmation-payee/name-verification"
CORRELATION_HEADER = "x-fapi-interaction-id"
CLOSE_MATCHES = frozenset({ReasonCode.MBAM, ReasonCode.BAMM, ReasonCode.PAMM})
ACCOUNT_TYPES_FOUND = {
    ReasonCode.BANM: AccountType.BUSINESS,
    ReasonCode.BAMM: AccountType.BUSINESS,
    ReasonCode.PANM: AccountType.PERSONAL,
    ReasonCode.PAMM: AccountType.PERSONAL,
}
"""What the account is, where the code says that it is of the other type than was asked for."""


def request(check: Check, request_id: str, time: str) -> Request:
    """Build the request of one check.

    Args:
        check: a question for CoP, with a name and an account type.
        request_id: a UUID v4, in lower case.
        time: UTC with milliseconds, `YYYY-MM-DDThh:mm:ss.sssZ`.
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
    return Request(PATH, headers, body.to_json())


def read(response: Response, _check: Check, request_id: str) -> Reading:
    """Read a response with status 200.

    Raises:
        ContractBreachError: the response contradicts itself or the API reference in any way.
    """
    require_json(response)
    require_echo(response, CORRELATION_HEADER, request_id)
    try:
        report = parse(NameVerificationResponse, response.body).data.verification_report
    except ValueError:
        raise ContractBreachError("the body is not a NameVerificationResponse") from None
    match report.matched, report.reason_code, report.name:
        case True, None, None:
            return Reading(MATCH_CODE, None)
        case False, ReasonCode() as code, str() as name if code in CLOSE_MATCHES and name.strip():
            return Reading(code.value, name)
        case False, ReasonCode() as code, None if code not in CLOSE_MATCHES:
            return Reading(code.value, None)
        case _:
            raise ContractBreachError("matched, reasonCode and name contradict one another")


_MEANINGS: dict[str, Meaning] = {
    MATCH_CODE: Meaning(Outcome.MATCH, Action.PAY, "The name belongs to the account."),
    ReasonCode.ANNM: Meaning(
        Outcome.NO_MATCH, Action.ASK_PAYEE, "The name on the account is a different one."
    ),
    ReasonCode.AC01: Meaning(
        Outcome.NOT_POSSIBLE,
        Action.CHECK_ACCOUNT_DETAILS,
        "The responder does not know the account, or does not disclose its name.",
    ),
    ReasonCode.MBAM: Meaning(
        Outcome.CLOSE_MATCH, Action.FIX_NAME, "The name is close to the name on the account."
    ),
    ReasonCode.BANM: Meaning(
        Outcome.NO_MATCH,
        Action.FIX_ACCOUNT_TYPE,
        "The name matches a business account, but a personal account was given.",
    ),
    ReasonCode.PANM: Meaning(
        Outcome.NO_MATCH,
        Action.FIX_ACCOUNT_TYPE,
        "The name matches a personal account, but a business account was given.",
    ),
    ReasonCode.BAMM: Meaning(
        Outcome.CLOSE_MATCH,
        Action.FIX_NAME_AND_ACCOUNT_TYPE,
        "The name is close to that of a business account, but a personal account was given.",
    ),
    ReasonCode.PAMM: Meaning(
        Outcome.CLOSE_MATCH,
        Action.FIX_NAME_AND_ACCOUNT_TYPE,
        "The name is close to that of a personal account, but a business account was given.",
    ),
    ReasonCode.OPTO: Meaning(
        Outcome.NOT_POSSIBLE, Action.ASK_PAYEE, "The account has opted out of Confirmation of Payee."
    ),
    ReasonCode.ACNS: Meaning(
        Outcome.NOT_POSSIBLE, Action.ASK_PAYEE, "The responder does not check accounts of this type."
    ),
    ReasonCode.IVCR: Meaning(
        Outcome.NOT_POSSIBLE,
        Action.ADD_SECONDARY_REFERENCE,
        "The secondary reference is not one that the responder knows.",
    ),
    ReasonCode.CASS: Meaning(
        Outcome.NOT_POSSIBLE,
        Action.GET_NEW_ACCOUNT_DETAILS,
        "The account was moved to another bank by the Current Account Switch Service.",
    ),
    ReasonCode.SCNS: Meaning(
        Outcome.NOT_POSSIBLE, Action.ASK_PAYEE, "The responder does not check accounts of this sort code."
    ),
    ReasonCode.SECMISS: Meaning(
        Outcome.NOT_POSSIBLE,
        Action.ADD_SECONDARY_REFERENCE,
        "The account is checked only together with a secondary reference, and none was given.",
    ),
    ReasonCode.FOURHUN: Meaning(
        Outcome.NOT_POSSIBLE, Action.ASK_PAYEE, "The responder refused the request as malformed."
    ),
    ReasonCode.NOROUTE: Meaning(
        Outcome.NOT_POSSIBLE,
        Action.CHECK_ACCOUNT_DETAILS,
        "No bank that takes part was found for this sort code.",
    ),
    ReasonCode.HTTPERR: Meaning(
        Outcome.NOT_POSSIBLE, Action.RETRY_LATER, "The responder had a technical error."
    ),
}

API = Api(
    name=ApiName.COP,
    responder_wait_s=7.0,
    request=request,
    read=read,
    meanings={(Basis.NAME, code): meaning for code, meaning in _MEANINGS.items()},
)
