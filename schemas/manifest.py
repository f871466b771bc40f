"""The manifest of a run, `manifest.json`, which shows an auditor that nothing has changed since.

It lists the files with their hashes and records the program, settings and result behind them, without names,
account numbers or credentials.
"""

from schemas.cop import AccountType
from schemas.outcomes import ApiName, Environment
from schemas.review import Approval, Shaped, Verdict
from schemas.strict import OwnDocument
from schemas.summary import InputFile, Money, OutcomeTotal, ReportUsed


class FileEvidence(OwnDocument):
    """Size and hash of one file in the folder."""

    name: str
    sha256: str
    byte_count: int


class ServerUsed(OwnDocument):
    """One server, and the limits that the run kept."""

    api: ApiName
    base_url: str
    client: str  # the identity that the server saw, masked except for its end
    rate_per_s: float
    in_flight_max: int
    daily_cap: int | None
    cap_window: str
    attempts_max: int
    probe_wait_s: float
    response_margin_s: float
    send_remittance: bool = False
    bic_table: dict[str, str] = {}  # the user's directory of banks, for VoP Standard only


class ProfileUsed(OwnDocument):
    """The settings of the run, without credentials."""

    name: str
    sha256: str  # identifies all settings that decide which questions are asked, as in the ledger
    default_account_type: AccountType
    gb_iban_to: str
    ask_by: str
    vop_countries: list[str] | None = None  # countries whose IBANs go to VoP; None: any
    vop_names: str = "any"
    servers: list[ServerUsed]


class LedgerEvidence(OwnDocument):
    """Contents of the ledger when the outcome file was written."""

    input_sha256: str | None = None  # the ledger's hash, if parts of a data set were corrected since
    question_count: int  # distinct questions of the file
    unanswered_count: int  # questions without a final answer
    answer_count: int  # final answers from servers
    reused_count: int  # reused answers of earlier runs
    attempt_count: int  # requests of all runs in this folder
    created_at: str  # when the first run in this folder began
    finish_count: int  # number of outcome files that runs in this folder have written
    digests: dict[str, str]
    """Ledger table -> SHA-256 of the seals of its lines at that time; purging names does not change it."""


class Adoption(OwnDocument):
    """An unsigned folder that was signed as found, by `--adopt`."""

    time: str
    reason: str


class Purge(OwnDocument):
    """A deletion of returned names by `precheck purge`."""

    time: str
    answers_before: str  # names in answers before this time were deleted from the ledger
    files: list[str]  # files deleted with the names; they may be missing
    by: str | None = None  # the user's name; null if unknown
    reason: str | None = None  # the reason that the user gave


class PaymentsEvidence(FileEvidence):
    """A payment file made from the run's answers."""

    row_count: int
    totals: list[Money]  # by currency; rows without a readable amount are only in `row_count`


class SplitMade(OwnDocument):
    """A split by `precheck split`."""

    time: str
    by: str  # the person who approved the files and had them made
    self_approved: bool  # false if `by` neither decided nor shaped the file, and all had to be identified
    shaped: list[Shaped] = []  # people who shaped the file at a desk; empty if it never was at one
    policy: dict[str, Verdict]  # outcome, code or warning -> verdict, as applied
    release: PaymentsEvidence | None  # None if no row was released
    hold: PaymentsEvidence | None
    reasons: FileEvidence
    refused_rows: list[int]  # rows that a person decided to release, but the policy held
    held_rows: list[int]
    again_rows: list[int] = []  # released again by `--release-again`, although in an earlier release file


class Manifest(OwnDocument):
    """What was checked, how, and the result."""

    tool_version: str  # the version that wrote the outcome file
    versions: dict[str, str]  # versions of Python and of libraries that affect results
    profile: ProfileUsed
    environment: Environment
    simulated: bool  # true if a sandbox answered, so that the answers say nothing about real accounts
    many_names_reason: str | None  # the user's reason for many names of one account
    started: str
    finished: str
    written: str  # when this document was last written
    input: InputFile
    mapping: dict[str, str]  # canonical field -> header, from --map
    language: str = "en"  # language of page and workbook; all other files are in English
    outcome_file: FileEvidence
    files: list[FileEvidence]  # others of the folder: the summary, the reports, and files made later
    outcomes: list[OutcomeTotal]
    totals: list[Money]  # control totals over all rows of the file, by currency
    ledger: LedgerEvidence
    approvals: list[Approval]
    bank_reports: list[ReportUsed] = []  # behind the outcomes; their copies are among the files
    adoptions: list[Adoption] = []
    purges: list[Purge] = []
    splits: list[SplitMade] = []  # oldest first; the last made the current files, the others were replaced
    replaced_splits: list[SplitMade] = []  # by answers that a later run replaced; their files no longer exist


class VerifiedItem(OwnDocument):
    """One check of `precheck verify`."""

    what: str  # the name of a file or comparison
    well: bool
    detail: str  # the result, or the difference and what to do


class Verification(OwnDocument):
    """All checks of a folder, in order."""

    well: bool  # true if all checks passed
    findings: list[VerifiedItem]
