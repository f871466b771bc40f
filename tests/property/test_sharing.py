"""The division of an account: whatever processes do, however late, the sum of their parts is within it."""

from dataclasses import dataclass, field
from math import inf
from random import Random

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from pipeline.stores.sharing import (
    LEASE_S,
    NOTHING,
    PAUSE_MAX_S,
    Division,
    SharePart,
    ShareWish,
    joining,
    not_before,
    renewed,
    with_other_limits,
)
from pipeline.stores.values import LeaseHolder, ServerAccount

WINDOW_S = 1.028
DEADLINE_S = 8.0
ALL_FREE_S = LEASE_S + DEADLINE_S
"""After that nothing counts any more of processes that are gone."""


def account_of(rate, places, window_s=WINDOW_S):
    return ServerAccount("s|c", "cop", rate, places, window_s, DEADLINE_S)


@dataclass(eq=False)
class Process:
    """One that uses all that it may, and holds every place for as long as it may."""

    name: str
    account: ServerAccount
    part: tuple = NOTHING
    until: float = -inf
    in_flight: int = 0
    left: list = field(default_factory=list)
    """When it may have sent something, and at most how many requests there were then in the last window."""
    request: tuple | None = None
    reply: object = None
    is_over: bool = False

    def __post_init__(self):
        self.me = joining(self.name, LeaseHolder("s", int(self.name)), self.account)
        self.over_since = inf

    def live_on(self, now):
        """Use everything until now."""
        may_until = min(now, self.until)
        if self.part.requests and not self.is_over:
            self.left.append((may_until, self.part.requests))
        if now < self.until and not self.is_over:
            self.in_flight, self.over_since = max(self.in_flight, self.part.slots), inf
        if self.over_since == inf:
            self.over_since = may_until
        if now >= self.over_since + DEADLINE_S:
            self.land(now)

    def land(self, now):
        """Replies came to what is more than it may have."""
        may = self.part.slots if now < self.until and not self.is_over else 0
        self.in_flight = min(self.in_flight, may)

    def step(self, division, now):
        """Ask for a renewal, have it made, or learn of it: the next of these three."""
        if self.request is None:
            kept = self.part._replace(slots=max(self.part.slots, self.in_flight))
            self.request = (now, ShareWish(kept))
        elif self.reply is None:
            division, self.reply = renewed(division, self.account, self.request[1], self.me, now)
        else:
            self.part, self.until = self.reply.part, self.request[0] + LEASE_S
            self.request = self.reply = None
        return division

    def most_in_the_second_before(self, now):
        return max((requests for moment, requests in self.left if moment > now - 1), default=0)


ACTS = ["step"] * 4 + ["renew"] * 8 + ["land", "leave", "die"]
WAITS_S = [0.0, 0.001, 0.1, 0.2, 0.3, 0.5, 0.9, 1.027, 2.0, LEASE_S + 0.001, 7.0, DEADLINE_S]
EVENTS = 60


class Town:
    """Some processes and one account, whatever they do."""

    def __init__(self, account, chance):
        self.account = account
        self.chance = chance
        self.division = Division()
        self.now = 100.0
        self.started_count = 0
        self.at_work, self.gone = [], []

    def go_on(self):
        """Let time pass, and something happen."""
        self.now += self.chance.choice(WAITS_S)
        for process in self.everyone:
            process.live_on(self.now)

    def happen(self):
        if not self.at_work or (len(self.at_work) < 3 and self.chance.random() < 0.2):
            self.started_count += 1
            self.at_work.append(Process(str(self.started_count), self.account))
        one = self.chance.choice(self.at_work)
        match self.chance.choice(ACTS):
            case "step":
                self.division = one.step(self.division, self.now)
            case "renew":
                one.request = one.reply = None
                for _ in range(3):
                    self.division = one.step(self.division, self.now)
            case "land":
                one.land(self.now)
            case "leave":
                one.part, one.is_over, one.in_flight = NOTHING, True, 0
                wish = ShareWish(NOTHING, wants=False)
                self.division, _ = renewed(self.division, self.account, wish, one.me, self.now)
            case "die":
                one.is_over = True
        if one.is_over:
            self.at_work.remove(one)
            self.gone.append(one)

    @property
    def everyone(self):
        return [*self.at_work, *self.gone]


