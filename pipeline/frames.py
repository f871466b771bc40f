"""The frames that travel between stages: their columns, types and meaning.

One row of `Payments` is one payment row of the file; of `Accepted`, a payment fit to be checked; of
`Rejects` and `Warnings`, one finding about one payment; of `Checks` and `Bases`, one distinct
question; of `Answers`, what came back for one question; of `Outcomes`, one payment, decided.

Identifiers are text from the first byte read to the last byte written. Null means absent; there
are no empty strings in a canonical field. A column whose values are a closed set has that set for its
type: nothing else can be in it, and it takes a byte a row.
"""

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
    REFUSED = "refused"  # a 400: the server will not look at it, today or tomorrow
    UNANSWERED = "unanswered"  # no usable reply; worth asking again in a later run
    DEFERRED = "deferred"  # not asked: a limit left it for a later run


class OwnCode(StrEnum):
    """The codes of questions that no server gave a code to."""

    DAILY_CAP = "DAILY_CAP"  # deferred: the day's requests are used up
    LIMIT = "LIMIT"  # deferred: --limit
    SERVER_PAUSE = "SERVER_PAUSE"  # deferred: the server asked for more or longer pauses than a run sits out
    CONTRACT = "CONTRACT"  # unanswered: the reply breaks the API reference
    NETWORK = "NETWORK"  # unanswered: no whole reply, or no connection
    DEADLINE = "DEADLINE"  # unanswered: no whole reply in time
    CLOCK = "CLOCK"  # unanswered: the server refuses the time of the request
    TURNED_AWAY = "TURNED_AWAY"  # deferred: the server let in no other question either
    NOT_IN_REPORT = "NOT_IN_REPORT"  # unanswered: no report of the bank names the payment
    REPORT_AMBIGUOUS = "REPORT_AMBIGUOUS"  # unanswered: what the bank reports fits several payments
    REPORT_DIFFERS = "REPORT_DIFFERS"  # unanswered: the bank reports another account, or two results
    REPORT_STATUS = "REPORT_STATUS"  # unanswered: the bank reports a status that is no result of a check
    PDNG = "PDNG"  # unanswered: the bank has not finished, by its report
    RVNC = "RVNC"  # unanswered: the bank ended its check without a result, by its report
    RUN_ENDED = "RUN_ENDED"  # deferred: the run ended before it was asked; unanswered: before a reply came


TURNED_AWAY_STATUSES = frozenset({*range(201, 500), *range(600, 1000)}) - {408, 425, 429}
"""HTTP statuses with which a server, or a proxy before it, refuses a question: all but 200, those
of a server in trouble, and those that ask to be tried again. 400, 413, 415 and 422 are among them where they
are not the API's own refusal of the question."""
TURNED_AWAY_CODES = frozenset({OwnCode.CLOCK, *(f"HTTP_{status}" for status in TURNED_AWAY_STATUSES)})
"""The codes of questions that were not let in: their status is shown, whatever code the server gives it."""


class Meaning(NamedTuple):
    """The meaning of a code for the payer."""

    outcome: Outcome
    action: Action
    reason: Sentence  # what it means; beside every row that has it
    not_said: Sentence  # what it must not be taken for: completes "it does not say"
    advice: Sentence | None = None  # what to do, where there is more to it than the action says


class RouteReason(StrEnum):
    """Why a payment goes to its API."""

    GB_IBAN = "GB IBAN: checked by the sort code and account number in it"
    IBAN = "IBAN"
    SORT_CODE = "sort code and account number"


UK_ROUTES = frozenset({RouteReason.GB_IBAN, RouteReason.SORT_CODE})
"""The reasons that a payment to a UK account has; it is asked about by 14 digits, whichever API checks it."""


class BicSource(StrEnum):
    """The source of a responder's BIC."""

    FILE = "file"
    TABLE = "table"  # the user's own
    REGISTRY = "registry"


NOTE = "Note: "
"""Prefix of each warning in the reason of an outcome."""

Schema = dict[str, pl.DataType]

MONEY = pl.Decimal(precision=38, scale=3)
"""Amounts, exact, in the currency's main unit: no currency has more than three decimals in use."""

