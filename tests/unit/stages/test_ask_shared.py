"""Asking beside other processes: whoever holds a chunk asks its questions, and what is left is theirs."""

import asyncio
from collections import Counter
from datetime import UTC, datetime
from uuid import uuid4

import anyio
import pytest
from memory_stores import MemoryLedger, MemoryQuestions, MemoryQuota, MemorySharedRun
from refusals import refused
from senders import FakeSender, always, good, problem
from virtual_time import VIRTUAL

from pipeline.apis import cop, vop
from pipeline.errors import CredentialsError, IncompleteError, first_of
from pipeline.executors.shared import SharedPart
from pipeline.stages.ask import ask
from pipeline.stages.ask.concurrency import ConcurrencyLimit
from pipeline.stages.ask.values import ApiChannel, AskingContext, AskingTally
from pipeline.stores.leased_shares import WholeShare
from pipeline.stores.values import ChunkLease, RunIdentity, ServerAccount
from pipeline.transport.rate_limiter import Pace
from pipeline.wording import Sentence
from schemas.outcomes import ApiName

NOON = datetime(2031, 3, 1, 12, tzinfo=UTC)
COUNT, SIZE, PLACES = 40, 10, 4


@pytest.fixture
def ledger():
    return MemoryLedger(RunIdentity("1f", "2e", "sandbox", "1"), "2031-03-01T09:00:00.000Z")


@pytest.fixture
def questions(ledger, check_of):
    checks = [check_of(check=n, name=f"Payee {n}", account=f"{n:014d}") for n in range(COUNT)]
    return MemoryQuestions(checks, ledger, chunk_size=SIZE)


class Process:
    """One that asks."""

    def __init__(self, questions, sender, *, quota=None, stop=None, vop=None):
        self.sender = sender
        self.vop = vop
        self.run = MemorySharedRun(questions, quota)
        self.part = None
        self.tally = AskingTally()
        self.places = ConcurrencyLimit(PLACES, 5000, VIRTUAL.monotonic)
        self.share = WholeShare(ServerAccount("s", ApiName.COP, 5000, PLACES, 1.0, 5.0))
        self.vop_share = WholeShare(ServerAccount("v", ApiName.VOP_GATEWAY, 5000, PLACES, 1.0, 5.0))
        self.stop = stop or anyio.Event()

    async def ask(self):
        context = AskingContext(
            lambda: NOON, VIRTUAL.monotonic, lambda: 0.0, lambda: str(uuid4()), self.stop, self.tally
        )
        channels = {ApiName.COP: channel(cop.API, self.sender, self.share, self.places)}
        if self.vop is not None:
            places = ConcurrencyLimit(PLACES, 5000, VIRTUAL.monotonic)
            channels[ApiName.VOP_GATEWAY] = channel(vop.GATEWAY, self.vop, self.vop_share, places)
        with anyio.fail_after(10):
            answers = await ask(self.part or self.run, channels, self.run, context)
        return sorted(answers["check"])

    def places_left(self):
        return PLACES - self.places.in_flight


def channel(api, sender, share, places):
    return ApiChannel(
        api,
        sender,
        share,
        Pace(5000, clock=VIRTUAL.monotonic),
        places,
        None,
        PLACES,
        attempts_max=3,
        deadline_s=5,
    )


def said_by(*senders):
    return Counter(said.name for sender in senders for said in sender.said)


def sleeper(questions):
    """A process that sleeps beyond its lease with its first requests under way, and what wakes it."""
    awake = anyio.Event()

    async def reply(said):
        await awake.wait()
        return good(said.request)

    return Process(questions, FakeSender(reply)), awake


def test_two_processes_ask_each_question_once(questions, ledger):
    async def reply(said):
        await anyio.sleep(0.001)
        return good(said.request)

    senders = [FakeSender(reply) for _ in range(2)]
    found = []

    async def main():
        async with anyio.create_task_group() as group:
            for sender in senders:

                async def one(sender=sender):
                    found.append(await Process(questions, sender).ask())

                group.start_soon(one)

    VIRTUAL.run(main)
    assert set(said_by(*senders).values()) == {1}
    assert sorted(found[0] + found[1]) == list(range(COUNT))
    assert all(found), "both had a part"
    assert ledger.counts.answer_count == COUNT


