"""One `precheck run` in a simulated process: the asking of the product, in a simulated world."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import anyio
from simulation import breakers
from simulation.books import Book, LedgerOfProcess
from simulation.committing import CommittingRun
from simulation.payments import PaymentFile, payment_file
from simulation.provider import DEADLINE_S, Provider, Wire
from simulation.sharing import DividedAccount, SharedQuestions, SharedRunOfProcess, leased
from simulation.weather import Weather
from simulation.world import Clock, Process, World

from pipeline.errors import PrecheckError, StoppedError, first_of
from pipeline.executors.asking import Asking, AskingResult, FileQuestions, left_to_ask
from pipeline.executors.event_loop import or_stopped, watch_for_stop
from pipeline.executors.shared import RoundAsker
from pipeline.frames import Answers, OwnCode
from pipeline.runs.request import RunObserver, StopRequest, StopSwitch
from pipeline.stages.ask import ask
from pipeline.stages.ask.concurrency import ConcurrencyLimit
from pipeline.stages.ask.remaining import RemainingQuestions, answers_so_far, count_given_up
from pipeline.stages.ask.values import ApiChannel, AskingContext, AskingTally, Closure
from pipeline.stores.leased_shares import LeasedShare
from pipeline.stores.local_source import LocalSource
from pipeline.stores.protocols import Quota
from pipeline.stores.values import ShareLimits
from pipeline.transport.client import Client
from pipeline.transport.rate_limiter import Pace
from pipeline.transport.tokens import Tokens
from schemas.outcomes import ApiName
from schemas.token import TokenRequest

ATTEMPTS_MAX = 3
ASKED_BY_RUNS = 3
"""Runs in which a question may get no usable reply, and is given up then: not the product's own constant."""
_FINAL = frozenset({"answered", "refused"})
SIGTERM_EXIT = 143
_REQUEST = TokenRequest.model_validate(
    {"grant_type": "client_credentials", "client_id": "c", "client_secret": "s", "scope": "p"}
)


class RunOptions(NamedTuple):
    """How a person starts a run."""

    rate: int
    in_flight_max: int
    limit: int | None = None
    retry_unanswered: bool = False


@dataclass
class RunEnd:
    """How a run ended."""

    asked: AskingResult
    answers: Answers
    """One per question."""
    durable: frozenset[int]
    """The questions whose final answer the ledger had as the run ended."""
    process: str
    truths: Mapping[int, str | None]
    """What the banks say of the payees of its file."""
    limit: int | None
    """How many questions it was to ask at most."""
    closed_at: Mapping[ApiName, float]
    """When each gate closed, of those that did."""
    ended_at: float
    exhausted: frozenset[int]
    """The questions that enough runs got a broken reply to."""
    cap_wait_s: float | None
    """In how long there is more of the daily cap, as it says."""
    undone_count: int = 0
    """Chunks that it holds as it ends, and has not done."""

    @property
    def error(self) -> PrecheckError | None:
        """What ended it early."""
        return self.asked.ended_by

    @cached_property
    def said(self) -> list[tuple[int, str, str, str | None, str | None]]:
        """Of each answer its question, state, code, correlation id and matched name."""
        names = ("check", "state", "code", "request_id", "matched_name")
        return list(zip(*(self.answers[name].to_list() for name in names), strict=True))

    @cached_property
    def open_rows(self) -> dict[int, str]:
        """The questions without a final answer, and the code of each."""
        return {check: code for check, state, code, *_ in self.said if state not in _FINAL}

    @property
    def is_complete(self) -> bool:
        """Whether every question has its final answer."""
        return self.error is None and not self.open_rows


