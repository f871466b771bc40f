"""The manifest of a run, `manifest.json`: what an auditor needs to see that nothing was changed since.

It names the files by their hashes and states with which program, which settings and which result they
were made. It holds no name, no account number and no credential.
"""

from schemas.cop import AccountType
from schemas.outcomes import ApiName, Environment
from schemas.review import Approval, Shaped, Verdict
from schemas.strict import OwnDocument
from schemas.summary import InputFile, Money, OutcomeTotal, ReportUsed


class FileEvidence(OwnDocument):
    """One file of the folder, by its bytes."""

    name: str
    sha256: str
    byte_count: int


class ServerUsed(OwnDocument):
    """One server, and the limits that were kept."""

    api: ApiName
    base_url: str
    client: str
    """The identity that the server saw; all but its end is masked."""
    rate_per_s: float
    in_flight_max: int
    daily_cap: int | None
    cap_window: str
    attempts_max: int
    probe_wait_s: float
    response_margin_s: float
    send_remittance: bool = False
    bic_table: dict[str, str] = {}
    """The user's own directory of banks, VoP Standard only."""


class ProfileUsed(OwnDocument):
    """The settings of the run, without credentials."""

    name: str
    sha256: str
    """Identity of everything that decides which questions are asked; the ledger has the same."""
    default_account_type: AccountType
    gb_iban_to: str
    ask_by: str
    vop_countries: list[str] | None = None
    """None: any."""
    vop_names: str = "any"
    servers: list[ServerUsed]


class LedgerEvidence(OwnDocument):
    """Contents of the ledger when the outcome file was written."""

    input_sha256: str | None = None
    """The key of the payments in the ledger, if parts of a data set were corrected since it began."""
    question_count: int
    """Distinct questions of the file."""
    unanswered_count: int
    """Those without a final answer."""
    answer_count: int
    """Final answers of a server."""
    reused_count: int
    """Answers of an earlier run that were used again."""
    attempt_count: int
    """Requests of all runs in this folder."""
    created_at: str
    """When the first run in this folder began."""
    finish_count: int
    """How many outcome files the runs in this folder have written."""
    digests: dict[str, str]
    """Table of the ledger -> SHA-256 of the seals of its lines then; a purge of names leaves it the same."""


class Adoption(OwnDocument):
    """An unsigned folder that was signed as found, by `--adopt`."""

    time: str
    reason: str


class Purge(OwnDocument):
    """A deletion of returned names by `precheck purge`."""

    time: str
    answers_before: str
    """The ledger forgot the names of the answers that came before this time."""
    files: list[str]
    """The files that were deleted with them, and need not be there any more."""
    by: str | None = None
    """Who ran it; null for a user without a name."""
    reason: str | None = None
    """The reason, as it was given."""


class PaymentsEvidence(FileEvidence):
    """A payment file that was made of the run's answers."""

    row_count: int
    totals: list[Money]
    """By currency; rows without a readable amount are in `row_count` only."""


class SplitMade(OwnDocument):
    """A split by `precheck split`."""

    time: str
    by: str
    """Who approved the files, and had them made."""
    self_approved: bool
    """False if `by` is another person than any who decided or shaped the file, and all had to identify
    themselves."""
    shaped: list[Shaped] = []
    """Who shaped the file at a desk; empty for files that never were at one."""
    policy: dict[str, Verdict]
    """Outcome, code or warning -> verdict, as it was applied."""
    release: PaymentsEvidence | None
    """None if no row was released."""
    hold: PaymentsEvidence | None
    reasons: FileEvidence
    refused_rows: list[int]
    """Rows that a person decided to release, and that stayed held."""
    held_rows: list[int]
    again_rows: list[int] = []
    """Rows that were released although an earlier release file has them, as was said by `--release-again`."""


class Manifest(OwnDocument):
    """What was checked, with what, and with which result."""

    tool_version: str
    versions: dict[str, str]
    """Versions of Python and of the libraries on which results depend."""
    profile: ProfileUsed
    environment: Environment
    simulated: bool
    """True if the answers come from a sandbox and say nothing about any real account."""
    many_names_reason: str | None
    """Why one account was allowed to be asked about by many names."""
    started: str
    finished: str
    """Of the run that wrote the outcome file."""
    written: str
    """When this document was written last."""
    input: InputFile
    mapping: dict[str, str]
    """Canonical field -> header, as --map gave it."""
    language: str = "en"
    """Language of page and workbook; every other file is English."""
    outcome_file: FileEvidence
    files: list[FileEvidence]
    """The other files of the folder: the summary, the reports, and what was made of them later."""
    outcomes: list[OutcomeTotal]
    totals: list[Money]
    """Over all rows of the file, by currency: the control totals."""
    ledger: LedgerEvidence
    approvals: list[Approval]
    bank_reports: list[ReportUsed] = []
    """That the outcomes come from; their copies are among the files."""
    adoptions: list[Adoption] = []
    purges: list[Purge] = []
    splits: list[SplitMade] = []
    """Oldest first. The last one made the files that are there; the others were replaced."""
    replaced_splits: list[SplitMade] = []
    """Those by answers that a later run in this folder replaced: none of their files is there."""
