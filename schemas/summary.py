"""The summary of a run: `summary.json`, the source of every report.

It has no names or account numbers: a row is identified by its number in the file and the payer's own payment
ID.
"""

from decimal import Decimal
from enum import StrEnum
from hashlib import sha256
from typing import Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from schemas.changes import BankComparison, BankOutcomes, Comparison
from schemas.localized import LocalizedText
from schemas.outcomes import Action, ApiName, Environment, Outcome, WarningCode
from schemas.row_positions import RowPositions
from schemas.strict import OwnDocument, Spoken

TOTALS_DIFFER: Final = "TOTALS_DIFFER"  # a total or count in the file differs from its payments
ROWS_NAMED_MAX = 10  # maximum number of rows of one kind that a document lists
ROWS_LISTED_MAX = 1_000  # maximum number of items that a document lists


class NotPayment(OwnDocument):
    """A table row that is not a payment; outcome files, counts and sums leave it out."""

    place: int | None  # its line or sheet row; None if the format has neither
    row: int | None  # the number that it would have as a payment; None for a second line of headers
    kind: Literal["headers", "total", "subtotal", "count", "note"]
    label: str | None  # the label found in it; None for a sum without one or text below a label
    amount: Decimal | None = None
    currency: str | None = None
    payment_count: int | None = None
    agrees: bool | None = None  # true if the stated figure agrees with the payments; None if none is stated
    sentence: LocalizedText  # a sentence about the row


class StatedControl(OwnDocument):
    """A control total of a payment format: the stated figure and the actual one."""

    where: Spoken
    stated: str  # empty if the file states nothing comparable
    found: str | None  # the actual total; None if it cannot be added up
    agrees: bool | None  # true if both are equal; None if `found` is None
    difference: LocalizedText | None  # the difference; None if there is none


class SetAside(OwnDocument):
    """Entries of a file that are not payments: reported, never checked."""

    kind: str  # name in the singular: direct debit
    code: str | None
    row_count: int
    lines: list[int]  # the first ten line numbers

    sentence: LocalizedText  # the sentence about them


class BankCode(StrEnum):
    """A bank's rule for the files that it accepts."""

    VERSION_RETIRED = "VERSION_RETIRED"
    ID_REPEATED = "ID_REPEATED"
    EXECUTION_DATE = "EXECUTION_DATE"
    ADDRESS_UNSTRUCTURED = "ADDRESS_UNSTRUCTURED"
    CHARACTERS = "CHARACTERS"
    TOO_LONG = "TOO_LONG"
    ONE_PAYMENT = "ONE_PAYMENT"


class BankWarning(OwnDocument):
    """Something in a payment file that a bank may refuse."""

    code: BankCode
    path: str  # path of the first element that breaks the rule, below the message
    place_count: int
    value: str  # the value that breaks the rule
    since: str | None  # first day of the rule; None: always
    source: str
    sentence: LocalizedText  # the whole warning, and what to do


class CurrencySources(OwnDocument):
    """The number of rows for each source of their currency."""

    given: int = 0  # from a currency column or a header
    beside_amount: int = 0  # from the sign or code in the amount's cell
    uk_account: int = 0  # pounds, inferred from the UK account
    unknown: int = 0  # unknown, because the currency of a payment to an IBAN is never guessed


class MadeOf(OwnDocument):
    """The run whose corrected, held or released payments a file contains."""

    folder: str = Field(description="The folder of that run, relative to this run's folder.")
    name: str = Field(description="The name of that run's file.")
    is_corrected: bool = Field(description="False: this is a hold or release file.")
    first_sha256: str = Field(description="SHA-256 of the first file of the family.")
    rows: list[tuple[int, int]] | None = Field(
        description="Rows of that first file, as ranges in this file's order; null: all rows."
    )


class FileDialect(OwnDocument):
    """The dialect of a payment file or part, in which its payments are written again."""

    encoding: str = "utf-8"
    header_line: bool = True  # true if there is a header line; otherwise columns are named by position
    header_cells: tuple[str, ...] = ()
    """The header line as it is in the file, if blank or repeated headers gave columns other names."""
    delimiter: str | None = None  # the separator between the cells of a line; None if the format has none
    line_end: str | None = None
    byte_order_mark: bool = False
    sheet_name: str | None = None  # the sheet with the payments, in a workbook
    numbers: tuple[str, ...] = ()  # the columns of amounts in a workbook whose filled cells are all numbers
    extra_column_count: int = 0  # columns in the outcome file for excess cells of rows
    lines_above: bool = False  # true if lines other than the header line precede the payments
    compression: Literal["gzip", "zip"] | None = None  # the file's compression, or None
    unpacked_name: str | None = None  # name inside a compressed file, if it has a payment file's suffix