def test_what_was_taken_over_is_dropped_unanswered_and_its_places_are_free(questions, ledger):
    first, awake = sleeper(questions)
    first.places.open()
    second = FakeSender(always(None))
    found = {}

    async def main():
        async with anyio.create_task_group() as group:

            async def sleep():
                found["first"] = await first.ask()

            group.start_soon(sleep)
            await anyio.sleep(0.05)
            first.run.expire()
            found["second"] = await Process(questions, second).ask()
            awake.set()

    VIRTUAL.run(main)
    assert found == {"first": [], "second": list(range(COUNT))}
    assert len(first.sender.said) == PLACES, "and nothing more once it was awake"
    assert ledger.counts.answer_count == COUNT
    assert first.tally.done_count == 0
    assert first.places_left() == PLACES


def test_each_stop_of_a_process_that_asks_again_and_again_awaits_what_is_in_flight(questions):
    async def reply(said):
        process.stop.set()
        await anyio.sleep(0.05)
        return good(said.request)

    process = Process(questions, FakeSender(reply))
    process.places.open()

    for _ in range(3):
        process.stop = anyio.Event()
        process.sender.said.clear()
        answered = VIRTUAL.run(process.ask)
        assert len(answered) == len(process.sender.said) > 0, "every request that left has its answer"


class TakenOverUnnoticed(MemorySharedRun):
    """A process that loses its first chunk as soon as it has it, and learns of it only by a write."""

    async def claim(self, api):
        chunk = await super().claim(api)
        if chunk is not None and chunk.hold.chunk == 0:
            self._all.fences[0] += 1
        return chunk

    def holds(self, hold):  # noqa: ARG002
        return True


def test_an_intent_that_comes_too_late_is_not_sent(questions):
    process = Process(questions, FakeSender(always(None)))
    process.run = TakenOverUnnoticed(questions)

    assert VIRTUAL.run(process.ask) == list(range(SIZE, COUNT))
    assert len(process.sender.said) == COUNT - SIZE == process.tally.requests[ApiName.COP]
    assert process.places_left() == PLACES


class AsleepOverItsIntent(MemorySharedRun):
    """A process whose lease has ended when its first intent is durable; a renewal finds out by and by."""

    is_awake = True

    async def intend(self, question, **line):
        await super().intend(question, **line)
        if self._all.ledger.counts.attempt_count == 1:
            self.is_awake = False
            self.sleep()

    def sleep(self):
        asyncio.get_running_loop().call_later(0.05, setattr, self, "is_awake", True)

    def holds(self, hold):
        return not self.is_awake or super().holds(hold)

    def may_send(self, hold):
        return self.is_awake and super().may_send(hold)


def test_a_request_whose_lease_has_ended_since_its_intent_leaves_once_it_is_renewed(questions, ledger):
    process = Process(questions, FakeSender(always(None)))
    process.run = AsleepOverItsIntent(questions)

    assert VIRTUAL.run(process.ask) == list(range(COUNT))
    assert len(process.sender.said) == COUNT == process.tally.requests[ApiName.COP]
    assert COUNT < ledger.counts.attempt_count <= COUNT + PLACES, "what was held is an attempt of the ledger"
    assert process.places_left() == PLACES


class TakenOverInItsSleep(AsleepOverItsIntent):
    """One whose first chunk another process has taken over meanwhile."""

    def sleep(self):
        super().sleep()
        self._all.fences[0] += 1


def test_a_request_whose_chunk_was_taken_over_since_its_intent_never_leaves(questions):
    process = Process(questions, FakeSender(always(None)))
    process.run = TakenOverInItsSleep(questions)

    assert VIRTUAL.run(process.ask) == list(range(SIZE, COUNT))
    assert len(process.sender.said) == COUNT - SIZE
    assert process.places_left() == PLACES


