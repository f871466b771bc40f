"""Records of a data set's parts, during and after the check."""

from schemas.localized import LocalizedText
from schemas.outcomes import ApiName
from schemas.strict import OwnDocument
from schemas.summary import (
    BankWarning,
    CurrencySources,
    FileDialect,
    ModulusUsed,
    NotPayment,
    RouteCount,
    SetAside,
    StatedControl,
    Summary,
)


class PartRead(OwnDocument):
    """What was found in a part before any request, or why it cannot be used."""

    problem: LocalizedText | None = None
    """Place, problem and remedy, or None. With a problem, all other fields are as for no rows."""
    row_count: int = 0
    accepted_count: int = 0
    headers: list[str] = []  # headers of its columns, in order
    decision: dict[str, str] = {}  # field -> its columns by position, in `--map` notation
    blank: list[str] = []  # positions of columns without any cell; how they are read does not matter
    columns: dict[str, str] = {}  # header -> field that the column was read as
    as_written: dict[str, str] = {}  # field -> the header of an identical column
    notes: list[LocalizedText] = []
    assumed_type_count: int = 0  # number of payments whose account type was assumed
    dialect: FileDialect = FileDialect()
    not_payments: list[NotPayment] = []
    controls: list[StatedControl] = []
    control_count: int = 0
    set_aside: list[SetAside] = []
    currency_sources: CurrencySources = CurrencySources()
    routes: list[RouteCount] = []
    bank_warnings: list[BankWarning] = []


class BucketPlanned(OwnDocument):
    """Counts of the distinct questions about the accounts in a bucket."""

    question_counts: dict[ApiName, int]
    uk_account_count: int  # number of distinct UK accounts in questions
    many_names_rows: list[int]  # the first ten that try many names on an account, numbered in the data set
    many_names_count: int
    many_names_account_count: int
    modulus: ModulusUsed | None


class PartDecided(OwnDocument):
    """The outcomes of a part."""

    answers: str  # identifies the answers behind the outcomes: equal values mean equal answers
    basis: str  # identifies all other data behind the outcomes
    outcome_name: str
    outcome_sha256: str
    outcome_byte_count: int
    summary: Summary  # summary of the part, with row numbers of the data set


class PartKept(OwnDocument):
    """Name and hash of a part of a data set."""

    name: str
    sha256: str
    is_usable: bool


class DataSetRecord(OwnDocument):
    """The parts of a run's data set: `data_set.json`."""

    input_sha256: str  # the run's identity in the ledger: the digest of the parts when the run began
    parts: list[PartKept]
    work: str  # the run's folder in the work folder; it exists until all parts are decided
