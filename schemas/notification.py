"""The notification of `[notify]` when a run or a file needs a person, without payees' data."""

from typing import Literal

from pydantic import Field

from schemas.outcomes import Environment
from schemas.strict import OwnDocument


class NotifiedFile(OwnDocument):
    """The result of one payment file."""

    file: str
    folder: str
    status: int | None = None  # exit status of the file; None if the run ended before it
    environment: Environment | None = None  # the kind of server that answered; None without an outcome file
    simulated: bool = False
    row_counts: dict[str, int] = Field(default_factory=dict)  # outcome -> number of rows
    complete: bool = False
    next_step: str | None = None  # how to continue an incomplete run


Event = Literal["run ended", "approval waiting", "sent back"]


class Notification(OwnDocument):
    """A run has ended, or a desk file awaits approval or was sent back; no payees, accounts or amounts."""

    event: Event
    status: int = 0  # the exit status of the run
    reason: str  # what happened and what to do, in English
    host: str
    profile: str | None = None
    started: str | None = None
    ended: str
    files: list[NotifiedFile] = Field(default_factory=list)
