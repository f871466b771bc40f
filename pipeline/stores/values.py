"""Values that stores use: rows of a ledger, open questions, shares of a server account."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Literal, NamedTuple

from pipeline.frames import TURNED_AWAY_CODES, AnswerState, Check, OwnCode
from pipeline.wording import Moment, Sentence
from schemas.problem import ProblemCode

Window = Literal["utc_day", "rolling_24h"]  # what counts as a day for a cap
FINAL = frozenset({AnswerState.ANSWERED, AnswerState.REFUSED})  # states that end a question
ABOUT_THE_QUESTION = TURNED_AWAY_CODES | {OwnCode.CONTRACT, ProblemCode.CLIENT_INVALID}
"""Codes that do not indicate a failing server or network, and may recur forever. For 401 and 403 the recorded
code is the status, so CLIENT_INVALID here came with a status that refuses only one question.
"""


class RunIdentity(NamedTuple):
    """The identity of a folder's run; once there is an answer, only `tool_version` may change."""

    input_sha256: str
    profile_sha256: str
    environment: str
    tool_version: str


class LedgerProof(NamedTuple):
    """What proves a ledger's lines; with `NO_PROOF`, only their seals."""

    digests: Mapping[str, str] = MappingProxyType({})
    """Table -> SHA-256 of the seals of its lines, from the manifest; empty without a manifest."""
    finish_count: int = 0  # the number of outcome files recorded when the manifest was made
    signing_key_of: Callable[[bytes], bytes] | None = None
    """Key of a run -> key for the second half of its seals; None without signing."""
    proved_finishes: int = 0  # lines up to this outcome file are covered by a signed manifest

    def signing_key(self, run_key: bytes) -> bytes | None:
        """Return the key for the second half of a run's seals; None without signing."""
        return None if self.signing_key_of is None else self.signing_key_of(run_key)


NO_PROOF = LedgerProof()


class FinalAnswer(NamedTuple):
    """An `Answer` with its question's key instead of a check's number."""

    question: bytes
    state: AnswerState
    code: str
    matched_name: str | None
    request_id: str | None
    time: str | None
    attempts: int


class ReusedAnswer(NamedTuple):
    """The answer of an earlier run, reused without asking again."""

    question: bytes  # the question's key in this ledger
    code: str
    request_id: str  # of the request that was answered
    time: str  # when the answer came, not when it was reused
    source_sha256: str  # of the earlier run's input
    reused_at: str

    def as_answer(self, attempts: int) -> FinalAnswer:
        """Return it as an answer of this run, with the number of requests for the question."""
        return FinalAnswer(
            self.question, AnswerState.REUSED, self.code, None, self.request_id, self.time, attempts
        )


class FinishRecord(NamedTuple):
    """A written outcome file, with the number of payments that it decided."""

    time: str
    question_count: int
    unanswered_count: int
    outcome_sha256: str


class RequestAttempt(NamedTuple):
    """One request for a question, with its result."""

    number: int
    request_id: str
    sent: str  # when it was sent
    ended: str  # an `AnswerState` if it brought the final answer, `failed`, or `in doubt` after a kill
    code: str | None
    ended_at: str | None
    detail: str | None = None  # the server's; None if there is none, or it was purged or left unread
    has_hidden_detail: bool = False  # true if an encrypted detail cannot be read without the key


class RecordedRequest(NamedTuple):
    """A request in a shared ledger, or an answer of an earlier run, to copy into a folder."""

    question: bytes
    attempt: int  # from 1; 0 for a reused answer of an earlier run
    request_id: str
    sent_at: str
    failed_with: str | None  # the code of an unusable reply
    failed_at: str | None
    answer: FinalAnswer | None
    detail: str  # the server's description of a problem; empty if there is none
    reused: ReusedAnswer | None = None  # the reused answer of an earlier run


class RoundState(NamedTuple):
    """The state of the latest round of a shared run."""

    number: int  # from 1; 0 if the run has no round yet
    is_open: bool
    undone_count: int  # unfinished chunks of all holders
    free_count: int  # chunks that any process may claim now