API = pl.Enum(ApiName)
STATE = pl.Enum(AnswerState)
OUTCOME = pl.Enum(Outcome)
ACTION = pl.Enum(Action)

PAYMENTS: Schema = {
    "row": pl.UInt32(),  # 1-based data row of the file; the header is not counted
    "defect": pl.String(),  # what the reader found wrong with the row as a whole; null if nothing
    **{field: pl.String() for field in FIELDS},
}

FINDINGS: Schema = {
    "row": pl.UInt32(),
    "field": pl.String(),
    "code": pl.String(),
    "message": pl.String(),  # for a person, in English; never quotes a name or an account number
    "said": pl.String(),  # the same as `Sentence.as_text`
}
REJECTS = FINDINGS
WARNINGS = FINDINGS

PAYEES: Schema = {
    "row": pl.UInt32(),
    "payee_id": pl.String(),  # what the payer knows the payee by, or an identification; null if neither
    "name": pl.String(),  # null if the payee is asked for by identification
    "account": pl.String(),  # one text for one account, however the file writes it
    "secondary_reference": pl.String(),
}
"""Payees and their accounts, normalised for comparing two files: one row per accepted payment."""

PAYEE_KEYS: Schema = {
    "row": pl.UInt32(),  # the last payment that says the same
    "payee_id": pl.UInt64(),  # a keyed hash, as are the next two
    "name": pl.UInt64(),
    "account": pl.UInt64(),
    "account_shown": pl.String(),  # masked
}
"""Keys of the `Payees` of a run, under the key of its folder."""

KEPT_PAYEES: Schema = {
    **PAYEE_KEYS,
    "known": pl.String(),  # rules.known_payees.PayeeStatus
    # Of what is carried: the folder of the run that knew it, when that ended, and the key of its hashes.
    "folder": pl.String(),
    "finished": pl.String(),
    "payee_key": pl.String(),  # in hexadecimal digits
}
"""What a run keeps for the next one to compare with: its own `PayeeKeys`, and what it carries of others."""

CHANGES: Schema = {
    "row": pl.UInt32(),
    "code": pl.String(),  # BANK_DIFFERS, ACCOUNT_CHANGED, NAME_CHANGED or PAYEE_NEW
    "then": pl.String(),  # masked; null if the payee is new, or the earlier run no longer has it
    "now": pl.String(),  # masked
    "earlier": pl.String(),  # folder of the earlier run, or id of the bank's report; null if the payee is new
}
"""Differences from an earlier run or a bank's report: at most one row per payment and code."""

QUESTION: Schema = {
    "api": API,
    "account": pl.String(),  # in the UK: sort code and account number, 14 digits; elsewhere: the IBAN
    "name": pl.String(),  # null if the payee is asked for by identification
    "account_type": pl.Enum(AccountType),  # cop only
    "secondary_reference": pl.String(),  # cop only
    "lei": pl.String(),
    "organisation_bic": pl.String(),
    "organisation_id": pl.String(),
    "organisation_id_scheme": pl.String(),
    "organisation_id_issuer": pl.String(),
    "responder_bic": pl.String(),  # vop_standard only: BIC11
    "remittance": pl.String(),  # vop_standard only, where the profile sends it
}
"""What makes two payments one question: equal in all of these."""

ACCEPTED: Schema = {
    "row": pl.UInt32(),
    **QUESTION,
    "route_reason": pl.Enum(RouteReason),
    "bic_source": pl.Enum(BicSource),  # vop_standard only
    "amount": MONEY,  # null if the file gives none
    "currency": pl.String(),
}

IS_UK = pl.col("route_reason").is_in(list(UK_ROUTES))
"""True if the account of an accepted payment is a UK account."""

CHECKS: Schema = {"check": pl.UInt32(), **QUESTION}

BASES: Schema = {
    "check": pl.UInt32(),
    "api": API,
    "by_name": pl.Boolean(),  # otherwise by an identification
}
"""Per question, the columns that its answer is read with once asking has ended."""

ASSIGNMENTS: Schema = {"row": pl.UInt32(), "check": pl.UInt32()}
"""Which question answers which payment: one row per accepted payment."""

