"""What one process takes of a run that others ask too."""

import anyio
import pytest
from memory_stores import MemoryLedger, MemoryQuestions, MemorySharedRun

from pipeline.executors.shared import SharedPart
from pipeline.stores.values import RunIdentity
from schemas.outcomes import ApiName


@pytest.mark.parametrize(("limit", "has_free"), [(None, True), (11, True), (10, False), (3, False)])
def test_who_has_taken_as_many_as_it_may_sees_nothing_free(check_of, limit, has_free):
    ledger = MemoryLedger(RunIdentity("1f", "2e", "sandbox", "1"), "2031-03-01T09:00:00.000Z")
    questions = MemoryQuestions([check_of(check=n) for n in range(20)], ledger, chunk_size=10)
    part = SharedPart(MemorySharedRun(questions), limit)

    async def main():
        assert await part.has_free(ApiName.COP)
        await part.claim(ApiName.COP)
        return await part.has_free(ApiName.COP)

    assert anyio.run(main) is has_free
