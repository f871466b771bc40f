"""What must hold in every history."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain
from math import inf
from typing import TYPE_CHECKING

from simulation.results import Breach, departures, runs_of, untrue
from simulation.runs import ASKED_BY_RUNS
from simulation.weather import Span

from pipeline.transport.breaker import RESPONDER
from pipeline.transport.rate_limiter import window_of
from schemas.outcomes import ApiName

if TYPE_CHECKING:
    from simulation.history import History
    from simulation.provider import AgreedLimits, Departure, Provider

REQUESTS_PER_RUN_MAX = 40
"""Requests for one question in one run, at most."""


SLOWING = frozenset(
    {
        "429",
        "busy server",
        "half-dead connections",
        "outage silent",
        "SIGSTOP",
        "failover",
        "replies of the store lost",
        "silence",
        "silent banks",
        "slow commits",
        "slow replies",
        "store stalls",
    }
)
"""Faults that slow a process for longer than it meets them."""
OF_A_SHARED_STORE = frozenset({"failover", "replies of the store lost"})
"""Faults that a process does not meet which has its store to itself."""
ROUND_TRIP_MORE_S = 0.02
"""What a request takes beside its latency, at most, as its way varies."""
STRETCH = {ApiName.COP: 40, ApiName.VOP_GATEWAY: 20}
"""Requests in a row, whose time is judged."""
LOST_MAX_S = 4.0
"""What a process may lose meanwhile, as others join, or hold the rest of the questions."""
LANDING_S = 0.001
"""What it takes a process to read a reply."""
ALL_KNOW_S = 1.5
"""What it takes until every process knows of a pause: each renews its share within a second or so."""
FORGETTING_OR_SLOW = frozenset({"failover", "slow commits", "store stalls"})
HAMPERING = frozenset({"kill -9", "reply of the store lost", "SIGSTOP", "SIGTERM"})
"""Faults after which a process may tell of a pause late, or never, or hear of it late."""
LATE_TO_A_STOP = frozenset(
    {"failover", "replies of the store lost", "SIGSTOP", "slow commits", "store stalls"}
)
"""Faults that keep a stop from a process, or its writes from the store."""
STOP_HEARD_S = 0.1
"""How long after a stop a write that began before it may still arrive."""
ENDS_WITHIN_S = 20.0
"""After the gates of all its APIs have closed, or a stop: what is in flight lands, and is recorded."""


def broken_rules(history: History) -> list[Breach]:
    """Every rule that a history broke."""
    of_each = (_rate, _places, _pauses, _bounds, _questions, _unasked)
    providers = history.providers.values()
    return [
        *chain.from_iterable(rule(provider) for provider in providers for rule in of_each),
        *_intents(history),
        *_after_a_stop(history),
        *_recorded(history),
        *_cap(history),
        *chain.from_iterable(_lost_time(history, provider) for provider in providers),
        *_limited(history),
        *_held_up(history),
        *_lingering(history),
        *_given_back(history),
        *untrue(history),
        *_ends(history),
    ]


def _rate(provider: Provider) -> list[Breach]:
    """In any second, at most as many as agreed leave."""
    agreed = provider.limits
    for limits, next_from_s in zip(agreed, [*(each.from_s for each in agreed[1:]), inf], strict=True):
        times = [left.time_s for left in provider.departures]
        times = [time_s for time_s in times if limits.from_s <= time_s < next_from_s]
        for first, last in zip(times, times[limits.rate :], strict=False):
            if last - first < 1.0 and not provider.is_divided_twice(window_of(limits.rate), last):
                return [Breach("rate", f"{limits.rate + 1} within {last - first:.6f} s, at {last:.3f}")]
    return []


def _places(provider: Provider) -> list[Breach]:
    in_flight = [*(each.in_flight_before for each in provider.limits[1:]), provider.in_flight_most]
    for most, limits in zip(in_flight, provider.limits, strict=True):
        if most > limits.places:
            return [Breach("places", f"{most} in flight, {limits.places} allowed")]
    return []


def _intents(history: History) -> list[Breach]:
    """Each request leaves under a durable intent of its own, and none once its question is answered."""
    book, sent = history.book, set[str]()
    for left in departures(history):
        intent, said = book.intended.get(left.request_id), f"row {left.row} at {left.time_s:.3f}"
        if intent is None or left.time_s < intent.time_s:
            return [Breach("intent", f"{said}: asked about without one")]
        if left.row != intent.row:
            return [Breach("intent", f"{said}: asked about under that of row {intent.row}")]
        if left.request_id in sent:
            return [Breach("repeated", f"{said}: sent twice under one intent")]
        if left.time_s > book.settled_at.get(intent.question, left.time_s):
            return [Breach("repeated", f"{said}: asked about again")]
        sent.add(left.request_id)
    return []


def _after_a_stop(history: History) -> list[Breach]:
    """A process that is asked to stop begins no new request.

    It is not judged where it, or the store, may hear late.
    """
    if not LATE_TO_A_STOP.isdisjoint(history.weather.names):
        return []
    for left in departures(history):
        stopped_s = history.asked_to_stop_at.get(left.process, inf)
        intent = history.book.intended.get(left.request_id)
        if intent is not None and intent.time_s > stopped_s + STOP_HEARD_S:
            said = f"{left.process} begins to ask about row {left.row}"
            return [Breach("after a stop", f"{said} {intent.time_s - stopped_s:.3f} s after it")]
    return []


def _recorded(history: History) -> list[Breach]:
    """A run that ends by itself leaves on record what came of each of its requests: answer or failure.

    It is judged of processes that ask alone: others may take over a question whose request is on its way.
    """
    if history.weather.process_count > 1:
        return []
    unknown = {id_ for _, _, id_, answer, code in history.book.requests() if answer is None and code is None}
    ended = {end.process for end in history.ends if end.error is None}
    for left in departures(history) if unknown else ():
        if left.request_id in unknown and left.process in ended:
            return [Breach("not recorded", f"what came of {left.process}'s request about row {left.row}")]
    return []


def _cap(history: History) -> list[Breach]:
    """No more than the cap in a day: of the server, unless our clock jumps; and of our clock, always.

    Ours never goes back: setting it back opens no day. Nothing leaves without a unit.
    """
    cap = history.weather.cap
    if cap is None:
        return []
    by_day = history.provider.arrivals_by_day
    arrived, taken = (max(days.values(), default=0) for days in (by_day, history.units.by_day))
    if arrived > cap and not history.weather.clock_jumps:
        return [Breach("cap", f"{arrived} requests in a day, {cap} allowed")]
    if taken > cap:
        return [Breach("cap", f"{taken} units taken in a day of our clock, {cap} allowed")]
    if (sent := len(history.provider.departures)) > (units := history.units.by_day.total()):
        return [Breach("cap", f"{sent} requests sent, {units} units taken")]
    return []


def _pauses(provider: Provider) -> list[Breach]:
    """A process that was asked for a pause sends nothing there before it is over; nor do others, once told.

    Others are not judged where something of the store, or of one of the two, may keep it from them.
    """
    is_store_ill = not FORGETTING_OR_SLOW.isdisjoint(provider.weather.names)
    hampered = {process for process, met in provider.met_by.items() if met & HAMPERING}
    pauses = [(process, *pause) for process, some in provider.pauses.items() for pause in some]
    for left in provider.departures if pauses else ():
        for process, from_s, until_s in pauses:
            if left.process != process and (is_store_ill or not hampered.isdisjoint((process, left.process))):
                continue
            known_s = from_s + (LANDING_S if left.process == process else ALL_KNOW_S)
            if known_s < left.time_s < until_s:
                said = f"{left.process} asked about row {left.row} {left.time_s - from_s:.3f} s into one"
                return [Breach("pause", f"{said} of {process}")]
    return []


def _bounds(provider: Provider) -> list[Breach]:
    """No question is sent more often in one run than its attempts, renewals and outages explain."""
    by_run = Counter((left.process, left.row) for left in provider.departures)
    (process, row), most = by_run.most_common(1)[0] if by_run else (("", 0), 0)
    if most > REQUESTS_PER_RUN_MAX:
        return [Breach("requests", f"{process} sent row {row} {most} times")]
    return []


def _questions(provider: Provider) -> list[Breach]:
    """What is asked is what the file says."""
    if provider.asked_wrongly:
        return [Breach("another question", f"something else was asked about row {provider.asked_wrongly[0]}")]
    return []


def _unasked(provider: Provider) -> list[Breach]:
    """No request leaves on a connection that brought bytes while none was open: they pass for its reply."""
    if provider.taken_for_replies:
        said = f"{provider.taken_for_replies[0][:8]} left on a connection that had said something"
        return [Breach("unasked", said)]
    return []


def _limited(history: History) -> list[Breach]:
    """A process asks about no more rows than its limit allows, alone or beside others."""
    rows = Counter(process for processes in runs_of(history).values() for process in processes)
    for end in history.ends:
        if end.limit is not None and rows[end.process] > end.limit:
            return [Breach("limit", f"{end.process} asked about {rows[end.process]} rows, not {end.limit}")]
    return []


def _lost_time(history: History, provider: Provider) -> list[Breach]:
    """Once it has met its last fault of an API and is answered again, a process loses no time there.

    So it is, whatever befalls the other API: any `STRETCH` consecutive requests take at most twice what the
    rate and the places ask for. It is judged of processes that start once all is well; of others, where
    no fault slows them for longer than they meet it. Questions for a bank that failed so often that they wait
    for its next probe need not be sent; those that are take their part of the rate and of the places.
    """
    weather, name = provider.weather, provider.dialect.api.name
    stretch = STRETCH[name]
    faults = {*weather.names, f"outage {weather.outage_kind}"}
    if weather.process_count == 1:
        faults -= OF_A_SHARED_STORE
    is_slowed = SLOWING & faults or (weather.process_count > 1 and "kill -9" in faults)
    round_trip_s = weather.latency_s + 2 * weather.commit_s + ROUND_TRIP_MORE_S
    sent_by: defaultdict[str, list[Departure]] = defaultdict(list)
    for left in provider.departures:
        if left.time_s > provider.met_at.get(left.process, -inf):
            sent_by[left.process].append(left)
    for process, sent in sent_by.items():
        if is_slowed and history.started_at[process] < weather.quiet_from_s:
            continue
        answered = (n for n, left in enumerate(sent) if left.request_id in provider.answers_given)
        again = next(answered, len(sent))
        expected = [n for n, left in enumerate(sent) if n >= again and not _may_wait(provider, left)]
        for first, last in zip(expected, expected[stretch:], strict=False):
            begun_s, ended_s = sent[first].time_s, sent[last].time_s
            limits = _limits_at(provider.limits, begun_s)
            rate, places = limits.rate // weather.process_count, limits.places // weather.process_count
            if not rate or not places:
                break  # one process at a time has a part
            least_s = (last - first) * max(1 / rate, round_trip_s / places)
            if ended_s - begun_s > LOST_MAX_S + 2 * least_s:
                said = (
                    f"{last - first} requests to {name} took {ended_s - begun_s:.1f} s, not {least_s:.1f} s"
                )
                return [Breach("lost time", f"{process}, at {begun_s:.3f}: {said}")]
    return []


def _may_wait(provider: Provider, left: Departure) -> bool:
    """Whether the bank failed so often in this run that its questions may have to wait for a probe."""
    return provider.bank_failures[left.process, provider.bank_of(left.row)] >= RESPONDER.failures_max


def _held_up(history: History) -> list[Breach]:
    """What one API meets leaves no row of the other; nor does a run that meets nothing leave any.

    It is judged of processes that ask alone: beside others, those may hold what is left.
    """
    weather = history.weather
    if weather.process_count > 1 or (weather.cap is not None and weather.clock_jumps):
        return []  # where a cap is counted by a wrong clock, that clock ends the whole run
    api_of = history.scene.api_of
    hopeless = weather.hopeless_rows | {
        row for row, runs in runs_of(history).items() if len(runs) >= ASKED_BY_RUNS
    }
    for end in history.ends:
        for name, provider in history.providers.items():
            if end.limit is not None or end.process in provider.met_at or provider.weather.cap is not None:
                continue
            if left := [row for row in end.open_rows if api_of[row] is name and row not in hopeless]:
                said = f"{end.process} left {len(left)} rows of {name}, which met no fault"
                return [Breach("held up", f"{said}; it ends by {end.error!r}")]
    return []


def _lingering(history: History) -> list[Breach]:
    """A run that may send nothing more, or is asked to stop, ends soon.

    No question waits for a turn that is minutes away, and nobody for a share of an account.
    """
    weather = history.weather
    still = [Span(at_s, at_s + for_s) for at_s, for_s in weather.stops] + weather.store_stalls
    for end in history.ends:
        since = {"it is asked to stop": history.asked_to_stop_at.get(end.process, inf)}
        if end.closed_at.keys() == history.providers.keys():
            since["its last gate closed"] = max(end.closed_at.values())
        for what, moment in since.items():
            stood_still_s = sum(
                span.to_s - span.from_s for span in still if span.from_s < end.ended_at and span.to_s > moment
            )
            if (took_s := end.ended_at - moment) > ENDS_WITHIN_S + stood_still_s:
                return [Breach("lingering", f"{end.process} ends {took_s:.0f} s after {what}")]
    return []


def _given_back(history: History) -> list[Breach]:
    """A process that ends holds no questions: others would wait for its lease to end.

    It is not judged where the store forgets: it may have forgotten just that.
    """
    if not history.weather.failovers:
        for process in history.scene.kept_at_once:
            return [Breach("given back", f"{process} ends at once, and holds questions")]
        for end in history.ends:
            if end.undone_count:
                said = f"{end.process} ends, and holds {end.undone_count} chunks of questions"
                return [Breach("given back", said)]
    return []


def _limits_at(agreed: list[AgreedLimits], time_s: float) -> AgreedLimits:
    return [limits for limits in agreed if limits.from_s <= time_s][-1]


def _ends(history: History) -> list[Breach]:
    """Once the world is healthy, every row that it can answer is answered."""
    if not history.ends:
        return [Breach("liveness", "no run ended")]
    if open_rows := history.open_rows:
        runs, codes = len(history.ends), Counter(open_rows.values())
        return [Breach("liveness", f"open after {runs} runs: {len(open_rows)} rows, {codes}")]
    return []
