"""The questions of one process that holds the folder of a run, and so shares them with no other."""

from collections.abc import Callable

import polars as pl

from pipeline.frames import Check
from pipeline.stores.values import ChunkLease, Question, QuestionChunk
from schemas.outcomes import ApiName

CHUNK_SIZE = 256


class LocalSource:
    """The questions of one frame, in its order: the lock of the run's folder keeps other processes out.

    Leases are not recorded. The ledger knows what was asked; a run that resumes finds the rest again.
    """

    is_shared = False

    def __init__(self, todo: pl.DataFrame, question_key: Callable[[Check], bytes]) -> None:
        """Begin with the first of them.

        Args:
            todo: `Checks`, with `attempts` and `is_suspect` as in `Question`.
            question_key: gives the key of a check in the ledger.
        """
        apis = todo["api"].unique(maintain_order=True).to_list()
        self._left = {
            ApiName(api): todo if len(apis) == 1 else todo.filter(pl.col("api") == api) for api in apis
        }
        self._question_key = question_key
        self._chunk_count = 0

    async def claim(self, api: ApiName) -> QuestionChunk | None:
        """The next questions for an API."""
        left = self._left.get(api)
        if left is None or left.is_empty():
            return None
        self._left[api] = left[CHUNK_SIZE:]
        self._chunk_count += 1
        questions = []
        for number, _, *fields, attempts, is_suspect in left[:CHUNK_SIZE].iter_rows():
            check = Check(number, api, *fields)
            questions.append(Question(check, self._question_key(check), attempts, is_suspect))
        return QuestionChunk(ChunkLease(self._chunk_count, fence=1), questions)

    async def has_free(self, api: ApiName) -> bool:  # noqa: ARG002
        """Never: no other process gives any back."""
        return False

    async def done(self, hold: ChunkLease) -> None:
        """Nothing to record: the ledger has the answers."""

    def holds(self, hold: ChunkLease) -> bool:  # noqa: ARG002
        """Always: the folder is locked."""
        return True

    def may_send(self, hold: ChunkLease) -> bool:  # noqa: ARG002
        """Always, again."""
        return True

    async def give_back(self, api: ApiName | None = None) -> None:
        """Give out no more questions."""
        if api is None:
            self._left = {}
        else:
            self._left.pop(api, None)
