"""What is kept of the parts of a data set while it is checked, and once it is done."""

from typing import Any

from schemas.localized import LocalizedText
from schemas.outcomes import ApiName
from schemas.strict import OwnDocument
from schemas.summary import CurrencySources, ModulusUsed, NotPayment, RouteCount, Summary


class PartRead(OwnDocument):
    """The findings in a part before any request, or why it cannot be used."""

    problem: LocalizedText | None = None
    """Where, what, what to do; None if there is none. All that follows is then as it is for no rows."""
    row_count: int = 0
    accepted_count: int = 0
    headers: list[str] = []
    """Headers of its columns, in order."""
    decision: dict[str, str] = {}
    """Field -> the columns that it was read from, by place, as `--map` would take it."""
    blank: list[str] = []
    """The columns without any cell, by place: how these are read makes no difference."""
    columns: dict[str, str] = {}
    """Header -> the field that it was read as."""
    as_written: dict[str, str] = {}
    """Field -> the header of a column that holds just the same."""
    notes: list[LocalizedText] = []
    dialect: dict[str, Any] = {}
    """How it is written: `formats.table.Dialect`."""
    not_payments: list[NotPayment] = []
    currency_sources: CurrencySources = CurrencySources()
    routes: list[RouteCount] = []


class BucketPlanned(OwnDocument):
    """The distinct questions about the accounts of a bucket, counted."""

    question_counts: dict[ApiName, int]
    uk_account_count: int
    """Different UK accounts that are asked about."""
    many_names_rows: list[int]
    """The first ten rows of the data set that try names on an account."""
    many_names_count: int
    many_names_account_count: int
    modulus: ModulusUsed | None


class PartDecided(OwnDocument):
    """The outcomes of a part."""

    answers: str
    """Names the answers that they were made of: where it is the same, they are."""
    basis: str
    """The same of whatever else they were made of."""
    outcome_name: str
    outcome_sha256: str
    outcome_byte_count: int
    summary: Summary
    """Summary of the part, by the rows of the data set."""


class PartKept(OwnDocument):
    """A part of a data set, by its name and its bytes."""

    name: str
    sha256: str
    is_usable: bool


class DataSetRecord(OwnDocument):
    """Which parts the data set of a run has: `data_set.json`."""

    input_sha256: str
    """The run's identity in the ledger: the digest of the parts when it began."""
    parts: list[PartKept]
    work: str
    """The folder of the run within the work folder; it is there until all is decided."""
