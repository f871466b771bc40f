"""The protocols of stores, whether files or databases that machines share.

Each protocol is small and covers one concern. tests/contract/stores tests the rules for every store. To add a
store that machines share, write a package that implements `StoreKind`, and a line in `pipeline.stores.kinds`.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable
from uuid import UUID

import polars as pl
from pydantic import SecretStr

from pipeline.frames import Answer, Check
from pipeline.stores import values
from pipeline.stores.leased_shares import LeaseTerms
from pipeline.stores.sharing import Division
from pipeline.wording import Sentence
from schemas.outcomes import ApiName


class Closing(Protocol):
    """Something that is closed at the end of a `with` block."""

    def close(self) -> None:
        """Close it. Safe to call twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Ledger(Protocol):
    """The record of one run, as needed for asking: which questions may have been sent, and the replies.

    A question never has more than one answer. Its attempts are numbered from 1, across all processes and
    kills. A write is durable when it returns.
    """

    @property
    def counts(self) -> values.LedgerCounts:
        """The number of requests and answers in the ledger."""

    def question_key(self, check: Check) -> bytes:
        """Return the key of a question: 32 bytes, equal for equal questions in this run."""

    async def known(self, questions: Sequence[bytes]) -> Mapping[bytes, values.QuestionHistory]:
        """Return the history of these questions, without those that have none. Call outside `writing()`."""

    async def fruitless(self) -> Mapping[bytes, values.FruitlessQuestion]:
        """Return questions that no run, this one included, got an answer to. Call outside `writing()`."""

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Accept writes during the block; the last of them is durable when it has ended."""

    async def intend(self, question: bytes, *, attempt: int, request_id: str, time: str) -> None:
        """Record the intent to send a request, which may be sent once this has returned.

        `attempt` is one more than the question's attempts so far. Times are UTC, ISO 8601 with Z, here and
        below. DiskError: this or an earlier write is not durable; no more writes are accepted.
        LeaseLostError: another process has the question now. CapSpentError: the cap is used up, if it is
        counted with intents.
        """

    async def fail(self, question: bytes, *, attempt: int, code: str, time: str, detail: str = "") -> None:
        """Record that an attempt had no usable result, with details of the problem; errors as in `intend`."""

    async def settle(self, question: bytes, answer: Answer, detail: str = "") -> None:
        """Record the final answer to the latest attempt; repeating this is a bug. Same errors as `intend`."""


class RunLedger(Ledger, Protocol):
    """The record of one run, as the job that carries it out needs it."""

    @property
    def run(self) -> values.RunIdentity:
        """The identity of the run."""

    @property
    def created_at(self) -> str:
        """When the run began."""

    @property
    def payee_key(self) -> bytes:
        """The key that this run hashes payees and accounts with."""

    @property
    def last_finish(self) -> values.FinishRecord | None:
        """The latest recorded outcome file, or None."""

    @property
    def finished_at(self) -> str | None:
        """When the run was finished, or None while any question lacks its final answer."""

    def answers(self) -> Iterator[values.FinalAnswer]:
        """Yield every final answer, those recorded by `reuse` last. Call outside `writing()`."""

    def reuse(self, answers: Collection[values.ReusedAnswer]) -> None:
        """Record answers of earlier runs to these questions: either all or none."""

    def allow(self, reason: str, *, time: str) -> None:
        """Record why this run may ask despite a warning that normally stops runs."""

    @property
    def language(self) -> str | None:
        """The code of the language of page and workbook; None until the run records one."""

    def speak(self, language: str, *, time: str) -> None:
        """Record the language of page and workbook."""

    def finish(
        self, time: str, *, question_count: int, unanswered_count: int, outcome_sha256: str
    ) -> values.FinishRecord:
        """Record a written outcome file; repeated after each resumption."""


class QuestionSource(Protocol):
    """The questions that this process may ask; each is leased to one process at a time."""

    @property
    def is_shared(self) -> bool:
        """True if other processes may ask the questions that this one leaves open."""

    async def claim(self, api: ApiName) -> values.QuestionChunk | None:
        """Lease a chunk of questions for one API; None if none is free. Does not wait for other processes."""

    async def has_free(self, api: ApiName) -> bool:
        """True if other processes have released chunks that can be claimed."""

    async def done(self, hold: values.ChunkLease) -> None:
        """Record that every question of the chunk is done in this run."""

    def holds(self, hold: values.ChunkLease) -> bool:
        """True if this process still holds the chunk, as far as it knows; only a write makes sure."""

    def may_send(self, hold: values.ChunkLease) -> bool:
        """True if the chunk's lease has not ended; after a long sleep, another process may hold the chunk."""

    async def give_back(self, api: ApiName | None = None) -> None:
        """Release every unfinished chunk, for one API or all; the next holder reads their history.

        For one API, call this only when none of its requests is in flight.
        """