class PlannedChunk(NamedTuple):
    """Questions that one process asks together."""

    api: str
    part: int  # number of the part: 0 for an ordinary file
    members: Sequence[int]  # positions in that part, from 0, in the order of the requests


class FruitlessQuestion(NamedTuple):
    """A question that no run got an answer to, because of a reply about the question itself."""

    run_count: int  # the runs where that happened
    code: str  # of the latest such reply
    attempts: int  # requests for it in all runs


class LedgerCounts(NamedTuple):
    """Counts of a ledger's requests and answers."""

    attempt_count: int  # requests sent, or about to be
    answer_count: int  # questions with a final answer from a server
    reused_count: int  # questions answered by an earlier run


class QuestionHistory(NamedTuple):
    """The history of a question in a ledger."""

    answer: FinalAnswer | None
    attempts: int  # requests sent, or about to be sent when a run was killed
    code: str | None  # code of the latest request, if its result was unusable


class ChunkLease(NamedTuple):
    """A process's lease of a chunk of questions, until it is released or taken over."""

    chunk: int
    fence: int  # number of this lease of the chunk: writes with an earlier holder's number are refused


class Question(NamedTuple):
    """A check that still has to be asked."""

    check: Check
    key: bytes  # its key in the ledger
    attempts: int  # requests for it in earlier runs
    is_suspect: bool  # True if an earlier run ended it with a reply about the question itself


class QuestionChunk(NamedTuple):
    """Questions that only one process asks, in this order."""

    hold: ChunkLease
    questions: Sequence[Question]


class ServerAccount(NamedTuple):
    """The limits of a client at one API of a server, for all processes together."""

    scope: str  # server and client, as returned by `scopes.scope_of`
    api: str
    rate_per_s: float  # 1 or more: whole requests per second; less: one in `1 / rate_per_s` seconds
    in_flight_max: int
    window_s: float  # how long a sent request counts, with a margin for slow ones
    deadline_s: float  # how long a request may be in flight
    daily_cap: int | None = None  # daily cap; None if there is none
    cap_window: str | None = None  # what counts as a day for the cap; None without a cap


class ShareLimits(NamedTuple):
    """One process's share of an account; if both numbers are 0, nothing may be sent."""

    rate_per_s: float
    in_flight_max: int
    until: float = inf  # by this process's monotonic clock
    kept_slots: int = 0  # requests in flight that may finish; no other process gets their slots


class LeaseHolder(NamedTuple):
    """A run that uses a server."""

    server: str  # host and port
    pid: int | None = None  # None if it has just begun and not yet written its record
    since: str | None = None  # UTC, ISO 8601 with Z
    host: str | None = None  # None for this host

    @property
    def name(self) -> Sentence:
        """The run's name, for use in sentences."""
        if self.pid is None:
            return Sentence("stores.another_run")
        if self.host is None:
            return Sentence("stores.process", pid=self.pid)
        return Sentence("stores.process_on_host", pid=self.pid, host=self.host)

    @property
    def waited_for(self) -> Sentence:
        """A sentence to say that this process is waiting for that run.

        >>> str(LeaseHolder("cop.example:443", 42, "2030-01-02T03:04:05Z").waited_for)
        'waiting for process 42, which has been using cop.example:443 since 2030-01-02 03:04:05 UTC'
        """
        if self.since is None:
            return Sentence("stores.waiting_for", holder=self.name, server=self.server)
        since = Moment(self.since)
        return Sentence("stores.waiting_for_since", holder=self.name, server=self.server, since=since)

    @property
    def waited_for_in_vain(self) -> Sentence:
        """A sentence to say that waiting for that run timed out."""
        if self.since is None:
            return Sentence("stores.wait_timed_out", holder=self.name, server=self.server)
        since = Moment(self.since)
        return Sentence("stores.wait_timed_out_since", holder=self.name, server=self.server, since=since)
