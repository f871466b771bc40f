"""Shared runs: a folder's run, questions for workers, and the processes that ask them."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from schemas.outcomes import ApiName, Environment
from schemas.strict import OwnDocument


class SharedRunRecord(OwnDocument):
    """`store.json`: the ledger and run that a folder belongs to."""

    ledger: Annotated[str, Field(description="The address of the ledger; no secret stands in it.")]
    run: Annotated[UUID, Field(description="The run in that ledger.")]
    finished: Annotated[bool, Field(description="Whether the ledger has it on record as finished.")] = False
    work: Annotated[
        str | None, Field(description="The work folder in which workers find its questions; null: in none.")
    ] = None


class WorkRecord(OwnDocument):
    """`work.json`: the run of a folder of questions; written last, when all questions are there."""

    ledger: Annotated[str, Field(description="The address of the ledger; no secret stands in it.")]
    run: Annotated[UUID, Field(description="The run in that ledger.")]
    input_sha256: Annotated[str, Field(description="SHA-256 of the payment file.")]
    profile_sha256: Annotated[str, Field(description="What identifies the profile.")]
    environment: Annotated[Environment, Field(description="Which kind of server answers.")]
    tool_version: Annotated[str, Field(description="Of the program that wrote it.")]
    part_count: Annotated[int, Field(ge=0, description="Files of questions.")]
    apis: Annotated[list[ApiName], Field(description="The APIs that there are questions for.")]


class RunStatus(OwnDocument):
    """A run in a shared ledger that has not finished."""

    run: UUID
    created: Annotated[str, Field(description="When it began, UTC, ISO 8601 with Z.")]
    tool_version: Annotated[str, Field(description="Of the program that began it.")]
    input_sha256: str
    environment: Environment
    question_count: Annotated[int, Field(description="Its distinct questions.")]
    left_count: Annotated[int, Field(description="Those of them that have no final answer.")]
    attempt_count: Annotated[int, Field(description="Requests that were sent, or were about to be.")]
    answer_count: Annotated[int, Field(description="Questions that a server has answered for good.")]
    reused_count: Annotated[int, Field(description="Questions with the answer of an earlier run.")]
    round: Annotated[int, Field(description="How often its open questions were taken up; 0: not yet.")]
    open: Annotated[bool, Field(description="Whether they are being asked now, by anyone who can.")]
    undone_chunk_count: Annotated[int, Field(description="Chunks of the round that are not done.")]
    free_chunk_count: Annotated[int, Field(description="Those of them that nobody asks.")]


class HolderStatus(OwnDocument):
    """A process that takes part, seen within the last minute."""

    host: str
    pid: int
    tool_version: str
    started: Annotated[str, Field(description="UTC, ISO 8601 with Z.")]
    seen: Annotated[str, Field(description="When it was last there; renewed every few seconds.")]
    silent_s: Annotated[float, Field(description="How long ago that was.")]
    alive: Annotated[
        bool, Field(description="False: so long ago that it has died, or sleeps; others go on in its place.")
    ]
    chunk_count: Annotated[int, Field(description="Chunks of questions in its hands.")]
    question_count: Annotated[int, Field(description="The questions in them, those already answered too.")]
    oldest_lease_s: Annotated[
        float | None,
        Field(
            description="How long until the first of their leases ends; negative where it has. Null: none."
        ),
    ]


class ShareStatus(OwnDocument):
    """A process's current share of an account."""

    host: str | None
    pid: int | None
    requests: Annotated[
        int, Field(description="In any second; with a rate below 1, in any 1 / rate_per_s seconds.")
    ]
    rate_per_s: Annotated[float, Field(description="The rate of the whole account, by its profile.")]
    slots: Annotated[int, Field(description="Requests at the same time.")]
    in_flight_max: Annotated[int, Field(description="Those of the whole account, by its profile.")]
    lease_s: Annotated[
        float, Field(description="How long it may, unless it renews; negative where it ended.")
    ]


class AccountUse(OwnDocument):
    """A provider's account, and how its limits are divided."""

    scope: Annotated[str, Field(description="The server and the client.")]
    api: ApiName
    paused_s: Annotated[float, Field(description="How long nothing is sent, as the server requested.")]
    shares: list[ShareStatus]


class CapStatus(OwnDocument):
    """The daily cap of an account."""

    scope: Annotated[str, Field(description="The server and the client.")]
    cap: int
    used: Annotated[int, Field(description="Requests of the window now.")]
    closed: Annotated[bool, Field(description="Whether the server said that nothing is left.")]


class LedgerStatus(OwnDocument):
    """The activity in a shared ledger."""

    ledger: str
    time: Annotated[str, Field(description="Of the database, UTC, ISO 8601 with Z.")]
    runs: list[RunStatus]
    holders: list[HolderStatus]
    accounts: list[AccountUse]
    caps: list[CapStatus]