class CapCount(Protocol):
    """One client's daily cap, over all processes; `Quota.reserve` or `Ledger.intend` takes its units."""

    async def resets_at(self) -> datetime:
        """When more units become available."""

    async def close_for_today(self) -> None:
        """Record that the server reports the cap as used up."""

    async def go_by(self, server_now: datetime) -> None:
        """Count by the server's clock from now on, because ours is wrong."""


@runtime_checkable
class Quota(CapCount, Protocol):
    """A daily cap that is counted outside the ledger."""

    async def reserve(self) -> bool:
        """Take one unit, durably, for a request about to be sent; False if none is left.

        DiskError, IncompleteError: it is unknown whether a unit was taken; send nothing.
        """


class Share(Protocol):
    """A leased part of an account; the shares of all processes never exceed the account."""

    def follow(self, use: Callable[[values.ShareLimits], None], in_flight: Callable[[], int]) -> None:
        """Call `use` with the limits, now and at each change; requests in flight keep their slots."""

    def pause(self, wait_s: float) -> None:
        """Pause all processes for `wait_s`, as the server requested; other processes follow soon."""

    def leave(self) -> None:
        """Release the share, because nothing is left to ask; other processes soon get it."""

    async def rejoin(self) -> bool:
        """Take a share again after `leave`, without waiting for another process; errors as in `Shares.lease`.

        Returns False, without a share, if another process would have to leave first; the caller may retry.
        """


class Shares(Protocol):
    """Divides accounts among concurrent processes."""

    def lease(
        self, accounts: Collection[values.ServerAccount]
    ) -> AbstractAsyncContextManager[Mapping[str, Share]]:
        """Hold a share of each account during the block; yields API name -> share.

        IncompleteError: no share became free in time; nothing was sent.
        """


LEDGER_WAIT_MAX_S = 300.0  # how long to wait for an unavailable server, by default
QuestionParts = Callable[[int], pl.DataFrame]
"""Number of a part of the questions -> its `Checks`, in the order of `PlannedChunk`."""
RequestCopy = Callable[[Check, values.RecordedRequest], Awaitable[None]]  # copies a request and its question


class StoreClocks(NamedTuple):
    """Clocks for waiting for a server."""

    now: Callable[[], datetime]  # UTC, shown in sentences
    monotonic: Callable[[], float]
    wait_max_s: float = LEDGER_WAIT_MAX_S


class AskingProcess(NamedTuple):
    """This process, as other processes see it."""

    id: UUID  # different for each process
    host: str
    pid: int
    tool_version: str


class QuestionPlan(NamedTuple):
    """The questions of a run, in a form that hosts can compare."""

    hash: bytes  # keyed hash of all questions, in order
    question_count: int


class StoredRun(NamedTuple):
    """A run in the store."""

    number: int
    id: UUID
    tool_version: str  # version of the process that began the run
    created_at: str
    finished_at: str | None


class AccountCap(NamedTuple):
    """The daily cap of one server account."""

    scope: str  # returned by `scopes.scope_of`
    cap: int
    window: values.Window


class SharedCap(CapCount, Protocol):
    """A daily cap counted for all hosts together; `SharedRun.intend` takes its units."""

    async def is_spent(self) -> bool:
        """True if no unit is left; any process may have taken the last one."""


class QuestionRounds(Protocol):
    """The rounds of a run. A round consists of the questions open at its start, in chunks to claim."""

    async def latest_round(self) -> values.RoundState:
        """Return the state of the latest round, and record that this process is alive."""

    async def open_round(self, chunks: Sequence[values.PlannedChunk], *, after: int) -> bool:
        """Open the next round with these chunks, in order; False if another process has already opened it."""

    async def end_round(self, number: int, *, is_over: bool = False) -> bool:
        """End a round without undone chunks; True if it ended. The next round asks what is left.

        With `is_over` it also ends if no live process holds an unfinished chunk. A process sets it if it
        leaves because the cap is used up, or because it was asked to stop.
        """


class SharedRun(Ledger, QuestionSource, QuestionRounds, Closing, Protocol):
    """A shared run, as one process uses it; when closed, its chunks become free when their leases end."""

    def copy_to(self, copy: RequestCopy) -> None:
        """Copy every request of this process once its result is recorded, or once it is left in doubt."""

    def reuse(self, answers: Collection[values.ReusedAnswer]) -> None:
        """Record answers of earlier runs, either all or none; recording them again does no harm."""

    def answers(self) -> Iterator[values.FinalAnswer]:
        """Yield every final answer, those recorded by `reuse` last. Call outside `writing()`."""

    def earlier_answers(
        self, questions: Sequence[bytes], not_before: str
    ) -> Mapping[str, Sequence[values.FinalAnswer]]:
        """Return the latest answer to each question by another run of the same profile and environment.

        Maps the SHA-256 of a run's input to its answers, without names. Answers from before `not_before`
        (UTC, ISO 8601 with Z) are left out.
        """


