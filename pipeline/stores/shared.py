"""The protocols of a store that machines share: the store, a run in it, and the owner's tasks.

A store is a package that implements `StoreKind`, and a line in `pipeline.stores.kinds`.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple, Protocol, Self
from uuid import UUID

import polars as pl
from pydantic import SecretStr

from pipeline.frames import Check
from pipeline.stores.leased_shares import LeaseTerms
from pipeline.stores.protocols import CapCount, Ledger, QuestionSource, Shares
from pipeline.stores.sharing import Division
from pipeline.stores.values import (
    FinalAnswer,
    PlannedChunk,
    RecordedRequest,
    ReusedAnswer,
    RoundState,
    RunIdentity,
    ServerAccount,
    Window,
)
from pipeline.wording import Sentence

LEDGER_WAIT_MAX_S = 300.0
"""How long to wait for an unavailable server."""
QuestionParts = Callable[[int], pl.DataFrame]
"""Part number of the questions -> its `Checks`, in the order of `PlannedChunk`."""
RequestCopy = Callable[[Check, RecordedRequest], Awaitable[None]]
"""Takes a recorded request of this process, and its question."""


class StoreClocks(NamedTuple):
    """The clocks for waiting for a server."""

    now: Callable[[], datetime]  # in UTC, for sentences
    monotonic: Callable[[], float]
    wait_max_s: float = LEDGER_WAIT_MAX_S


class AskingProcess(NamedTuple):
    """This process, as other processes see it."""

    id: UUID  # new for each process
    host: str
    pid: int
    tool_version: str


class QuestionPlan(NamedTuple):
    """The questions of a run, as two hosts compare them."""

    hash: bytes  # keyed hash of all questions in order
    question_count: int


class StoredRun(NamedTuple):
    """A run in the store."""

    number: int
    id: UUID
    tool_version: str  # version of the process that began it
    created_at: str
    finished_at: str | None


class AccountCap(NamedTuple):
    """The cap of one server account."""

    scope: str  # from `scopes.scope_of`
    cap: int
    window: Window


class SharedCap(CapCount, Protocol):
    """A daily cap that all hosts count together; `SharedRun.intend` takes its units."""

    async def is_spent(self) -> bool:
        """True if no unit is left now, whichever process took the last."""


class QuestionRounds(Protocol):
    """The rounds of a run: a round is the questions open at its start, in chunks to be claimed."""

    async def latest_round(self) -> RoundState:
        """The state of the latest round. The calling process counts as alive from then on."""

    async def open_round(self, chunks: Sequence[PlannedChunk], *, after: int) -> bool:
        """Open the next round with these chunks, in order; False if another process opened one: join it."""

    async def end_round(self, number: int, *, is_over: bool = False) -> bool:
        """End a round without undone chunks; True if it ended. The next one asks what is left.

        With `is_over` it also ends if no live process holds an unfinished chunk: for a process that leaves
        because the cap is used up, or it is asked to stop.
        """


class SharedRun(Ledger, QuestionSource, QuestionRounds, Protocol):
    """One process's handle on a shared run; a context manager. Intents take units of the daily cap."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None:
        """Close it. Chunks that were not released are free once their leases have ended."""

    def copy_to(self, copy: RequestCopy) -> None:
        """Copy every request of this process, once its result is recorded, or it is left in doubt."""

    def reuse(self, answers: Collection[ReusedAnswer]) -> None:
        """Record answers of earlier runs to these questions: all or none; repeated records do no harm."""

    def answers(self) -> Iterator[FinalAnswer]:
        """Every final answer, those recorded by `reuse` last. Not while `writing()`."""

    def earlier_answers(
        self, questions: Sequence[bytes], not_before: str
    ) -> Mapping[str, Sequence[FinalAnswer]]:
        """The latest answer of another run of the same profile and environment to each question.

        Returns SHA-256 of a run's input -> its answers, without names. Answers before `not_before` (UTC, ISO
        8601 with Z) are left out.
        """


