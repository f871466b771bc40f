"""The frames that travel between stages: their columns, types and meaning.

One row of `Payments` is one payment row of the file; of `Accepted`, a payment that can be checked; of
`Rejects` and `Warnings`, one finding about one payment; of `Checks` and `Bases`, one distinct question; of
`Answers`, the result of one question; of `Outcomes`, the decision on one payment.

Identifiers are text from the first byte read to the last byte written. Null means absent; canonical fields
never hold empty strings. A column with a closed set of values is an enum, which takes one byte per row.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple, NewType

import polars as pl

from pipeline.wording import Sentence
from schemas.cop import AccountType
from schemas.outcomes import COLUMNS, Action, ApiName, Environment, Outcome
from schemas.payments import FIELDS


class AnswerState(StrEnum):
    """The state of one question."""

    ANSWERED = "answered"  # a responder's outcome, in a well-formed 200
    REUSED = "reused"  # a match from an earlier run, reused instead of asking again
    REFUSED = "refused"  # a 400: the server will never process it
    UNANSWERED = "unanswered"  # no usable reply; worth asking again in a later run
    DEFERRED = "deferred"  # not asked: a limit leaves it to a later run


class OwnCode(StrEnum):
    """Codes of questions without a code from a server."""

    DAILY_CAP = "DAILY_CAP"  # deferred: the day's requests are used up
    LIMIT = "LIMIT"  # deferred: --limit
    SERVER_PAUSE = "SERVER_PAUSE"  # deferred: the server requests more or longer pauses than a run waits
    CONTRACT = "CONTRACT"  # unanswered: the reply breaks the API reference
    NETWORK = "NETWORK"  # unanswered: no complete reply, or no connection
    DEADLINE = "DEADLINE"  # unanswered: no complete reply in time
    CLOCK = "CLOCK"  # unanswered: the server refuses the timestamp of the request
    TURNED_AWAY = "TURNED_AWAY"  # deferred: the server refused all other questions too
    NOT_IN_REPORT = "NOT_IN_REPORT"  # unanswered: no report of the bank names the payment
    REPORT_AMBIGUOUS = "REPORT_AMBIGUOUS"  # unanswered: the bank's report fits several payments
    REPORT_DIFFERS = "REPORT_DIFFERS"  # unanswered: it has another name, account or amount, or two results
    REPORT_STATUS = "REPORT_STATUS"  # unanswered: the bank reports a status that is not a result
    PDNG = "PDNG"  # unanswered: the bank reports that it has not finished
    RVNC = "RVNC"  # unanswered: the bank reports that it ended its check without a result
    RUN_ENDED = "RUN_ENDED"  # the run ended, deferred: before asking; unanswered: before a reply


TURNED_AWAY_STATUSES = frozenset({*range(201, 500), *range(600, 1000)}) - {408, 425, 429}
"""HTTP statuses with which a server or a proxy refuses a question: all except 200, server errors and requests
to retry. 400, 413, 415 and 422 count unless they are the API's own refusal of the question.
"""
TURNED_AWAY_CODES = frozenset({OwnCode.CLOCK, *(f"HTTP_{status}" for status in TURNED_AWAY_STATUSES)})
"""Codes of questions refused before the API: they show the status, not the code that the server sends."""


class Meaning(NamedTuple):
    """The meaning of a code for the payer."""

    outcome: Outcome
    action: Action
    reason: Sentence  # the meaning, shown in every row with the code
    not_said: Sentence  # the wrong conclusion to avoid: completes "it does not say"
    advice: Sentence | None = None  # what to do beyond the action, if anything


class RouteReason(StrEnum):
    """Why a payment goes to its API."""

    GB_IBAN = "GB IBAN: checked by the sort code and account number in it"
    IBAN = "IBAN"
    SORT_CODE = "sort code and account number"


UK_ROUTES = frozenset({RouteReason.GB_IBAN, RouteReason.SORT_CODE})  # UK accounts, for every API 14 digits


class BicSource(StrEnum):
    """The source of a responder's BIC."""

    FILE = "file"
    TABLE = "table"  # the user's directory
    REGISTRY = "registry"


NOTE = "Note: "  # prefix of each warning in the reason of an outcome

Schema = dict[str, pl.DataType]

MONEY = pl.Decimal(precision=38, scale=3)  # exact, in the currency's main unit; none has more decimals

API = pl.Enum(ApiName)
STATE = pl.Enum(AnswerState)
OUTCOME = pl.Enum(Outcome)
ACTION = pl.Enum(Action)

PAYMENTS: Schema = {
    "row": pl.UInt32(),  # 1-based data row of the file; the header is not counted
    "defect": pl.String(),  # the reader's finding about the whole row; null if none
    **{field: pl.String() for field in FIELDS},
}

FINDINGS: Schema = {
    "row": pl.UInt32(),
    "field": pl.String(),
    "code": pl.String(),
    "message": pl.String(),  # for people, in English; never quotes a name or an account number
    "sentence": pl.String(),  # the message as `Sentence.as_text`
}
REJECTS = FINDINGS
WARNINGS = FINDINGS