@examples(300)
@given(st.integers(1, 60), st.integers(1, 20), st.builds(Random, st.integers()))
def test_the_shares_never_add_up_to_more_than_the_account(rate, places, chance):
    town = Town(account_of(rate, places), chance)
    for _ in range(EVENTS):
        town.happen()
        town.go_on()
        assert sum(process.most_in_the_second_before(town.now) for process in town.everyone) <= rate
        assert sum(process.in_flight for process in town.everyone) <= places


def healthy(division, processes, now, for_s, every_s=0.5):
    """Have processes renew their leases in time, and answers come."""
    end = now + for_s
    while now < end:
        for process in processes:
            process.request = process.reply = None
            for _ in range(3):
                division = process.step(division, now)
            process.in_flight = process.part.slots
        now += every_s
    return division, now


@examples(100)
@given(st.integers(1, 60), st.integers(1, 20), st.builds(Random, st.integers()), st.integers(1, 8))
def test_healthy_processes_have_all_of_it_in_equal_parts_whatever_was_before(rate, places, chance, count):
    account = account_of(rate, places)
    town = Town(account, chance)
    for _ in range(20):
        town.happen()
        town.go_on()
    processes = [Process(str(100 + number), account) for number in range(count)]
    healthy(town.division, processes, town.now, ALL_FREE_S + 2 * WINDOW_S + 3)

    sharing = min(count, rate, places)
    parts = [process.part for process in processes]
    assert sum(part.requests for part in parts) == rate
    assert sum(part.slots for part in parts) == places
    assert sum(part == NOTHING for part in parts) == count - sharing
    for kind in range(2):
        had = [part[kind] for part in parts if part != NOTHING]
        assert max(had) - min(had) <= 1


@examples(100)
@given(
    st.integers(1, 60),
    st.integers(1, 20),
    st.builds(Random, st.integers()),
    st.lists(st.floats(0.1, 1.0), min_size=1, max_size=5),
)
def test_those_that_slept_get_their_parts_though_places_are_kept_until_there_are_requests(
    rate, places, chance, every_s
):
    """A request takes its place before its turn comes: so one without a rate keeps the places that it has."""
    account, now = account_of(rate, places), 100.0
    processes = [Process(str(number), account) for number in range(1, 1 + len(every_s))]
    division = Division()
    for process in chance.choices(processes, k=20):
        process.request = process.reply = None
        for _ in range(3):
            division = process.step(division, now)
        now += chance.choice([0.2, 0.5, LEASE_S + 2, 30.0])
        process.in_flight = max(process.in_flight, process.part.slots)
    due = dict.fromkeys(processes, now)
    end = now + ALL_FREE_S + 10
    while (now := min(due.values())) < end:
        process = min(due, key=due.get)
        due[process] += every_s[processes.index(process)]
        process.request = process.reply = None
        for _ in range(3):
            division = process.step(division, now)
        process.in_flight = process.part.slots or process.in_flight
    assert sum(process.part != NOTHING for process in processes) == min(len(processes), rate, places)


@examples(50)
@given(st.integers(1, 30), st.integers(1, 8), st.integers(2, 8), st.integers(0, 7), st.booleans())
def test_one_that_is_left_alone_has_all_of_it(rate, places, count, stays, leave_in_order):
    account = account_of(rate, places)
    processes = [Process(str(number), account) for number in range(count)]
    division, now = healthy(Division(), processes, 100.0, 10.0)
    one = processes[stays % count]
    for process in processes:
        if process is not one and leave_in_order:
            division, _ = renewed(division, account, ShareWish(NOTHING, wants=False), process.me, now)
    division, now = healthy(division, [one], now, 2.6 if leave_in_order else ALL_FREE_S + 1)
    assert one.part == (rate, places)


