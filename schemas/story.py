"""The history of one payment (`precheck show --json`): the file's data, the question, the answer."""

from pydantic import Field, JsonValue

from schemas.outcomes import ApiName, Environment, OutcomeColumns
from schemas.review import Decision
from schemas.strict import OwnDocument


class StoryFinding(OwnDocument):
    """A local rule that the row breaks, or a warning."""

    field: str
    code: str
    message: str
    is_warning: bool
    sentence: list[JsonValue] = Field([], exclude=True)
    """The message's sentence, as in `frames.FINDINGS`, for pages in other languages."""


class StoryRoute(OwnDocument):
    """The API for the payment, and why."""

    api: ApiName
    reason: str
    bic_source: str | None


class StoryQuestion(OwnDocument):
    """The question; equal rows share one."""

    fields: dict[str, str]  # fields that are not empty, with the account masked
    rows: list[int]  # the first hundred rows that share the question, including this one
    positions: list[str] = []  # positions of these rows in the file; empty if the format has none
    row_count: int


class StoryAttempt(OwnDocument):
    """One request, as in the ledger."""

    number: int
    request_id: str
    sent: str
    ended: str  # answered, refused, failed, or `in doubt` if the run was killed meanwhile
    code: str | None
    ended_at: str | None
    detail: str | None = None
    """The server's description of a problem, at most 200 characters, accounts masked; None if there is none
    or it was purged.
    """
    has_hidden_detail: bool = False  # true if it is encrypted under a key that the usual configuration lacks


class StoryDecision(OwnDocument):
    """A person's decision about the row, as in `approvals.json`."""

    by: str
    time: str
    decision: Decision | None  # None if the decision was refused or is not recorded
    what: str
    why: str
    approved_by: str
    self_approved: bool
    claimed_by: str | None  # the approver that a workbook names, unverified; None if none


class StoryCorrection(OwnDocument):
    """A cell that a decision corrected, as in `corrections.csv`."""

    field: str
    before: str  # the old text; empty if the cell was empty
    now: str


class StoryPayment(OwnDocument):
    """Where the last split put the payment."""

    file: str  # the file of payments to release or to hold
    is_released: bool
    approved_by: str
    time: str
    self_approved: bool  # as in `SplitMade`


class StoryOrigin(OwnDocument):
    """The payment in the file that was corrected or split."""

    file: str
    folder: str  # folder of that file's run, relative to this run's folder
    is_corrected: bool
    first_row: int  # its row in the first file of the family


class Story(OwnDocument):
    """One payment, from the file to the outcome."""

    file: str
    row: int
    made_of: StoryOrigin | None = None  # None if no other known file is its source
    released_before: str | None = None  # another file of the family with the payment in its release file
    place: str | None = None  # position in the file, such as line 18; None if the format has none
    batch: str | None = None  # the batch's name in the file; None if the format has no batches
    environment: Environment
    simulated: bool
    payment: dict[str, str]  # field -> content, without empty fields; accounts are masked
    findings: list[StoryFinding]
    route: StoryRoute | None  # None if no API can check the payment
    question: StoryQuestion | None
    attempts: list[StoryAttempt]
    answered_by_earlier_run: bool
    outcome: OutcomeColumns
    decisions: list[StoryDecision] = []  # people's approved decisions, oldest first
    corrections: list[StoryCorrection] = []
    """What the last corrected file changed in the row; none if `corrections.csv` was changed or deleted."""
    payment_file: StoryPayment | None = None  # None if the file was not split
