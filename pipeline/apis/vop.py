"""Verification of Payee: the European name check by IBAN, in its two forms.

A request in the gateway form contains the party and the IBAN; in the standard form also both banks. Answers
and their meanings are the same. Source: API reference, VoP Gateway 1.0.2 and VoP Standard 1.0.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field, StringConstraints

from pipeline import apis
from pipeline.apis import Basis, ParsedAnswer
from pipeline.frames import Check, Meaning, RouteReason
from pipeline.sections import MutualTls, Oauth, Server
from pipeline.wording import Sentence
from schemas import vop
from schemas.outcomes import Action, ApiName, Outcome
from schemas.strict import parse
from schemas.vop import IdMatch, NameMatch

if TYPE_CHECKING:
    import httpx

GATEWAY_PATH = "/vopgateway/v1/payee-verifications"
STANDARD_PATH = "/vop/v1/payee-verifications"
CORRELATION_HEADER = "X-Request-ID"
RESPONDER_WAIT_S = 5.0


class VopGateway(Oauth):
    """The section of the VoP Gateway."""

    name: ClassVar[ApiName] = ApiName.VOP_GATEWAY

    api: Literal["gateway"]


class VopStandard(MutualTls):
    """The section of the VoP Standard API: mutual TLS, with both banks named in each request."""

    name: ClassVar[ApiName] = ApiName.VOP_STANDARD

    api: Literal["standard"]
    requesting_bic: vop.Bic11
    bic_table: dict[Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}[A-Z0-9]{1,30}$")], vop.Bic11] = (
        Field(default_factory=dict)
    )
    """Start of an IBAN without its check digits, such as DE10010010 -> BIC11 of its bank."""
    send_remittance: bool = False

    @property
    def client(self) -> str:
        """Our client id at the server."""
        return self.requesting_bic

    @property
    def banks(self) -> Mapping[str, str]:
        """The user's own table of banks."""
        return self.bic_table

    @property
    def sends_remittance(self) -> bool:
        """True if requests carry the payment's reference."""
        return self.send_remittance


def gateway_request(check: Check, request_id: str, time: str) -> httpx.Request:
    """Build the request in the gateway form, for a check with a name or an identification.

    `request_id` is a UUID v4 in lower case; `time` is UTC, as `YYYY-MM-DDThh:mm:ss.sssZ`.
    """
    body = vop.GatewayRequest(party=_party(check), party_account=vop.PartyAccount(iban=check.account))
    return apis.post(GATEWAY_PATH, _headers(request_id, time), body.to_json())


def standard_request(requesting_bic: str, check: Check, request_id: str, time: str) -> httpx.Request:
    """Build the request in the standard form, which names both banks by BIC11; else as `gateway_request`."""
    if check.responder_bic is None:
        raise AssertionError("a VoP Standard check has the responder's BIC")
    body = vop.StandardRequest(
        party=_party(check),
        party_account=vop.PartyAccount(iban=check.account),
        party_agent=_agent(check.responder_bic),
        requesting_agent=_agent(requesting_bic),
        unstructured_remittance_information=None if check.remittance is None else [check.remittance],
    )
    return apis.post(STANDARD_PATH, _headers(request_id, time), body.to_json())


def read(response: httpx.Response, check: Check, request_id: str) -> ParsedAnswer:
    """Read a 200 response (ContractBreachError: it contradicts itself or the API reference in any way).

    A name is answered in `partyNameMatch`, an identification in `partyIdMatch`. The other member must be
    absent or NOAP.
    """
    apis.require_json(response)
    apis.require_echo(response, CORRELATION_HEADER, request_id)
    try:
        answer = parse(vop.VerificationOfPayeeResponse, response.content)
    except ValueError:
        raise apis.ContractBreachError(
            Sentence("apis.not_of_model", model="VerificationOfPayeeResponse")
        ) from None
    told = answer.party_name_match, answer.matched_name or None, answer.party_id_match
    match apis.basis_of(check), *told:
        case Basis.NAME, NameMatch.CMTC, str() as name, None | IdMatch.NOAP if apis.is_visible(name):
            return ParsedAnswer(NameMatch.CMTC.value, name)
        case (
            Basis.NAME,
            (NameMatch.MTCH | NameMatch.NMTC | NameMatch.NOAP) as code,
            None,
            None | IdMatch.NOAP,
        ):
            return ParsedAnswer(code.value, None)
        case Basis.IDENTIFICATION, None | NameMatch.NOAP, None, IdMatch() as code:
            return ParsedAnswer(code.value, None)
        case _:
            members = ("partyNameMatch", "matchedName", "partyIdMatch")
            raise apis.ContractBreachError(Sentence("apis.contradiction", members=members))


