"""What stores speak of: the lines of a ledger, questions that are left to ask, parts of an account."""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from pipeline.frames import AnswerState, Check


class RunIdentity(NamedTuple):
    """What a run is the run of. A folder holds one run; only `tool_version` may change within it.

    Until there is an answer there is nothing to lose, and the folder takes any other run.
    """

    input_sha256: str
    profile_sha256: str
    environment: str
    tool_version: str


class FinalAnswer(NamedTuple):
    """An `Answer`, with its question's key in the place of a check number."""

    question: bytes
    state: AnswerState
    code: str
    matched_name: str | None
    request_id: str | None
    time: str | None
    attempts: int


class Reuse(NamedTuple):
    """That a question was not asked, because an earlier run had the answer."""

    question: bytes
    """Its key in this ledger."""
    code: str
    request_id: str
    """Of the request that was answered."""
    time: str
    """When the answer came, in whichever run; never when it was used again."""
    source_sha256: str
    """Of the input of the earlier run."""
    reused_at: str


class Finish(NamedTuple):
    """That an outcome file was written, and how much of it was decided then."""

    time: str
    question_count: int
    unanswered_count: int
    outcome_sha256: str


class Attempt(NamedTuple):
    """One request for a question, and how it ended."""

    number: int
    request_id: str
    sent_at: str
    ended: str
    """An `AnswerState` where it brought the final answer, `failed`, or `in doubt` after a kill."""
    code: str | None
    ended_at: str | None
    detail: str | None = None
    """What the server said of a problem; None where it said nothing, or where it is purged or not read."""
    has_hidden_detail: bool = False
    """Whether it said something that is encrypted, and was read without the key."""


class Fruitless(NamedTuple):
    """That every run so far got nowhere with a question, by a reply that is about the question."""

    run_count: int
    """Runs that did."""
    code: str
    """Of the latest such reply."""
    attempts: int
    """Requests for it, in all runs."""


class Counts(NamedTuple):
    """How much a ledger holds."""

    attempt_count: int
    """Requests that were sent, or were about to be."""
    answer_count: int
    """Questions with a final answer from a server."""
    reused_count: int
    """Questions answered by an earlier run."""


class Known(NamedTuple):
    """What a ledger knows of a question."""

    answer: FinalAnswer | None
    attempts: int
    """Requests that were sent for it, or were about to be when a run was killed."""
    code: str | None
    """Of the latest request, where it gave nothing usable."""


class Hold(NamedTuple):
    """That one process has a chunk of questions, until it lets go of it or another takes it over."""

    chunk: int
    fence: int
    """How often the chunk was taken: what an earlier holder writes is known by it, and refused."""


class Question(NamedTuple):
    """A check that is left to ask."""

    check: Check
    key: bytes
    """What the ledger knows it by."""
    attempts: int
    """Requests for it in earlier runs."""
    is_suspect: bool
    """Whether it ended by a reply about itself in an earlier run."""


class Chunk(NamedTuple):
    """Questions that one process asks, in this order, and no other does meanwhile."""

    hold: Hold
    questions: Sequence[Question]


class Account(NamedTuple):
    """What a server allows one client of one of its APIs, all processes together."""

    scope: str
    """Server and client, as `scopes.scope_of` gives them, in any spelling."""
    api: str
    rate_per_s: float
    in_flight_max: int


class Part(NamedTuple):
    """What one process may use of an account; nothing at all where both are 0."""

    rate_per_s: float
    in_flight_max: int
    until: float = inf
    """On this process's monotonic clock."""


class Holder(NamedTuple):
    """The run that has its turn at a server."""

    server: str
    """Host and port."""
    pid: int | None = None
    """None where it has only just taken its turn, and has not said yet who it is."""
    since: str | None = None
    """UTC, ISO 8601 with Z."""

    @property
    def name(self) -> str:
        """Which run it is, for a sentence."""
        return "another run" if self.pid is None else f"process {self.pid}"

    @property
    def since_when(self) -> str:
        """Since when it is its turn, for the same sentence; empty where that is not known.

        >>> Holder("cop.example:443", 4242, "2030-01-02T03:04:05Z").since_when
        ' since 2030-01-02 03:04:05 UTC'
        """
        return "" if self.since is None else f" since {self.since.rstrip('Z').replace('T', ' ')} UTC"
