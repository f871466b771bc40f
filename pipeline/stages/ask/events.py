"""What happens to a question on its way to an answer, for observers such as metrics and traces.

They are called as it happens, in the loop that asks: they must neither wait nor raise. By default there is
none, and the calls cost nothing that could be measured (docs/adr/0020).
"""

from collections.abc import Callable
from typing import NamedTuple

from pipeline.frames import Answer
from schemas.outcomes import Outcome


class Wait(NamedTuple):
    """The question waits for a slot, for a place in flight, and for whatever else holds it back."""


class Intend(NamedTuple):
    """The request may leave; its intent is made durable."""

    attempt: int
    request_id: str


class Send(NamedTuple):
    """The intent is durable; the request leaves."""


class Receive(NamedTuple):
    """A reply is here, or it is known that none will come. What it said is made durable."""

    reply: str  # its HTTP status such as `200`, or why there is none, such as `deadline`


class Record(NamedTuple):
    """The intent is durable."""


class End(NamedTuple):
    """The question has its answer, which may be that there is none in this run."""

    answer: Answer
    outcome: Outcome


QuestionEvent = Wait | Intend | Send | Receive | Record | End
"""What happens to a question: `Wait`, then `Intend` to `Record` for each request, then `End`."""
Follow = Callable[[QuestionEvent], None]
"""Follows one question."""
