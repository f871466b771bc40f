"""Observers of questions on their way to an answer, such as metrics and traces.

They are called as it happens, in the loop that asks: they must neither wait nor raise. By default there is
none, and the calls cost nothing that could be measured (docs/adr/0020).
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from pipeline.frames import Answer
from schemas.outcomes import ApiName, Outcome

if TYPE_CHECKING:
    from pipeline.stages.ask.values import ApiChannel, AskingTally


class QuestionObserver(Protocol):
    """Follows one question: wait, then intend, send, receive and record for each request, then end."""

    def wait(self) -> None:
        """It waits for a slot, for a place in flight, and for whatever else holds it back."""

    def intend(self, attempt: int, request_id: str) -> None:
        """It may leave; the intent is made durable."""

    def send(self) -> None:
        """The intent is durable; the request leaves."""

    def receive(self, reply: str) -> None:
        """A reply is here, by its HTTP status such as `200`, or none by its kind such as `deadline`.

        What it said is made durable.
        """

    def record(self) -> None:
        """It is durable."""

    def end(self, answer: Answer, outcome: Outcome) -> None:
        """It has its answer, which may be that there is none in this run."""


class AskingObserver(Protocol):
    """Follows any number of askings, one after the other."""

    def asking(
        self, channels: "Mapping[ApiName, ApiChannel]", tally: "AskingTally"
    ) -> AbstractContextManager[None]:
        """Observe the limits of one asking, and the tally of its run, until the block ends."""

    def follow(self, api: ApiName) -> QuestionObserver:
        """Follow a question to this API, which is taken up now."""


class Unobserved:
    """The observer where there is none."""

    def asking(
        self, channels: "Mapping[ApiName, ApiChannel]", tally: "AskingTally"
    ) -> AbstractContextManager[None]:
        """Do nothing; so do the others."""
        del channels, tally
        return nullcontext()

    def follow(self, api: ApiName) -> "Unobserved":  # noqa: D102
        del api
        return self

    def wait(self) -> None:  # noqa: D102
        pass

    def intend(self, attempt: int, request_id: str) -> None:  # noqa: D102
        pass

    def send(self) -> None:  # noqa: D102
        pass

    def receive(self, reply: str) -> None:  # noqa: D102
        pass

    def record(self) -> None:  # noqa: D102
        pass

    def end(self, answer: Answer, outcome: Outcome) -> None:  # noqa: D102
        pass


UNOBSERVED = Unobserved()
