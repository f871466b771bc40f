"""What must be true of what runs say: their answers, the outcome of each payment, and their exit status."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from simulation.dialects import matched_name
from simulation.payments import outcomes_of, summary_of
from simulation.runs import ASKED_BY_RUNS

from pipeline.errors import status_of_summary
from pipeline.frames import AnswerState, Outcomes
from schemas.outcomes import Outcome

if TYPE_CHECKING:
    from simulation.history import History
    from simulation.provider import Departure
    from simulation.runs import RunEnd

_ANSWERED, _REFUSED = AnswerState.ANSWERED.value, AnswerState.REFUSED.value
_FINAL = frozenset({_ANSWERED, _REFUSED})
OUTCOME_OF_CODE = {
    "MTCH": Outcome.MATCH,
    **dict.fromkeys(("MBAM", "BAMM", "PAMM", "CMTC"), Outcome.CLOSE_MATCH),
    **dict.fromkeys(("ANNM", "BANM", "PANM", "NMTC"), Outcome.NO_MATCH),
    **dict.fromkeys(("AC01", "OPTO", "SCNS", "NOAP"), Outcome.NOT_POSSIBLE),
}
"""What a payer is told by what a bank says: by the API reference, not by the product's own tables."""
OUTCOME_OF_STATE = {
    _REFUSED: Outcome.REJECTED,
    AnswerState.UNANSWERED.value: Outcome.UNANSWERED,
    AnswerState.DEFERRED.value: Outcome.DEFERRED,
}
"""And where no bank said anything."""
NOT_SENT = frozenset({"refused connection", "out of reach", "SIGSTOP"})
"""Faults by which a request that is on record may never leave."""
LEFT, GIVEN_UP = 75, 76
"""Exit statuses of runs that leave rows: for the same command, or for a person."""
CAUSES_OF_EXIT_CODE = {
    75: frozenset({"token endpoint out", "failover", "out of reach"}),
    76: frozenset(
        {"broken contract", "crossed answer", "row broken", "refusal by a page", "refusal of another request"}
    ),
    77: frozenset({"401", "outage 401", "outage 403", "row turned away: 403"}),
    78: frozenset({"row turned away: 302", "row turned away: 404", "time stamps wrong"}),
    143: frozenset({"SIGTERM"}),
}
"""Of an error that ends a run: what it may have met, one of which there must be."""


class Breach(NamedTuple):
    """A rule that was broken."""

    rule: str
    what: str


def untrue(history: History) -> list[Breach]:
    """What runs said and was not so."""
    return [*_answers(history), *_outcomes(history), *_requests(history)]


def departures(history: History) -> list[Departure]:
    """What left, by API."""
    return list(chain.from_iterable(provider.departures for provider in history.providers.values()))


def runs_of(history: History) -> dict[int, set[str]]:
    """Question -> the runs that asked it."""
    runs = defaultdict(set)
    for left in departures(history):
        runs[left.row].add(left.process)
    return runs


def _answers(history: History) -> list[Breach]:
    """One answer per question in each run's result; and what it says is what the bank said."""
    found, api_of = [], history.scene.api_of
    for end in history.ends:
        if sorted([check for check, *_ in end.said]) != list(range(1, history.question_count + 1)):
            return [Breach("outcomes", "not one answer per question")]
        may_be_purged = end.ended_at >= history.purged_at
        for check, state, code, request_id, name in end.said:
            if state in _FINAL and check not in end.durable:
                found.append(Breach("durable", f"row {check} is decided in the result and not in the ledger"))
            said_name = None
            if state == _ANSWERED:
                truth = end.truths[check]
                given = history.providers[api_of[check]].answers_given.get(request_id)
                if given is None or given[0] != check or code != (truth or "MTCH"):
                    found.append(Breach("guessed", f"row {check}: {code}, the bank says {truth or 'MTCH'}"))
                said_name = matched_name(truth, check)
            elif state == _REFUSED and check not in history.weather.refused_rows:
                found.append(Breach("guessed", f"row {check} was never refused"))
            if name != said_name and not (name is None and may_be_purged):
                found.append(Breach("guessed", f"row {check}: the name {name}, the bank says {said_name}"))
    return found[:3]


def _requests(history: History) -> list[Breach]:
    """A run says how many requests it has sent, and it is so.

    Those on record that never left may count as sent: they found no connection, or their process stood still
    until it was too late. It is judged of runs that ended by themselves: a stop may come between an intent
    and its request.
    """
    left = Counter((each.process, name) for name, of in history.providers.items() for each in of.departures)
    for end in history.ends:
        for name, provider in history.providers.items() if end.error is None else ():
            said, sent = end.asked.tally.requests[name], left[end.process, name]
            may_stay = not NOT_SENT.isdisjoint(provider.met_by.get(end.process, ()))
            if said < sent or (said > sent and not may_stay):
                return [Breach("requests said", f"{end.process} says {said} to {name}; it sent {sent}")]
    return []


