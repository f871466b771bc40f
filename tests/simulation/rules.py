"""What must hold in every history."""

from __future__ import annotations

from collections import Counter
from itertools import cycle
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from simulation.payments import outcomes_of, payment_file

from pipeline.frames import AnswerState
from schemas.outcomes import Outcome

if TYPE_CHECKING:
    from simulation.history import History

REQUESTS_PER_RUN_MAX = 40
"""Requests for one question in one run, at most."""


_ANSWERED, _REFUSED = AnswerState.ANSWERED.value, AnswerState.REFUSED.value
_FINAL = frozenset({_ANSWERED, _REFUSED})
MATCHES = frozenset({Outcome.MATCH, Outcome.CLOSE_MATCH, Outcome.NO_MATCH})
"""Outcomes that only a bank gives."""
LANDING_S = 0.001
"""What it takes a process to read a reply."""


class Breach(NamedTuple):
    """A rule that was broken."""

    rule: str
    what: str


def broken_rules(history: History) -> list[Breach]:
    """Every rule that a history broke."""
    return [
        *_rate(history),
        *_places(history),
        *_intents(history),
        *_cap(history),
        *_pauses(history),
        *_bounds(history),
        *_answers(history),
        *_outcomes(history),
        *_ends(history),
    ]


def _rate(history: History) -> list[Breach]:
    """In any second, at most as many as agreed leave."""
    agreed = history.provider.limits
    for limits, next_from_s in zip(agreed, [*(each.from_s for each in agreed[1:]), inf], strict=True):
        times = [left.time_s for left in history.provider.departures]
        times = [time_s for time_s in times if limits.from_s <= time_s < next_from_s]
        for first, last in zip(times, times[limits.rate :], strict=False):
            if last - first < 1.0:
                return [Breach("rate", f"{limits.rate + 1} within {last - first:.6f} s, at {last:.3f}")]
    return []


def _places(history: History) -> list[Breach]:
    provider = history.provider
    in_flight = [*(each.in_flight_before for each in provider.limits[1:]), provider.in_flight_most]
    for most, limits in zip(in_flight, provider.limits, strict=True):
        if most > limits.places:
            return [Breach("places", f"{most} in flight, {limits.places} allowed")]
    return []


def _intents(history: History) -> list[Breach]:
    """Nothing leaves without a durable intent, or after the answer of its question is durable."""
    book, keys = history.book, {}
    for left in history.provider.departures:
        question = book.intended.get(left.request_id)
        if question is None:
            return [Breach("intent", f"row {left.row} was asked about without one at {left.time_s:.3f}")]
        keys[left.row] = question
        if left.time_s > book.settled_at.get(question, left.time_s):
            return [Breach("repeated", f"row {left.row} was asked about again at {left.time_s:.3f}")]
    return []


def _cap(history: History) -> list[Breach]:
    """At most the cap arrives in a day of the server, unless the clock is set to another day meanwhile."""
    cap, by_day = history.weather.cap, history.provider.arrivals_by_day
    most = max(by_day.values(), default=0)
    if cap is not None and most > cap and not history.weather.clock_jumps:
        return [Breach("cap", f"{most} requests in a day, {cap} allowed")]
    return []


def _pauses(history: History) -> list[Breach]:
    """A process that was asked for a pause sends nothing before it is over."""
    pauses = history.provider.pauses
    for left in history.provider.departures:
        for from_s, until_s in pauses.get(left.process, ()):
            if from_s + LANDING_S < left.time_s < until_s:
                return [
                    Breach("pause", f"row {left.row} was asked about {left.time_s - from_s:.3f} s into one")
                ]
    return []


def _bounds(history: History) -> list[Breach]:
    """No question is sent more often in one run than its attempts, renewals and outages explain."""
    by_run = Counter((left.process, left.row) for left in history.provider.departures)
    (process, row), most = by_run.most_common(1)[0] if by_run else (("", 0), 0)
    if most > REQUESTS_PER_RUN_MAX:
        return [Breach("requests", f"{process} sent row {row} {most} times")]
    return []


def _answers(history: History) -> list[Breach]:
    """One answer per question in each run's result; and what it says is what the bank said."""
    provider = history.provider
    found = []
    for end in history.ends:
        if sorted([check for check, *_ in end.said]) != list(range(1, history.question_count + 1)):
            return [Breach("outcomes", "not one answer per question")]
        for check, state, code, request_id in end.said:
            if state in _FINAL and check not in end.durable:
                found.append(Breach("durable", f"row {check} is decided in the result and not in the ledger"))
            if state == _ANSWERED:
                truth = provider.truths[check] or "MTCH"
                given = provider.answers_given.get(request_id)
                if given is None or given[0] != check or code != truth:
                    found.append(Breach("guessed", f"row {check}: {code}, the bank says {truth}"))
            elif state == _REFUSED and check not in history.weather.refused_rows:
                found.append(Breach("guessed", f"row {check} was never refused"))
    return found[:3]


def _outcomes(history: History) -> list[Breach]:
    """One outcome per payment; and what it says is what its bank said about its question."""
    if not history.ends:
        return []
    try:
        outcomes = outcomes_of(history.question_count, [end.answers for end in history.ends])
    except AssertionError as error:
        return [Breach("outcomes", f"they cannot be decided: {error!r}")]
    truth_of = {
        payment: history.provider.truths[question]
        for payment, question in payment_file(history.question_count).question_of.items()
    }
    if outcomes["row"].to_list() != list(range(1, len(truth_of) * len(history.ends) + 1)):
        return [Breach("outcomes", "not one outcome per payment")]
    payments = cycle(truth_of.items())
    said = outcomes.select("check_outcome", "check_code").iter_rows()
    for (payment, truth), (outcome, code) in zip(payments, said, strict=False):
        if outcome in MATCHES and (truth or "MTCH") != code:
            return [Breach("guessed", f"payment {payment}: {outcome} {code}, the bank says {truth}")]
        if outcome == Outcome.MATCH and truth is not None:
            return [Breach("guessed", f"payment {payment}: a match, the bank says {truth}")]
    return []


def _ends(history: History) -> list[Breach]:
    """Once the world is healthy, every row that it can answer is answered."""
    if not history.ends:
        return [Breach("liveness", "no run ended")]
    if open_rows := history.open_rows:
        runs, codes = len(history.ends), Counter(open_rows.values())
        return [Breach("liveness", f"open after {runs} runs: {len(open_rows)} rows, {codes}")]
    return []