ANSWERS: Schema = {
    "check": pl.UInt32(),
    "state": STATE,
    "code": pl.String(),  # verbatim: a reason code, a problem code, or one of our own
    "matched_name": pl.String(),
    "request_id": pl.String(),  # correlation id of the accepted answer
    "time": pl.String(),  # UTC, milliseconds, Z
    "attempts": pl.UInt32(),  # requests of this run for it; usually 0 if the answer is reused
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
    "said": pl.String(),  # the sentences that it is made of: a JSON list of what `Sentence.as_data` gives
}
"""What stands behind each distinct reason of the outcomes, for pages in other languages."""

CORRECTIONS: Schema = {
    "row": pl.UInt32(),
    "field": pl.String(),  # null if the reason alone says what is wrong
    "kind": pl.String(),  # the Acceptance that it takes; null if no answer says what is right
    "header": pl.String(),  # the column to write to; null if there is not exactly one
    "from": pl.String(),
    "to": pl.String(),  # null where only the payee knows it
    "why": pl.String(),
    "obstacle": pl.String(),  # why this program cannot write it, as a sentence; null if it can
}

DECISIONS: Schema = {
    "row": pl.UInt32(),
    "decision": pl.String(),  # a Decision
    "reason": pl.String(),  # null only if the decision is to hold
    "by": pl.String(),  # who decided
    "time": pl.String(),  # when, UTC, ISO 8601 with Z
    "claimed_by": pl.String(),  # the approver that a workbook names, unverified; null if none
}
"""What people decided: at most one row per payment."""

WARNED: Schema = {
    "row": pl.UInt32(),
    "code": pl.String(),  # a WarningCode
}
"""Which payments carry which warning: at most one row per payment and code."""

PLACEMENTS: Schema = {
    "row": pl.UInt32(),
    "place": pl.String(),  # release or hold
    "why": pl.String(),  # the key of the sentence that says why it is held; null if it is not
    "why_of": pl.String(),  # what that sentence names
    "decided": pl.Boolean(),  # whether a person decided so
}


# Each frame has a type of its own, so that two that are swapped do not pass the type checker. To take
# rows out of one, or to change its columns, gives a plain frame; who calls it one has checked its schema.

Payments = NewType("Payments", pl.DataFrame)
Original = NewType("Original", pl.DataFrame)
"""The columns of the file, untouched; a row for each of `Payments`."""
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
        """The same, with warnings that came later."""
        return Findings(self.rejects, Warnings(pl.concat([self.warnings, more])))


class Questions(NamedTuple):
    """The questions, and the payments they are for."""

    bases: Bases
    assignments: Assignments


class Check(NamedTuple):
    """One question, as a row of `Checks`, for the one hop that is truly one at a time."""

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


class Answer(NamedTuple):
    """The result of one question, as a row of `Answers`."""

    check: int
    state: AnswerState
    code: str
    matched_name: str | None
    request_id: str | None
    time: str | None
    attempts: int


def recurring(numbers: pl.Series) -> pl.Series:
    """True for each number that repeats. Sorting is faster than `is_duplicated` and takes less memory."""
    ordered = numbers.sort()
    again = ordered.filter(ordered == ordered.shift(1)).unique()
    return numbers.is_in(again.implode())


def slim(*frames: pl.DataFrame) -> pl.DataFrame:
    """The rows of all frames in one, in as little memory as they need; what was given is empty afterwards.

    Columns that are cut in different places are copied, all of them, whenever they are used together. Here
    each is put into one piece by itself, so that a large frame is never there twice. A column without any
    value becomes a constant, which takes nothing, also in what is made of the frame.
    """
    schema, height = frames[0].schema, sum(frame.height for frame in frames)
    present, absent = [], []
    for name, kind in schema.items():
        # Not by concat's own rechunk, which keeps the buffers that the pieces are cut from.
        column = pl.concat([frame.drop_in_place(name) for frame in frames]).rechunk()
        if column.count():
            present.append(column)
        else:
            absent.append(pl.lit(None, kind).alias(name))
    joined = pl.DataFrame(present) if present else pl.DataFrame(height=height)
    return joined.with_columns(absent)[list(schema)] if absent else joined
