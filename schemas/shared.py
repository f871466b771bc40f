"""Shared runs: a folder's run, questions for workers, and the processes that ask them."""

from uuid import UUID

from pydantic import Field

from schemas.outcomes import ApiName, Environment
from schemas.strict import OwnDocument


class SharedRunRecord(OwnDocument):
    """`store.json`: the ledger and run that a folder belongs to."""

    ledger: str = Field(description="The address of the ledger, without any secret.")
    run: UUID = Field(description="The run in that ledger.")
    finished: bool = Field(False, description="Whether the ledger records it as finished.")
    work: str | None = Field(None, description="The work folder with its questions for workers; null: none.")


class WorkRecord(OwnDocument):
    """`work.json`: the run of a folder of questions; written last, when all questions are there."""

    ledger: str = Field(description="The address of the ledger, without any secret.")
    run: UUID = Field(description="The run in that ledger.")
    input_sha256: str = Field(description="SHA-256 of the payment file.")
    profile_sha256: str = Field(description="Hash of what identifies the profile.")
    environment: Environment = Field(description="The kind of server that answers.")
    tool_version: str = Field(description="The version of precheck that wrote it.")
    part_count: int = Field(ge=0, description="Number of files with questions.")
    apis: list[ApiName] = Field(description="The APIs of the questions.")


class RunStatus(OwnDocument):
    """A run in a shared ledger that has not finished."""

    run: UUID
    created: str = Field(description="Start of the run, UTC, ISO 8601 with Z.")
    tool_version: str = Field(description="The version of precheck that began it.")
    input_sha256: str
    environment: Environment
    question_count: int = Field(description="Number of its distinct questions.")
    left_count: int = Field(description="Questions without a final answer.")
    attempt_count: int = Field(description="Requests that were sent or recorded as intended.")
    answer_count: int = Field(description="Questions with a final answer.")
    reused_count: int = Field(description="Questions with an answer of an earlier run.")
    round: int = Field(description="Number of passes over its open questions; 0: none yet.")
    open: bool = Field(description="Whether a pass is under way, which any process may join.")
    undone_chunk_count: int = Field(description="Chunks of this pass that are not done.")
    free_chunk_count: int = Field(description="Such chunks that no process holds.")


class HolderStatus(OwnDocument):
    """A process that takes part, seen within the last minute."""

    host: str
    pid: int
    tool_version: str
    started: str = Field(description="UTC, ISO 8601 with Z.")
    seen: str = Field(description="When it last renewed its entry, which it does every few seconds.")
    silent_s: float = Field(description="Seconds since then.")
    alive: bool = Field(description="False: silent for so long that other processes take over its questions.")
    chunk_count: int = Field(description="Chunks of questions that it holds.")
    question_count: int = Field(description="Questions in these chunks, including answered ones.")
    oldest_lease_s: float | None = Field(
        description="Seconds until the first of its leases ends; negative if it has ended; null: none."
    )


class ShareStatus(OwnDocument):
    """A process's current share of an account."""

    host: str | None
    pid: int | None
    requests: int = Field(
        description="Its share, in any second; with a rate below 1, in any 1 / rate_per_s seconds."
    )
    rate_per_s: float = Field(description="The rate of the whole account.")
    slots: int = Field(description="Its share of requests in flight.")
    in_flight_max: int = Field(description="Requests in flight of the whole account.")
    lease_s: float = Field(
        description="Seconds until its share ends unless it renews it; negative if it has ended."
    )


class AccountUse(OwnDocument):
    """A provider's account, and how its limits are divided."""

    scope: str = Field(description="The server and the client.")
    api: ApiName
    paused_s: float = Field(description="Seconds for which nothing is sent, as the server requested.")
    shares: list[ShareStatus]


class CapStatus(OwnDocument):
    """The daily cap of an account."""

    scope: str = Field(description="The server and the client.")
    cap: int
    used: int = Field(description="Requests used in the current window.")
    closed: bool = Field(description="Whether the server said that nothing is left.")


class LedgerStatus(OwnDocument):
    """The activity in a shared ledger."""

    ledger: str
    time: str = Field(description="The database's time, UTC, ISO 8601 with Z.")
    runs: list[RunStatus]
    holders: list[HolderStatus]
    accounts: list[AccountUse]
    caps: list[CapStatus]
