"""The summary of a run: `summary.json`, and what every report is made of.

It holds no names and no account numbers: a row is named by its number in the file and by the
payer's own payment id.
"""

from decimal import Decimal
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from schemas.banks import BankOutcomes
from schemas.changes import BankComparison, Comparison
from schemas.localized import LocalizedText
from schemas.outcomes import Action, ApiName, Environment, Outcome, WarningCode
from schemas.row_positions import RowPositions
from schemas.strict import OwnDocument, Spoken

TOTALS_DIFFER: Final = "TOTALS_DIFFER"
"""A total or a count in the file is not that of its payments."""
ROWS_NAMED_MAX = 10
"""Rows of one kind that a document names."""
ROWS_LISTED_MAX = 1_000
"""Where a document has an item for each."""


class NotPayment(OwnDocument):
    """A table row that is not a payment: in no outcome file, count or sum."""

    place: int | None
    """The line, or the row of the sheet; None if the format has neither."""
    row: int | None
    """The number that it would have as a payment; None of a second line of headers."""
    kind: Literal["headers", "total", "subtotal", "count", "note"]
    label: str | None
    """The label that was found in it; None of a sum without one, and of text below a label."""
    amount: Decimal | None = None
    currency: str | None = None
    payment_count: int | None = None
    agrees: bool | None = None
    """True if its figure is that of the payments; None if it has none."""
    said: LocalizedText
    """All of this."""


class StatedControl(OwnDocument):
    """A control total of a payment format: what the file states beside what is in it."""

    where: Spoken
    said: str
    """Empty if the file says nothing that can be compared."""
    found: str | None
    """None if it cannot be added up."""
    agrees: bool | None
    """None if `found` is."""
    difference: LocalizedText | None
    """How they differ; None if they do not."""


class SetAside(OwnDocument):
    """Entries of a format that are not payments: reported, never checked."""

    kind: str
    """Singular: direct debit."""
    code: str | None
    row_count: int
    lines: list[int]
    """The first ten of them."""

    said: LocalizedText
    """What stands where."""


class BankCode(StrEnum):
    """A rule of banks on the files that they take."""

    VERSION_RETIRED = "VERSION_RETIRED"
    ID_REPEATED = "ID_REPEATED"
    EXECUTION_DATE = "EXECUTION_DATE"
    ADDRESS_UNSTRUCTURED = "ADDRESS_UNSTRUCTURED"
    CHARACTERS = "CHARACTERS"
    TOO_LONG = "TOO_LONG"
    ONE_PAYMENT = "ONE_PAYMENT"


class BankWarning(OwnDocument):
    """What a bank may refuse in a payment file."""

    code: BankCode
    path: str
    """Of the first element that is against the rule, below the message."""
    place_count: int
    value: str
    """What is odd there."""
    since: str | None
    """The day from which banks apply the rule; None: always."""
    source: str
    said: LocalizedText
    """All of it, and what to do."""


class CurrencySources(OwnDocument):
    """By what the currencies of the amounts are known: how many rows each way."""

    given: int = 0
    """By a currency column, or by a header."""
    beside_amount: int = 0
    """By the sign or code in the amount's cell."""
    uk_account: int = 0
    """By nothing but the UK account: pounds."""
    unknown: int = 0
    """Not at all: the currency of an IBAN's payment is never guessed."""


class MadeOf(OwnDocument):
    """The run whose corrected payments a file has, or those that it held."""

    folder: Annotated[str, Field(description="Of that run, from the folder of this one.")]
    name: Annotated[str, Field(description="Of the file of that run.")]
    is_corrected: Annotated[bool, Field(description="False: the file has the payments that were held.")]
    first_sha256: Annotated[str, Field(description="Of the first file of the family.")]
    rows: Annotated[
        list[tuple[int, int]] | None,
        Field(description="Of that first file, as ranges in the order of this one; null: all of them."),
    ]


