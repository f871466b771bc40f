"""Confirmation of Payee, CoP Gateway 1.0.1: the name check by sort code and account number.

Source: API reference, "CoP Gateway: NameVerificationRequest", "NameVerificationResponse" and
"CoP Gateway outcomes".
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import ConfigDict, StringConstraints

from schemas.strict import Document

NAME_LENGTH_MAX = 140
SECONDARY_REFERENCE_LENGTH_MAX = 140


class AccountType(StrEnum):
    """The account type that the payer states."""

    PERSONAL = "Personal"
    BUSINESS = "Business"


class ReasonCode(StrEnum):
    """Why a check was not a full match: the sixteen codes of the API reference."""

    ANNM = "ANNM"
    AC01 = "AC01"
    MBAM = "MBAM"
    BANM = "BANM"
    PANM = "PANM"
    BAMM = "BAMM"
    PAMM = "PAMM"
    OPTO = "OPTO"
    ACNS = "ACNS"
    IVCR = "IVCR"
    CASS = "CASS"
    SCNS = "SCNS"
    SECMISS = "SECMISS"
    FOURHUN = "FOURHUN"
    NOROUTE = "NOROUTE"
    HTTPERR = "HTTPERR"


class NameVerification(Document):
    """The data of a request."""

    model_config = ConfigDict(extra="forbid")

    scheme_name: Literal["SortCodeAccountNumber"]
    account_type: AccountType
    identification: Annotated[str, StringConstraints(pattern=r"^[0-9]{14}$")]
    """The 6-digit sort code followed by the 8-digit account number."""
    name: Annotated[str, StringConstraints(min_length=1, max_length=NAME_LENGTH_MAX)]
    secondary_identification: (
        Annotated[str, StringConstraints(min_length=1, max_length=SECONDARY_REFERENCE_LENGTH_MAX)] | None
    ) = None
    """The secondary reference, such as a building society roll number."""


class NameVerificationRequest(Document):
    """The body of a Confirmation of Payee request."""

    model_config = ConfigDict(extra="forbid")

    data: NameVerification


class VerificationReport(Document):
    """The responder's answer.

    A full match has no reason code, any other outcome has one, and only a close match has a name. Callers
    must check these rules.
    """

    matched: bool
    reason_code: ReasonCode | None = None
    name: str | None = None


class VerificationResult(Document):
    """The data of a response."""

    verification_report: VerificationReport


class NameVerificationResponse(Document):
    """The body of a Confirmation of Payee response (HTTP 200)."""

    data: VerificationResult
