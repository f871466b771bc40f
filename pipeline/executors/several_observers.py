"""Several observers of the same questions."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from pipeline.frames import Answer
from pipeline.stages.ask import ApiChannel, AskingObserver, AskingTally, QuestionObserver
from schemas.outcomes import ApiName, Outcome


class SeveralObservers(NamedTuple):
    """An `AskingObserver` that passes everything on to each."""

    observers: Sequence[AskingObserver]

    @contextmanager
    def asking(self, channels: Mapping[ApiName, ApiChannel], tally: AskingTally) -> Iterator[None]:
        """Begin and end with all of them; so do the others."""
        with ExitStack() as stack:
            for observer in self.observers:
                stack.enter_context(observer.asking(channels, tally))
            yield

    def follow(self, api: ApiName) -> "SeveralQuestionObservers":  # noqa: D102
        return SeveralQuestionObservers([observer.follow(api) for observer in self.observers])


class SeveralQuestionObservers(NamedTuple):
    """A `QuestionObserver` that passes everything on to each."""

    observers: Sequence[QuestionObserver]

    def wait(self) -> None:  # noqa: D102
        for observer in self.observers:
            observer.wait()

    def intend(self, attempt: int, request_id: str) -> None:  # noqa: D102
        for observer in self.observers:
            observer.intend(attempt, request_id)

    def send(self) -> None:  # noqa: D102
        for observer in self.observers:
            observer.send()

    def receive(self, reply: str) -> None:  # noqa: D102
        for observer in self.observers:
            observer.receive(reply)

    def record(self) -> None:  # noqa: D102
        for observer in self.observers:
            observer.record()

    def end(self, answer: Answer, outcome: Outcome) -> None:  # noqa: D102
        for observer in self.observers:
            observer.end(answer, outcome)
