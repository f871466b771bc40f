"""The words in which rows are decided, what `precheck fix` and `precheck split` did, and who decided what.

No document here holds the name of a payee or an account number.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, RootModel

from schemas.row_positions import RowPositions
from schemas.strict import OwnDocument, Spoken
from schemas.summary import Money, WarningCount


class Verdict(StrEnum):
    """What a policy does with an outcome, a code or a warning."""

    RELEASE = "release"
    REVIEW = "review"
    HOLD = "hold"


class Decision(StrEnum):
    """What a person decides about a row, in the workbook."""

    RELEASE = "release"
    FIX = "fix"
    HOLD = "hold"


class Acceptance(StrEnum):
    """Which corrections are taken over, all of a kind at once."""

    CLOSE_MATCH = "close_match"  # the bank's name instead of the one in the file
    ACCOUNT_TYPE = "account_type"  # the other account type


class ControlTotal(OwnDocument):
    """Rows and money of a set of payments."""

    row_count: int
    totals: list[Money]
    """By currency; rows without a readable amount are in `row_count` only."""


class PaymentFile(ControlTotal):
    """A written payment file, as read back."""

    path: str
    sha256: str


class Fix(OwnDocument):
    """What `precheck fix` found and wrote."""

    simulated: bool
    corrections: str
    """The path of corrections.csv."""
    row_count: int
    """Rows that need a correction."""
    correctable_count: int
    """Rows among them whose corrections are all known and have a column."""
    corrected: PaymentFile | None
    """None if no correction was accepted."""
    corrected_rows: list[int]
    places: RowPositions | None = None
    """Where the rows stand in the file; None if it has no lines."""
    notes: list[Spoken] = []
    """What a bank may have against the file, and what of the input it lacks: a sentence each."""
    refused_rows: list[int]
    """Rows that were to be corrected and cannot be, for a reason that corrections.csv gives."""
    before_next: Spoken
    """What a person does before it."""
    next_step: str
    """The command that continues."""


class HoldReason(OwnDocument):
    """Held rows that have one reason."""

    why: Spoken
    row_count: int


class Split(OwnDocument):
    """What `precheck split` wrote."""

    simulated: bool
    policy: dict[str, Verdict]
    """Outcome, code or warning -> verdict, as it was applied; a code goes before its outcome."""
    input: ControlTotal
    release: PaymentFile | None
    """None if no row may be paid."""
    hold: PaymentFile | None
    """None if no row is held."""
    places: RowPositions | None = None
    """Where the rows stand in the file; None if it has no lines."""
    differences: list[Spoken] = []
    """Where the file's own figures differ from its payments: a sentence each."""
    notes: list[Spoken] = []
    """What a bank may have against the files: a sentence each."""
    released_warnings: list[WarningCount]
    """Warnings on released rows."""
    how_to_hold: Spoken | None
    """How to hold the rows with a warning; None if none of them was released."""
    reasons: str
    """The path of hold_reasons.csv."""
    held: list[HoldReason]
    """Most rows first."""
    unheeded_rows: list[int]
    """Rows that a person decided to release, and that stay held; approvals.json records the refusal."""


class Approval(OwnDocument):
    """One decision of one person about some rows, and who approved the file that was made by it."""

    by: Annotated[str, Field(description="Who decided.")]
    time: Annotated[str, Field(description="When that was decided, UTC, ISO 8601 with Z.")]
    what: Annotated[str, Field(description="What was decided, and for which file.")]
    why: Annotated[str, Field(description="The reason that was given.")]
    rows: Annotated[list[int], Field(description="The rows that it is about.")]
    decision: Annotated[
        Decision | None,
        Field(description="What was decided and followed; null where it was refused, or is not on record."),
    ] = None
    approved_by: Annotated[str, Field(description="Who had the file made.")]
    approved_at: Annotated[str, Field(description="When, UTC, ISO 8601 with Z.")]
    self_approved: Annotated[
        bool,
        Field(
            description="False where another person than any who decided approved it, and both had to "
            "identify themselves."
        ),
    ]
    claimed_by: Annotated[
        str | None,
        Field(
            description="Who decided by the word of the workbook that the decision stood in: a claim, as "
            "nobody signed in by it; null where it names nobody."
        ),
    ] = None


class Act(StrEnum):
    """The deeds that shape a payment file at a desk; a user who did any of them cannot approve the file."""

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
    file: Annotated[str, Field(description="SHA-256 of that file.")]
    time: Annotated[str, Field(description="When for the first time, UTC, ISO 8601 with Z.")]


class Approvals(RootModel[list[Approval]]):
    """`approvals.json`, a list that only grows: every decision, in the order of making."""
