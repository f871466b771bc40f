"""The questions of a run whose folder this process has locked, so that no other process asks them."""

from collections.abc import Awaitable, Callable, Iterator, Sequence

import polars as pl

from pipeline.frames import Check
from pipeline.stores.values import ChunkLease, Question, QuestionChunk
from schemas.outcomes import ApiName

CHUNK_SIZE = 256


class LocalSource:
    """Questions of frames, in order. No leases are recorded: the folder's lock excludes other processes."""

    is_shared = False

    def __init__(
        self,
        todo: pl.DataFrame,
        question_key: Callable[[Check], bytes],
        more: Sequence[Callable[[], Awaitable[pl.DataFrame]]] = (),
    ) -> None:
        """Start with `Checks`, with `attempts` and `is_suspect`; each of `more` returns another frame."""
        apis = todo["api"].unique(maintain_order=True).to_list()
        self._left = {
            ApiName(api): todo if len(apis) == 1 else todo.filter(pl.col("api") == api) for api in apis
        }
        self._question_key = question_key
        self._more = more
        self._unread: dict[ApiName, Iterator[Callable[[], Awaitable[pl.DataFrame]]]] = {}
        self._chunk_count = 0

    async def claim(self, api: ApiName) -> QuestionChunk | None:
        """Return the next questions for an API."""
        left = self._left.get(api)
        while left is None or left.is_empty():
            read = next(self._unread.setdefault(api, iter(self._more)), None)
            if read is None:
                return None
            left = (await read()).filter(pl.col("api") == api)
        self._left[api] = left[CHUNK_SIZE:]
        self._chunk_count += 1
        questions = []
        for number, _, *fields, attempts, is_suspect in left[:CHUNK_SIZE].iter_rows():
            check = Check(number, api, *fields)
            questions.append(Question(check, self._question_key(check), attempts, is_suspect))
        return QuestionChunk(ChunkLease(self._chunk_count, fence=1), questions)

    async def has_free(self, api: ApiName) -> bool:  # noqa: ARG002
        """Return False: no other process releases questions."""
        return False

    async def done(self, hold: ChunkLease) -> None:
        """Do nothing: the ledger has the answers."""

    def holds(self, hold: ChunkLease) -> bool:  # noqa: ARG002
        """Return True: the folder is locked."""
        return True

    def may_send(self, hold: ChunkLease) -> bool:  # noqa: ARG002
        """Return True: the folder is locked."""
        return True

    async def give_back(self, api: ApiName | None = None) -> None:
        """Stop returning questions."""
        if api is None:
            self._left, self._more, self._unread = {}, (), {}
        else:
            self._left.pop(api, None)
            self._unread[api] = iter(())
