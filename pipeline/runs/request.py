"""What is to be done, and who looks on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from pipeline.stores.sqlite.server_lease import Holder
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
    compare_with: Sequence[Path] = ()
    """Folders of earlier runs; none: the one that the profile says, if any."""


class Watch(Protocol):
    """Somebody who wants to see how far a run is."""

    def begin(self, *, simulated: bool) -> None:
        """Called before anything is asked: whether a sandbox will answer."""

    def wait(self, holder: Holder) -> None:
        """Called with each other run that has to end before anything can be asked."""

    def update(
        self,
        done_count: int,
        check_count: int,
        outcomes: Mapping[Outcome, int],
        slowed: Mapping[ApiName, float],
    ) -> None:
        """Called a few times a second while questions are asked.

        Args:
            done_count: of the questions of this run.
            check_count: of all of them; 0 where nothing is asked yet.
            outcomes: what became of those that are done.
            slowed: how many requests may be in flight, where a server wants fewer than agreed.
        """

    def stop(self, in_flight_count: int, wait_max_s: float) -> None:
        """Called once somebody wants the run to stop: for how many requests it waits, and how long."""
