"""The arguments of a job: its task, its observer, and how it is stopped."""

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
"""Returns the current time in UTC."""


class ReusePermission(NamedTuple):
    """The answers of earlier runs that a run may reuse."""

    folders: Sequence[Path] = ()
    """Folders of earlier runs."""
    age_max: timedelta = timedelta(days=30)
    """How old an answer may be."""
    in_ledger: bool = False
    """Also answers of other runs in the profile's shared ledger."""
    signer: "Signer | None" = None
    """Required signer of the folders; None: the manifest alone proves each."""


@dataclass(frozen=True, slots=True)
class CheckJob:
    """One payment file, and how to check it."""

    file: Path
    out: Path
    profile: str | None = None
    """Profile; None: the embedded sandbox."""
    config: Path | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    """Canonical field -> header, if the headers alone do not decide."""
    encoding: str | None = None
    sheet: str | None = None
    """Sheet of a workbook; None: the only one with data."""
    input_format: str | None = None
    """Name of the format; None: recognised from the file."""
    country: str | None = None
    """Country of all accounts without an IBAN; None: that of the profile, if it has one."""
    account_type: AccountType | None = None
    """Account type of UK accounts whose payments state none; None: the profile's default."""
    format: str | None = None
    """Format of the outcome file; None: that of the input, or CSV if the input cannot be written."""
    order: Literal["file", "amount"] = "file"
    limit: int | None = None
    fresh: bool = False
    """Delete the answers of earlier runs in the same folder."""
    retry_unanswered: bool = False
    """Also ask questions that earlier runs gave up."""
    many_names_reason: str | None = None
    """Why many names may be checked for one account; None: they may not."""
    reusable: ReusePermission = field(default_factory=ReusePermission)
    """Runs whose matches are reused instead of asking."""
    wait_max_s: float = inf
    """How long to wait for other runs at the same server."""
    work: Path | None = None
    """Folder for a shared run's questions, for workers; None: none."""
    sign_with: Path | None = None
    """The private key that signs the manifest; None: that of the profile, if any."""
    pain002: bool = False
    """Also write the report for bank software."""
    language: str | None = None
    """Language of page and workbook, by code; None: the one on record, else that of the terminal."""
    compare_with: Sequence[Path] = ()
    """Folders of earlier runs; none: that of the profile, if any."""


@dataclass(frozen=True, slots=True)
class DataSetJob:
    """A data set, and how to check it."""

    check: CheckJob  # `file` is the folder of the parts, or one large Parquet file
    work: Path  # folder for intermediate files
    engine: Literal["pool", "dask"] = "pool"
    scheduler: str | None = None  # address of the Dask scheduler; None: a cluster on this machine
    asks: bool = True  # whether this process asks; otherwise workers of a shared ledger do


class Phase(StrEnum):
    """The phase of a run."""

    READING = "reading"  # the file is read, validated and planned
    CONNECTING = "connecting"  # waiting for servers, and connecting
    ASKING = "asking"
    WRITING = "writing"  # all questions are answered or left; the files are being written


class SetStep(StrEnum):
    """A step of a data set besides the asking, with a count."""

    READ = "parts read"
    PLANNED = "buckets planned"
    WRITTEN = "parts written"


class RunProgress(NamedTuple):
    """The progress of an asking."""

    done_count: int
    """Questions done in this run."""
    check_count: int
    """All questions; 0 before the first."""
    outcomes: Mapping[Outcome, int] = MappingProxyType({})
    """Outcomes of the finished questions."""
    slowed: Mapping[ApiName, float] = MappingProxyType({})
    """The number of requests allowed in flight, if a server wants fewer than agreed."""
    answered_before_count: int = 0
    """Questions answered before this run, not in the counts above."""


class RunObserver:
    """An observer of a run's progress; this one ignores everything."""

    def enter(self, phase: Phase) -> None:
        """Called at the start of each phase; a run that had finished before skips some."""

    def count(self, step: SetStep, done_count: int, all_count: int) -> None:
        """Called with each finished part and bucket of a data set: how many of how many."""

    def begin(self, *, simulated: bool) -> None:
        """Called before the first question: whether a sandbox answers."""

    def wait(self, holder: LeaseHolder) -> None:
        """Called with each other run that must end before this one can ask."""

    def update(self, so_far: RunProgress) -> None:
        """Called a few times a second during the asking."""

    def stop(self, in_flight_count: int, wait_max_s: float) -> None:
        """Called when the run is asked to stop: the requests it waits for, and for how long."""


class StopRequest(NamedTuple):
    """A request to end a run before all questions are asked."""

    sentence: Sentence  # the cause, and how to continue
    exit_code: int  # exit status of the command


class StopSwitch:
    """Stops a run from any thread: the first request lets answers arrive, the second ends at once."""

    def __init__(self) -> None:
        self._requests: list[StopRequest] = []
        self.is_watched = False
        """True while the run polls this; otherwise the surface must end the run itself."""

    def request(self, request: StopRequest) -> None:
        """Ask the run to end."""
        self._requests.append(request)

    @property
    def first(self) -> StopRequest | None:
        """The first request, or None."""
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
    """A message for people about a running job."""

    message: Sentence
    facts: Mapping[str, str | int] = MappingProxyType({})  # name -> value: rows, files; no personal data
    is_vital: bool = False  # whether --quiet keeps it


class Surface(NamedTuple):
    """The command or page that starts a job: it observes the job, gives the time, and may stop it."""

    watch: RunObserver
    clock: Clock
    stop: StopSwitch
    notify: Callable[[Notice], object]  # called at once with each notice
    observer: "AskingObserver | None" = None  # follows each question, for metrics and the like
