"""The forecast of a check: `precheck plan --json`."""

from pydantic import Field, JsonValue

from schemas.changes import Change, Comparison
from schemas.outcomes import ApiName, Environment
from schemas.prices import Price
from schemas.row_positions import RowPositions
from schemas.strict import OwnDocument, Spoken
from schemas.summary import BankWarning, CurrencySources, NotPayment, SetAside, StatedControl, WarningCount


class ApiForecast(OwnDocument):
    """The forecast for one API."""

    api: ApiName
    row_count: int
    question_count: int  # distinct questions in the file
    answered_before_count: int = 0  # questions with an answer from an earlier run in the same folder
    reused_count: int = 0  # questions with an answer from a run in another folder (--reuse-from)
    call_count: int  # questions left to ask
    price_per_call: Price | None = None  # the profile's price; null without one
    cost: Price | None = None  # cost of the calls without repeats; null without a price
    rate_per_s: float
    duration_s: float  # seconds at the configured rate if every first request is answered
    daily_cap: int | None
    used_count: int = 0  # requests already used in the current window
    day_count: int  # days needed under the cap, including today if calls are left


class RejectedRow(OwnDocument):
    """One broken rule of one row."""

    row: int
    place: str | None = None  # position in the file, such as `line 18`; None if the format has no lines
    field: str
    code: str
    message: str
    name: str | None = Field(None, exclude=True)
    """The payee's name in the row; this and the next two cells are only for pages of the desk."""
    amount: str | None = Field(None, exclude=True)
    cell: str | None = Field(None, exclude=True)


class BrokenRule(OwnDocument):
    """A rule that some rows break in the same way."""

    field: str
    code: str
    message: str
    row_count: int
    rows: list[int]  # the first ten rows
    sentence: list[JsonValue] = Field([], exclude=True)
    """The message's sentence, as in `frames.FINDINGS`, for pages in other languages."""


class Forecast(OwnDocument):
    """The forecast of a file's check, made without a call."""

    environment: Environment
    input_name: str
    row_count: int
    accepted_count: int
    rejected_count: int  # rows that break a local rule
    unasked_count: int = 0  # valid rows that the profile excludes from checking
    apis: list[ApiForecast]
    costs: list[Price] = []  # cost of all calls that have a price, by currency
    saved_call_count: int
    rejects: list[RejectedRow]  # the first thousand, in row order
    broken_rules: list[BrokenRule]  # all broken rules, most frequent first
    warning_count: int
    refusal: Spoken | None = None  # why a run of this file would not send anything; None if it would
    warning_codes: list[WarningCount] = []  # warnings that need no answer, by code
    compared: Comparison | None = None  # the comparison with earlier runs; None without one
    changes: list[Change] = []  # since these runs: the first thousand of each code, largest amounts first
    why_uncounted: Spoken | None = None  # why earlier answers in the folder are not counted; None if they are
    shared_ledger: str | None = None
    """The address of a shared ledger, which the forecast does not query: answers and used caps of other hosts
    are not counted.
    """
    positions: RowPositions | None = None  # where rows are in the file; None if the format has no lines
    notes: list[Spoken] = []  # notes for people on how columns were chosen
    not_payments: list[NotPayment] = []  # rows of the table that are not payments
    controls: list[StatedControl] = []  # totals that the file states, at most 1,000, differing ones first
    set_aside: list[SetAside] = []  # contents of the file other than payments
    bank_warnings: list[BankWarning] = []  # what a bank may refuse
    currency_sources: CurrencySources = CurrencySources()  # how the currency of each row is known