class _Closures(dict[ApiName, Closure]):
    """The gates that closed, and when."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.at: dict[ApiName, float] = {}

    def __setitem__(self, name: ApiName, closure: Closure) -> None:
        self.at[name] = self._world.now_s
        super().__setitem__(name, closure)


@dataclass(slots=True)
class Scene:
    """What every process of a history meets."""

    world: World
    weather: Weather
    providers: dict[ApiName, Provider]
    """Of each API that the file has questions for."""
    book: Book
    clock: Clock
    accounts: dict[ApiName, DividedAccount]
    shared: SharedQuestions | None
    """None where the run has its folder, and its ledger, to itself."""
    file_version: int = 1
    """Of the payment file that lies there."""
    kept_at_once: list[str] = field(default_factory=list)
    """Processes that ended at once, and held questions then."""

    @property
    def file(self) -> PaymentFile:
        """The payment file."""
        provider = self.providers[ApiName.COP]
        return payment_file(provider.question_count, self.file_version, with_vop=len(self.providers) > 1)

    @property
    def api_of(self) -> dict[int, ApiName]:
        """Question -> its API."""
        return {check.check: check.api for check in self.file.checks}

    @property
    def truths(self) -> dict[int, str | None]:
        """What the bank of each question says of its payee."""
        return {row: self.providers[api].truths[row] for row, api in self.api_of.items()}


async def run(
    scene: Scene,
    process: Process,
    options: RunOptions,
    quota: Quota | None,
    ended: Callable[[RunEnd], None],
) -> None:
    """Ask what is left to ask, as the command does, and hand over what came of it."""
    file = scene.file
    closures = _Closures(scene.world)
    tally, truths = AskingTally(closures=closures), scene.truths
    checks = file.planned.checks
    chance = scene.world.chance
    context = AskingContext(
        scene.clock.now,
        process.loop.time,
        chance.random,
        partial(_new_id, chance),
        anyio.Event(),
        tally,
    )
    ledger = _ledger(scene, process)

    @asynccontextmanager
    async def channels() -> AsyncIterator[dict[ApiName, ApiChannel]]:
        """A share of each account, which is given back: whoever waits for others has none."""
        async with AsyncExitStack() as stack:
            shares = await stack.enter_async_context(leased(scene.accounts, process))
            _watch(scene, process)
            yield {
                name: await stack.enter_async_context(_channel(scene, process, options, share, quota, name))
                for name, share in shares.items()
            }

    async def ask_all() -> None:
        nonlocal has_asked
        asking = Asking(options, questions, None, context, None)  # type: ignore[arg-type]
        if isinstance(ledger, SharedRunOfProcess):
            async for _, left in asking.left(ledger):
                await _ask_with_others(scene, ledger, left, options.limit, context, channels)
            return
        (first, *more), has_answered = await left_to_ask(asking, ledger)
        source = LocalSource(await first(), ledger.question_key, more)
        async with channels() as open_channels:
            await ask(source, open_channels, ledger, context, has_answered=has_answered, answers=questions)
        has_asked = True

    questions, has_asked = FileQuestions(checks), False
    try:
        error = await _ended_by(ask_all, process, context)
    except StoppedError:
        scene.world.tell(process.name, "ends at once")
        process.is_at_work = False
        if isinstance(ledger, SharedRunOfProcess) and ledger.undone_count:
            scene.kept_at_once.append(process.name)
        return
    if isinstance(ledger, SharedRunOfProcess) and ledger.round_number is not None:
        await ledger.end_round(ledger.round_number, is_over=True)
    answers = questions.answers() if has_asked and error is None else await answers_so_far(checks, ledger)
    given_up_count = await count_given_up(checks, ledger)
    final = {answer.question for answer in scene.book.final_now()}
    decided = frozenset(scene.book.rows[question] for question in final)
    cap = scene.weather.cap
    caps = {} if quota is None or cap is None else {ApiName.COP: (cap, await quota.resets_at())}
    asked_all = AskingResult(caps, tally, given_up_count, error)
    cap_wait_s = None
    for _, resets_at in caps.values():
        cap_wait_s = (resets_at - scene.clock.now()).total_seconds()
    exhausted = {
        scene.book.rows[question]
        for question, known in (await ledger.fruitless()).items()
        if known.run_count >= ASKED_BY_RUNS and known.code == OwnCode.CONTRACT
    }
    ended(
        RunEnd(
            asked_all,
            Answers(answers),
            decided,
            process.name,
            truths,
            options.limit,
            closures.at,
            scene.world.now_s,
            frozenset(exhausted),
            cap_wait_s,
            ledger.undone_count if isinstance(ledger, SharedRunOfProcess) else 0,
        )
    )


async def _ended_by(
    ask_all: Callable[[], Awaitable[None]], process: Process, context: AskingContext
) -> PrecheckError | None:
    """What ended the asking early: an error, or a request to stop, which it heeds as a command does.

    Raises:
        StoppedError: it is to stop at once.
    """
    switch, is_requested = StopSwitch(), anyio.Event()

    def request() -> None:
        switch.request(StopRequest("stopped", SIGTERM_EXIT))
        is_requested.set()

    async def heed_once_requested(scope: anyio.CancelScope) -> None:
        await is_requested.wait()
        await watch_for_stop(switch, context, RunObserver(), scope)

    error: PrecheckError | None = None
    process.asked_to_stop = request
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(heed_once_requested, group.cancel_scope)
            await ask_all()
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        ending = first_of(failures)
        if not isinstance(ending, PrecheckError):
            raise
        error = ending
    finally:
        process.asked_to_stop = None
    return or_stopped(error, "payments.csv", switch)


class _Access(NamedTuple):
    """The way to the providers, as `RoundAsker` takes it."""

    open_channels: Callable[[], AbstractAsyncContextManager[dict[ApiName, ApiChannel]]]
    profile: Any = SimpleNamespace(servers=())
    kept: None = None

    def channels(self, *_: object, **_more: object) -> AbstractAsyncContextManager[dict[ApiName, ApiChannel]]:
        return self.open_channels()


async def _ask_with_others(
    scene: Scene,
    run: SharedRunOfProcess,
    left: RemainingQuestions,
    limit: int | None,
    context: AskingContext,
    channels: Callable[[], AbstractAsyncContextManager[dict[ApiName, ApiChannel]]],
) -> None:
    """Ask what is free, and wait for what others hold, until nothing is left or may be sent."""
    assert scene.shared is not None
    every, shared = scene.file.checks, scene.shared
    run.round_number = shared.open_round([every[number - 1] for number in left.todo["check"].to_list()])
    asker = RoundAsker(
        run,
        _Access(channels),
        list(scene.providers),
        context,
        RunObserver(),
        limit,
        has_answered=left.has_answered,
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run.keep)
        await asker.ask(run.round_number)
        tasks.cancel_scope.cancel()


def _ledger(scene: Scene, process: Process) -> LedgerOfProcess:
    if scene.shared is None:
        return LedgerOfProcess(scene.book, process, scene.weather)
    is_lossy = scene.weather.lost_reply_share or scene.weather.failovers
    kind = CommittingRun if is_lossy else SharedRunOfProcess
    return kind(scene.shared, scene.book, process, scene.weather)


def _new_id(chance: Random) -> str:
    """A UUID of version 4."""
    digits = f"{chance.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def _watch(scene: Scene, process: Process) -> None:
    """Know what a process does, from now on."""
    known = ["first run" if not any(scene.book.counts) else "resumed"]
    known += ["several processes"] if scene.shared is not None else []
    known += ["two APIs"] if len(scene.providers) > 1 else []
    breaker_states = breakers.watched()
    process.places = []
    process.states = lambda: sorted({*known, *breaker_states(), *map(_state_of, process.places)})


def _state_of(places: ConcurrencyLimit) -> str:
    if not places.is_open:
        return "one at a time"
    return "slowed down" if places.is_slowed else "at full pace"


@asynccontextmanager
async def _channel(
    scene: Scene,
    process: Process,
    options: RunOptions,
    share: LeasedShare,
    quota: Quota | None,
    name: ApiName,
) -> AsyncIterator[ApiChannel]:
    """The way to a provider, within a share of its account."""
    provider, is_cop = scene.providers[name], name is ApiName.COP
    rate, in_flight_max = (options.rate, options.in_flight_max) if is_cop else scene.weather.vop_limits
    pace, door = (Pace(rate, clock=process.loop.time) for _ in range(2))
    places = ConcurrencyLimit(in_flight_max, rate, pace.clock)
    process.places.append(places)

    def use(part: ShareLimits) -> None:
        for each in (pace, door):
            each.resize(part.rate_per_s, until=part.until)
        places.resize(part.in_flight_max, part.rate_per_s, kept=part.kept_slots)

    share.follow(use, in_flight=lambda: places.in_flight)
    tokens = Tokens(
        partial(provider.token, process),
        _REQUEST,
        clock=process.loop.time,
        chance=scene.world.chance.random,
    )
    client = Client(
        f"https://{name}.example",
        context=None,  # type: ignore[arg-type]
        in_flight_max=in_flight_max,
        tokens=tokens,
        door=door,
        open_transport=lambda _context, _count: Wire(process, provider),
    )
    async with client:
        yield ApiChannel(
            api=provider.dialect.api,
            sender=client,
            share=share,
            pace=pace,
            concurrency=places,
            quota=quota if is_cop else None,
            in_flight_max=in_flight_max,
            attempts_max=ATTEMPTS_MAX,
            deadline_s=DEADLINE_S,
            unreachable=provider.out_of_reach(process),
        )
