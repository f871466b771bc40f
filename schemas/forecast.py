"""What checking a file would take: `precheck plan --json`."""

from typing import Annotated

from pydantic import Field, JsonValue

from schemas.changes import Change, Comparison
from schemas.outcomes import ApiName, Environment
from schemas.prices import Price
from schemas.row_positions import RowPositions
from schemas.strict import OwnDocument, Spoken
from schemas.summary import BankWarning, CurrencySources, NotPayment, SetAside, StatedControl, WarningCount


class ApiForecast(OwnDocument):
    """What asking one API would take."""

    api: ApiName
    row_count: int
    question_count: int
    """Distinct questions in the file."""
    answered_before_count: int = 0
    """Questions whose answer an earlier run of the same folder has."""
    reused_count: int = 0
    """Questions whose answer an earlier run of another folder has, by --reuse-from."""
    call_count: int
    """Questions that are left to be asked."""
    price_per_call: Price | None = None
    """As the profile has it; null if it has none."""
    cost: Price | None = None
    """Cost of these calls without repeats. Null if there is no price."""
    rate_per_s: float
    duration_s: float
    """At the configured rate, if every one of them is answered at the first request."""
    daily_cap: int | None
    used_count: int = 0
    """Requests of the current window that are used already."""
    day_count: int
    """On how many days they can be asked under the cap, today included where it has any left."""


class RejectedRow(OwnDocument):
    """One broken rule of one row."""

    row: int
    place: str | None = None
    """Where the row stands in the file, such as `line 18`; None if the format has no lines."""
    field: str
    code: str
    message: str
    name: Annotated[str | None, Field(exclude=True)] = None
    """Of the payee, as are the other cells: for the pages of the desk."""
    amount: Annotated[str | None, Field(exclude=True)] = None
    cell: Annotated[str | None, Field(exclude=True)] = None
    """What stands in the field."""


class BrokenRule(OwnDocument):
    """A rule that some rows break in the same way."""

    field: str
    code: str
    message: str
    row_count: int
    rows: list[int]
    """The first ten of them."""
    said: Annotated[list[JsonValue], Field(exclude=True)] = []
    """The sentence behind the message, as in `frames.FINDINGS`, for pages in other languages."""


class Forecast(OwnDocument):
    """What checking a file would take, found without a call."""

    environment: Environment
    input_name: str
    row_count: int
    accepted_count: int
    rejected_count: int
    """Those that break a local rule."""
    unasked_count: int = 0
    """Those that break none and that the profile wants not to be asked about."""
    apis: list[ApiForecast]
    costs: list[Price] = []
    """Cost of all calls that have a price, by currency."""
    saved_call_count: int
    rejects: list[RejectedRow]
    """The first thousand, row by row."""
    broken_rules: list[BrokenRule]
    """All of them, those of most rows first."""
    warning_count: int
    refusal: Spoken | None = None
    """Why a run of this file would send nothing; None if it would be asked about."""
    warning_codes: list[WarningCount] = []
    """Every code of a warning that needs no answer."""
    compared: Comparison | None = None
    """With which earlier runs the file was compared; None where with none."""
    changes: list[Change] = []
    """Changes since these; the first thousand of each code, largest amounts first."""
    why_uncounted: Spoken | None = None
    """Why no answer of an earlier run in the same folder is counted; None if all of them are."""
    shared_ledger: str | None = None
    """The address of a ledger that hosts share, which is not asked: what other hosts have in it, answers and
    what they have used of a daily cap, is not counted."""
    places: RowPositions | None = None
    """Where the rows stand in the file; None if the format has no lines."""
    notes: list[Spoken] = []
    """Decisions about columns that a person may want to know."""
    not_payments: list[NotPayment] = []
    """The rows of the table that are no payments."""
    controls: list[StatedControl] = []
    """The control totals of a payment format: those that differ, then others, a thousand at most."""
    set_aside: list[SetAside] = []
    """Contents of the file beside payments."""
    bank_warnings: list[BankWarning] = []
    """What a bank may refuse."""
    currency_sources: CurrencySources = CurrencySources()
    """How the currency of each row is known."""
