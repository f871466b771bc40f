"""Decisions, the results of `precheck fix` and `precheck split`, and who decided what.

These documents hold no payees' names and no account numbers.
"""

from enum import StrEnum

from pydantic import Field, RootModel

from schemas.row_positions import RowPositions
from schemas.strict import OwnDocument, Spoken
from schemas.summary import Money, WarningCount


class Verdict(StrEnum):
    """The policy's verdict on an outcome, a code or a warning."""

    RELEASE = "release"
    REVIEW = "review"
    HOLD = "hold"


class Decision(StrEnum):
    """A person's decision about a row, in the workbook."""

    RELEASE = "release"
    FIX = "fix"
    HOLD = "hold"


class Acceptance(StrEnum):
    """Kinds of corrections that a user accepts for all rows together."""

    CLOSE_MATCH = "close_match"  # replace the file's name by the bank's
    ACCOUNT_TYPE = "account_type"  # change to the other account type


class ControlTotal(OwnDocument):
    """Rows and amounts of a set of payments."""

    row_count: int
    totals: list[Money]  # by currency; rows without a readable amount are only in `row_count`


class PaymentFile(ControlTotal):
    """A payment file that was written and read back."""

    path: str
    sha256: str


class Fix(OwnDocument):
    """The result of `precheck fix`."""

    simulated: bool
    corrections: str  # the path of corrections.csv
    row_count: int  # rows that need a correction
    correctable_count: int  # rows among them whose corrections are all known and have columns
    corrected: PaymentFile | None  # None if no correction was accepted
    corrected_rows: list[int]
    positions: RowPositions | None = None  # the positions of the rows in the file; None if it has no lines
    notes: list[Spoken] = []  # for each possible objection of a bank, and for what the file lacks
    refused_rows: list[int]  # rows whose requested correction is impossible, for a reason in corrections.csv
    before_next: Spoken  # what a person must do before `next_step`
    next_step: str  # the command to run next


class HoldReason(OwnDocument):
    """Held rows with one reason."""

    why: Spoken
    row_count: int


class Split(OwnDocument):
    """The result of `precheck split`."""

    simulated: bool
    policy: dict[str, Verdict]  # outcome, code or warning -> verdict, as applied; a code outranks its outcome
    input: ControlTotal
    release: PaymentFile | None  # None if no row may be paid
    hold: PaymentFile | None  # None if no row is held
    positions: RowPositions | None = None  # the positions of the rows in the file; None if it has no lines
    differences: list[Spoken] = []  # for each difference between the file's own figures and its payments
    notes: list[Spoken] = []  # a sentence for each possible objection of a bank to the files
    released_warnings: list[WarningCount]  # warnings on released rows
    how_to_hold: Spoken | None  # how to hold the rows with a warning; None if none was released
    reasons: str  # the path of hold_reasons.csv
    held: list[HoldReason]  # reasons with the most rows first
    unheeded_rows: list[int]  # decided to be released, but held; approvals.json records the refusal


class Approval(OwnDocument):
    """One person's decision about some rows, and who approved the resulting file."""

    by: str = Field(description="The person who decided.")
    time: str = Field(description="Time of the decision, UTC, ISO 8601 with Z.")
    what: str = Field(description="The decision and its file, in words.")
    why: str = Field(description="The reason that the person gave.")
    rows: list[int] = Field(description="The rows that the decision is about.")
    decision: Decision | None = Field(
        None, description="The decision, if it took effect; null if it was refused or not recorded."
    )
    approved_by: str = Field(description="The person who had the file made.")
    approved_at: str = Field(description="Time of the approval, UTC, ISO 8601 with Z.")
    self_approved: bool = Field(
        description="False only if the approver is none of the deciders, and all had to sign in."
    )
    claimed_by: str | None = Field(
        None,
        description="The decider named in the workbook: an unverified claim; null if it names no one.",
    )


class Act(StrEnum):
    """Acts that shape a payment file at a desk; a user who did one cannot approve the file."""

    DECIDED = "decided"
    CORRECTED = "corrected"
    UPLOADED = "uploaded"
    MAPPED = "mapped"
    CHOSE_PROFILE = "chose the profile"
    ALLOWED_MANY_NAMES = "allowed many names"
    HANDED_OVER = "handed over"
    CHECKED_AGAIN = "checked again"


class Shaped(OwnDocument):
    """A person's contribution to a payment file or its original."""

    by: str
    act: Act
    file: str = Field(description="SHA-256 of the file.")
    time: str = Field(description="Time of the first such act, UTC, ISO 8601 with Z.")


class Approvals(RootModel[list[Approval]]):
    """`approvals.json`: an append-only list of all decisions, in order."""