def forget_a_round(questions):
    """By a failover: the first chunk is void, and its questions are free in one of the round before."""
    questions.fences[0] += 1
    api, (first, *others) = questions.chunks[0]
    questions.chunks[COUNT] = api, [*others, first]
    questions.free.appendleft(COUNT)


@pytest.mark.parametrize("is_open", [True, False])
def test_a_question_that_comes_in_another_chunk_waits_for_the_request_that_is_out(questions, ledger, is_open):
    """Or for the one that waits for its turn, which never leaves."""
    out, most = Counter(), Counter()

    async def reply(said):
        out[said.name] += 1
        most[said.name] = max(most[said.name], out[said.name])
        is_first = COUNT not in questions.chunks
        if is_first:
            forget_a_round(questions)
        await anyio.sleep(0.01 if is_first else 0.1)
        out[said.name] -= 1
        return good(said.request)

    process = Process(questions, FakeSender(reply))
    if is_open:
        process.places.open()

    assert VIRTUAL.run(process.ask) == list(range(COUNT))
    assert set(most.values()) == {1}
    assert COUNT < len(process.sender.said) <= COUNT + PLACES, "what was out is asked again, and nothing else"
    assert ledger.counts.answer_count == COUNT
    assert process.places_left() == PLACES


def test_behind_a_closed_gate_nothing_waits_for_the_request_that_is_out(questions):
    async def reply(said):
        if COUNT not in questions.chunks:
            forget_a_round(questions)
            await anyio.sleep(0.01)
        elif said.name in {"Payee 1", "Payee 2", "Payee 3"}:
            await anyio.sleep(0.1)
        else:
            return problem(429, **{"retry-after": "3600"})
        return good(said.request)

    process = Process(questions, FakeSender(reply))
    process.places.open()

    assert VIRTUAL.run(process.ask) == []
    assert len(process.sender.said) == PLACES + 1
    assert process.places_left() == PLACES


def test_a_cap_that_is_spent_at_the_intent_leaves_the_rest_with_the_source(questions, ledger):
    quota = MemoryQuota(15, lambda: NOON)
    process = Process(questions, FakeSender(always(None)), quota=quota)

    answered = VIRTUAL.run(process.ask)

    assert len(answered) == len(process.sender.said) == 15 == ledger.counts.answer_count
    assert ledger.counts.attempt_count == 15
    assert process.tally.closures == {ApiName.COP: ("deferred", "DAILY_CAP")}
    assert sorted(questions.free) == [1, 2, 3]
    assert questions.fences[3] == 0, "nothing is claimed behind a closed gate"
    assert process.places_left() == PLACES


@pytest.mark.parametrize("write", ["intend", "settle"])
def test_a_ledger_that_fails_leaves_no_place_taken(questions, write):
    """Others have the places of this account, too: a request of which nothing is in flight holds none."""
    process = Process(questions, FakeSender(always(None)))

    async def fail(*_said, **_more):
        raise IncompleteError(Sentence("jobs.part_unusable", problem="the database is away"))

    setattr(process.run, write, fail)
    with pytest.raises(IncompleteError):
        VIRTUAL.run(process.ask)
    assert process.places_left() == PLACES


def test_who_has_asked_everything_leaves_the_account(questions):
    process = Process(questions, FakeSender(always(None)))
    left = []
    process.share.leave = lambda: left.append(process.share)
    assert VIRTUAL.run(process.ask) == list(range(COUNT))
    assert len(left) == 1


