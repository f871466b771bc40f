"""Records of the desk next to the folder of a run: how a file is read, decisions and audit."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue

from schemas.cop import AccountType
from schemas.review import Decision, Shaped
from schemas.strict import OwnDocument

NOTHING_BEFORE = "0" * 64  # the predecessor's hash in the first entry of a journal


class Entry(OwnDocument):
    """A line of an append-only journal. Each has its predecessor's hash, which reveals any change."""

    previous: Annotated[str, Field(description="SHA-256 of the line before it, without its end.")]
    time: Annotated[str, Field(description="UTC, ISO 8601 with Z.")]
    by: Annotated[str, Field(description="Who did it.")]


class RowsDecided(Entry):
    """A line of `decisions.jsonl`: one person's single decision about some rows."""

    run_id: Annotated[str, Field(description="Of the answers that were decided about.")]
    rows: list[int]
    answers: Annotated[
        list[str],
        Field(
            description="Of each row, 12 digits of a hash of its answer: for another, the decision is void."
        ),
    ]
    decision: Annotated[Decision | None, Field(description="Null where an earlier decision was taken back.")]
    reason: str | None = None
    written: Annotated[
        str | None,
        Field(description="SHA-256 of what a person corrects the cell of a rejected row to, and of a salt."),
    ] = None
    claimed_by: Annotated[
        str | None, Field(description="Who decided by the word of the workbook that it stood in: a claim.")
    ] = None
    at_once: Annotated[
        bool, Field(description="Whether a page asked first about all of these rows; one act takes it back.")
    ] = False
    carried_from: Annotated[
        str | None,
        Field(
            description="The id of the file about which it was decided, where this is its correction. "
            "It counts whatever the answers here are."
        ),
    ] = None


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
    NOT_NOTIFIED = "not notified"
    """The people in `[notify]` were not notified of a file that waits or was sent back."""
    APPROVED = "approved"
    CORRECTED = "corrected"  # a file was corrected by decisions; the new file must be checked again
    COMPARED = "compared"  # a check was compared with the bank's report on the same file
    GIVEN = "given to the bank"
    COMMENTED = "commented"
    SAW_ACCOUNTS = "saw accounts"
    """A person saw whole account numbers of a file; recorded once per start of the desk."""
    DOWNLOADED = "downloaded"
    VERIFIED = "verified"
    PURGED = "purged"
    REFUSED = "refused"  # a request was refused for lack of a session, an identity or a right


class AuditEntry(Entry):
    """A line of `audit.jsonl`: who did what at the desk, without payees' names or accounts."""

    deed: Deed
    run: Annotated[str | None, Field(description="The id of the file at the desk.")] = None
    facts: dict[str, str | int] = {}


class Signed(OwnDocument):
    """A person's submission or approval of decisions."""

    by: str
    time: str
    decisions: Annotated[str, Field(description="SHA-256 of the last line of decisions.jsonl then.")]
    run_id: Annotated[str, Field(description="Of the answers that were decided about.")]


class SentBack(OwnDocument):
    """An approver's request to review a file again."""

    by: str
    time: str
    comment: str


class Release(OwnDocument):
    """A release file that an approval made."""

    file: str
    sha256: str
    by: Annotated[str, Field(description="Who approved it.")]
    time: str
    rows: Annotated[list[tuple[int, int]], Field(description="In it, as ranges: first and last row of each.")]


class DeskFile(OwnDocument):
    """`desk.json`: one uploaded file, and what people entered about it."""

    name: str
    sha256: str
    byte_count: int
    uploaded_by: str
    uploaded_at: str
    corrects: Annotated[
        str | None,
        Field(description="The id of the file whose payments it has: corrected, or those that were held."),
    ] = None
    rows_before: Annotated[
        list[int] | None,
        Field(description="Of each of its rows, the row of that file; null: all, in their order."),
    ] = None
    profile: Annotated[str | None, Field(description="By which it is checked; null: none is chosen yet.")] = (
        None
    )
    mapping: dict[str, str] = {}
    encoding: str | None = None
    sheet: str | None = None
    input_format: str | None = None
    country: Annotated[str | None, Field(description="Of accounts that are no IBAN.")] = None
    account_type: Annotated[
        AccountType | None,
        Field(description="For UK accounts whose payments state no type; null: as the profile assumes."),
    ] = None
    is_pain001: Annotated[bool, Field(description="Whether bank software can have a report on it.")] = False
    language: Annotated[str, Field(description="Of its page and workbook: that of who uploaded it.")] = "en"
    many_names_reason: str | None = None
    reported_by: Annotated[
        str | None,
        Field(description="Who provided the bank's report that stands in for a check; null: it is checked."),
    ] = None
    retry_unanswered: Annotated[
        bool, Field(description="Whether what was asked in several checks without an answer is asked again.")
    ] = False
    resumes_daily: Annotated[
        bool, Field(description="Whether it continues by itself once its daily cap allows more.")
    ] = False
    is_refused: Annotated[
        bool, Field(description="Whether it could not be read as payments when it was looked at last.")
    ] = False
    planned: Annotated[bool, Field(description="Whether somebody agreed with how it is read.")] = False
    shaped: Annotated[
        list[Shaped], Field(description="Who shaped it, except by its upload and by decisions.")
    ] = []
    stopped_by: Annotated[str | None, Field(description="Who stopped its last check at the desk.")] = None
    handed_over: Signed | None = None
    sent_back: Annotated[SentBack | None, Field(description="Null once it was handed over again.")] = None
    approved: Signed | None = None
    given: Annotated[Signed | None, Field(description="That the bank has the release file: it is final.")] = (
        None
    )
    released_count: Annotated[
        int | None, Field(description="Of payments, by the last approval; null: not known.")
    ] = None
    releases: Annotated[list[Release], Field(description="All that were made, oldest first.")] = []
    purged_at: str | None = None


class CheckProgress(OwnDocument):
    """`progress.json`: the progress of a file's check, rewritten regularly by its process."""

    phase: str
    started: str
    waiting_for: Annotated[
        list[JsonValue] | None, Field(description="That another check must end first, as data.")
    ] = None
    done_count: int = 0
    check_count: int = 0
    answered_before_count: Annotated[int, Field(description="In neither of the counts above.")] = 0
    asking_since: Annotated[str | None, Field(description="When the first question left.")] = None
    outcomes: dict[str, int] = {}
    slowed: Annotated[bool, Field(description="Whether a server wants fewer requests than agreed.")] = False
    stopping: bool = False
    simulated: Annotated[bool, Field(description="Whether a sandbox answers.")] = False
    exit_code: Annotated[int | None, Field(description="Null while it works.")] = None
    sentences: Annotated[
        list[JsonValue],
        Field(description="Why it ended early, or how to go on, as data for words of any language."),
    ] = []