class SharedStore(Closing, Protocol):
    """An open store of one process (ConfigurationError: access refused; IncompleteError: unavailable)."""

    def be_seen(self) -> None:
        """Record that this process is alive although it holds no chunk."""

    def wait_at_most(self, wait_max_s: float) -> None:
        """Limit how long to wait for an unavailable store."""

    def plan_of(self, parts: Iterable[pl.DataFrame]) -> QuestionPlan:
        """Return the plan that all hosts of a shared run must agree on, from its `Checks` in order."""

    def join(
        self, identity: values.RunIdentity, plan: QuestionPlan, *, new_id: UUID, run_id: UUID | None = None
    ) -> StoredRun:
        """Return the run that this process works on.

        That is the folder's run `run_id`, even if finished (UsageError: not here, or of another identity);
        otherwise the unfinished run with this identity, or a new one with the id `new_id`.
        ConfigurationError: a version that plans differently began the run; DiskError: its line was changed.
        """

    def find(self, run_id: UUID) -> StoredRun | None:
        """Return a run by its id; None if it is not in this store."""

    def shared_run(
        self, run: StoredRun, questions: QuestionParts, *, caps: Mapping[str, AccountCap]
    ) -> SharedRun:
        """Return a run as this process uses it, to be closed; intents take units of `caps`, given by API."""

    def lines(self, run: StoredRun) -> Iterator[values.RecordedRequest]:
        """Yield every request of a run in the order of recording, then the answers of earlier runs."""

    def mark_finished(self, run: StoredRun) -> bool:
        """Record that every question has its final answer; False if another process has already done so."""

    def cap(self, cap: AccountCap) -> SharedCap:
        """Return the count of a daily cap, for the gate."""

    def shares(self, terms: LeaseTerms) -> Shares:
        """Divide the accounts among the processes of all hosts."""

    def require_same_limits(self, accounts: Collection[values.ServerAccount], *, now: datetime) -> None:
        """Refuse to begin a run while another process has different limits; nothing is leased or written.

        ConfigurationError: another process has different limits; the error names both hosts.
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
    was_closed: bool  # True if it had already been finished or closed


class AccountState(NamedTuple):
    """How an account's limits are divided now."""

    scope: str
    api: str
    division: Division
    now: float  # by the clock of the division


class StoreState(NamedTuple):
    """A snapshot of a store; rows are named tuples with the fields that `status_of` reads."""

    time: str  # the store's time, UTC, ISO 8601 with Z
    runs: list[Any]  # unfinished runs, oldest first
    holders: list[Any]  # processes that were active in the last minute and have not left
    accounts: list[AccountState]
    caps: list[Any]


class StoreCare(Closing, Protocol):
    """A store, as its owner or operator uses it; it connects when first used. Errors as in `SharedStore`."""

    @property
    def place(self) -> str:
        """Host and port, as named in sentences."""

    @property
    def database(self) -> str:
        """The name of the database."""

    @property
    def user(self) -> str | None:
        """The role of the runs, if the address contains it."""

    def create(self, secret: SecretStr, *, grant_to: str | None) -> bool:
        """Create the store unless it exists, and grant a role access; True if it was created now."""

    def rekey(self, secret: SecretStr, new_secret: SecretStr) -> None:
        """Replace the user's key; lines stay unchanged, and running work continues."""

    def close_run(self, run_id: UUID) -> ClosedRun:
        """Record that a run is over, with the answers that it has so far.

        UsageError: the store has no such run; IncompleteError: a process is asking its questions.
        """

    def findings(self, secret: SecretStr, *, is_restored: bool) -> list[StoreFinding]:
        """Check the store and its server and, if a backup was restored, the requests in doubt."""

    def state(self) -> StoreState:
        """Return the current activity in the store."""

    def purge_names(self, run_id: UUID, *, answers_before: str) -> int:
        """Erase a run's names and details from before a time, on record; return how many were erased."""


class StoreKind(Protocol):
    """A kind of shared store, such as PostgreSQL; its driver is imported when a store is opened."""

    def require_address(self, url: str) -> None:
        """Refuse an address (ValueError) that is invalid, has a secret, or would trust an unverified server.

        The message says what to do, and quotes no part of the address.
        """

    def opened_store(
        self, url: str, secret: SecretStr, process: AskingProcess, clocks: StoreClocks
    ) -> AbstractContextManager[SharedStore]:
        """Open a store for this process (IncompleteError: it stayed unavailable until the timeout).

        ConfigurationError: it refuses access, has another key or version, or a package is missing.
        """

    def cared_for(
        self, url: str, clocks: StoreClocks, *, role: str | None = None
    ) -> AbstractContextManager[StoreCare]:
        """Open a store for its owner, or for this role (ConfigurationError: a package is missing)."""