def test_behind_a_long_pause_the_questions_are_left_to_others(questions, ledger):
    process = Process(questions, FakeSender(always(problem(503, **{"retry-after": "3600"}))))

    assert VIRTUAL.run(process.ask) == []
    assert sorted(questions.free) == list(range(COUNT // SIZE))

    second = Process(questions, FakeSender(always(None)))
    assert VIRTUAL.run(second.ask) == list(range(COUNT))


def test_after_a_stop_the_questions_are_left_to_others(questions, ledger):
    stop = anyio.Event()

    async def reply(said):
        if len(process.sender.said) == 5:
            stop.set()
        return good(said.request)

    process = Process(questions, FakeSender(reply), stop=stop)
    VIRTUAL.run(process.ask)
    answered = ledger.counts.answer_count
    assert 5 <= answered < SIZE
    assert len(questions.free) == COUNT // SIZE

    second = Process(questions, FakeSender(always(None)))
    assert len(VIRTUAL.run(second.ask)) == COUNT - answered
    assert set(said_by(process.sender, second.sender).values()) == {1}


def test_a_share_that_shrinks_while_intents_are_written_lets_no_more_leave_than_it_has(questions):
    """A database stands still beyond the lease: what had its place before gets no more than there are."""
    sender = FakeSender(always(None), connects_s=lambda _name: 0.001)
    process = Process(questions, sender)
    process.places.open()
    intend, waiting = process.run.intend, []
    all_wait, answers_again = anyio.Event(), anyio.Event()

    async def slow_intend(question, **said):
        waiting.append(question)
        if len(waiting) == PLACES:
            all_wait.set()
        await answers_again.wait()
        await intend(question, **said)

    process.run.intend = slow_intend

    async def main():
        async with anyio.create_task_group() as group:
            group.start_soon(process.ask)
            await all_wait.wait()
            process.places.resize(1, 5000)
            answers_again.set()

    VIRTUAL.run(main)
    assert sender.in_flight_most == 1
    assert set(said_by(sender).values()) == {1}
    assert len(sender.said) == COUNT


# What others leave of one API while another is asked


async def matched(said):
    return good(said.request, {"partyNameMatch": "MTCH"})


class Beside:
    """A process that asks CoP until it is told to answer, while another one holds all questions for VoP."""

    def __init__(self, ledger, check_of, *, vop_reply=None, vop_count=SIZE):
        cops = [check_of(check=n, name=f"Payee {n}", account=f"{n:014d}") for n in range(SIZE)]
        vops = [
            check_of(check=n, api=ApiName.VOP_GATEWAY, name=f"Payee {n}", account=f"DE{n:020d}")
            for n in range(SIZE, SIZE + vop_count)
        ]
        self.questions = MemoryQuestions(cops + vops, ledger, chunk_size=SIZE)
        self.other = MemorySharedRun(self.questions)
        self.cop_answers = anyio.Event()
        self.cop_reply = good

        async def reply(said):
            await self.cop_answers.wait()
            return self.cop_reply(said.request)

        self.process = Process(self.questions, FakeSender(reply), vop=FakeSender(vop_reply or matched))
        self.process.places.open()
        self.has_left = anyio.Event()
        self.process.vop_share.leave = self.has_left.set
        self.process.vop_share.rejoin = self.rejoin
        self.rejoin_count = 0
        self.answered = []

    async def rejoin(self):
        self.rejoin_count += 1
        return True

    async def run(self, meanwhile):
        """Ask; do this once there was nothing of VoP."""
        assert await self.other.claim(ApiName.VOP_GATEWAY) is not None

        async def ask():
            self.answered += await self.process.ask()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                with anyio.fail_after(10):
                    await self.has_left.wait()
                    await meanwhile()
                self.cop_answers.set()
        except BaseExceptionGroup as failures:
            raise first_of(failures) from None


@pytest.fixture
def beside(ledger, check_of):
    return lambda **how: Beside(ledger, check_of, **how)


async def until(is_so):
    while not is_so():  # noqa: ASYNC110 (the other tasks have no event for it)
        await anyio.sleep(0.005)


def test_what_others_give_back_of_one_api_is_asked_while_the_other_is_still_asked(beside):
    """Found by the simulation: it waited for as long as the server of the other API was out of reach."""
    at_work = beside()

    async def meanwhile():
        await anyio.sleep(0.05)
        assert not at_work.process.vop.said
        await at_work.other.give_back()
        await until(lambda: len(at_work.process.vop.said) == SIZE)
        assert at_work.process.tally.answered[ApiName.COP] == 0

    VIRTUAL.run(at_work.run, meanwhile)
    assert at_work.answered == list(range(2 * SIZE))
    assert set(said_by(at_work.process.sender, at_work.process.vop).values()) == {1}


def test_it_is_asked_once_there_is_a_share_of_the_account_and_not_claimed_before(beside):
    at_work = beside()
    tries = []

    async def rejoin():
        tries.append(at_work.questions.fences[1])
        return len(tries) == 3

    at_work.process.vop_share.rejoin = rejoin

    async def meanwhile():
        await at_work.other.give_back()
        await until(lambda: len(at_work.process.vop.said) == SIZE)

    VIRTUAL.run(at_work.run, meanwhile)
    assert tries == [1, 1, 1], "nothing was claimed but by the other"


def test_it_may_come_back_as_often_as_there_is_more(beside):
    at_work, cop_holds = beside(), {ChunkLease(0, 1)}

    async def meanwhile():
        for some in (1, 2):
            await at_work.other.give_back()
            await until(lambda some=some: at_work.questions.fences[1] == 2 * some)
            await until(lambda: not at_work.process.run._held - cop_holds)  # noqa: SLF001
            at_work.questions.free.append(1)
            await at_work.other.claim(ApiName.VOP_GATEWAY)

    VIRTUAL.run(at_work.run, meanwhile)
    assert len(at_work.process.vop.said) == SIZE, "what is answered is not asked again"
    assert at_work.answered == list(range(2 * SIZE))


def test_nobody_waits_for_what_may_still_come(beside):
    at_work = beside()

    async def meanwhile():
        pass

    VIRTUAL.run(at_work.run, meanwhile)  # within 10 s
    assert at_work.answered == list(range(SIZE))


def test_behind_a_closed_gate_a_process_does_not_look_for_more(beside):
    """A server that wants an hour of silence: what was claimed is left, and free, and not claimed again."""
    at_work = beside(vop_reply=always(problem(503, **{"retry-after": "3600"})))

    async def meanwhile():
        await at_work.other.give_back()
        await until(lambda: at_work.questions.fences[1] == 2 and 1 in at_work.questions.free)
        await anyio.sleep(0.1)

    VIRTUAL.run(at_work.run, meanwhile)
    assert at_work.questions.fences[1] == 2
    assert at_work.rejoin_count == 1
    assert at_work.answered == list(range(SIZE))


def test_who_was_turned_away_with_every_question_does_not_look_for_more(beside):
    at_work = beside(vop_reply=always(problem(403, "FORBIDDEN")), vop_count=2)

    async def meanwhile():
        await at_work.other.give_back()
        await until(lambda: len(at_work.process.vop.said) == 2)
        at_work.questions.free.append(1)
        await anyio.sleep(0.1)

    with pytest.raises(CredentialsError):
        VIRTUAL.run(at_work.run, meanwhile)
    assert at_work.rejoin_count == 1
    assert len(at_work.process.vop.said) == 2


def test_who_came_back_is_waited_for_where_an_error_ends_the_other_api(beside):
    vop_answers = anyio.Event()

    async def reply(said):
        await vop_answers.wait()
        return await matched(said)

    at_work = beside(vop_reply=reply)

    async def no_token():
        raise CredentialsError(Sentence("jobs.part_unusable", problem="no token"))

    async def meanwhile():
        await at_work.other.give_back()
        await until(lambda: at_work.process.vop.said)
        at_work.process.sender.token = no_token
        at_work.cop_answers.set()
        await until(lambda: at_work.process.tally.closures)
        await anyio.sleep(0.05)
        vop_answers.set()

    with pytest.raises(CredentialsError):
        VIRTUAL.run(at_work.run, meanwhile)
    assert at_work.process.tally.answered[ApiName.VOP_GATEWAY] == SIZE


def test_a_store_that_fails_as_one_looks_for_more_ends_the_run_with_its_error(beside):
    at_work = beside()
    looked = anyio.Event()

    async def has_free(_api):
        looked.set()
        raise IncompleteError(Sentence("jobs.part_unusable", problem="the database is away"))

    at_work.process.run.has_free = has_free
    with refused(IncompleteError, "jobs.part_unusable", problem="the database is away"):
        VIRTUAL.run(at_work.run, looked.wait)
    assert at_work.process.tally.answered[ApiName.COP] == SIZE, "what was under way has its answers"


def test_who_looks_for_more_does_not_keep_a_run_from_ending_by_an_error(beside):
    at_work = beside()
    at_work.cop_reply = lambda _request: problem(403, "FORBIDDEN")

    async def meanwhile():
        pass

    with pytest.raises(CredentialsError):
        VIRTUAL.run(at_work.run, meanwhile)


def test_while_one_api_waits_for_its_share_again_the_other_still_looks_for_more(beside):
    vop_answers, has_share = anyio.Event(), anyio.Event()

    async def reply(said):
        await vop_answers.wait()
        return await matched(said)

    async def rejoin():
        await has_share.wait()
        return True

    at_work = beside(vop_reply=reply)
    at_work.process.vop_share.rejoin = rejoin

    async def meanwhile():
        await at_work.other.give_back()
        await anyio.sleep(0.1)
        at_work.cop_answers.set()
        await until(lambda: at_work.process.tally.answered[ApiName.COP] == SIZE)
        await anyio.sleep(0.05)
        has_share.set()
        await until(lambda: at_work.process.vop.said)
        at_work.questions.free.append(0)
        await until(lambda: at_work.questions.fences[0] == 2)
        vop_answers.set()

    VIRTUAL.run(at_work.run, meanwhile)
    assert at_work.answered == list(range(2 * SIZE))


def test_who_waits_in_vain_for_a_share_again_ends_with_the_other_api(beside):
    at_work, tried = beside(), anyio.Event()

    async def rejoin():
        tried.set()
        await until(lambda: at_work.process.tally.answered[ApiName.COP] == SIZE)
        await anyio.sleep(0.05)
        return False

    at_work.process.vop_share.rejoin = rejoin

    async def claim(api):
        chunk = await MemorySharedRun.claim(at_work.process.run, api)
        if chunk is None:
            await at_work.other.give_back()
        return chunk

    at_work.process.run.claim = claim
    VIRTUAL.run(at_work.run, tried.wait)  # within 10 s
    assert at_work.answered == list(range(SIZE))


def test_what_an_error_leaves_of_one_api_is_free_while_the_other_is_asked(beside):
    at_work = beside()

    async def no_token():
        await anyio.sleep(0.05)
        raise CredentialsError(Sentence("jobs.part_unusable", problem="no token"))

    at_work.process.vop.token = no_token

    async def meanwhile():
        await at_work.other.give_back()
        await until(lambda: at_work.questions.fences[1] == 2 and 1 in at_work.questions.free)
        await anyio.sleep(0.05)

    with pytest.raises(CredentialsError):
        VIRTUAL.run(at_work.run, meanwhile)
    assert at_work.questions.fences[1] == 2, "nothing is claimed again"
    assert at_work.process.tally.answered[ApiName.COP] == SIZE


def test_what_a_limit_cuts_from_a_chunk_of_one_api_is_free_while_the_other_is_asked(beside):
    at_work = beside()
    at_work.process.part = SharedPart(at_work.process.run, SIZE + 3)

    async def meanwhile():
        await at_work.other.give_back()
        await until(lambda: at_work.questions.fences[1] == 2 and 1 in at_work.questions.free)

    VIRTUAL.run(at_work.run, meanwhile)
    assert at_work.answered == list(range(SIZE + 3))


def test_what_is_found_as_the_other_api_ends_is_left_for_the_next_round(beside):
    """There a process asks of both again, and not of this one alone for as long as that takes."""
    at_work, looks, found = beside(), anyio.Event(), anyio.Event()

    async def has_free(_api):
        looks.set()
        await found.wait()
        return True

    at_work.process.run.has_free = has_free

    async def meanwhile():
        await looks.wait()
        at_work.cop_answers.set()
        await until(lambda: at_work.process.tally.answered[ApiName.COP] == SIZE)
        await anyio.sleep(0.05)
        found.set()

    VIRTUAL.run(at_work.run, meanwhile)
    assert at_work.rejoin_count == 0
    assert at_work.answered == list(range(SIZE))
