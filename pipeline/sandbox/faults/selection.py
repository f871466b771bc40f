"""Select the requests that a fault affects: `NAME`, or `NAME:account=00112200012345,first=2`.

All conditions must hold. Random choices depend only on seed, question and attempt, so a request is treated
the same in every run and in any order of requests.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import UsageError
from pipeline.sandbox.faults.catalogue import FAULTS, FORM, Fault, Reach
from pipeline.sandbox.journal import Call
from pipeline.wording import Sentence
from schemas.outcomes import ApiName


@dataclass(frozen=True, slots=True)
class Span:
    """A number of requests, or of seconds."""

    length: float
    is_seconds: bool

    def __str__(self) -> str:
        return f"{self.length:g}s" if self.is_seconds else f"{self.length:g}"


@dataclass(frozen=True, slots=True)
class Selection:
    """A fault with the conditions on affected requests; without conditions, it affects all of them."""

    fault: Fault
    account: str | None = None  # sort code and account number, or the IBAN
    api: ApiName | None = None
    question: int | None = None  # only the n-th distinct question, counting from 1
    first: int | None = None  # only the first attempts at each question, up to this number
    probability: float = 1.0
    seed: int = 0
    after: Span | None = None  # only after this number of eligible requests, or this long after the first one
    lasting: Span | None = None  # how long the fault lasts: a number of requests, or a time


def written(selection: Selection) -> str:
    """Format a selection as a value of `--fault`."""
    plain = Selection(selection.fault)
    given = {key: getattr(selection, field) for key, (field, _) in _CONDITIONS.items()}
    conditions = ",".join(
        f"{key}={value}" for key, value in given.items() if value != getattr(plain, _CONDITIONS[key][0])
    )
    return f"{selection.fault.name}:{conditions}" if conditions else selection.fault.name


def parse(text: str) -> Selection:
    """Parse the value of `--fault` (UsageError: an unknown fault or condition, or an invalid value)."""
    name, _, conditions = text.partition(":")
    fault = FAULTS.get(name)
    if fault is None:
        raise UsageError(Sentence("sandbox.no_such_fault", name=name))
    given: dict[str, str] = {}
    for condition in filter(None, conditions.split(",")):
        key, separator, value = condition.partition("=")
        if not separator or key in given:
            raise UsageError(
                Sentence("sandbox.condition_malformed", name=name, condition=repr(condition), form=FORM)
            )
        given[key] = value
    if given and fault.reach is Reach.CONNECTIONS:
        raise UsageError(Sentence("sandbox.affects_every_connection", name=name))
    selection = _selection(fault, given)
    if (selection.account or selection.api) and not fault.befalls_checks:
        raise UsageError(Sentence("sandbox.token_fault_without_conditions", name=name))
    if selection.api is not None and not fault.befalls(selection.api):
        raise UsageError(Sentence("sandbox.fault_not_of_api", name=name, api=selection.api))
    return selection


def _selection(fault: Fault, given: dict[str, str]) -> Selection:
    unknown = [key for key in given if key not in _CONDITIONS]
    known = {key: value for key, value in given.items() if key in _CONDITIONS}
    try:
        fields = {_CONDITIONS[key][0]: _CONDITIONS[key][1](value) for key, value in known.items()}
    except ValueError:
        raise UsageError(Sentence("sandbox.condition_value_invalid", fault=fault.name, form=FORM)) from None
    if unknown:
        raise UsageError(Sentence("sandbox.condition_unknown", fault=fault.name, given=unknown, form=FORM))
    selection = Selection(fault, **fields)
    if not 0 <= selection.probability <= 1:
        raise UsageError(Sentence("sandbox.probability_out_of_range", fault=fault.name))
    units = {span.is_seconds for span in (selection.after, selection.lasting) if span is not None}
    if len(units) > 1:
        raise UsageError(Sentence("sandbox.after_and_for_units_differ", fault=fault.name))
    return selection


def _span(value: str) -> Span:
    is_seconds = value.endswith("s")
    return Span(float(value[:-1]) if is_seconds else int(value), is_seconds)


_CONDITIONS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "account": ("account", str),
    "api": ("api", ApiName),
    "question": ("question", int),
    "first": ("first", int),
    "probability": ("probability", float),
    "seed": ("seed", int),
    "after": ("after", _span),
    "for": ("lasting", _span),
}
"""Condition -> its field in `Selection`, and how its value is read."""


@dataclass(slots=True)
class Aim:
    """An active selection, which counts the requests that it has seen."""

    selection: Selection
    _seen_count: int = 0
    _first_seen_s: float | None = None
    _attempts: Counter[str] = field(default_factory=Counter)
    _numbers: dict[str, int] = field(default_factory=dict)  # question -> its number in order of arrival

    def meets(self, call: Call) -> bool:
        """Count a request, and return True if the fault affects its answer."""
        chosen = self.selection
        if not chosen.fault.befalls(call.asked):
            return False
        if chosen.account not in {None, call.account} or chosen.api not in {None, call.asked}:
            return False
        question = call.question or ""
        place = self._numbers.setdefault(question, len(self._numbers) + 1)
        self._attempts[question] += 1
        self._seen_count += 1
        attempt = self._attempts[question]
        return (
            self._is_within(call.monotonic)
            and chosen.question in {None, place}
            and (chosen.first is None or attempt <= chosen.first)
            and _chance(f"{chosen.seed}/{question}/{attempt}") < chosen.probability
        )

    def _is_within(self, now_s: float) -> bool:
        after, lasting = self.selection.after, self.selection.lasting
        span = after or lasting
        if span is None:
            return True
        if self._first_seen_s is None:
            self._first_seen_s = now_s
        position = now_s - self._first_seen_s if span.is_seconds else self._seen_count - 1
        start = 0.0 if after is None else after.length
        return start <= position and (lasting is None or position < start + lasting.length)


def _chance(key: str) -> float:
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=6).digest(), "big") / 2**48
