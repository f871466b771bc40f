"""Verification of Payee, VoP Gateway 1.0.2 and VoP Standard 1.0.0: the name check by IBAN.

Source: API reference, "VoP Gateway and VoP Standard: VerificationOfPayeeRequest",
"VerificationOfPayeeResponse" and "VoP outcomes". Where the reference says "not shown", docs/api-notes.md
records our choice.
"""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from schemas.strict import Document

Bic11 = Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}[A-Z0-9]{3}$")]
Lei = Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]{18}[0-9]{2}$")]
Iban = Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}[0-9]{2}[A-Z0-9]{1,30}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=140)]


class SchemeCode(StrEnum):
    """Kinds of organisation identification: the fourteen codes of the API reference."""

    BANK = "BANK"
    CBID = "CBID"
    CHID = "CHID"
    CINC = "CINC"
    COID = "COID"
    CUST = "CUST"
    DUNS = "DUNS"
    EMPL = "EMPL"
    GS1G = "GS1G"
    SREN = "SREN"
    SRET = "SRET"
    TXID = "TXID"
    BDID = "BDID"
    BOID = "BOID"


class NameMatch(StrEnum):
    """How the name relates to the account."""

    MTCH = "MTCH"
    CMTC = "CMTC"
    NMTC = "NMTC"
    NOAP = "NOAP"


class IdMatch(StrEnum):
    """How the identification relates to the account; there is no close match."""

    MTCH = "MTCH"
    NMTC = "NMTC"
    NOAP = "NOAP"


class Request(Document):
    """A part of a request; members outside the reference are mistakes."""

    model_config = ConfigDict(extra="forbid")


class OtherId(Request):
    """An identification that is neither an LEI nor a BIC, such as a tax number."""

    identification: Text | None = None
    scheme_name_code: SchemeCode | None = None
    scheme_name_proprietary: Text | None = None
    issuer: Text | None = None


class OrganisationId(Request):
    """An organisation's identifications."""

    lei: Lei | None = None
    any_bic: Bic11 | None = Field(None, alias="anyBIC")
    others: Annotated[list[OtherId], Field(min_length=1)] | None = None


class PartyIdentification(Request):
    """The holder of the organisation's identification."""

    organisation_id: OrganisationId | None = None


class Party(Request):
    """The payee: a name, an identification, or both."""

    name: Text | None = None
    identification: PartyIdentification | None = None

    @model_validator(mode="after")
    def _has_a_name_or_an_identification(self) -> Self:
        if self.name is None and self.identification is None:
            raise ValueError("party needs a name or an identification")
        return self


class PartyAccount(Request):
    """The payee's account."""

    iban: Iban


class FinancialInstitutionId(Request):
    """A bank, identified by its BIC of eleven characters."""

    bicfi: Bic11


class Agent(Request):
    """A bank that takes part in the check."""

    financial_institution_id: FinancialInstitutionId


class GatewayRequest(Request):
    """The body of a VoP Gateway request; the gateway finds the responder from the IBAN."""

    party: Party
    party_account: PartyAccount


class StandardRequest(GatewayRequest):
    """The body of a VoP Standard request, which names both banks; this client always sends both."""

    party_agent: Agent | None = None
    requesting_agent: Agent | None = None
    unstructured_remittance_information: list[Text] | None = None
    """Remittance text; the reference does not show the item type, assumed to be a string."""


class VerificationOfPayeeResponse(Document):
    """The body of a Verification of Payee response (HTTP 200).

    A check by name is answered with `party_name_match`, a check by identification with
    `party_id_match`. `matched_name` comes with CMTC, and only then.
    """

    party_name_match: NameMatch | None = None
    party_id_match: IdMatch | None = None
    matched_name: str | None = None
