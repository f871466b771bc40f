"""Records of the desk next to the folder of a run: how a file is read, decisions and audit."""

from enum import StrEnum

from pydantic import Field, JsonValue

from schemas.cop import AccountType
from schemas.review import Decision, Shaped
from schemas.strict import OwnDocument

NOTHING_BEFORE = "0" * 64  # the predecessor's hash in the first entry of a journal


class Entry(OwnDocument):
    """A line of an append-only journal. Each has its predecessor's hash, which reveals any change."""

    previous: str = Field(description="SHA-256 of the line before it, without its end.")
    time: str = Field(description="UTC, ISO 8601 with Z.")
    by: str = Field(description="Who did it.")


class RowsDecided(Entry):
    """A line of `decisions.jsonl`: one person's single decision about some rows."""

    run_id: str = Field(description="Of the answers that were decided about.")
    rows: list[int]
    answers: list[str] = Field(
        description="Of each row, 12 digits of a hash of its answer: for another, the decision is void."
    )
    decision: Decision | None = Field(description="Null where an earlier decision was taken back.")
    reason: str | None = None
    written: str | None = Field(
        None, description="SHA-256 of what a person corrects the cell of a rejected row to, and of a salt."
    )
    claimed_by: str | None = Field(
        None, description="Who decided by the word of the workbook that it stood in: a claim."
    )
    at_once: bool = Field(
        False, description="Whether a page asked first about all of these rows; one act takes it back."
    )
    carried_from: str | None = Field(
        None,
        description="The id of the file about which it was decided, where this is its correction. "
        "It counts whatever the answers here are.",
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
    run: str | None = Field(None, description="The id of the file at the desk.")
    facts: dict[str, str | int] = {}


class Signed(OwnDocument):
    """A person's submission or approval of decisions."""

    by: str
    time: str
    decisions: str = Field(description="SHA-256 of the last line of decisions.jsonl then.")
    run_id: str = Field(description="Of the answers that were decided about.")


class SentBack(OwnDocument):
    """An approver's request to review a file again."""

    by: str
    time: str
    comment: str


class Release(OwnDocument):
    """A release file that an approval made."""

    file: str
    sha256: str
    by: str = Field(description="Who approved it.")
    time: str
    rows: list[tuple[int, int]] = Field(description="In it, as ranges: first and last row of each.")


class DeskFile(OwnDocument):
    """`desk.json`: one uploaded file, and what people entered about it."""

    name: str
    sha256: str
    byte_count: int
    uploaded_by: str
    uploaded_at: str
    corrects: str | None = Field(
        None, description="The id of the file whose payments it has: corrected, or those that were held."
    )
    rows_before: list[int] | None = Field(
        None, description="Of each of its rows, the row of that file; null: all, in their order."
    )
    profile: str | None = Field(None, description="By which it is checked; null: none is chosen yet.")
    mapping: dict[str, str] = {}
    encoding: str | None = None
    sheet: str | None = None
    input_format: str | None = None
    country: str | None = Field(None, description="Of accounts that are no IBAN.")
    account_type: AccountType | None = Field(
        None, description="For UK accounts whose payments state no type; null: as the profile assumes."
    )
    is_pain001: bool = Field(False, description="Whether bank software can have a report on it.")
    language: str = Field("en", description="Of its page and workbook: that of who uploaded it.")
    many_names_reason: str | None = None
    reported_by: str | None = Field(
        None, description="Who provided the bank's report that stands in for a check; null: it is checked."
    )
    retry_unanswered: bool = Field(
        False, description="Whether what was asked in several checks without an answer is asked again."
    )
    resumes_daily: bool = Field(
        False, description="Whether it continues by itself once its daily cap allows more."
    )
    is_refused: bool = Field(
        False, description="Whether it could not be read as payments when it was looked at last."
    )
    planned: bool = Field(False, description="Whether somebody agreed with how it is read.")
    shaped: list[Shaped] = Field([], description="Who shaped it, except by its upload and by decisions.")
    stopped_by: str | None = Field(None, description="Who stopped its last check at the desk.")
    handed_over: Signed | None = None
    sent_back: SentBack | None = Field(None, description="Null once it was handed over again.")
    approved: Signed | None = None
    given: Signed | None = Field(None, description="That the bank has the release file: it is final.")
    released_count: int | None = Field(
        None, description="Of payments, by the last approval; null: not known."
    )
    releases: list[Release] = Field([], description="All that were made, oldest first.")
    purged_at: str | None = None


class CheckProgress(OwnDocument):
    """`progress.json`: the progress of a file's check, rewritten regularly by its process."""

    phase: str
    started: str
    waiting_for: list[JsonValue] | None = Field(
        None, description="That another check must end first, as data."
    )
    done_count: int = 0
    check_count: int = 0
    answered_before_count: int = Field(0, description="In neither of the counts above.")
    asking_since: str | None = Field(None, description="When the first question left.")
    outcomes: dict[str, int] = {}
    slowed: bool = Field(False, description="Whether a server wants fewer requests than agreed.")
    stopping: bool = False
    simulated: bool = Field(False, description="Whether a sandbox answers.")
    exit_code: int | None = Field(None, description="Null while it works.")
    sentences: list[JsonValue] = Field(
        [], description="Why it ended early, or how to go on, as data for words of any language."
    )
