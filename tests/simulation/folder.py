"""The folder of a simulated run as the program keeps it: the file that its ledger is of."""

from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from pipeline.errors import UsageError
from pipeline.frames import Answer, AnswerState
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import RunIdentity

_NOW = "2030-01-01T09:00:00.000Z"
_QUESTION = sha256(b"question").digest()


class RunFolder:
    """One folder, into which runs of one payment file go, one after the other."""

    def __init__(self, path: Path) -> None:
        self._ledger = path / "ledger.db"

    def begin(self, file_version: int, *, is_fresh: bool = False) -> bool:
        """Begin or go on with the run of a file; False where the folder is refused to it."""
        try:
            SqliteLedger.open(self._ledger, _identity(file_version), now=_NOW, fresh=is_fresh).close()
        except UsageError:
            return False
        return True

    def has_run(self, file_version: int, *, has_answers: bool) -> None:
        """The run of this file has begun here, and nothing else has; of its answers, one stands for all."""
        self._ledger.write_bytes(_ledger_of(file_version, has_answers=has_answers))


@cache
def _ledger_of(file_version: int, *, has_answers: bool) -> bytes:
    """What is in the ledger of a run: the same in all histories."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        with SqliteLedger.open(path, _identity(file_version), now=_NOW) as ledger:
            if has_answers:
                anyio.run(_answer, ledger)
        return path.read_bytes()


def _identity(file_version: int) -> RunIdentity:
    return RunIdentity(sha256(f"file {file_version}".encode()).hexdigest(), "profile", "test", "1")


async def _answer(ledger: SqliteLedger) -> None:
    said = Answer(1, AnswerState.ANSWERED, "MTCH", None, "request", _NOW, 1)
    async with ledger.writing():
        await ledger.intend(_QUESTION, attempt=1, request_id="request", time=_NOW)
        await ledger.settle(_QUESTION, said)