class InputFile(OwnDocument):
    """The payment file, as it was read."""

    name: str
    sha256: str
    byte_count: int
    row_count: int
    made_of: MadeOf | None = None
    """None: no run that is known corrected or held these payments."""
    format: str
    format_said: bool = False
    """True if `--input-format` said it."""
    layout: dict[str, JsonValue] | None = None
    """Section of a format that the configuration describes; None: a built-in format."""
    compression: Literal["gzip", "zip"] | None = None
    """How the file is packed; None if it is not."""
    unpacked_name: str | None = None
    """Name of the file inside a compressed file; its suffix is that of a payment file."""
    encoding: str
    sheet: str | None = None
    """Sheet of a workbook, as the user named it; None: the only one with data."""
    country: str | None = None
    """Country of all accounts without an IBAN, by `--country` or the profile; None: the file shows it."""
    columns: dict[str, str]
    """Header -> the canonical field it was read as; other columns are only carried along."""
    mapping: dict[str, str] = {}
    """Field -> header, as `--map` gave it."""
    decision: dict[str, str] = {}
    """Field -> the columns it was read from, by place, as `--map` would take it."""
    notes: list[LocalizedText] = []
    """Decisions about columns that a person may want to know."""
    header_line: bool = True
    """True if the file has one; where it has none, its columns are named by their places."""
    delimiter: str | None = None
    """Between the cells of a line; None if the format has none."""
    line_end: str | None = None
    byte_order_mark: bool = False
    sheet_name: str | None = None
    """The sheet with the payments, in a workbook."""
    numbers: tuple[str, ...] = ()
    """In a workbook: the columns of amounts whose filled cells are all numbers."""
    extra_column_count: int = 0
    """How many columns of the outcome file, the last before its own, hold what rows had too many."""
    places: RowPositions | None = None
    """Where the rows stand in the file; None if the format has no lines, as Parquet."""
    not_payments: list[NotPayment] = []
    """The rows of the table that are no payments, in the order of the file."""
    warning_codes: list[Literal["TOTALS_DIFFER"]] = []
    """Oddities of the file as a whole, by code."""

    facts: dict[str, str] = {}
    """What a payment format says of itself: its version, its encoding and the like."""
    controls: list[StatedControl] = []
    """The control totals of a payment format: those that differ, then others, a thousand at most."""
    control_count: int = 0
    """All of them."""
    set_aside: list[SetAside] = []
    """Contents of the file beside payments."""
    bank_warnings: list[BankWarning] = []
    """What a bank may refuse, as its rules were when the file was checked."""

    @model_validator(mode="after")
    def _with_codes(self) -> Self:
        """Name by its code that totals differ."""
        if self.differences:
            self.__dict__["warning_codes"] = [TOTALS_DIFFER]
        return self

    @property
    def differences(self) -> list[LocalizedText]:
        """Where the file's own figures differ from its payments, to be looked at first."""
        stated = [control.difference for control in self.controls if control.difference]
        return [*(row.said for row in self.not_payments if row.agrees is False), *stated]

    currency_sources: CurrencySources = CurrencySources()


class Money(OwnDocument):
    """A total in one currency."""

    currency: str | None
    """None if the file gives no currency."""
    row_count: int
    amount: Decimal


class OutcomeTotal(OwnDocument):
    """The rows of one outcome."""

    outcome: Outcome
    row_count: int
    totals: list[Money]
    """By currency; rows without a readable amount are in `row_count` only."""


class BatchTotal(OwnDocument):
    """The rows of one batch of a payment format."""

    batch: str | None
    """As the file names it; an account in it is masked. None if it has no name."""
    location: str
    """Where it stands: `PmtInf[2]`, or the line of its first payment."""
    row_count: int
    to_look_at_count: int
    """Rows that a person must look at before the file is paid: decided, and not a match."""
    totals: list[Money]
    """By currency; rows without a readable amount are in `row_count` only."""


class PartTotal(OwnDocument):
    """One part of a data set."""

    name: str
    """Of its file."""
    problem: Spoken | None
    """Why it cannot be used, and what to do; None if it was checked."""
    first_row: int | None
    """The row of the data set that its first row is; None if it cannot be used."""
    row_count: int
    to_look_at_count: int
    """Rows that a person must look at before the file is paid: decided, and not a match."""
    undecided_count: int
    """Rows that are left for a later run."""
    totals: list[Money]
    """By currency; rows without a readable amount are in `row_count` only."""
    outcome_file: str | None
    """In the folder of the run; None if there is none."""
    outcome_sha256: str | None = None
    outcome_byte_count: int = 0


class CodeCount(OwnDocument):
    """The rows with one code."""

    outcome: Outcome
    code: str
    action: Action
    reason: str
    row_count: int
    rows: list[int]
    """The first ten of them."""


class ApiCalls(OwnDocument):
    """Calls of one API."""

    api: ApiName
    question_count: int
    """Distinct questions in the file."""
    answered_before_count: int
    """Questions whose answer an earlier run of the same folder had."""
    reused_count: int = 0
    """Questions whose answer an earlier run of another folder had, by --reuse-from."""
    elsewhere_count: int = 0
    """Questions that other processes answered meanwhile, where they share the run."""
    request_count: int
    """Requests sent by this run, retries included."""
    repeat_count: int = 0
    """Requests that repeated a question, perhaps one of an earlier run."""
    pause_count: int = 0
    """Pauses that the server asked for, as there were too many requests for it."""
    in_flight_least: float | None = None
    """The fewest requests that the run let be in flight for that; below 1, a part of its rate. None: all."""


class RouteCount(OwnDocument):
    """The rows that went one way, and why."""

    api: ApiName
    reason: str
    bic_source: str | None
    """Where the responder's BIC came from, for VoP Standard: file, table or registry."""
    row_count: int


class AttentionRow(OwnDocument):
    """A row that a person must look at before the file is paid."""

    row: int
    payment_id: str | None
    outcome: Outcome
    code: str
    action: Action
    reason: str
    amount: Decimal | None
    currency: str | None


class WarningRow(OwnDocument):
    """Something odd about a row that stopped nothing."""

    row: int
    code: str
    message: str


