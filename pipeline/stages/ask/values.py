"""Values for asking: a channel per API, the context of clock, chance and stop request, and events.

Observers such as metrics and traces get the events of a question at once, in the event loop that asks, so
they must neither wait nor raise; without any, the calls cost nothing measurable (docs/adr/0020).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

import anyio
import httpx
import polars as pl

from pipeline.apis import Api
from pipeline.errors import PrecheckError
from pipeline.frames import ANSWERS, Answer, AnswerState, slim
from pipeline.stages.ask.concurrency import SLOW_S, ConcurrencyLimit
from pipeline.stores.protocols import CapCount, Share
from pipeline.transport.breaker import RESPONDER, SERVER, Patience
from pipeline.transport.rate_limiter import Pace
from pipeline.transport.tokens import Token
from pipeline.wording import Sentence
from schemas.outcomes import ApiName, Outcome


class Wait(NamedTuple):
    """The question waits for a slot, a place in flight, or another condition."""


class Intend(NamedTuple):
    """The request may be sent; its intent is being made durable."""

    attempt: int
    request_id: str


class Send(NamedTuple):
    """The intent is durable; the request is being sent."""


class Receive(NamedTuple):
    """A reply arrived or will never come; this is being made durable."""

    reply: str  # HTTP status such as `200`, or why there is none, such as `deadline`


class Record(NamedTuple):
    """The intent is durable."""


class End(NamedTuple):
    """The question has its answer, which may be that it has none in this run."""

    answer: Answer
    outcome: Outcome


QuestionEvent = Wait | Intend | Send | Receive | Record | End
"""An event of one question: first `Wait`, then `Intend` to `Record` for each request, last `End`."""
Follow = Callable[[QuestionEvent], None]  # called with each event of one question


class RequestSender(Protocol):
    """Sends one request; implemented by `transport.client.Client`."""

    async def token(self) -> Token | None:
        """Return the token for the next request; None under mutual TLS."""

    async def renew(self, rejected: Token) -> Token:
        """Return the token to use after a 401 for `rejected`."""

    async def send(
        self,
        request: httpx.Request,
        *,
        deadline_s: float,
        token: Token | None = None,
        may_leave: Callable[[], bool] | None = None,
    ) -> httpx.Response:
        """Send and return the complete response (or NetworkFailure); `may_leave` is called once connected."""

    async def drop_connections(self) -> None:
        """Stop using all open connections."""


@dataclass(frozen=True, slots=True)
class ApiChannel:
    """One API, its connection and its limits."""

    api: Api
    sender: RequestSender
    share: Share  # this process's share of the account; `pace` and `concurrency` follow it
    pace: Pace
    concurrency: ConcurrencyLimit
    quota: CapCount | None
    in_flight_max: int  # the limit in flight of all processes together; `concurrency` has this process's
    attempts_max: int
    deadline_s: float
    server_patience: Patience = SERVER
    responder_patience: Patience = RESPONDER
    slow_s: float = SLOW_S  # a responder counts as slow after this many seconds
    requester: str | None = None  # the authorisation number in our certificate, if the server goes by one
    stays: bool = False  # true if the share is kept after the last question, for the next file
    unreachable: PrecheckError | None = None  # why there is no connection; ends this API's questions only


class Closure(NamedTuple):
    """Why this run may send no more, and the state of the remaining questions."""

    state: AnswerState
    code: str


@dataclass(slots=True)
class AskingTally:
    """The counts of a run so far; the progress display reads them during the run."""

    check_count: int = 0
    done_count: int = 0
    settled_count: int = 0  # questions settled before asking, by an earlier answer or a limit
    outcomes: Counter[Outcome] = field(default_factory=Counter)  # outcomes of the other questions
    is_asking: bool = False  # True until the channels close: a stop then waits for replies
    in_flight_count: int = 0
    landed: anyio.Event = field(default_factory=anyio.Event)  # set after a stop once no request is in flight
    answered_before: Counter[ApiName] = field(default_factory=Counter)
    reused: Counter[ApiName] = field(default_factory=Counter)  # answers reused from runs in other folders
    answered: Counter[ApiName] = field(default_factory=Counter)  # settled for good by this process
    elsewhere: Counter[ApiName] = field(default_factory=Counter)  # answered meanwhile by other processes
    requests: Counter[ApiName] = field(default_factory=Counter)
    repeats: Counter[ApiName] = field(default_factory=Counter)  # requests that repeat a question of any run
    pauses: Counter[ApiName] = field(default_factory=Counter)  # pauses requested by servers
    slowed: dict[ApiName, float] = field(default_factory=dict)
    """The current limit in flight of APIs whose server wants fewer than agreed."""
    slowest: dict[ApiName, float] = field(default_factory=dict)  # the lowest limit so far
    closures: dict[ApiName, Closure] = field(default_factory=dict)  # APIs that get no more requests
    closed: dict[ApiName, Sentence] = field(default_factory=dict)
    """Why no more is sent in this run, and what to do, for APIs whose server refuses all requests, or
    requests a longer pause than a run waits.
    """


class AnswerSink(Protocol):
    """Takes answers as they arrive."""

    def add(self, answer: Answer) -> None:
        """Hold one more answer."""

    def frame(self) -> pl.DataFrame:
        """Return the held `Answers`, and drop them."""


class AnswerBuffer:
    """The answers so far, packed into frames because tuples take twice the memory."""

    def __init__(self) -> None:
        self.count = 0
        self._loose: list[Answer] = []
        self._packed: list[pl.DataFrame] = []

    def add(self, answer: Answer) -> None:
        """Hold one more answer."""
        self.count += 1
        self._loose.append(answer)
        if len(self._loose) == _LOOSE_MAX:
            self._pack()

    def frame(self) -> pl.DataFrame:
        """Return all `Answers`, and drop them."""
        self._pack()
        packed, self._packed = self._packed, []
        return slim(*packed)

    def _pack(self) -> None:
        if self._packed and not self._loose:
            return
        # By columns, this takes two thirds of the time that rows take.
        columns = list(zip(*self._loose, strict=True))
        self._packed.append(pl.DataFrame(columns, schema=ANSWERS, orient="col"))
        self._loose = []


_LOOSE_MAX = 1_024  # number of answers packed within a millisecond; no other task runs meanwhile


class AskingObserver(Protocol):
    """Follows any number of askings in succession."""

    def asking(
        self, channels: Mapping[ApiName, ApiChannel], tally: AskingTally
    ) -> AbstractContextManager[None]:
        """Observe the limits of a run's servers and the run's tally, until the block ends."""

    def follow(self, api: ApiName) -> Follow:
        """Follow a question to this API, from now on."""


class Observers(NamedTuple):
    """An `AskingObserver` that forwards to several others, or to none."""

    each: Sequence[AskingObserver] = ()

    @contextmanager
    def asking(self, channels: Mapping[ApiName, ApiChannel], tally: AskingTally) -> Iterator[None]:
        """Start and end all observers."""
        with ExitStack() as stack:
            for observer in self.each:
                stack.enter_context(observer.asking(channels, tally))
            yield

    def follow(self, api: ApiName) -> Follow:
        """Let all observers follow a question."""
        follows = [observer.follow(api) for observer in self.each]

        def event(event: QuestionEvent) -> None:
            for follow in follows:
                follow(event)

        return event


UNOBSERVED = Observers()


@dataclass(frozen=True, slots=True)
class AskingContext:
    """The context of a run: clock, chance, the tally to fill and the stop request."""

    now: Callable[[], datetime]
    clock: Callable[[], float]  # monotonic seconds
    chance: Callable[[], float]
    new_id: Callable[[], str]
    stop: anyio.Event
    tally: AskingTally
    observer: AskingObserver = UNOBSERVED