def _headers(request_id: str, time: str) -> dict[str, str]:
    return {"Content-Type": "application/json", CORRELATION_HEADER: request_id, "X-Request-Timestamp": time}


def _agent(bic: str) -> vop.Agent:
    return vop.Agent(financial_institution_id=vop.FinancialInstitutionId(bicfi=bic))


def _party(check: Check) -> vop.Party:
    if check.name is not None:
        return vop.Party(name=check.name)
    others = None
    if check.organisation_id is not None:
        scheme = check.organisation_id_scheme
        other = vop.OtherId(
            identification=check.organisation_id,
            scheme_name_code=None if scheme is None else vop.SchemeCode(scheme),
            issuer=check.organisation_id_issuer,
        )
        others = [other]
    organisation = vop.OrganisationId(lei=check.lei, any_bic=check.organisation_bic, others=others)
    return vop.Party(identification=vop.PartyIdentification(organisation_id=organisation))


_UNDISCLOSED = Sentence("explain.account_unknown_or_excluded")

_MEANINGS: dict[tuple[Basis, str], Meaning] = {
    (Basis.NAME, apis.MATCH_CODE): Meaning(
        Outcome.MATCH, Action.PAY, Sentence("answer.name_belongs"), Sentence("explain.payee_is_owed")
    ),
    (Basis.NAME, NameMatch.CMTC): apis.CLOSE_NAME,
    (Basis.NAME, NameMatch.NMTC): Meaning(
        Outcome.NO_MATCH, Action.ASK_PAYEE, Sentence("answer.other_name"), Sentence("explain.fraud_or_owner")
    ),
    (Basis.NAME, NameMatch.NOAP): Meaning(
        Outcome.NOT_POSSIBLE, Action.ASK_PAYEE, Sentence("answer.noap"), _UNDISCLOSED
    ),
    (Basis.IDENTIFICATION, apis.MATCH_CODE): Meaning(
        Outcome.MATCH, Action.PAY, Sentence("answer.id_mtch"), Sentence("explain.owed_name_not_sent")
    ),
    (Basis.IDENTIFICATION, IdMatch.NMTC): Meaning(
        Outcome.NO_MATCH,
        Action.ASK_PAYEE,
        Sentence("answer.id_nmtc"),
        Sentence("explain.fraud_name_not_sent"),
        Sentence("explain.compare_identification"),
    ),
    (Basis.IDENTIFICATION, IdMatch.NOAP): Meaning(
        Outcome.NOT_POSSIBLE, Action.ASK_PAYEE, Sentence("answer.id_noap"), _UNDISCLOSED
    ),
}


def responder(check: Check) -> str:
    """Return the bank's BIC, or else the IBAN's country and bank code: the gateway does not name its bank."""
    return check.responder_bic or check.account[:2] + check.account[4:8]


GATEWAY = apis.Api(ApiName.VOP_GATEWAY, RESPONDER_WAIT_S, gateway_request, read, _MEANINGS, responder)


def standard(requesting_bic: str) -> apis.Api:
    """Return the standard form of the API, for a requester with this BIC11."""
    build = partial(standard_request, requesting_bic)
    return apis.Api(ApiName.VOP_STANDARD, RESPONDER_WAIT_S, build, read, _MEANINGS, responder)


def _standard_api(section: Server) -> apis.Api:
    assert isinstance(section, VopStandard)
    return standard(section.requesting_bic)


GATEWAY_DECLARATION = apis.ApiDeclaration(
    name=ApiName.VOP_GATEWAY,
    key="vop",
    form="gateway",
    section=VopGateway,
    api=lambda _section: GATEWAY,
    takes=frozenset({"name", *apis.IDENTIFICATION}),
    routes={RouteReason.IBAN: apis.Route(pl.col("iban"))},
    meanings=_MEANINGS,
    asked={
        Basis.NAME: "Verification of Payee, asked by name",
        Basis.IDENTIFICATION: "Verification of Payee, asked by identification",
    },
)
STANDARD_DECLARATION = GATEWAY_DECLARATION._replace(
    name=ApiName.VOP_STANDARD,
    form="standard",
    section=VopStandard,
    api=_standard_api,
    takes=GATEWAY_DECLARATION.takes | {"responder_bic", "remittance"},
)
BANK_REPORT = apis.ReportDeclaration(
    name=ApiName.BANK_REPORT,
    takes=GATEWAY_DECLARATION.takes,
    routes={
        RouteReason.IBAN: apis.Route(pl.col("iban")),
        RouteReason.GB_IBAN: apis.Route(pl.col("iban")),
        RouteReason.SORT_CODE: apis.Route(pl.concat_str("sort_code", "account_number")),
    },
    meanings=_MEANINGS,
)
"""A report by the payer's own bank: it uses the codes of VoP, even for UK accounts."""