def test_the_first_has_all_of_it_at_once():
    _, renewal = renewed(Division(), account_of(30, 6), ShareWish(NOTHING), process().me, 5.0)
    assert renewal.part == (30, 6)
    assert (renewal.more_in_s, renewal.behind) == (inf, None)
    assert renewal.paused_s <= 0


def process(name="1", rate=30, places=6):
    return Process(name, account_of(rate, places))


def test_what_one_gives_up_is_free_a_window_later_and_no_sooner():
    account, (one, two) = account_of(30, 6), (process("1"), process("2"))
    division, now = healthy(Division(), [one], 0.0, 1.0)
    division, first = renewed(division, account, ShareWish(NOTHING), two.me, now)
    assert (first.part, first.more_in_s) == (NOTHING, pytest.approx(LEASE_S + WINDOW_S - 0.5))
    division, told = renewed(division, account, ShareWish(one.part), one.me, now)
    assert told.part == (15, 3), "it is to use less first"
    division, then = renewed(division, account, ShareWish(NOTHING), two.me, now + 0.1)
    assert then.part == NOTHING
    division, _ = renewed(division, account, ShareWish(told.part), one.me, now + 0.2)
    division, then = renewed(division, account, ShareWish(NOTHING), two.me, now + 0.2)
    assert (then.part, then.more_in_s) == (NOTHING, pytest.approx(WINDOW_S))
    _, then = renewed(division, account, ShareWish(NOTHING), two.me, now + 0.2 + WINDOW_S - 0.001)
    assert then.part == NOTHING
    _, then = renewed(division, account, ShareWish(NOTHING), two.me, now + 0.2 + WINDOW_S)
    assert then.part == (15, 3)


def test_one_that_gives_up_twice_in_a_window_still_counts_with_all_that_it_had():
    account, (one, two) = account_of(30, 6), (process("1"), process("2"))
    division, now = healthy(Division(), [one], 0.0, 1.0)
    for kept in [(20, 4), (10, 2)]:
        division, _ = renewed(division, account, ShareWish(SharePart(*kept)), one.me, now)
    _, renewal = renewed(division, account, ShareWish(NOTHING), two.me, now + WINDOW_S / 2)
    assert renewal.part == NOTHING


def test_what_the_dead_held_is_free_a_window_after_their_lease_and_their_places_after_a_deadline():
    account, (dead, one) = account_of(30, 6), (process("1"), process("2"))
    division, _ = renewed(Division(), account, ShareWish(NOTHING), dead.me, 0.0)
    for now, part in [(LEASE_S + WINDOW_S, NOTHING), (LEASE_S + DEADLINE_S, (30, 6))]:
        before, renewal = renewed(division, account, ShareWish(NOTHING), one.me, now - 0.001)
        assert renewal.part == NOTHING
        division, renewal = renewed(before, account, ShareWish(NOTHING), one.me, now)
        assert renewal.part == part
    assert LEASE_S + WINDOW_S < LEASE_S + DEADLINE_S


def test_one_that_comes_where_there_is_less_than_one_for_each_is_behind_the_first():
    account, processes = account_of(2, 6), [process(str(number), 2) for number in range(3)]
    division, now = healthy(Division(), processes, 0.0, 5.0)
    assert [each.part for each in processes] == [(1, 3), (1, 3), NOTHING]
    _, renewal = renewed(division, account, ShareWish(NOTHING), processes[2].me, now)
    assert renewal.behind == LeaseHolder("s", 0)
    healthy(division, processes[1:], now, ALL_FREE_S)
    assert [each.part for each in processes[1:]] == [(1, 3), (1, 3)]