PAYEES: Schema = {
    "row": pl.UInt32(),
    "payee_id": pl.String(),  # the payer's ID for the payee, or an identification; null without either
    "name": pl.String(),  # null if the payee is identified without a name
    "account": pl.String(),  # always in one spelling, however the file writes it
    "secondary_reference": pl.String(),
}
"""Payees and their accounts, normalised for comparing two files: one row per accepted payment."""

PAYEE_KEYS: Schema = {
    "row": pl.UInt32(),  # the last payment with the same values
    "payee_id": pl.UInt64(),  # a keyed hash, like the next two
    "name": pl.UInt64(),
    "account": pl.UInt64(),
    "account_shown": pl.String(),  # masked
}
"""Keys of the `Payees` of a run, hashed with the key of its folder."""

KEPT_PAYEES: Schema = {
    **PAYEE_KEYS,
    "known": pl.String(),  # rules.known_payees.PayeeStatus
    # For carried rows: the folder and the end of the run that had them, and the key of its hashes.
    "folder": pl.String(),
    "finished": pl.String(),
    "payee_key": pl.String(),  # in hexadecimal
}
"""The payees that a run keeps for comparison with the next one: its own `PayeeKeys`, and those carried from
earlier runs.
"""

CHANGES: Schema = {
    "row": pl.UInt32(),
    "code": pl.String(),  # BANK_DIFFERS, ACCOUNT_CHANGED, NAME_CHANGED or PAYEE_NEW
    "then": pl.String(),  # masked; null if the payee is new or the old value was deleted
    "now": pl.String(),  # masked
    "earlier": pl.String(),  # folder of the earlier run, or ID of the bank's report; null if the payee is new
}
"""Differences from an earlier run or a bank's report: at most one row per payment and code."""

QUESTION: Schema = {
    "api": API,
    "account": pl.String(),  # UK: sort code and account number, 14 digits; elsewhere: IBAN
    "name": pl.String(),  # null if the payee is identified without a name
    "account_type": pl.Enum(AccountType),  # cop only
    "secondary_reference": pl.String(),  # cop only
    "lei": pl.String(),
    "organisation_bic": pl.String(),
    "organisation_id": pl.String(),
    "organisation_id_scheme": pl.String(),
    "organisation_id_issuer": pl.String(),
    "responder_bic": pl.String(),  # vop_standard only: BIC11
    "remittance": pl.String(),  # vop_standard only, if the profile sends it
}
"""The fields of a question; payments that are equal in all of them share a question."""

ACCEPTED: Schema = {
    "row": pl.UInt32(),
    **QUESTION,
    "route_reason": pl.Enum(RouteReason),
    "bic_source": pl.Enum(BicSource),  # vop_standard only
    "amount": MONEY,  # null if the file has none
    "currency": pl.String(),
}

IS_UK = pl.col("route_reason").is_in(list(UK_ROUTES))  # True if an accepted payment's account is a UK one

CHECKS: Schema = {"check": pl.UInt32(), **QUESTION}

BASES: Schema = {
    "check": pl.UInt32(),
    "api": API,
    "by_name": pl.Boolean(),  # otherwise by an identification
}
"""The columns of each question that are needed to read its answer at the end."""

ASSIGNMENTS: Schema = {"row": pl.UInt32(), "check": pl.UInt32()}  # the question of each accepted payment

ANSWERS: Schema = {
    "check": pl.UInt32(),
    "state": STATE,
    "code": pl.String(),  # unchanged: a reason code, a problem code or one of ours
    "matched_name": pl.String(),
    "request_id": pl.String(),  # correlation ID of the accepted answer
    "time": pl.String(),  # UTC, milliseconds, Z
    "attempts": pl.UInt32(),  # this run's requests for it; usually 0 if reused
}

OUTCOMES: Schema = {
    "row": pl.UInt32(),
    **{column: pl.String() for column in COLUMNS},
    "check_outcome": OUTCOME,
    "check_action": ACTION,
    "check_api": API,
    "check_environment": pl.Enum(Environment),
    "check_attempts": pl.UInt32(),
}

REASONS: Schema = {
    "reason": pl.String(),  # as in `check_reason`
    "sentence": pl.String(),  # the reason's sentences: a JSON list of `Sentence.as_data`
}
"""The sentences of each distinct reason in the outcomes, for pages in other languages."""

CORRECTIONS: Schema = {
    "row": pl.UInt32(),
    "field": pl.String(),  # null if only the reason names the mistake
    "kind": pl.String(),  # the Acceptance that it needs; null if no answer has the right value
    "header": pl.String(),  # column to write to; null unless exactly one fits
    "from": pl.String(),
    "to": pl.String(),  # new value; null if only the payee knows it
    "why": pl.String(),
    "obstacle": pl.String(),  # sentence: why this program cannot write it; null if it can
}