class WarningCount(OwnDocument):
    """The rows that one warning is about."""

    code: WarningCode
    row_count: int
    rows: list[int]
    """The first ten of them."""
    every_row: list[int] = []
    """All of them, which a policy can hold; none in the summary of a data set."""


class ModulusUsed(OwnDocument):
    """The tables of the UK modulus check that the profile named."""

    valid_from: str
    """Their date, as the profile gives it."""
    weights_sha256: str
    substitutions_sha256: str
    is_old: bool
    """True if they were too old to reject a payment."""
    uncovered_count: int
    """UK accounts, each counted once, on sort codes that the tables do not cover: they were not checked."""


class ReportUsed(OwnDocument):
    """A bank's report that was imported; a file that anybody can type."""

    name: str
    """Of the copy in the folder."""
    given_as: str
    """The name of the file that was imported."""
    sha256: str
    provided_by: str
    """Who gave it; nothing proves that it is the bank's."""
    provided: str
    """When it was imported."""
    message_ids: list[str]
    """By which the reports in it call themselves."""
    remarks: list[str] = []
    """What they say of the whole file, such as legal texts."""


REHEARSAL = "rehearse"
"""The built-in profile of `--rehearse`."""


class Summary(OwnDocument):
    """What a run found, in one document."""

    tool_version: str
    profile: str
    environment: Environment
    simulated: bool
    """True if the answers come from a sandbox and say nothing about any real account."""
    many_names_reason: str | None = None
    """Why one account was allowed to be asked about by many names; None if it was not allowed."""
    started: str
    finished: str
    input: InputFile
    outcomes: list[OutcomeTotal]
    """Every outcome, in the order of the documentation; those without rows too."""
    codes: list[CodeCount]
    batches: list[BatchTotal] = []
    """The first thousand batches, in file order, of a format that has batches."""
    batch_count: int = 0
    """All of them."""
    banks: list[BankOutcomes] = []
    """Banks that answered, those of most rows first; the first thousand. None of a data set."""
    bank_count: int = 0
    """All of them."""
    parts: list[PartTotal] = []
    """All parts of a data set, unusable ones first."""
    routes: list[RouteCount]
    calls: list[ApiCalls]
    saved_call_count: Annotated[int, Field(ge=0)]
    """Calls that asking each distinct question once saved."""
    attention: list[AttentionRow]
    """No-match and not-possible rows, largest amounts first; the first thousand."""
    attention_count: int
    warnings: list[WarningRow]
    """The first thousand."""
    warning_count: int
    warning_codes: list[WarningCount] = []
    """Every code that has a row."""
    warned_match_count: int = 0
    """Matches with a warning about the payee: a person looks at them, too."""
    compared: Comparison | None = None
    """With which earlier runs the file was compared; None where with none."""
    modulus: ModulusUsed | None = None
    """None if the profile names no tables."""
    bank_reports: list[ReportUsed] = []
    """The reports of the payer's bank that were imported, oldest first. Where nothing was asked, every answer
    comes from them."""
    bank_comparison: BankComparison | None = None
    """How a check agrees with them; None where nothing was asked."""
    complete: bool
    """False where rows are left for a later run."""
    next_step: str | None
    """When and how to go on, where the run is not complete."""
    given_up: bool = False
    """True if it is not complete, and running the same command again would ask nothing: what is left was
    asked in several runs without an answer."""

    @property
    def undecided_count(self) -> int:
        """Rows that are left for a later run."""
        return self._row_count(Outcome.DEFERRED, Outcome.UNANSWERED)

    @property
    def to_look_at_count(self) -> int:
        """Decided rows that a person must look at: not a match, or with a warning about the payee."""
        others = self.input.row_count - self._row_count(Outcome.MATCH) - self.undecided_count
        return others + self.warned_match_count

    @property
    def compares_banks(self) -> bool:
        """True if there are banks to compare: more than one, and not one answer from each."""
        return self.bank_count > 1 and self.banks[0].answered_count > 1

    @property
    def is_bank_answered(self) -> bool:
        """True if the payer's bank answered by its reports, and nothing was asked."""
        return self.environment is Environment.BANK

    @property
    def is_rehearsal(self) -> bool:
        """True if the answers were invented to try a file of one's own, so that nothing comes of them."""
        return self.simulated and self.profile == REHEARSAL

    @property
    def is_unasked(self) -> bool:
        """True if nothing was answered yet, so that there is nothing to decide."""
        return (
            not self.complete
            and self.to_look_at_count == self._row_count(Outcome.REJECTED)
            and not (self._row_count(Outcome.MATCH))
        )

    def _row_count(self, *outcomes: Outcome) -> int:
        return sum(total.row_count for total in self.outcomes if total.outcome in outcomes)

    @property
    def run_id(self) -> str:
        """Names these answers to this file: 32 hexadecimal digits, others after every run that wrote."""
        codes = [f"{count.code} {count.row_count} {count.rows}" for count in self.codes]
        content = "\n".join((self.input.sha256, self.finished, *codes))
        return sha256(content.encode()).hexdigest()[:32]
