"""The protocols of a store that machines share: the store, a run in it, and what its owner does with it.

A store is a package that is what `StoreKind` asks for, and a line in `pipeline.stores.kinds`.
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
"""How long a server that is away is waited for."""
QuestionParts = Callable[[int], pl.DataFrame]
"""The number of a part of the questions -> its `Checks`, in the order of `PlannedChunk`."""
RequestCopy = Callable[[Check, RecordedRequest], Awaitable[None]]
"""Takes a request of this process that is on record, and the question it was for."""


class StoreClocks(NamedTuple):
    """Time for what waits for a server."""

    now: Callable[[], datetime]  # in UTC, for sentences
    monotonic: Callable[[], float]
    wait_max_s: float = LEDGER_WAIT_MAX_S


class AskingProcess(NamedTuple):
    """This process, as others see it."""

    id: UUID  # new for each process
    host: str
    pid: int
    tool_version: str


class QuestionPlan(NamedTuple):
    """The questions of a run, as two hosts compare them."""

    hash: bytes  # keyed, of all of them in their order
    question_count: int


class StoredRun(NamedTuple):
    """A run in the store."""

    number: int
    id: UUID
    tool_version: str  # of the process that began it
    created_at: str
    finished_at: str | None


class AccountCap(NamedTuple):
    """The cap of one server account."""

    scope: str  # as `scopes.scope_of` gives it
    cap: int
    window: Window


class SharedCap(CapCount, Protocol):
    """A daily cap that all hosts count together; `SharedRun.intend` takes its units."""

    async def is_spent(self) -> bool:
        """True if no unit is left now, of whichever process took the last."""


class QuestionRounds(Protocol):
    """The rounds of a run: a round is what is left to ask when it begins, in chunks to be claimed."""

    async def latest_round(self) -> RoundState:
        """How far the latest round has come. The process that looks is seen from then on."""

    async def open_round(self, chunks: Sequence[PlannedChunk], *, after: int) -> bool:
        """Open the next round with these chunks, in order; False if another process opened one: join it."""

    async def end_round(self, number: int, *, is_over: bool = False) -> bool:
        """End a round with no undone chunk; what is undone is asked in the next one. Whether it has ended.

        With `is_over` it ends also where chunks are undone that no live process holds: for a process that
        leaves when the cap is used up, or when it is asked to stop.
        """


class SharedRun(Ledger, QuestionSource, QuestionRounds, Protocol):
    """One process's view of a shared run; a context manager. Intents take units of the daily cap."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None:
        """End the view. Chunks that were not given back are free once their leases have ended."""

    def copy_to(self, copy: RequestCopy) -> None:
        """Have every request of this process copied, once its ending is on record, or it is left in doubt."""

    def reuse(self, answers: Collection[ReusedAnswer]) -> None:
        """Record that earlier runs answered these questions: all or none; repeated records do no harm."""

    def answers(self) -> Iterator[FinalAnswer]:
        """Every final answer, those recorded by `reuse` last. Not while `writing()`."""

    def earlier_answers(
        self, questions: Sequence[bytes], not_before: str
    ) -> Mapping[str, Sequence[FinalAnswer]]:
        """The latest answer that another run of the same profile and environment has to each question.

        SHA-256 of the input of a run -> its answers, without their names. Those before a time, UTC, ISO 8601
        with Z, are left out.
        """


