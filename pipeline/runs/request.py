"""The arguments of a job: what to do, whom to report to, and how it is stopped."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from pipeline.stores.values import LeaseHolder
from pipeline.wording import Sentence
from schemas.cop import AccountType
from schemas.outcomes import ApiName, Outcome

if TYPE_CHECKING:
    from pipeline.files.signatures import Signer
    from pipeline.stages.ask import AskingObserver

Clock = Callable[[], datetime]
"""The time, UTC, whenever it is asked for."""


class ReusePermission(NamedTuple):
    """The answers of earlier runs that a run may reuse."""

    folders: Sequence[Path] = ()
    """Folders of earlier runs."""
    age_max: timedelta = timedelta(days=30)
    """How old an answer may be."""
    in_ledger: bool = False
    """Also answers of other runs that the ledger of the profile has, where it is shared."""
    signer: "Signer | None" = None
    """Who must have signed the folders; None: the manifest alone proves each."""


@dataclass(frozen=True, slots=True)
class CheckJob:
    """One payment file, and how to check it."""

    file: Path
    out: Path
    profile: str | None = None
    """None: the embedded sandbox."""
    config: Path | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    """Canonical field -> header, where the headers alone do not decide."""
    encoding: str | None = None
    sheet: str | None = None
    """Sheet of a workbook; None: the only one with data."""
    input_format: str | None = None
    """By name; None: the file says it."""
    country: str | None = None
    """Country of all accounts without an IBAN; None: that of the profile, if it has one."""
    account_type: AccountType | None = None
    """For UK accounts whose payments state no type; None: as the profile assumes."""
    format: str | None = None
    """Format of the outcome file; None: that of the input, or CSV if the input cannot be written."""
    order: Literal["file", "amount"] = "file"
    limit: int | None = None
    fresh: bool = False
    """Delete the answers of earlier runs in the same folder."""
    retry_unanswered: bool = False
    """Ask also the questions that earlier runs gave up."""
    many_names_reason: str | None = None
    """Why one account may be asked about by many names; None: it may not."""
    reusable: ReusePermission = field(default_factory=ReusePermission)
    """The runs whose matches are reused instead of asking."""
    wait_max_s: float = inf
    """How long to wait for other runs at the same server."""
    work: Path | None = None
    """Where the questions of a shared run are left for workers; None: nowhere."""
    sign_with: Path | None = None
    """The private key that signs the manifest; None: that of the profile, if any."""
    pain002: bool = False
    """Write the report for bank software, too."""
    language: str | None = None
    """Language of page and workbook, by code; None: the one on record, else that of the terminal."""
    compare_with: Sequence[Path] = ()
    """Folders of earlier runs; none: the one that the profile says, if any."""


@dataclass(frozen=True, slots=True)
class DataSetJob:
    """A data set, and how to check it."""

    check: CheckJob  # its file is the folder of the parts, or one large Parquet file
    work: Path  # the folder for what lies between the parts and their outcomes
    engine: Literal["pool", "dask"] = "pool"
    scheduler: str | None = None  # the address of the scheduler of Dask; None: a cluster of this machine
    asks: bool = True  # whether this process asks; otherwise the workers of a shared ledger do


class Phase(StrEnum):
    """The phase of a run."""

    READING = "reading"  # the file is read, validated and planned
    CONNECTING = "connecting"  # servers are waited for, and greeted
    ASKING = "asking"
    WRITING = "writing"  # all that is asked has been answered, or is left; the files are written


class SetStep(StrEnum):
    """A step of a data set beside the asking, with its count."""

    READ = "parts read"
    PLANNED = "buckets planned"
    WRITTEN = "parts written"


class RunProgress(NamedTuple):
    """The progress of an asking."""

    done_count: int
    """Questions done in this run."""
    check_count: int
    """All of them; 0 if nothing is asked yet."""
    outcomes: Mapping[Outcome, int] = MappingProxyType({})
    """Outcomes of the finished ones."""
    slowed: Mapping[ApiName, float] = MappingProxyType({})
    """How many requests may be in flight, where a server wants fewer than agreed."""
    answered_before_count: int = 0
    """Questions that had their answer before this run began, in none of the counts above."""


class RunObserver:
    """An observer of the progress of a run; as it is here, it takes notice of nothing."""

    def enter(self, phase: Phase) -> None:
        """Called as each phase begins; a run that had finished before does not enter all of them."""

    def count(self, step: SetStep, done_count: int, all_count: int) -> None:
        """Called with each part and each bucket of a data set that is done: how many are, of how many."""

    def begin(self, *, simulated: bool) -> None:
        """Called before anything is asked: whether a sandbox will answer."""

    def wait(self, holder: LeaseHolder) -> None:
        """Called with each other run that has to end before anything can be asked."""

    def update(self, so_far: RunProgress) -> None:
        """Called a few times a second while questions are asked."""

    def stop(self, in_flight_count: int, wait_max_s: float) -> None:
        """Called once the run is to stop: for how many requests it waits, and how long."""


class StopRequest(NamedTuple):
    """A request to end a run before all is asked."""

    sentence: Sentence  # what stopped it, and how to go on
    exit_code: int  # of a command that ends by it


class StopSwitch:
    """Stops a run from any thread: the first request lets answers arrive, the second ends at once."""

    def __init__(self) -> None:
        self._requests: list[StopRequest] = []
        self.is_watched = False
        """True if the run polls this: while nothing is asked, a surface has to end the run by itself."""

    def request(self, request: StopRequest) -> None:
        """Ask the run to end."""
        self._requests.append(request)

    @property
    def first(self) -> StopRequest | None:
        """The first request; None as long as there is none."""
        return self._requests[0] if self._requests else None

    @property
    def is_urgent(self) -> bool:
        """True if it was requested more than once."""
        return len(self._requests) > 1

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Poll for requests until the block ends."""
        self.is_watched = True
        try:
            yield
        finally:
            self.is_watched = False


class Notice(NamedTuple):
    """Something that a person should know about a running job."""

    message: Sentence
    facts: Mapping[str, str | int] = MappingProxyType({})  # name -> value: rows, files; no personal data
    is_vital: bool = False  # whether a quiet command says it, too


class Surface(NamedTuple):
    """What starts a job, a command or a page: it observes the job, gives the time, and may stop it."""

    watch: RunObserver
    clock: Clock
    stop: StopSwitch
    notify: Callable[[Notice], object]  # called with what a person should know, as soon as it is known
    observer: "AskingObserver | None" = None  # follows each question on its way, such as for metrics