class SharedStore(Protocol):
    """An open store, as one process takes part in it; a context manager.

    Raises:
        ConfigurationError, IncompleteError: by any method: the store refuses access, or stayed unavailable
        until the timeout.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def be_seen(self) -> None:
        """Record that this process is alive, though it holds nothing."""

    def wait_at_most(self, wait_max_s: float) -> None:
        """Limit the wait for an unavailable store."""

    def plan_of(self, parts: Iterable[pl.DataFrame]) -> QuestionPlan:
        """The plan that two hosts must agree on to share a run, from its `Checks` in order."""

    def join(
        self, identity: RunIdentity, plan: QuestionPlan, *, new_id: UUID, run_id: UUID | None = None
    ) -> StoredRun:
        """The run for this process to work on.

        It is the folder's run `run_id`, even if finished; else the unfinished run of this identity, or a new
        one with `new_id`.

        Raises:
            UsageError: the run of the folder is not in this store, or has another identity.
            ConfigurationError: the run was planned by a version that plans differently.
            DiskError: the run's line was changed.
        """

    def find(self, run_id: UUID) -> StoredRun | None:
        """A run by its id; None if it is not in this store."""

    def shared_run(
        self, run: StoredRun, questions: QuestionParts, *, caps: Mapping[str, AccountCap]
    ) -> SharedRun:
        """This process's view of a run, to be closed; its intents take units of the caps, by their APIs."""

    def lines(self, run: StoredRun) -> Iterator[RecordedRequest]:
        """Every request of a run in the order of their recording, then the answers of earlier runs."""

    def mark_finished(self, run: StoredRun) -> bool:
        """Record that every question has its final answer; False if another process has done so."""

    def cap(self, cap: AccountCap) -> SharedCap:
        """The count of a daily cap, for the gate."""

    def shares(self, terms: LeaseTerms) -> Shares:
        """The accounts, divided among the processes of all hosts."""

    def require_same_limits(self, accounts: Collection[ServerAccount], *, now: datetime) -> None:
        """Refuse to begin a run while another process has different limits; nothing is leased or written.

        Raises:
            ConfigurationError: it names both hosts.
        """


class StoreFinding(NamedTuple):
    """One finding of `precheck ledger check`."""

    name: Sentence
    detail: Sentence
    is_wrong: bool = False


class ClosedRun(NamedTuple):
    """A run that `close_run` has closed."""

    question_count: int
    answer_count: int
    was_closed: bool  # whether it had already finished or been closed


class AccountState(NamedTuple):
    """The current division of an account's limits."""

    scope: str
    api: str
    division: Division
    now: float  # on the clock of the division


class StoreState(NamedTuple):
    """A snapshot of a store; rows are named tuples with the fields that `status_of` reads."""

    time: str  # the store's time, UTC, ISO 8601 with Z
    runs: list[Any]  # the unfinished ones, oldest first
    holders: list[Any]  # processes seen within the last minute that have not left
    accounts: list[AccountState]
    caps: list[Any]


class StoreCare(Protocol):
    """A store for its owner and its operator; a context manager. It connects at first use.

    Raises:
        ConfigurationError, IncompleteError: by any method: as `SharedStore`.
    """

    @property
    def place(self) -> str:
        """Host and port, for a sentence."""

    @property
    def database(self) -> str:
        """The name of the database."""

    @property
    def user(self) -> str | None:
        """The role of the runs, if the address has it."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def create(self, secret: SecretStr, *, grant_to: str | None) -> bool:
        """Create the store unless it exists, and grant a role access; True if created now."""

    def rekey(self, secret: SecretStr, new_secret: SecretStr) -> None:
        """Replace the user's key; no line changes, and running work continues."""

    def close_run(self, run_id: UUID) -> ClosedRun:
        """Record that a run has ended, with the answers that it has.

        Raises:
            UsageError: the store has no such run.
            IncompleteError: a process is asking its questions.
        """

    def findings(self, secret: SecretStr, *, is_restored: bool) -> list[StoreFinding]:
        """Check the store and its server, and the doubts about a restored backup."""

    def state(self) -> StoreState:
        """The activity in the store."""

    def purge_names(self, run_id: UUID, *, answers_before: str) -> int:
        """Erase, on record, a run's names and details before a time; return how many, 0 for unknown runs."""


class StoreKind(Protocol):
    """A kind of shared store such as PostgreSQL; its driver is imported when a store is opened."""

    def require_address(self, url: str) -> None:
        """Refuse an invalid address.

        Raises:
            ValueError: it is invalid, contains a secret, or would trust an unverified server. The message
            says what to do, and quotes nothing.
        """

    def opened_store(
        self, url: str, secret: SecretStr, process: AskingProcess, clocks: StoreClocks
    ) -> AbstractContextManager[SharedStore]:
        """Open a store for this process.

        Raises:
            ConfigurationError: it refuses access, has another key or version, or a package for it is missing.
            IncompleteError: it stayed unavailable until the timeout.
        """

    def cared_for(
        self, url: str, clocks: StoreClocks, *, role: str | None = None
    ) -> AbstractContextManager[StoreCare]:
        """A store for its owner, or for this role.

        Raises:
            ConfigurationError: a package for it is missing.
        """