class InputFile(FileDialect):
    """The payment file after reading."""

    name: str
    sha256: str
    byte_count: int
    row_count: int
    made_of: MadeOf | None = None  # None if no known run corrected or held these payments
    format: str
    format_said: bool = False  # true if `--input-format` was given
    layout: dict[str, JsonValue] | None = None  # the user's layout; None for a built-in format
    sheet: str | None = None  # sheet of a workbook, as the user named it; None: the only one with data
    country: str | None = None  # for accounts without an IBAN, by option or profile; None: from the file
    columns: dict[str, str]  # header -> its canonical field; other columns are copied unchanged
    mapping: dict[str, str] = {}  # field -> header, from `--map`
    decision: dict[str, str] = {}  # field -> its columns by position, in `--map` notation
    notes: list[LocalizedText] = []  # notes for people on how columns were chosen
    positions: RowPositions | None = None  # where rows are in the file; None if the format has no lines
    not_payments: list[NotPayment] = []  # the rows of the table that are not payments, in file order
    warning_codes: list[Literal["TOTALS_DIFFER"]] = []  # warnings about the whole file, by code

    facts: dict[str, str] = {}  # facts in a payment file about itself, such as version and encoding
    controls: list[StatedControl] = []  # totals that the file states, at most 1,000, differing ones first
    control_count: int = 0  # number of all control totals
    set_aside: list[SetAside] = []  # contents of the file other than payments
    bank_warnings: list[BankWarning] = []  # what a bank may refuse by its rules at the time of the check

    @model_validator(mode="after")
    def _with_codes(self) -> Self:
        """Add the code that totals differ."""
        if self.differences:
            self.__dict__["warning_codes"] = [TOTALS_DIFFER]
        return self

    @property
    def differences(self) -> list[LocalizedText]:
        """Differences between the file's own figures and its payments, to review first."""
        stated = [control.difference for control in self.controls if control.difference]
        return [*(row.sentence for row in self.not_payments if row.agrees is False), *stated]

    currency_sources: CurrencySources = CurrencySources()


class Money(OwnDocument):
    """A total in one currency."""

    currency: str | None  # None if the file gives no currency
    row_count: int
    amount: Decimal


class OutcomeTotal(OwnDocument):
    """The rows of one outcome."""

    outcome: Outcome
    row_count: int
    totals: list[Money]  # by currency; rows without a readable amount are only in `row_count`


class BatchTotal(OwnDocument):
    """The rows of one batch of a payment file."""

    batch: str | None  # name in the file, with any account masked; None without a name
    location: str  # position: `PmtInf[2]`, or the line of its first payment
    row_count: int
    to_look_at_count: int  # decided rows to review before payment, because they are not a match
    totals: list[Money]  # by currency; rows without a readable amount are only in `row_count`


class PartTotal(FileDialect):
    """One part of a data set."""

    name: str  # name of its file
    sha256: str = ""  # SHA-256 of its file; empty if it cannot be used
    problem: Spoken | None = None  # why it cannot be used, and what to do; None if it was checked
    first_row: int | None = None  # row number in the data set of its first row; None if it cannot be used
    row_count: int = 0
    to_look_at_count: int = 0  # decided rows to review before payment, because they are not a match
    undecided_count: int = 0  # rows left for a later run
    totals: list[Money] = []  # by currency; rows without a readable amount are only in `row_count`
    outcome_file: str | None = None  # its outcome file in the folder of the run, or None
    outcome_sha256: str | None = None
    outcome_byte_count: int = 0


class CodeCount(OwnDocument):
    """The rows with one code."""

    outcome: Outcome
    code: str
    action: Action
    reason: str
    row_count: int
    rows: list[int]  # the first ten rows


class ApiCalls(OwnDocument):
    """Calls to one API."""

    api: ApiName
    question_count: int  # distinct questions in the file
    answered_before_count: int  # questions with an answer from an earlier run in the same folder
    reused_count: int = 0  # questions with an answer from a run in another folder (--reuse-from)
    elsewhere_count: int = 0  # questions that other processes of a shared run answered meanwhile
    request_count: int  # requests sent by this run, retries included
    repeat_count: int = 0  # requests that repeated a question, perhaps one of an earlier run
    pause_count: int = 0  # pauses that the server requested after too many requests
    in_flight_least: float | None = None
    """The lowest limit in flight after such pauses; below 1, a share of the rate. None: never reduced."""


class RouteCount(OwnDocument):
    """The rows of one route, and the reason."""

    api: ApiName
    reason: str
    bic_source: str | None  # the source of the responder's BIC, for VoP Standard: file, table or registry
    row_count: int


class AttentionRow(OwnDocument):
    """A row to review before payment."""

    row: int
    payment_id: str | None
    outcome: Outcome
    code: str
    action: Action
    reason: str
    amount: Decimal | None
    currency: str | None


