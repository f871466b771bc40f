"""The outcome file: the columns appended to the payments, and the words in them."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Outcome(StrEnum):
    """The outcome of one payment."""

    MATCH = "match"
    CLOSE_MATCH = "close_match"
    NO_MATCH = "no_match"
    NOT_POSSIBLE = "not_possible"
    REJECTED = "rejected"
    DEFERRED = "deferred"
    UNANSWERED = "unanswered"


UNDECIDED = (Outcome.DEFERRED, Outcome.UNANSWERED)  # the outcomes that a later run may change


class Action(StrEnum):
    """The next step of the user."""

    PAY = "pay"
    FIX_NAME = "fix_name"
    FIX_ACCOUNT_TYPE = "fix_account_type"
    FIX_NAME_AND_ACCOUNT_TYPE = "fix_name_and_account_type"
    CHECK_ACCOUNT_DETAILS = "check_account_details"
    ADD_SECONDARY_REFERENCE = "add_secondary_reference"
    GET_NEW_ACCOUNT_DETAILS = "get_new_account_details"
    ASK_PAYEE = "ask_payee"
    RETRY_LATER = "retry_later"
    CORRECT_ROW = "correct_row"


class WarningCode(StrEnum):
    """A warning about a payment, which does not change its outcome."""

    BANK_DIFFERS = "BANK_DIFFERS"  # the report of the payer's bank differs from the check
    ACCOUNT_CHANGED = "ACCOUNT_CHANGED"  # an earlier run paid this payee to another account
    NAME_CHANGED = "NAME_CHANGED"  # an earlier run paid this account under another name
    PAYEE_NEW = "PAYEE_NEW"  # no earlier run has its payee or its account
    PAYMENT_REPEATED = "PAYMENT_REPEATED"  # repeats an earlier payment
    MANY_NAMES = "MANY_NAMES"  # its account is checked with too many names
    ENUMERATION = "ENUMERATION"  # one of several unknown accounts with consecutive numbers
    MIXED_SCRIPTS = "MIXED_SCRIPTS"  # a word mixes two alphabets
    MODULUS_OLD_TABLES = "MODULUS_OLD_TABLES"  # its account fails by tables older than a year
    NAME_NOT_LATIN = "NAME_NOT_LATIN"  # has letters that VoP messages need not carry
    NAME_CLEANED = "NAME_CLEANED"  # checked without meaningless characters
    NAME_DAMAGED = "NAME_DAMAGED"  # damaged in the file, and checked as entered
    ACCOUNT_TYPE_DEFAULT = "ACCOUNT_TYPE_DEFAULT"  # names an account product, so the default applies
    BIC_OTHER_COUNTRY = "BIC_OTHER_COUNTRY"  # the BIC's country is not the account's
    UK_ACCOUNT_CURRENCY = "UK_ACCOUNT_CURRENCY"  # a sort code and account number, but not in pounds
    NAME_TRUNCATED = "NAME_TRUNCATED"  # fills its field in the payment format


ABOUT_THE_PAYEE = (
    WarningCode.BANK_DIFFERS,
    WarningCode.ACCOUNT_CHANGED,
    WarningCode.NAME_CHANGED,
    WarningCode.PAYMENT_REPEATED,
    WarningCode.MANY_NAMES,
    WarningCode.ENUMERATION,
    WarningCode.MIXED_SCRIPTS,
    WarningCode.NAME_DAMAGED,
)
"""Warnings that make a person review even a match, the most serious first. The others are about how a file
was read, or what its format can hold.
"""


class ApiName(StrEnum):
    """The name-check API that was, or would have been, asked."""

    COP = "cop"
    VOP_GATEWAY = "vop_gateway"
    VOP_STANDARD = "vop_standard"
    BANK_REPORT = "bank_report"  # no API: the payer's bank checked the file, and its report was imported


VOP = (ApiName.VOP_GATEWAY, ApiName.VOP_STANDARD)  # the two forms of Verification of Payee


class Environment(StrEnum):
    """The kind of server that answered."""

    SANDBOX = "sandbox"
    TEST = "test"
    PRODUCTION = "production"
    BANK = "bank"  # no server: the payer's bank


Asked = Literal[Environment.SANDBOX, Environment.TEST, Environment.PRODUCTION]
"""The servers that a profile can name."""


class OutcomeColumns(BaseModel):
    """The columns appended to every payment row, in this order, after its unchanged columns."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    check_outcome: Outcome = Field(description="The result of the check.")
    check_code: str = Field(description="The code behind it, verbatim where a server gave one.")
    check_reason: str = Field(description="What the code means, as a sentence.")
    check_action: Action = Field(description="What a person does next.")
    check_matched_name: str | None = Field(description="The account's name, on a close match.")
    check_api: ApiName | None = Field(description="The API that checks the payment; empty if none does.")
    check_environment: Environment = Field(description="The kind of server that answered.")
    check_id: str | None = Field(description="Correlation id of the accepted answer.")
    check_time: str | None = Field(description="When the answer came, UTC, ISO 8601 with Z.")
    check_attempts: int = Field(
        ge=0,
        description="Requests for this question; a pause may have stopped one of them before it was sent.",
    )


COLUMNS: tuple[str, ...] = tuple(OutcomeColumns.model_fields)
PLACE_COLUMNS = ("check_row", "check_place")
"""Columns before `OutcomeColumns` in attention.csv, which has only some rows: row number and position."""
