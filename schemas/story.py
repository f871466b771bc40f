"""The story of one payment, `precheck show --json`: what the file held, what was asked, what came back."""

from typing import Annotated

from pydantic import Field, JsonValue

from schemas.outcomes import ApiName, Environment, OutcomeColumns
from schemas.review import Decision
from schemas.strict import OwnDocument


class StoryFinding(OwnDocument):
    """A local rule that the row breaks, or something odd that stopped nothing."""

    field: str
    code: str
    message: str
    is_warning: bool
    said: Annotated[list[JsonValue], Field(exclude=True)] = []
    """The sentence behind the message, as in `frames.FINDINGS`, for pages in other languages."""


class StoryRoute(OwnDocument):
    """Which API was to be asked, and why."""

    api: ApiName
    reason: str
    bic_source: str | None


class StoryQuestion(OwnDocument):
    """The question; equal rows share one."""

    fields: dict[str, str]
    """Without those that are empty; the account is masked."""
    rows: list[int]
    """All rows that share it, this one included; the first hundred."""
    places: list[str] = []
    """Where these rows stand in the file; none if the format has no places."""
    row_count: int


class StoryAttempt(OwnDocument):
    """One request, as the ledger has it."""

    number: int
    request_id: str
    sent: str
    ended: str
    """answered, refused, failed, or `in doubt` where the run was killed meanwhile."""
    code: str | None
    ended_at: str | None
    detail: str | None = None
    """What the server said of a problem, at most 200 characters, numbers of accounts masked; None if it
    said nothing, and where it was purged."""
    has_hidden_detail: bool = False
    """True if it said something that is encrypted under a key which the usual configuration does not have."""


class StoryDecision(OwnDocument):
    """A person's decision about the row, as in `approvals.json`."""

    by: str
    time: str
    decision: Decision | None
    """None if it was refused, or is not on record."""
    what: str
    why: str
    approved_by: str
    self_approved: bool
    claimed_by: str | None
    """The approver that a workbook names, unverified; None if none."""


class StoryCorrection(OwnDocument):
    """A cell that was corrected by a decision, as in `corrections.csv`."""

    field: str
    before: str
    """Empty if the cell was."""
    now: str


class StoryPayment(OwnDocument):
    """Where the payment went when the file was split last."""

    file: str
    """Of the payments to release, or to hold."""
    is_released: bool
    approved_by: str
    time: str
    self_approved: bool
    """As in `SplitMade`."""


class StoryOrigin(OwnDocument):
    """Where the payment was before the file was corrected, or made of what was held."""

    file: str
    folder: str
    """Folder of that run, from the folder of this one."""
    is_corrected: bool
    first_row: int
    """In the first file of the family."""


class Story(OwnDocument):
    """One payment, from the file to the outcome."""

    file: str
    row: int
    made_of: StoryOrigin | None = None
    """None if the file was made of no other that is known."""
    released_before: str | None = None
    """The release file of another file of the family that has the payment; None of none."""
    place: str | None = None
    """Where it stands in the file, such as line 18; None if the format has no places."""
    batch: str | None = None
    """The batch's name in the file; None if the format has no batches."""
    environment: Environment
    simulated: bool
    payment: dict[str, str]
    """Field -> what the file holds, without empty ones; accounts are masked."""
    findings: list[StoryFinding]
    route: StoryRoute | None
    """None if no API could be asked."""
    question: StoryQuestion | None
    attempts: list[StoryAttempt]
    answered_by_earlier_run: bool
    outcome: OutcomeColumns
    decisions: list[StoryDecision] = []
    """Approved decisions of people, oldest first."""
    corrections: list[StoryCorrection] = []
    """What the last corrected file changed in the row; none if `corrections.csv` was changed or deleted."""
    payment_file: StoryPayment | None = None
    """None if the file was not split."""
