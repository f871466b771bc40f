"""Ask the questions of one API with workers that take questions and return answers."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf

import anyio
import anyio.abc
import httpx

from pipeline.apis import basis_of
from pipeline.apis.own_codes import meaning_of
from pipeline.errors import CapSpentError, CredentialsError, LeaseLostError, PrecheckError
from pipeline.frames import Answer, AnswerState, Check, OwnCode
from pipeline.stages.ask import values
from pipeline.stages.ask.admission import Admission
from pipeline.stages.ask.clock_skew import DAY_WRONG_S, SKEW_MAX_S, ClockComparison, wrong_day
from pipeline.stages.ask.feed import QuestionFeed
from pipeline.stages.ask.gate import GateDecision, Reply, RequestGate, kind_of, was_held
from pipeline.stages.ask.judge import EndRun, FinalReply, ReplyJudge, UselessReply
from pipeline.stores.protocols import CapCount, Ledger
from pipeline.stores.values import ChunkLease, Question
from pipeline.transport import retry
from pipeline.transport.tokens import Token
from schemas.outcomes import ApiName
from schemas.problem import ProblemCode
from schemas.strict import timestamp

DOUBT_INTERVAL_S = 0.1  # how often to check whether failures have become an outage, in seconds
PAUSES_OF_ONE_MAX = 10  # pauses in reply to one question: a row that always gets 429 must not slow the others
LOOK_INTERVAL_S = 1.0  # how often an idle process checks for questions that others have released, in seconds


@dataclass(slots=True)
class WorkerContext:
    """The state that all workers of a run share."""

    ledger: Ledger
    world: values.AskingContext
    answers: values.AnswerSink = field(default_factory=values.AnswerBuffer)
    clocks: ClockComparison = field(default_factory=ClockComparison)
    counted_ahead_s: dict[ApiName, float] = field(default_factory=dict)
    """Seconds that each server is ahead of us by agreeing replies; its cap is counted by its time."""
    ended_by: PrecheckError | None = None
    open_apis: set[ApiName] = field(default_factory=set)  # APIs that are being asked or will be
    all_left: anyio.Event = field(default_factory=anyio.Event)  # set for good once no API is open

    def leave(self, api: ApiName) -> None:
        """Stop asking this API; after an error, end all waits once the other APIs are done."""
        self.open_apis.discard(api)
        if not self.open_apis:
            self.all_left.set()
            if self.ended_by is not None:
                self.world.stop.set()


@dataclass(slots=True)
class QuestionInProgress:
    """A question that a worker has taken."""

    question: Question
    hold: ChunkLease
    sent_count: int  # number of its requests, including earlier runs
    event: values.Follow  # called with its events
    tries: int = 0  # number of its requests in this run that count as attempts
    streak: int | None = None  # number of the server's streak of failures that includes its latest reply
    in_doubt: bool = False  # true if its attempts are used up and the server may have been down all the time
    pauses: int = 0  # number of its replies in this run that only requested a pause
    token_renewed: bool = False
    useless: UselessReply | None = None  # the result of its latest request

    @property
    def check(self) -> Check:
        """The question."""
        return self.question.check

    def answer(self, state: AnswerState, code: str) -> Answer:
        """Return the answer for a question that no server answered."""
        return Answer(self.check.check, state, code, None, None, None, self.sent_count)


class ApiAsker:
    """Asks one API."""

    def __init__(
        self, run: WorkerContext, channel: values.ApiChannel, feed: QuestionFeed, *, has_answered: bool
    ) -> None:
        """Prepare; the API may have answered another question of this file in an earlier run."""
        self._run = run
        self._world = run.world
        self._channel = channel
        self._feed = feed
        self._admission = Admission(has_answered=has_answered)
        self._gate = RequestGate(channel, run.world)
        self._judge = ReplyJudge(channel, run.world, self._admission)
        self._postponed: list[QuestionInProgress] = []  # for silent banks, or in doubt
        self._exchanging_count = 0
        self._working_count = 0
        run.open_apis.add(channel.api.name)

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Start one task per request allowed in flight."""
        self._working_count = self._channel.in_flight_max
        for _ in range(self._working_count):
            tasks.start_soon(self._work, tasks)

    async def _work(self, tasks: anyio.abc.TaskGroup) -> None:
        """Take questions until none is left or the run stops; the last worker of an API looks for more."""
        try:
            with self._ended_by_error():
                if self._channel.unreachable is not None:
                    raise self._channel.unreachable
                while self._takes_more and (taken := await self._feed.take()) is not None:
                    self._gate.budget.earn()
                    event = self._world.observer.follow(self._channel.api.name)
                    task = QuestionInProgress(*taken, taken.question.attempts, event)
                    await self._go_on(task, self._exchange)
                while self._postponed and not self._world.stop.is_set():
                    await self._go_on(self._postponed.pop(0), self._take_up_again)
                if self._working_count == 1 and self._feed.is_shared:
                    await self._feed.give_back()
        finally:
            self._working_count -= 1
            if self._working_count == 0:
                self._run.leave(self._channel.api.name)
                if not self._channel.stays:
                    self._channel.share.leave()
        if (turned_away := self._admission.all_turned_away(self._feed.count)) is not None:
            self._run.ended_by = self._run.ended_by or turned_away
        if self._working_count == 0 and self._feed.is_shared and self._run.open_apis:
            await self._ask_on(tasks)

    async def _ask_on(self, tasks: anyio.abc.TaskGroup) -> None:
        """While another API is asked, return the rest to other processes, and ask what they return."""
        with self._ended_by_error():
            await self._feed.leave()
            while self._may_look():
                if await self._feed.has_more() and self._may_look() and await self._rejoin():
                    self._feed.reopen()
                    self.start(tasks)
                    return
                with anyio.move_on_after(LOOK_INTERVAL_S):
                    await self._run.all_left.wait()

    def _may_look(self) -> bool:
        """True if this worker may look for more; not for the last API, which ends the run."""
        return self._takes_more and self._run.ended_by is None and not self._run.all_left.is_set()

    async def _rejoin(self) -> bool:
        """Take a share of the account again, if available; meanwhile this API counts as open."""
        self._run.open_apis.add(self._channel.api.name)
        if await self._channel.share.rejoin():
            return True
        self._run.leave(self._channel.api.name)
        return False

    @contextmanager
    def _ended_by_error(self) -> Iterator[None]:
        """Let an error end this API, and the run once the other APIs are done."""
        try:
            yield
        except PrecheckError as error:
            # Every row of this API would end like this; if the ledger failed, the other APIs' rows too.
            self._run.ended_by = self._run.ended_by or error
            self._run.leave(self._channel.api.name)
            if not self._world.stop.is_set():
                self._gate.close(AnswerState.DEFERRED, OwnCode.RUN_ENDED)

    @property
    def _takes_more(self) -> bool:
        """True if it may take questions: behind a closed gate, only those that no other process may ask."""
        return not self._world.stop.is_set() and not (self._feed.is_shared and self._gate.closed)

    async def _go_on(
        self, task: QuestionInProgress, how: Callable[[QuestionInProgress], Awaitable[Answer | None]]
    ) -> None:
        """Continue with a question and keep its answer, unless another process has it now."""
        if not self._feed.has(task.hold):
            return
        try:
            await self._keep(task, await how(task))
        except LeaseLostError:
            self._feed.lose(task.hold)

    async def _keep(self, task: QuestionInProgress, answer: Answer | None) -> None:
        """Keep an answer if there is one; else the question is postponed or the run stopped."""
        if answer is None:
            return
        self._run.answers.add(answer)
        meaning = meaning_of(self._channel.api.meanings, basis_of(task.check), answer.state, answer.code)
        task.event(values.End(answer, meaning.outcome))
        self._world.tally.outcomes[meaning.outcome] += 1
        self._world.tally.answered[self._channel.api.name] += answer.request_id is not None
        self._world.tally.done_count += 1
        await self._feed.ended(task.hold)

    async def _take_up_again(self, task: QuestionInProgress) -> Answer | None:
        """Continue with a postponed question, once its bank may be tried again or is given up."""
        if task.in_doubt:
            return await self._decide(task)
        match self._gate.later(task.check):
            case str(code):
                return task.answer(AnswerState.UNANSWERED, code)
            case wait_s if wait_s > 0 and self._gate.closed is None:
                self._postponed.append(task)
                await self._gate.sleep(min(wait_s, 0.1 + wait_s / len(self._postponed)))
                return None
            case _:
                return await self._exchange(task)

    async def _decide(self, task: QuestionInProgress) -> Answer | None:
        """End a question whose attempts are used up, unless an outage used them up."""
        assert task.useless is not None
        match self._gate.was_outage(task.streak):
            case True:
                task.in_doubt, task.tries = False, 0
                return await self._exchange(task)
            case None if self._exchanging_count:  # replies in flight will decide
                self._postponed.append(task)
                await anyio.sleep(DOUBT_INTERVAL_S)
                return None
            case _:
                return task.answer(AnswerState.UNANSWERED, task.useless.code)

    async def _exchange(self, task: QuestionInProgress) -> Answer | None:
        """Send a question, again if that may help, until it has an answer or never will."""
        self._exchanging_count += 1
        try:
            return await self._send_until_answered(task)
        finally:
            self._exchanging_count -= 1

    async def _send_until_answered(self, task: QuestionInProgress) -> Answer | None:
        """Like `_exchange`, but a question asked during a possible outage stays in doubt."""
        while task.tries < self._channel.attempts_max:
            await self._channel.sender.token()  # waits for the identity provider outside any slot
            if not await self._feed.renewed(task.hold):
                raise LeaseLostError
            task.event(values.Wait())
            match await self._gate.enter(task.check):
                case GateDecision.LATER:
                    self._postponed.append(task)
                    return None
                case GateDecision.NEVER:
                    return self._left(task)
                case GateDecision.GO:
                    pass
            try:
                answer = await self._try(task)
            except CapSpentError:
                self._gate.close_for_cap()
                return self._left(task)
            if answer is not None:
                return answer
            if not await self._again(task):
                break
        assert task.useless is not None
        if self._gate.was_outage(task.streak) is None:
            task.in_doubt = True
            self._postponed.append(task)
            return None
        return task.answer(AnswerState.UNANSWERED, task.useless.code)

    def _left(self, task: QuestionInProgress) -> Answer | None:
        """Return the answer for a question that may not be sent in this run; None if others may ask it."""
        if self._gate.closed is None or self._feed.is_shared:
            return None
        return task.answer(*self._gate.closed)

    async def _try(self, task: QuestionInProgress) -> Answer | None:
        """Send a question once; None if the reply was useless."""
        check, request_id = task.check, self._world.new_id()
        answer, lost = None, None
        with self._in_flight(check):
            await self._intend(task, request_id)
            task.event(values.Send())
            token = await self._channel.sender.token()
            renewable = token is not None and not task.token_renewed
            is_fresh = task.useless is not None and task.useless.needs_fresh
            attempt = retry.RetryState(task.tries, renewable, self._channel.attempts_max, is_fresh)
            reply = await self._send(task, request_id, token, is_fresh=is_fresh)
            task.event(values.Receive(kind_of(reply)))
            if was_held(reply):
                task.tries -= 1
                self._world.tally.requests[self._channel.api.name] -= 1
            if isinstance(reply, httpx.Response):
                await self._gate.note_reply(check, reply)
            verdict = self._judge.judge(check, reply, request_id, attempt)
            try:
                answer = await self._record(task, verdict, request_id)
            except LeaseLostError as error:
                lost = error
            task.event(values.Record())
        task.streak, ticket = await self._gate.note(check, reply)
        if isinstance(verdict, FinalReply):
            self._let_in(verdict)
        if lost is not None:
            raise lost
        if isinstance(verdict, FinalReply):
            return answer
        if verdict.misdirected:
            await self._channel.sender.drop_connections()
        if isinstance(verdict.decision, retry.RenewToken):
            assert token is not None
            verdict = await self._renew(task, token) or verdict
        if isinstance(verdict.decision, retry.TurnAway):
            self._turned_away(task, verdict, verdict.decision.error, alone=ticket.alone)
        task.useless = verdict
        return None

    async def _intend(self, task: QuestionInProgress, request_id: str) -> None:
        """Record the intent of a request (LeaseLostError: its chunk is lost; the ledger's errors)."""
        if not self._feed.has(task.hold):
            raise LeaseLostError
        number = task.sent_count + 1
        task.event(values.Intend(number, request_id))
        await self._run.ledger.intend(
            task.question.key, attempt=number, request_id=request_id, time=self._time()
        )
        task.sent_count = number
        task.tries += 1
        self._world.tally.requests[self._channel.api.name] += 1
        self._world.tally.repeats[self._channel.api.name] += number > 1

    async def _record(
        self, task: QuestionInProgress, verdict: FinalReply | UselessReply, request_id: str
    ) -> Answer | None:
        """Make the reply durable; return it if it is an answer."""
        ledger, key, time, count = self._run.ledger, task.question.key, self._time(), task.sent_count
        if isinstance(verdict, FinalReply):
            state, code, matched_name, detail = verdict
            answer = Answer(task.check.check, state, code, matched_name, request_id, time, count)
            await ledger.settle(key, answer, detail)
            return answer
        await ledger.fail(key, attempt=task.sent_count, code=verdict.code, time=time, detail=verdict.detail)
        return None

    async def _renew(self, task: QuestionInProgress, token: Token) -> UselessReply | None:
        """Get another token after a 401; without a newer one, judge the 401 unless others were answered."""
        try:
            await self._channel.sender.renew(token)
        except CredentialsError as error:
            if not self._admission.has_just_answered:
                return self._judge.not_renewed(error)
        else:
            task.tries -= 1  # the token was refused, not the question
        task.token_renewed = True
        return None

    def _let_in(self, final: FinalReply) -> None:
        if final.state is AnswerState.ANSWERED:
            self._admission.answered()
            self._gate.answered()
        else:
            self._admission.let_in()

    def _turned_away(
        self, task: QuestionInProgress, verdict: UselessReply, error: PrecheckError, *, alone: bool
    ) -> None:
        """Record that the server refused access to a question, perhaps to all."""
        again = task.question.is_suspect
        if self._admission.turned_away(verdict.code, error, alone=alone, again=again):
            self._gate.ask_alone()
        if (reason := self._admission.is_over) is None:
            return
        self._gate.close(AnswerState.DEFERRED, OwnCode.TURNED_AWAY)
        self._world.tally.closed[self._channel.api.name] = reason.messages[0]
        if not self._admission.has_answered:
            self._run.ended_by = self._run.ended_by or reason  # raised once the other APIs are done

    async def _again(self, task: QuestionInProgress) -> bool:
        """Wait as the last reply requests; return true if the question must be sent again."""
        assert task.useless is not None
        match task.useless.decision:
            case EndRun(error):
                raise error
            case retry.RenewToken() | retry.Held():
                return True
            case retry.Retry() | retry.GiveUp() if task.useless.told_to_wait:
                # The gate waits for the pause; the server has not processed the question.
                task.tries -= 1
                task.pauses += 1
                return task.pauses < PAUSES_OF_ONE_MAX and self._gate.budget.spend()
            case retry.Retry() | retry.GiveUp() if self._gate.was_outage(task.streak):
                # The gate waits for the server; an outage does not count against a question.
                task.tries = 0
                return True
            case retry.Retry(wait_s):
                if not self._gate.budget.spend(_cost_of(task.useless)):
                    return False
                if self._gate.closed is None:
                    await self._gate.sleep(wait_s)
                return True
            case retry.GiveUp() | retry.TurnAway():
                return False

    @contextmanager
    def _in_flight(self, check: Check) -> Iterator[None]:
        """Count a request as in flight from its intent to its recorded reply; its place is already taken."""
        tally = self._world.tally
        tally.in_flight_count += 1
        try:
            yield
        except PrecheckError:
            self._gate.withdraw(check)  # the request was not sent, or has its reply
            raise
        finally:
            tally.in_flight_count -= 1
            if tally.in_flight_count == 0 and self._world.stop.is_set():
                tally.landed.set()

    async def _send(
        self, task: QuestionInProgress, request_id: str, token: Token | None, *, is_fresh: bool
    ) -> Reply:
        channel, sent = self._channel, self._world.now()
        request = channel.api.request(task.check, request_id, timestamp(sent))
        request.extensions |= {retry.FRESH_CONNECTION: is_fresh, retry.REQUEST_ID: request_id}

        def may_leave() -> bool:
            return self._gate.may_leave() and self._feed.may_send(task.hold)

        try:
            response = await channel.sender.send(
                request, deadline_s=channel.deadline_s, token=token, may_leave=may_leave
            )
        except retry.NetworkFailure as failure:
            return failure
        received = self._world.now()
        self._run.clocks.compare(channel.api.name, response, sent=sent, received=received)
        if channel.quota is not None:
            await self._require_its_day(channel.quota, received)
        return response

    async def _require_its_day(self, quota: CapCount, received: datetime) -> None:
        """Raise EndRun if the cap is counted by a different day from the server's; answers are kept."""
        api = self._channel.api.name
        ahead_s = self._run.clocks.agreed_ahead_s(api)
        if ahead_s is None:
            return
        theirs = received + timedelta(seconds=ahead_s)
        if abs(ahead_s) > DAY_WRONG_S:
            self._run.ended_by = self._run.ended_by or wrong_day(api, received, theirs)
            self._world.stop.set()
        elif abs(ahead_s - self._run.counted_ahead_s.get(api, inf)) <= SKEW_MAX_S:
            return
        self._run.counted_ahead_s[api] = ahead_s
        await quota.go_by(theirs if abs(ahead_s) > SKEW_MAX_S else received)

    def _time(self) -> str:
        return timestamp(self._world.now())


def _cost_of(useless: UselessReply) -> float:
    if useless.needs_fresh:
        return 0  # the API's own refusals must not be repeated in every run
    # A silent bank delays the caller for seconds each time.
    return 2 if useless.code == ProblemCode.TIMEOUT_ERROR else 1
