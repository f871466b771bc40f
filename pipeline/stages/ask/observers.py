"""Observers of questions on their way to an answer, such as metrics and traces.

They are called as it happens, in the loop that asks: they must neither wait nor raise. By default there is
none, and the calls cost nothing that could be measured (docs/adr/0020).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pipeline.frames import Answer
from schemas.outcomes import ApiName, Outcome

if TYPE_CHECKING:
    from pipeline.stages.ask.values import ApiChannel, AskingTally


class Wait(NamedTuple):
    """The question waits for a slot, for a place in flight, and for whatever else holds it back."""


class Intend(NamedTuple):
    """It may leave; the intent is made durable."""

    attempt: int
    request_id: str


class Send(NamedTuple):
    """The intent is durable; the request leaves."""


class Receive(NamedTuple):
    """A reply is here, or it is known that none will come. What it said is made durable."""

    reply: str
    """Its HTTP status such as `200`, or why there is none, such as `deadline`."""


class Record(NamedTuple):
    """It is durable."""


class End(NamedTuple):
    """The question has its answer, which may be that there is none in this run."""

    answer: Answer
    outcome: Outcome


QuestionEvent = Wait | Intend | Send | Receive | Record | End
"""What happens to a question: `Wait`, then `Intend` to `Record` for each request, then `End`."""
Follow = Callable[[QuestionEvent], None]
"""Follows one question."""


class AskingObserver(Protocol):
    """Follows any number of askings, one after the other."""

    def asking(
        self, channels: "Mapping[ApiName, ApiChannel]", tally: "AskingTally"
    ) -> AbstractContextManager[None]:
        """Observe the limits of one asking, and the tally of its run, until the block ends."""

    def follow(self, api: ApiName) -> Follow:
        """Follow a question to this API, which is taken up now."""


class Observers(NamedTuple):
    """An `AskingObserver` that passes everything on to each of some, or to none."""

    each: Sequence[AskingObserver] = ()

    @contextmanager
    def asking(self, channels: "Mapping[ApiName, ApiChannel]", tally: "AskingTally") -> Iterator[None]:
        """Begin and end with all of them."""
        with ExitStack() as stack:
            for observer in self.each:
                stack.enter_context(observer.asking(channels, tally))
            yield

    def follow(self, api: ApiName) -> Follow:
        """Have all of them follow it."""
        follows = [observer.follow(api) for observer in self.each]

        def event(event: QuestionEvent) -> None:
            for follow in follows:
                follow(event)

        return event


UNOBSERVED = Observers()
