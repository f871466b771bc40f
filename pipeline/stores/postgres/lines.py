"""Seal, encrypt and verify the lines of a ledger in PostgreSQL."""

from pipeline.errors import DiskError
from pipeline.frames import Answer, AnswerState
from pipeline.stores.postgres.keys import StoreKeys
from pipeline.stores.postgres.recording import AnswerLine, FailureLine, IntentLine
from pipeline.stores.shared import StoredRun
from pipeline.stores.values import ChunkLease, FinalAnswer, ReusedAnswer
from pipeline.wording import Sentence


class RunLines:
    """Makes and reads the lines of one run."""

    def __init__(self, keys: StoreKeys, run: StoredRun, place: str) -> None:
        """Take the keys of a run's lines; `place` names the ledger in messages."""
        self._seal = keys.seal
        self._names = keys.names_of(run.id)
        self._run = run.number
        self._place = place

    def intent(  # noqa: PLR0913, PLR0917
        self, lease: ChunkLease, question: bytes, attempt: int, request_id: str, time: str, api: str
    ) -> IntentLine:
        """Make the line of a request about to be sent."""
        seal = self._seal(question, f"intent\n{self._run}\n{attempt}\n{request_id}\n{time}")
        return IntentLine(lease, question, attempt, request_id, time, seal, api)

    def failure(  # noqa: PLR0913, PLR0917
        self, lease: ChunkLease, question: bytes, attempt: int, round_: int, code: str, time: str, detail: str
    ) -> FailureLine:
        """Make the line of a request whose result is unusable."""
        seal = self._seal(question, self._failure(attempt, round_, code, time))
        hidden = self._hidden(detail, "problem", question, attempt)
        return FailureLine(lease, question, attempt, round_, str(code), time, hidden, seal)

    def answer(self, lease: ChunkLease, question: bytes, answer: Answer, detail: str) -> AnswerLine:
        """Make the line of a final answer."""
        _, state, code, matched_name, _, time, attempt = answer
        name = self._hidden(matched_name, "answer", question, attempt)
        hidden = self._hidden(detail, "problem", question, attempt)
        seal = self._seal(question, self._answer(attempt, state, code, time or "", name is not None))
        return AnswerLine(lease, question, attempt, str(state), str(code), time or "", name, hidden, seal)

    def reused(self, answer: ReusedAnswer) -> bytes:
        """Seal an answer of an earlier run."""
        question, code, *fields = answer
        return self._seal(question, "\n".join(("reuse", str(self._run), *fields, code)))

    def require_intent(self, question: bytes, attempt: int, request_id: str, time: str, seal: bytes) -> None:
        """Verify the seal of a request's line (DiskError: the line is corrupt)."""
        self._require(question, f"intent\n{self._run}\n{attempt}\n{request_id}\n{time}", seal)

    def require_failure(  # noqa: PLR0913, PLR0917
        self, question: bytes, attempt: int, round_: int, code: str, time: str, seal: bytes
    ) -> None:
        """Verify the seal of a failure, like `require_intent`."""
        self._require(question, self._failure(attempt, round_, code, time), seal)

    def require_reused(self, answer: ReusedAnswer, seal: bytes) -> None:
        """Verify the seal of an earlier run's answer, like `require_intent`."""
        if self.reused(answer) != seal:
            raise self._damaged()

    def final_answer(  # noqa: PLR0913, PLR0917
        self,
        question: bytes,
        attempt: int,
        request_id: str,
        state: str,
        code: str,
        time: str,
        is_named: bool,
        name: bytes | None,
        seal: bytes,
    ) -> FinalAnswer:
        """Read a line as a final answer (DiskError: the line is corrupt)."""
        self._require(question, self._answer(attempt, state, code, time, is_named), seal)
        shown = self.shown(name, "answer", question, attempt)
        return FinalAnswer(question, AnswerState(state), code, shown, request_id, time, attempt)

    def shown(self, hidden: bytes | None, what: str, question: bytes, attempt: int) -> str | None:
        """Decrypt a name or detail (DiskError: it does not belong to this line)."""
        if hidden is None:
            return None
        text = self._names.decrypt(hidden, _line(what, question, attempt))
        if text is None:
            raise self._damaged()
        return text.decode()

    def _hidden(self, text: str | None, what: str, question: bytes, attempt: int) -> bytes | None:
        return self._names.encrypt(text.encode(), _line(what, question, attempt)) if text else None

    # The server's code comes last, so that no code can make two different lines look equal.

    def _failure(self, attempt: int, round_: int, code: str, time: str) -> str:
        return f"failure\n{self._run}\n{attempt}\n{round_}\n{time}\n{code}"

    def _answer(self, attempt: int, state: str, code: str, time: str, is_named: bool) -> str:
        return f"answer\n{self._run}\n{attempt}\n{state}\n{time}\n{is_named:d}\n{code}"

    def _require(self, question: bytes, content: str, seal: bytes) -> None:
        if self._seal(question, content) != seal:
            raise self._damaged()

    def _damaged(self) -> DiskError:
        return damaged(self._place, self._run)


def _line(what: str, question: bytes, attempt: int) -> bytes:
    return f"{what} {attempt} ".encode() + question


def damaged(place: str, run: int) -> DiskError:
    """Return the error for a ledger that cannot be trusted."""
    return DiskError(Sentence("stores.ledger_damaged_line", place=place, run=run))
