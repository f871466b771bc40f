"""Shared runs: a folder's run, questions for workers, and the processes that ask them."""

from uuid import UUID

from pydantic import Field

from schemas.outcomes import ApiName, Environment
from schemas.strict import OwnDocument


class SharedRunRecord(OwnDocument):
    """`store.json`: the ledger and run that a folder belongs to."""

    ledger: str = Field(description="The address of the ledger; no secret stands in it.")
    run: UUID = Field(description="The run in that ledger.")
    finished: bool = Field(False, description="Whether the ledger has it on record as finished.")
    work: str | None = Field(
        None, description="The work folder in which workers find its questions; null: in none."
    )


class WorkRecord(OwnDocument):
    """`work.json`: the run of a folder of questions; written last, when all questions are there."""

    ledger: str = Field(description="The address of the ledger; no secret stands in it.")
    run: UUID = Field(description="The run in that ledger.")
    input_sha256: str = Field(description="SHA-256 of the payment file.")
    profile_sha256: str = Field(description="What identifies the profile.")
    environment: Environment = Field(description="Which kind of server answers.")
    tool_version: str = Field(description="Of the program that wrote it.")
    part_count: int = Field(ge=0, description="Files of questions.")
    apis: list[ApiName] = Field(description="The APIs that there are questions for.")


class RunStatus(OwnDocument):
    """A run in a shared ledger that has not finished."""

    run: UUID
    created: str = Field(description="When it began, UTC, ISO 8601 with Z.")
    tool_version: str = Field(description="Of the program that began it.")
    input_sha256: str
    environment: Environment
    question_count: int = Field(description="Its distinct questions.")
    left_count: int = Field(description="Those of them that have no final answer.")
    attempt_count: int = Field(description="Requests that were sent, or were about to be.")
    answer_count: int = Field(description="Questions that a server has answered for good.")
    reused_count: int = Field(description="Questions with the answer of an earlier run.")
    round: int = Field(description="How often its open questions were taken up; 0: not yet.")
    open: bool = Field(description="Whether they are being asked now, by anyone who can.")
    undone_chunk_count: int = Field(description="Chunks of the round that are not done.")
    free_chunk_count: int = Field(description="Those of them that nobody asks.")


class HolderStatus(OwnDocument):
    """A process that takes part, seen within the last minute."""

    host: str
    pid: int
    tool_version: str
    started: str = Field(description="UTC, ISO 8601 with Z.")
    seen: str = Field(description="When it was last there; renewed every few seconds.")
    silent_s: float = Field(description="How long ago that was.")
    alive: bool = Field(
        description="False: so long ago that it has died, or sleeps; others go on in its place."
    )
    chunk_count: int = Field(description="Chunks of questions in its hands.")
    question_count: int = Field(description="The questions in them, those already answered too.")
    oldest_lease_s: float | None = Field(
        description="How long until the first of their leases ends; negative where it has. Null: none."
    )


class ShareStatus(OwnDocument):
    """A process's current share of an account."""

    host: str | None
    pid: int | None
    requests: int = Field(description="In any second; with a rate below 1, in any 1 / rate_per_s seconds.")
    rate_per_s: float = Field(description="The rate of the whole account, by its profile.")
    slots: int = Field(description="Requests at the same time.")
    in_flight_max: int = Field(description="Those of the whole account, by its profile.")
    lease_s: float = Field(description="How long it may, unless it renews; negative where it ended.")


class AccountUse(OwnDocument):
    """A provider's account, and how its limits are divided."""

    scope: str = Field(description="The server and the client.")
    api: ApiName
    paused_s: float = Field(description="How long nothing is sent, as the server requested.")
    shares: list[ShareStatus]


class CapStatus(OwnDocument):
    """The daily cap of an account."""

    scope: str = Field(description="The server and the client.")
    cap: int
    used: int = Field(description="Requests of the window now.")
    closed: bool = Field(description="Whether the server said that nothing is left.")


class LedgerStatus(OwnDocument):
    """The activity in a shared ledger."""

    ledger: str
    time: str = Field(description="Of the database, UTC, ISO 8601 with Z.")
    runs: list[RunStatus]
    holders: list[HolderStatus]
    accounts: list[AccountUse]
    caps: list[CapStatus]