class WarningRow(OwnDocument):
    """A warning about a row, which did not stop its payment."""

    row: int
    code: str
    message: str
    repeats: int | None = None  # the row of the earlier payment that this one repeats


class WarningCount(OwnDocument):
    """The rows of one warning."""

    code: WarningCode
    row_count: int
    rows: list[int]  # the first ten rows
    every_row: list[int] = []  # all rows, because a policy may hold them; empty in the summary of a data set


class ModulusUsed(OwnDocument):
    """The tables of the UK modulus check in the profile."""

    valid_from: str  # their date in the profile
    weights_sha256: str
    substitutions_sha256: str
    is_old: bool  # true if they were too old to reject a payment
    uncovered_count: int  # distinct UK accounts with sort codes that the tables do not cover


class ReportUsed(OwnDocument):
    """An imported bank report; anyone could have written the file."""

    name: str  # the name of the copy in the folder
    given_as: str  # the name of the file that was imported
    sha256: str  # the hash of the copy
    provided_by: str  # the person who provided it; nothing proves that it comes from the bank
    provided: str  # when it was imported
    message_ids: list[str]  # the IDs of the reports in it
    remarks: list[str] = []  # notes about the whole file, such as legal texts


REHEARSAL = "rehearse"  # the built-in profile of `--rehearse`


class Summary(OwnDocument):
    """The results of a run in one document."""

    tool_version: str
    profile: str
    environment: Environment
    simulated: bool  # true if a sandbox answered, so that the answers say nothing about real accounts
    many_names_reason: str | None = None  # for many names of one account; None if not allowed
    started: str
    finished: str
    input: InputFile
    outcomes: list[OutcomeTotal]  # every outcome in documented order, even without rows
    codes: list[CodeCount]
    batches: list[BatchTotal] = []  # the first thousand batches in file order, if the format has batches
    batch_count: int = 0  # number of all batches
    banks: list[BankOutcomes] = []  # the thousand with most answered rows, most first; empty for a data set
    bank_count: int = 0  # number of all banks
    parts: list[PartTotal] = []  # all parts of a data set, unusable ones first
    routes: list[RouteCount]
    calls: list[ApiCalls]
    saved_call_count: int = Field(ge=0)
    attention: list[AttentionRow]  # the first thousand no-match and not-possible rows, largest amounts first
    attention_count: int
    warnings: list[WarningRow]  # the first thousand
    warning_count: int
    warning_codes: list[WarningCount] = []  # every warning code that has rows
    warned_match_count: int = 0  # matches with a warning about the payee, which a person reviews too
    compared: Comparison | None = None  # the comparison with earlier runs; None without one
    modulus: ModulusUsed | None = None  # None if the profile has no modulus tables
    bank_reports: list[ReportUsed] = []
    """Imported reports of the payer's bank, oldest first; the only source of answers if nothing was asked."""
    bank_comparison: BankComparison | None = None  # how a check agrees with these; None if nothing was asked
    complete: bool  # false if rows are left for a later run
    next_step: str | None  # when and how to continue an incomplete run
    given_up: bool = False
    """True if the run is incomplete but running it again would ask nothing, as the remaining questions had no
    answer in several runs.
    """

    @property
    def undecided_count(self) -> int:
        """Rows left for a later run."""
        return self._row_count(Outcome.DEFERRED, Outcome.UNANSWERED)

    @property
    def to_look_at_count(self) -> int:
        """Decided rows that a person must review: not a match, or with a warning about the payee."""
        others = self.input.row_count - self._row_count(Outcome.MATCH) - self.undecided_count
        return others + self.warned_match_count

    @property
    def compares_banks(self) -> bool:
        """True if banks can be compared: several banks, some with several answers."""
        return self.bank_count > 1 and self.banks[0].answered_count > 1

    @property
    def is_bank_answered(self) -> bool:
        """True if the payer's bank answered by its reports and nothing was asked."""
        return self.environment is Environment.BANK

    @property
    def is_rehearsal(self) -> bool:
        """True if the answers were invented for a rehearsal with the user's own file."""
        return self.simulated and self.profile == REHEARSAL

    @property
    def is_unasked(self) -> bool:
        """True if there is no answer yet, and so nothing to decide."""
        return (
            not self.complete
            and self.to_look_at_count == self._row_count(Outcome.REJECTED)
            and not (self._row_count(Outcome.MATCH))
        )

    def _row_count(self, *outcomes: Outcome) -> int:
        return sum(total.row_count for total in self.outcomes if total.outcome in outcomes)

    @property
    def run_id(self) -> str:
        """Identifies this file's answers: 32 hexadecimal digits, new after every run that writes answers."""
        codes = [f"{count.code} {count.row_count} {count.rows}" for count in self.codes]
        content = "\n".join((self.input.sha256, self.finished, *codes))
        return sha256(content.encode()).hexdigest()[:32]