DECISIONS: Schema = {
    "row": pl.UInt32(),
    "decision": pl.String(),  # a Decision
    "reason": pl.String(),  # null only if held
    "by": pl.String(),  # who decided
    "time": pl.String(),  # when, UTC, ISO 8601 with Z
    "claimed_by": pl.String(),  # the approver that a workbook names, unverified; null if none
}
"""People's decisions: at most one row per payment."""

WARNED: Schema = {
    "row": pl.UInt32(),
    "code": pl.String(),  # a WarningCode
}
"""The warnings of payments: at most one row per payment and code."""

PLACEMENTS: Schema = {
    "row": pl.UInt32(),
    "place": pl.String(),  # release or hold
    "why": pl.String(),  # key of the sentence on why it is held; null if released
    "why_of": pl.String(),  # values of this sentence
    "decided": pl.Boolean(),  # true if a person decided it
}


# Each frame has its own type, so that swapped frames do not type-check. Removing rows or changing columns
# returns a plain frame; a caller that casts it back has checked its schema.

Payments = NewType("Payments", pl.DataFrame)
Original = NewType("Original", pl.DataFrame)  # the file's columns, unchanged, with the rows of `Payments`
Accepted = NewType("Accepted", pl.DataFrame)
Rejects = NewType("Rejects", pl.DataFrame)
Warnings = NewType("Warnings", pl.DataFrame)
Checks = NewType("Checks", pl.DataFrame)
Bases = NewType("Bases", pl.DataFrame)
Assignments = NewType("Assignments", pl.DataFrame)
Answers = NewType("Answers", pl.DataFrame)
Outcomes = NewType("Outcomes", pl.DataFrame)
Reasons = NewType("Reasons", pl.DataFrame)
Payees = NewType("Payees", pl.DataFrame)
Changes = NewType("Changes", pl.DataFrame)
Corrections = NewType("Corrections", pl.DataFrame)
Decisions = NewType("Decisions", pl.DataFrame)
Warned = NewType("Warned", pl.DataFrame)
Placements = NewType("Placements", pl.DataFrame)


class Findings(NamedTuple):
    """Findings about payments before a bank is asked."""

    rejects: Rejects
    warnings: Warnings

    def and_warnings(self, more: Warnings) -> "Findings":
        """Add later warnings."""
        return Findings(self.rejects, Warnings(pl.concat([self.warnings, more])))


class Questions(NamedTuple):
    """The questions, and the payments that each one covers."""

    bases: Bases
    assignments: Assignments


class Check(NamedTuple):
    """One row of `Checks`, for the only step that handles questions one by one."""

    check: int
    api: ApiName
    account: str
    name: str | None
    account_type: str | None
    secondary_reference: str | None
    lei: str | None
    organisation_bic: str | None
    organisation_id: str | None
    organisation_id_scheme: str | None
    organisation_id_issuer: str | None
    responder_bic: str | None
    remittance: str | None


def each_check(checks: pl.DataFrame) -> Iterator[Check]:
    """Yield the rows of `Checks`."""
    return (Check(number, ApiName(api), *rest) for number, api, *rest in checks.iter_rows())


def question_counts(checks: pl.DataFrame) -> dict[ApiName, int]:
    """Count the questions by API."""
    counts = checks.group_by("api", maintain_order=True).len()
    return {ApiName(api): count for api, count in counts.iter_rows()}


class Answer(NamedTuple):
    """One row of `Answers`: the result of a question."""

    check: int
    state: AnswerState
    code: str
    matched_name: str | None
    request_id: str | None
    time: str | None
    attempts: int


def cast_to(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Return the columns of a schema, in its order and with its types."""
    return frame.select(pl.col(column).cast(kind) for column, kind in schema.items())


def is_row_in(rows: pl.Series) -> pl.Expr:
    """True for each of these rows."""
    return pl.col("row").is_in(rows.implode())


def recurring(numbers: pl.Series) -> pl.Series:
    """True for each number that repeats. Sorting is faster than `is_duplicated` and takes less memory."""
    ordered = numbers.sort()
    again = ordered.filter(ordered == ordered.shift(1)).unique()
    return numbers.is_in(again.implode())


def slim(*frames: pl.DataFrame) -> pl.DataFrame:
    """Join frames in as little memory as possible; the given frames are emptied.

    Each column is joined separately, so a large frame is never held twice, and in one chunk: polars copies
    columns with different chunks whenever it uses them together. One without values becomes a constant, which
    takes no memory, in derived frames too.
    """
    schema, height = frames[0].schema, sum(frame.height for frame in frames)
    present, absent = [], []
    for name, kind in schema.items():
        # concat's own rechunk would keep the source buffers.
        column = pl.concat([frame.drop_in_place(name) for frame in frames]).rechunk()
        if column.count():
            present.append(column)
        else:
            absent.append(pl.lit(None, kind).alias(name))
    joined = pl.DataFrame(present) if present else pl.DataFrame(height=height)
    return joined.with_columns(absent)[list(schema)] if absent else joined