def _outcomes(history: History) -> list[Breach]:
    """One outcome per payment; and what it says is what its bank said about its question."""
    if not history.ends:
        return []
    try:
        outcomes = outcomes_of(history.scene.file, [end.answers for end in history.ends])
    except AssertionError as error:
        return [Breach("outcomes", f"they cannot be decided: {error!r}")]
    judged = set[_Left]()
    for end, decided in zip(history.ends, outcomes, strict=True):
        found, left = _outcomes_of_run(history, end, decided), _left_by(end)
        if found is None and left not in judged:
            found = _status(history, end, decided)
            judged.add(left)
        if found is not None:
            return [found]
    return []


class _Left(NamedTuple):
    """What the status of a run goes by: where it is the same, the first run is judged for all of them."""

    states: frozenset[str]
    exit_code: int | None
    """Of the error that ended it early."""
    open_count: int
    given_up_count: int
    of_one: str
    """The run, where it matters which rows are left, or until when."""


def _left_by(end: RunEnd) -> _Left:
    open_count, given_up_count = len(end.open_rows), end.asked.given_up_count
    is_past = end.cap_wait_s is not None and end.cap_wait_s <= 0
    return _Left(
        frozenset(state for _, state, *_ in end.said),
        None if end.error is None else end.error.exit_code,
        open_count,
        given_up_count,
        end.process if 0 < open_count <= max(given_up_count, len(end.exhausted)) or is_past else "",
    )


def _outcomes_of_run(history: History, end: RunEnd, decided: Outcomes) -> Breach | None:
    question_of = history.scene.file.question_of
    columns = ("row", "check_outcome", "check_code", "check_matched_name", "check_id")
    rows, *said = (decided[name].to_list() for name in columns)
    if rows != list(question_of):
        return Breach("outcomes", "not one outcome per payment")
    answer_of = {check: answer for check, *answer in end.said}
    for row, outcome, code, name, request_id in zip(rows, *said, strict=True):
        state, code_of_answer, id_of_answer, name_of_answer = answer_of[question_of[row]]
        told = OUTCOME_OF_CODE.get(code_of_answer) if state == _ANSWERED else OUTCOME_OF_STATE[state]
        if (outcome, code, name, request_id) != (told, code_of_answer, name_of_answer, id_of_answer):
            return Breach(
                "guessed", f"payment {row}: {outcome} {code}, the answer is {told} {code_of_answer}"
            )
    return None


def _status(history: History, end: RunEnd, decided: Outcomes) -> Breach | None:
    """What a run says of itself is true: complete, and 0, where all is decided; 75 where rows are left.

    76, with nothing else wrong, where three runs have asked about every row that is left.
    """
    summary = summary_of(history.scene.file, decided, end.asked, end.answers)
    status = status_of_summary(summary, ()) if end.error is None else end.error.exit_code
    said = f"{end.process} ends with {status} and {len(end.open_rows)} rows left"
    if summary.complete == bool(end.open_rows):
        return Breach("status", f"{said}; it says complete: {summary.complete}")
    if end.cap_wait_s is not None and end.cap_wait_s <= 0 and not history.weather.clock_jumps:
        return Breach("status", f"{said}; there was more of the daily cap {-end.cap_wait_s:.0f} s ago")
    if end.error is not None:
        return _status_of_error(history, end, said)
    if not end.open_rows:
        expected = 0
    elif end.exhausted >= end.open_rows.keys():
        expected = GIVEN_UP
    elif status == GIVEN_UP and all(len(runs_of(history)[row]) >= ASKED_BY_RUNS for row in end.open_rows):
        return None
    else:
        expected = LEFT
    return None if status == expected else Breach("status", f"{said}; {expected} is true")


def _status_of_error(history: History, end: RunEnd, said: str) -> Breach | None:
    """An error stands for something that the run met."""
    assert end.error is not None
    met = {fault for each in history.providers.values() for fault in each.met_by.get(end.process, ())}
    if "row turned away" in met:
        met.add(f"row turned away: {history.weather.disliked_status}")
    causes = CAUSES_OF_EXIT_CODE.get(end.error.exit_code, frozenset())
    return (
        None if met & causes else Breach("status", f"{said}; it met: {', '.join(sorted(met)) or 'nothing'}")
    )