def test_one_with_other_limits_waits_until_all_is_free():
    one, other = process("1"), process("2", rate=40)
    division, now = healthy(Division(), [one], 0.0, 1.0)
    division, renewal = renewed(division, other.account, ShareWish(NOTHING), other.me, now)
    assert (renewal.part, renewal.behind) == (NOTHING, LeaseHolder("s", 1))
    division, renewal = renewed(division, one.account, ShareWish(one.part), one.me, now)
    assert renewal.part == (30, 6), "who waits has no part"
    assert with_other_limits(division, other.me, now).who == LeaseHolder("s", 1)
    assert with_other_limits(division, one.me, now + 2 * LEASE_S) is None
    division, _ = renewed(division, one.account, ShareWish(NOTHING, wants=False), one.me, now)
    division, renewal = renewed(division, other.account, ShareWish(NOTHING), other.me, now + 0.5)
    assert (renewal.part, renewal.behind) == (NOTHING, None)
    division, renewal = renewed(division, other.account, ShareWish(NOTHING), other.me, now + WINDOW_S)
    assert renewal.part == (40, 6)


@pytest.mark.parametrize(("asked_s", "kept_s"), [(3.0, 3.0), (3600.0, PAUSE_MAX_S)])
def test_a_pause_holds_for_all_and_never_for_longer_than_one_that_is_sat_out(asked_s, kept_s):
    account, (one, two) = account_of(30, 6), (process("1"), process("2"))
    division, now = healthy(Division(), [one, two], 0.0, 5.0)
    division, _ = renewed(division, account, ShareWish(one.part, pause_s=asked_s), one.me, now)
    division, renewal = renewed(division, account, ShareWish(two.part), two.me, now + 1)
    assert renewal.paused_s == pytest.approx(kept_s - 1)
    assert renewal.part == (15, 3)
    division, renewal = renewed(division, account, ShareWish(two.part, pause_s=0.5), two.me, now + 1)
    assert renewal.paused_s == pytest.approx(kept_s - 1), "a shorter one changes nothing"


@pytest.mark.parametrize("booted_s", [0.0, 3.0, 4000.0])
def test_what_was_before_a_restart_of_the_machine_counts_for_a_window_and_no_longer(booted_s):
    """The clock begins anew with the machine, so that the times of before lie anywhere."""
    account, (before, one) = account_of(30, 6), (process("1"), process("2"))
    division, _ = healthy(Division(), [before], 5000.0, 1.0)
    division, _ = renewed(division, account, ShareWish(before.part, pause_s=60), before.me, 5001.0)
    division, renewal = renewed(division, account, ShareWish(NOTHING), one.me, booted_s)
    assert (renewal.part, renewal.more_in_s) == (NOTHING, pytest.approx(WINDOW_S))
    division, renewal = renewed(division, account, ShareWish(NOTHING), one.me, booted_s + WINDOW_S)
    assert renewal.part == (30, 6)
    assert renewal.paused_s <= PAUSE_MAX_S


def test_where_nothing_is_known_nothing_is_free_before_its_time():
    account, one = account_of(30, 6), process("1")
    division, renewal = renewed(not_before(7.0, account), account, ShareWish(NOTHING), one.me, 6.5)
    assert (renewal.part, renewal.more_in_s, renewal.behind) == (NOTHING, 0.5, None)
    assert renewed(division, account, ShareWish(NOTHING), one.me, 7.0)[1].part == (30, 6)


def test_below_one_in_a_second_one_has_it_all_and_the_next_a_whole_window_later():
    account = account_of(0.2, 4, 5.14)
    one, two = Process("1", account), Process("2", account)
    division, now = healthy(Division(), [one, two], 0.0, 2.0)
    assert (one.part, two.part) == ((1, 4), NOTHING)
    division, _ = renewed(division, account, ShareWish(NOTHING, wants=False), one.me, now)
    _, renewal = renewed(division, account, ShareWish(NOTHING), two.me, now + 5.13)
    assert (renewal.part, renewal.behind) == (NOTHING, None)
    assert renewed(division, account, ShareWish(NOTHING), two.me, now + 5.14)[1].part == (1, 4)
