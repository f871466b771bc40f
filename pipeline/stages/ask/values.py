"""The values of asking: a channel per API, and its context: time, chance, the request to stop."""

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
from pipeline.stages.ask.bulkhead import SLOW_S
from pipeline.stages.ask.concurrency import ConcurrencyLimit
from pipeline.stages.ask.events import Follow, QuestionEvent
from pipeline.stores.protocols import CapCount, Share
from pipeline.transport.breaker import RESPONDER, SERVER, Patience
from pipeline.transport.rate_limiter import Pace
from pipeline.transport.tokens import Token
from pipeline.wording import Sentence
from schemas.outcomes import ApiName, Outcome


class RequestSender(Protocol):
    """Sends one request; `transport.client.Client` is the one there is."""

    async def token(self) -> Token | None:
        """The token to send with the next request; None under mutual TLS."""

    async def renew(self, rejected: Token) -> Token:
        """The token to use after a 401 for this one."""

    async def send(
        self,
        request: httpx.Request,
        *,
        deadline_s: float,
        token: Token | None = None,
        may_leave: Callable[[], bool] | None = None,
    ) -> httpx.Response:
        """Send, and return the whole response (NetworkFailure); `may_leave` is asked last, once connected."""

    async def drop_connections(self) -> None:
        """Use no open connection again."""


@dataclass(frozen=True, slots=True)
class ApiChannel:
    """One API, the way to it, and the limits on the way."""

    api: Api
    sender: RequestSender
    share: Share
    """What this process may use of the account; `pace` and `concurrency` keep to it."""
    pace: Pace
    concurrency: ConcurrencyLimit
    quota: CapCount | None
    in_flight_max: int
    """By all processes together; how many by this one, `concurrency` says."""
    attempts_max: int
    deadline_s: float
    server_patience: Patience = SERVER
    responder_patience: Patience = RESPONDER
    slow_s: float = SLOW_S
    """How long a responder may take before it counts as slow."""
    requester: str | None = None
    """The authorisation number in our certificate, where the server identifies us by one."""
    stays: bool = False
    """True if the share is kept after the last question, for the next file."""
    unreachable: PrecheckError | None = None
    """Why no connection could be made: it ends the asking of this API, and of no other."""


class Closure(NamedTuple):
    """Why no more may be sent in this run, and so what becomes of the questions that are left."""

    state: AnswerState
    code: str


@dataclass(slots=True)
class AskingTally:
    """The counts of a run so far; the progress display reads it while the run lasts."""

    check_count: int = 0
    done_count: int = 0
    settled_count: int = 0
    """Those settled before asking, by an earlier answer or a limit."""
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    """What became of the others."""
    is_asking: bool = False
    """True if questions are being asked, until the channels are closed: a stop then lets requests land."""
    in_flight_count: int = 0
    landed: anyio.Event = field(default_factory=anyio.Event)
    """Set once nothing is in flight any more after the last stop."""
    answered_before: Counter[ApiName] = field(default_factory=Counter)
    reused: Counter[ApiName] = field(default_factory=Counter)
    """Answers of an earlier run of another folder."""
    answered: Counter[ApiName] = field(default_factory=Counter)
    """By this process, for good."""
    elsewhere: Counter[ApiName] = field(default_factory=Counter)
    """Meanwhile, by other processes of this run."""
    requests: Counter[ApiName] = field(default_factory=Counter)
    repeats: Counter[ApiName] = field(default_factory=Counter)
    """Requests that repeated a question, perhaps one of an earlier run."""
    pauses: Counter[ApiName] = field(default_factory=Counter)
    """That servers asked for."""
    slowed: dict[ApiName, float] = field(default_factory=dict)
    """How many requests may be in flight at present, of APIs whose server wants fewer than agreed."""
    slowest: dict[ApiName, float] = field(default_factory=dict)
    """The least of these at any time."""
    closures: dict[ApiName, Closure] = field(default_factory=dict)
    """APIs that get no more requests in this run."""
    closed: dict[ApiName, Sentence] = field(default_factory=dict)
    """Why no more is sent in this run, and what to do, of APIs whose server turns everything away or wants a
    longer pause than a run sits out."""


class AnswerSink(Protocol):
    """Takes answers as they arrive."""

    def add(self, answer: Answer) -> None:
        """Keep one more."""

    def frame(self) -> pl.DataFrame:
        """`Answers`: those that are kept here, and here no longer."""


class AnswerBuffer:
    """What came back so far: packed into frames, because tuples would take twice the memory."""

    def __init__(self) -> None:
        self.count = 0
        self._loose: list[Answer] = []
        self._packed: list[pl.DataFrame] = []

    def add(self, answer: Answer) -> None:
        """Keep one more."""
        self.count += 1
        self._loose.append(answer)
        if len(self._loose) == _LOOSE_MAX:
            self._pack()

    def frame(self) -> pl.DataFrame:
        """`Answers`, all of them; nothing is kept here afterwards."""
        if self._loose:
            self._pack()
        packed, self._packed = self._packed, []
        return slim(*packed) if packed else pl.DataFrame(schema=ANSWERS)

    def _pack(self) -> None:
        # Column by column takes two thirds of what row by row takes.
        columns = list(zip(*self._loose, strict=True))
        self._packed.append(pl.DataFrame(columns, schema=ANSWERS, orient="col"))
        self._loose = []


_LOOSE_MAX = 1_024
"""Packed in a millisecond, for which no other task can do anything."""


class AskingObserver(Protocol):
    """Follows any number of askings, one after the other."""

    def asking(
        self, channels: Mapping[ApiName, ApiChannel], tally: AskingTally
    ) -> AbstractContextManager[None]:
        """Observe the limits of one asking, and the tally of its run, until the block ends."""

    def follow(self, api: ApiName) -> Follow:
        """Follow a question to this API, which is taken up now."""


class Observers(NamedTuple):
    """An `AskingObserver` that passes everything on to each of some, or to none."""

    each: Sequence[AskingObserver] = ()

    @contextmanager
    def asking(self, channels: Mapping[ApiName, ApiChannel], tally: AskingTally) -> Iterator[None]:
        """Begin and end with all of them."""
        with ExitStack() as stack:
            for observer in self.each:
                stack.enter_context(observer.asking(channels, tally))
            yield

    def follow(self, api: ApiName) -> Follow:
        """Have all of them follow it."""
        follows = [observer.follow(api) for observer in self.each]

        def event(event: QuestionEvent) -> None:
            for follow in follows:
                follow(event)

        return event


UNOBSERVED = Observers()


@dataclass(frozen=True, slots=True)
class AskingContext:
    """The context of asking: time and chance, the tally to fill, and the request to stop."""

    now: Callable[[], datetime]
    clock: Callable[[], float]  # seconds that never go back
    chance: Callable[[], float]
    new_id: Callable[[], str]
    stop: anyio.Event
    tally: AskingTally
    observer: AskingObserver = UNOBSERVED
