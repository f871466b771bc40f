"""What is to be done, who looks on, and who wants it to end."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from pipeline.stores.values import LeaseHolder
from schemas.outcomes import ApiName, Outcome

Clock = Callable[[], datetime]
"""The time, UTC, whenever it is asked for."""


class Permitted(NamedTuple):
    """What a run may use again."""

    folders: Sequence[Path] = ()
    """Of earlier runs."""
    age_max: timedelta = timedelta(days=30)
    """How old an answer may be."""


@dataclass(frozen=True, slots=True)
class Job:
    """One payment file, and how it is to be checked."""

    file: Path
    out: Path
    profile: str | None = None
    """None: the embedded sandbox."""
    config: Path | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    """Canonical field -> header, where the headers do not say it themselves."""
    encoding: str | None = None
    sheet: str | None = None
    """Of a workbook; None: the only one that has data."""
    input_format: str | None = None
    """By name; None: the file says it."""
    format: str | None = None
    """Of the outcome file; None: that of the input, or CSV where it is one that is only read."""
    order: Literal["file", "amount"] = "file"
    limit: int | None = None
    fresh: bool = False
    """Forget the answers of earlier runs in the same folder."""
    retry_unanswered: bool = False
    """Ask also the questions that earlier runs gave up."""
    many_names_reason: str | None = None
    """Why one account may be asked about by many names; None: it may not."""
    reusable: Permitted = field(default_factory=Permitted)
    """Whose matches are used again instead of asking."""
    wait_max_s: float = inf
    """How long to wait for other runs at the same server."""
    sign_with: Path | None = None
    """The private key that signs the manifest; None: that of the profile, if any."""
    pain002: bool = False
    """Write the report for bank software, too."""
    compare_with: Sequence[Path] = ()
    """Folders of earlier runs; none: the one that the profile says, if any."""


class Phase(StrEnum):
    """Where on its road a run is."""

    READING = "reading"
    """The file is read, validated and planned."""
    CONNECTING = "connecting"
    """Servers are waited for, and greeted."""
    ASKING = "asking"
    WRITING = "writing"
    """All that is asked has been answered, or is left; the files are written."""


class RunProgress(NamedTuple):
    """How far the asking of a run is."""

    done_count: int
    """Of the questions of this run."""
    check_count: int
    """All of them; 0 where nothing is asked yet."""
    outcomes: Mapping[Outcome, int] = MappingProxyType({})
    """What became of those that are done."""
    slowed: Mapping[ApiName, float] = MappingProxyType({})
    """How many requests may be in flight, where a server wants fewer than agreed."""


class Watch(Protocol):
    """Somebody who wants to see how far a run is."""

    def enter(self, phase: Phase) -> None:
        """Called as each phase begins; those of a run that had finished before are not all entered."""

    def begin(self, *, simulated: bool) -> None:
        """Called before anything is asked: whether a sandbox will answer."""

    def wait(self, holder: LeaseHolder) -> None:
        """Called with each other run that has to end before anything can be asked."""

    def update(self, so_far: RunProgress) -> None:
        """Called a few times a second while questions are asked."""

    def stop(self, in_flight_count: int, wait_max_s: float) -> None:
        """Called once somebody wants the run to stop: for how many requests it waits, and how long."""


class Wish(NamedTuple):
    """That a run ends before all is asked."""

    said: str
    """Who wants it, and what to do then, as the end of a sentence."""
    exit_code: int
    """Of a command that ends by it."""


class Stop:
    """Where a surface says that a run is to end: once, so that what is in flight lands; again, at once.

    A wish may come from a signal handler or from another thread: who asks looks here a few times a second.
    """

    def __init__(self) -> None:
        self._wishes: list[Wish] = []
        self.is_heeded = False
        """Whether anybody looks: where nothing is asked, a surface has to end the run by itself."""

    def wish(self, wish: Wish) -> None:
        """Want the run to end."""
        self._wishes.append(wish)

    @property
    def first(self) -> Wish | None:
        """The first wish; None as long as nobody has one."""
        return self._wishes[0] if self._wishes else None

    @property
    def is_urgent(self) -> bool:
        """Whether it was wished more than once."""
        return len(self._wishes) > 1

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Say that somebody looks, until the block ends."""
        self.is_heeded = True
        try:
            yield
        finally:
            self.is_heeded = False


class Surface(NamedTuple):
    """Who has a job done: a command, a page. It looks on, tells the time, and can have it stopped."""

    watch: Watch
    clock: Clock
    stop: Stop
