"""Records of the desk next to the folder of a run: how a file is read, decisions and audit."""

from enum import StrEnum

from pydantic import Field, JsonValue

from schemas.cop import AccountType
from schemas.review import Decision, Shaped
from schemas.strict import OwnDocument

NOTHING_BEFORE = "0" * 64  # the predecessor's hash in the first entry of a journal


class Entry(OwnDocument):
    """A line of an append-only journal. Each has its predecessor's hash, which reveals any change."""

    previous: str = Field(description="SHA-256 of the previous line, without its line end.")
    time: str = Field(description="UTC, ISO 8601 with Z.")
    by: str = Field(description="The person who did it.")


class RowsDecided(Entry):
    """A line of `decisions.jsonl`: one person's single decision about some rows."""

    run_id: str = Field(description="The run whose answers the decisions are about.")
    rows: list[int]
    answers: list[str] = Field(
        description="For each row, 12 digits of its answer's hash: another answer voids the decision."
    )
    decision: Decision | None = Field(description="Null if an earlier decision was undone.")
    reason: str | None = None
    written: str | None = Field(
        None, description="Salted SHA-256 of a person's new value for a cell of a rejected row."
    )
    claimed_by: str | None = Field(
        None, description="The decider named in the workbook: an unverified claim."
    )
    at_once: bool = Field(
        False, description="Whether it was one decision on a group of rows, which one click undoes."
    )
    carried_from: str | None = Field(
        None,
        description="The earlier file that this one corrects, if decided there; counts despite new answers.",
    )


class RowCommented(Entry):
    """A line of `comments.jsonl`: a person's comment on a row, without any effect on decisions."""

    row: int
    comment: str


class Deed(StrEnum):
    """Recorded actions of people at the desk."""

    OPENED = "opened"  # the start of a session; in a team, a person's first request since the desk started
    CLOSED = "closed"
    UPLOADED = "uploaded"
    READ_AS = "read as"
    PLANNED = "planned"  # checks were planned with the chosen profile
    STARTED = "started"
    STOPPED = "stopped"
    STARTED_OVER = "started over"  # a check that had ended without any answer was started over
    DECIDED = "decided"
    HANDED_OVER = "handed over"
    SENT_BACK = "sent back"
    NOT_NOTIFIED = "not notified"  # people in `[notify]` did not learn of a file that waits or was sent back
    APPROVED = "approved"
    CORRECTED = "corrected"  # a file was corrected by decisions; the new file must be checked again
    COMPARED = "compared"  # a check was compared with the bank's report on the same file
    GIVEN = "given to the bank"
    COMMENTED = "commented"
    SAW_ACCOUNTS = "saw accounts"  # a person saw whole account numbers of a file; once per start of the desk
    DOWNLOADED = "downloaded"
    VERIFIED = "verified"
    PURGED = "purged"
    REFUSED = "refused"  # a request was refused for lack of a session, an identity or a right


class AuditEntry(Entry):
    """A line of `audit.jsonl`: who did what at the desk, without payees' names or accounts."""

    deed: Deed
    run: str | None = Field(None, description="The file's id at the desk.")
    facts: dict[str, str | int] = {}


class Signed(OwnDocument):
    """A person's submission or approval of decisions."""

    by: str
    time: str
    decisions: str = Field(description="SHA-256 of the last line of decisions.jsonl at that time.")
    run_id: str = Field(description="The run whose answers the decisions are about.")


class SentBack(OwnDocument):
    """An approver's request to review a file again."""

    by: str
    time: str
    comment: str


class Release(OwnDocument):
    """A release file that an approval made."""

    file: str
    sha256: str
    by: str = Field(description="The person who approved it.")
    time: str
    rows: list[tuple[int, int]] = Field(description="The rows in it, as ranges of first and last row.")


class DeskFile(OwnDocument):
    """`desk.json`: one uploaded file, and what people entered about it."""

    name: str
    sha256: str
    byte_count: int
    uploaded_by: str
    uploaded_at: str
    corrects: str | None = Field(
        None, description="The id of the file that it corrects, or whose held payments it has."
    )
    rows_before: list[int] | None = Field(
        None, description="For each row, its row in that file; null: the same rows in the same order."
    )
    profile: str | None = Field(None, description="The profile of its check; null: none chosen yet.")
    mapping: dict[str, str] = {}
    encoding: str | None = None
    sheet: str | None = None
    input_format: str | None = None
    country: str | None = Field(None, description="Country of accounts that are not IBANs.")
    account_type: AccountType | None = Field(
        None, description="For UK payments without an account type; null: the profile's default."
    )
    is_pain001: bool = Field(False, description="Whether a pain.002 report can be written for it.")
    language: str = Field("en", description="The language of its page and workbook: that of the uploader.")
    many_names_reason: str | None = None
    reported_by: str | None = Field(
        None, description="The person who provided bank reports instead of a check; null: it is checked."
    )
    retry_unanswered: bool = Field(False, description="Whether questions that were given up are asked again.")
    resumes_daily: bool = Field(
        False, description="Whether its check resumes by itself when the daily cap allows more."
    )
    is_refused: bool = Field(False, description="Whether the last attempt to read it as payments failed.")
    planned: bool = Field(False, description="Whether a person confirmed how it is read.")
    shaped: list[Shaped] = Field([], description="Acts that shaped it, other than its upload and decisions.")
    stopped_by: str | None = Field(None, description="The person who stopped its last check.")
    handed_over: Signed | None = None
    sent_back: SentBack | None = Field(None, description="Null once it was submitted again.")
    approved: Signed | None = None
    given: Signed | None = Field(
        None, description="Set when the bank has the release file, which is final then."
    )
    released_count: int | None = Field(
        None, description="Payments that the last approval released; null: unknown."
    )
    releases: list[Release] = Field([], description="All release files, oldest first.")
    purged_at: str | None = None


class CheckProgress(OwnDocument):
    """`progress.json`: the progress of a file's check, rewritten regularly by its process."""

    phase: str
    started: str
    waiting_for: list[JsonValue] | None = Field(
        None, description="A sentence, as data: which check must end first."
    )
    done_count: int = 0
    check_count: int = 0
    answered_before_count: int = Field(
        0, description="Questions answered earlier, in neither of the counts above."
    )
    asking_since: str | None = Field(None, description="When the first question was sent.")
    outcomes: dict[str, int] = {}
    slowed: bool = Field(False, description="Whether a server asked for fewer requests.")
    stopping: bool = False
    simulated: bool = Field(False, description="Whether a sandbox answers.")
    exit_code: int | None = Field(None, description="Null while it runs.")
    sentences: list[JsonValue] = Field(
        [], description="Sentences, as data: why it ended early, or how to continue."
    )
