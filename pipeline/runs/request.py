"""The arguments of jobs: what to check and how, who observes it, and how to stop it."""

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
    from pipeline.config import ConfigurationFile
    from pipeline.files.signatures import Signer
    from pipeline.stages.ask.values import AskingObserver

Clock = Callable[[], datetime]  # returns the current time in UTC


class ReusePermission(NamedTuple):
    """Which answers of earlier runs a run may reuse."""

    folders: Sequence[Path] = ()  # folders of earlier runs
    age_max: timedelta = timedelta(days=30)  # the maximum age of an answer
    in_ledger: bool = False  # True to also reuse answers of other runs in the profile's shared ledger
    signer: "Signer | None" = None  # who must have signed the folders; None: the manifest is enough


@dataclass(frozen=True, slots=True)
class CheckJob:
    """One payment file, and how to check it."""

    file: Path
    out: Path
    profile: str | None = None  # the name of the profile; None means the embedded sandbox
    config: "ConfigurationFile | Path | None" = None
    mapping: Mapping[str, str] = field(default_factory=dict)  # canonical field -> header, if users chose
    encoding: str | None = None
    sheet: str | None = None  # the sheet of a workbook; None means the only one with data
    input_format: str | None = None  # the name of the format; None means that it is recognised
    country: str | None = None  # the country of accounts that are not IBANs; None means the profile's, if any
    account_type: AccountType | None = None  # where UK payments state none; None: the profile's default
    format: str | None = None  # outcome format; None: the input's, or CSV if that cannot be written
    order: Literal["file", "amount"] = "file"
    limit: int | None = None
    fresh: bool = False  # True to delete the answers of earlier runs in this folder
    retry_unanswered: bool = False  # True to also ask questions that earlier runs gave up
    many_names_reason: str | None = None  # why many names may be checked on one account; None: they may not
    reusable: ReusePermission = field(default_factory=ReusePermission)  # runs whose matches are reused
    wait_max_s: float = inf  # how long to wait for other runs that use the same server
    work: Path | None = None  # the folder where a shared run stores its questions for workers, if any
    sign_with: Path | None = None  # the private key that signs the manifest; None means the profile's, if any
    pain002: bool = False  # True to also write the report for bank software
    language: str | None = None  # for page and workbook; None: as recorded, or else the terminal's
    compare_with: Sequence[Path] = ()  # folders of earlier runs; if empty, those of the profile, if any


@dataclass(frozen=True, slots=True)
class DataSetJob:
    """A data set, and how to check it."""

    check: CheckJob  # `file` is the folder of parts, or one large Parquet file
    work: Path  # the folder for intermediate files
    engine: Literal["pool", "dask"] = "pool"
    scheduler: str | None = None  # address of the Dask scheduler; None for a cluster on this machine
    asks: bool = True  # True if this process asks; otherwise workers of a shared ledger do


class Phase(StrEnum):
    """The phases of a run."""

    READING = "reading"  # reading, validating and planning the file
    CONNECTING = "connecting"  # waiting for servers, and connecting to them
    ASKING = "asking"
    WRITING = "writing"  # all questions are answered or left; writing the files


class SetStep(StrEnum):
    """The counted steps of a data set, other than asking."""

    READ = "parts read"
    PLANNED = "buckets planned"
    WRITTEN = "parts written"


class RunProgress(NamedTuple):
    """The progress of a run."""

    done_count: int  # questions finished in this run
    check_count: int  # all questions of this run; 0 before the first one
    outcomes: Mapping[Outcome, int] = MappingProxyType({})  # outcome -> number of finished questions
    slowed: Mapping[ApiName, float] = MappingProxyType({})  # servers that want fewer requests -> allowed
    answered_before_count: int = 0  # questions answered before this run; the other counts exclude them


class RunObserver:
    """Observes the progress of a run; this base class ignores everything."""

    def enter(self, phase: Phase) -> None:
        """Called at the start of each phase; a run that was already finished skips some."""

    def count(self, step: SetStep, done_count: int, all_count: int) -> None:
        """Called after each part and bucket of a data set, with how many of them are done."""

    def begin(self, *, simulated: bool) -> None:
        """Called before the first question, with True if a sandbox answers."""

    def wait(self, holder: LeaseHolder) -> None:
        """Called with each other run that must finish before this one can ask."""

    def update(self, so_far: RunProgress) -> None:
        """Called a few times per second while questions are asked."""

    def stop(self, in_flight_count: int, wait_max_s: float) -> None:
        """Called when the run is asked to stop, with the requests it waits for and the maximum wait."""


class StopRequest(NamedTuple):
    """A request to end a run before all its questions are asked."""

    sentence: Sentence  # the reason, and how to continue
    exit_code: int  # the exit status of the command


class StopSwitch:
    """Stops a run, from any thread: the first request lets answers arrive, the second ends it at once."""

    def __init__(self) -> None:
        self._requests: list[StopRequest] = []
        self.is_watched = False
        """True while the run polls this; otherwise the surface must end the run itself."""

    def request(self, request: StopRequest) -> None:
        """Ask the run to end."""
        self._requests.append(request)

    @property
    def first(self) -> StopRequest | None:
        """The first request, or None if there was none."""
        return self._requests[0] if self._requests else None

    @property
    def is_urgent(self) -> bool:
        """True if a stop was requested more than once."""
        return len(self._requests) > 1

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Poll for stop requests during the block."""
        self.is_watched = True
        try:
            yield
        finally:
            self.is_watched = False


class Notice(NamedTuple):
    """A message for people about a running job."""

    message: Sentence
    facts: Mapping[str, str | int] = MappingProxyType({})  # name -> value, without personal data
    is_vital: bool = False  # True if --quiet keeps it


class Surface(NamedTuple):
    """The command or page that starts a job: it observes the job, provides the time, and may stop it."""

    watch: RunObserver
    clock: Clock
    stop: StopSwitch
    notify: Callable[[Notice], object]  # called at once with every notice
    observer: "AskingObserver | None" = None  # follows each question, for example for metrics
