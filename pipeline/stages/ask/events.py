"""The events of a question until its answer, for observers such as metrics and traces.

Observers are called immediately, in the event loop that asks, so they must neither wait nor raise. By default
there are none, and the calls cost nothing measurable (docs/adr/0020).
"""

from collections.abc import Callable
from typing import NamedTuple

from pipeline.frames import Answer
from schemas.outcomes import Outcome


class Wait(NamedTuple):
    """The question waits for a slot, a place in flight, or another condition."""


class Intend(NamedTuple):
    """The request may be sent; its intent is being made durable."""

    attempt: int
    request_id: str


class Send(NamedTuple):
    """The intent is durable; the request is being sent."""


class Receive(NamedTuple):
    """A reply arrived or will never come; this is being made durable."""

    reply: str  # HTTP status such as `200`, or why there is none, such as `deadline`


class Record(NamedTuple):
    """The intent is durable."""


class End(NamedTuple):
    """The question has its answer, which may be that it has none in this run."""

    answer: Answer
    outcome: Outcome


QuestionEvent = Wait | Intend | Send | Receive | Record | End
"""An event of one question: first `Wait`, then `Intend` to `Record` for each request, last `End`."""
Follow = Callable[[QuestionEvent], None]
"""Called with each event of one question."""
