"""The questions that one process is left with by itself, because nobody else can ask them."""

from collections.abc import Callable

import polars as pl

from pipeline.frames import Check
from pipeline.stores.values import Chunk, Hold, Question
from schemas.outcomes import ApiName

CHUNK_SIZE = 256


class LocalSource:
    """The questions of one frame, in its order: what keeps others out is the lock of the run's folder.

    Nothing is recorded of who has them. What was asked the ledger knows; and what it does not know, whoever
    takes the run up finds again.
    """

    def __init__(self, todo: pl.DataFrame, question_key: Callable[[Check], bytes]) -> None:
        """Begin with the first of them.

        Args:
            todo: `Checks`, with `attempts` and `is_suspect` as in `Question`.
            question_key: what the ledger knows a check by.
        """
        self._left = {ApiName(str(api)): part for (api,), part in todo.group_by("api", maintain_order=True)}
        self._question_key = question_key
        self._chunk_count = 0

    async def claim(self, api: ApiName) -> Chunk | None:
        """The next questions for an API."""
        left = self._left.get(api)
        if left is None or left.is_empty():
            return None
        self._left[api] = left[CHUNK_SIZE:]
        self._chunk_count += 1
        questions = []
        for number, _, *said, attempts, is_suspect in left[:CHUNK_SIZE].iter_rows():
            check = Check(number, api, *said)
            questions.append(Question(check, self._question_key(check), attempts, is_suspect))
        return Chunk(Hold(self._chunk_count, fence=1), questions)

    async def done(self, hold: Hold) -> None:
        """The ledger knows it."""

    async def give_back(self) -> None:
        """Take up no other."""
        self._left = {}
