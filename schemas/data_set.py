"""Records of a data set's parts, during and after the check."""

from typing import Any

from schemas.localized import LocalizedText
from schemas.outcomes import ApiName
from schemas.strict import OwnDocument
from schemas.summary import CurrencySources, ModulusUsed, NotPayment, RouteCount, Summary


class PartRead(OwnDocument):
    """The findings in a part before any request, or why it cannot be used."""

    problem: LocalizedText | None = None
    """Place, problem and remedy; None if there is none. Otherwise all other fields are as for no rows."""
    row_count: int = 0
    accepted_count: int = 0
    headers: list[str] = []
    """Headers of its columns, in order."""
    decision: dict[str, str] = {}
    """Field -> its columns by position, in `--map` notation."""
    blank: list[str] = []
    """The columns without any cell, by position: how they are read does not matter."""
    columns: dict[str, str] = {}
    """Header -> the field that it was read as."""
    as_written: dict[str, str] = {}
    """Field -> the header of an identical column."""
    notes: list[LocalizedText] = []
    dialect: dict[str, Any] = {}
    """The dialect: `formats.table.Dialect`."""
    not_payments: list[NotPayment] = []
    currency_sources: CurrencySources = CurrencySources()
    routes: list[RouteCount] = []


class BucketPlanned(OwnDocument):
    """The distinct questions about the accounts of a bucket, counted."""

    question_counts: dict[ApiName, int]
    uk_account_count: int
    """Number of distinct UK accounts in questions."""
    many_names_rows: list[int]
    """The first ten rows of the data set that try many names on an account."""
    many_names_count: int
    many_names_account_count: int
    modulus: ModulusUsed | None


class PartDecided(OwnDocument):
    """The outcomes of a part."""

    answers: str
    """Identifies the answers that they were made from: equal values mean equal answers."""
    basis: str
    """Identifies all other data that they were made from."""
    outcome_name: str
    outcome_sha256: str
    outcome_byte_count: int
    summary: Summary
    """Summary of the part, with the rows of the data set."""


class PartKept(OwnDocument):
    """A part of a data set, by name and hash."""

    name: str
    sha256: str
    is_usable: bool


class DataSetRecord(OwnDocument):
    """The parts of a run's data set: `data_set.json`."""

    input_sha256: str
    """The run's identity in the ledger: the digest of the parts when it began."""
    parts: list[PartKept]
    work: str
    """The folder of the run within the work folder; it exists until all parts are decided."""