class SharedStore(Protocol):
    """An open store, as one process takes part in it; a context manager.

    Raises:
        ConfigurationError, IncompleteError: by any method: the store does not let us in, or it has been away
            for as long as is waited.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def be_seen(self) -> None:
        """Note that this process is there, though it holds nothing."""

    def wait_at_most(self, wait_max_s: float) -> None:
        """Wait no longer than this for a store that is away."""

    def plan_of(self, parts: Iterable[pl.DataFrame]) -> QuestionPlan:
        """The plan that two hosts must agree on to share a run, from its `Checks` in order."""

    def join(
        self, identity: RunIdentity, plan: QuestionPlan, *, new_id: UUID, run_id: UUID | None = None
    ) -> StoredRun:
        """The run that this process is to work on.

        It is the run of a folder that has one, also after it has finished; or else the unfinished run of this
        identity, or a new one with this id.

        Raises:
            UsageError: the run of the folder is not in this store, or has another identity.
            ConfigurationError: the run was planned by a version that plans otherwise.
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
        """Record that every question has its final answer; False where another process has done so."""

    def cap(self, cap: AccountCap) -> SharedCap:
        """The count of a daily cap, for the gate."""

    def shares(self, terms: LeaseTerms) -> Shares:
        """The accounts, divided among the processes of all hosts."""

    def require_same_limits(self, accounts: Collection[ServerAccount], *, now: datetime) -> None:
        """Refuse to begin a run beside a process that goes by other limits; nothing is leased or written.

        Raises:
            ConfigurationError: it names both hosts.
        """


class StoreFinding(NamedTuple):
    """One finding of `precheck ledger check`."""

    name: Sentence
    detail: Sentence
    is_wrong: bool = False


class ClosedRun(NamedTuple):
    """A run that is closed."""

    question_count: int
    answer_count: int
    was_closed: bool  # whether it had finished, or was closed, before


class AccountState(NamedTuple):
    """The current division of an account's limits."""

    scope: str
    api: str
    division: Division
    now: float  # on the clock of the division


class StoreState(NamedTuple):
    """A snapshot of a store; rows are named tuples with the fields that `status_of` reads."""

    time: str  # of the store, UTC, ISO 8601 with Z
    runs: list[Any]  # those that have not finished, the oldest first
    holders: list[Any]  # processes that were seen within the last minute, and have not left
    accounts: list[AccountState]
    caps: list[Any]


class StoreCare(Protocol):
    """A store as its owner and its operator see it; a context manager. It connects when it is first used.

    Raises:
        ConfigurationError, IncompleteError: by any method: as `SharedStore`.
    """

    @property
    def place(self) -> str:
        """Host and port, for a sentence."""

    @property
    def database(self) -> str:
        """What holds it there."""

    @property
    def user(self) -> str | None:
        """The role of the runs, where the address says it."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def create(self, secret: SecretStr, *, grant_to: str | None) -> bool:
        """Create the store where there is none, and let a role use it; whether it was created now."""

    def rekey(self, secret: SecretStr, new_secret: SecretStr) -> None:
        """Put it under another key of the user's; no line changes, and what is under way continues."""

    def close_run(self, run_id: UUID) -> ClosedRun:
        """Have a run on record as one that has ended, with the answers that it has.

        Raises:
            UsageError: there is no such run in this store.
            IncompleteError: a process asks its questions now.
        """

    def findings(self, secret: SecretStr, *, is_restored: bool) -> list[StoreFinding]:
        """Look at the store and its server, and at what a backup that was brought back leaves in doubt."""

    def state(self) -> StoreState:
        """Look at its activity."""

    def purge_names(self, run_id: UUID, *, answers_before: str) -> int:
        """Erase names and details of a run before a time, on record; returns how many, 0 for unknown runs."""


class StoreKind(Protocol):
    """A kind of shared store such as PostgreSQL; its imports happen when a store is opened."""

    def require_address(self, url: str) -> None:
        """Refuse what is no address of such a store.

        Raises:
            ValueError: it is none, has a secret in it, or would trust a server that is not proved. The
                message says what to do, and quotes nothing.
        """

    def opened_store(
        self, url: str, secret: SecretStr, process: AskingProcess, clocks: StoreClocks
    ) -> AbstractContextManager[SharedStore]:
        """Open a store for this process.

        Raises:
            ConfigurationError: it does not let us in, its key or its version is another, or a package for it
                is missing.
            IncompleteError: it has been away for as long as is waited.
        """

    def cared_for(
        self, url: str, clocks: StoreClocks, *, role: str | None = None
    ) -> AbstractContextManager[StoreCare]:
        """A store in the hands of its owner, or of this role.

        Raises:
            ConfigurationError: a package for it is missing.
        """
