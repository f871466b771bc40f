"""The ledger alone: what a check costs it, as it grows."""

import hashlib
import time

import anyio
from table import Figure

from pipeline.frames import Answer, AnswerState
from pipeline.ledger import Ledger, RunIdentity

WORKERS = 1000
STEP = 100_000
GROWTH_MAX = 1.2
"""Of the cost of a check at the end, to that after the first step."""
NOW = "2030-01-02T03:04:05.678Z"
IDENTITY = RunIdentity("a" * 64, "b" * 64, "sandbox", "1")


def figures(folder, options):
    count = 10_000_000 if options.long else 500_000
    steps_us = []
    with Ledger.open(folder / "ledger" / "ledger.db", IDENTITY, now=NOW) as ledger:
        for start in range(1, count, STEP):
            before = time.process_time()
            anyio.run(_record, ledger, iter(range(start, start + STEP)))
            steps_us.append((time.process_time() - before) / STEP * 1e6)
    first, last = steps_us[0], steps_us[-1]
    yield Figure(
        f"ledger of {count:,} checks: CPU per check at its end, as a multiple of that at its start",
        f"{last / first:.2f} ({first:.0f} and {last:.0f} us)",
        f"at most {GROWTH_MAX}",
        last / first <= GROWTH_MAX,
    )


async def _record(ledger, numbers):
    async with ledger.writing(), anyio.create_task_group() as tasks:
        for _ in range(WORKERS):
            tasks.start_soon(_work, ledger, numbers)


async def _work(ledger, numbers):
    for number in numbers:
        question = hashlib.sha256(number.to_bytes(8)).digest()
        request_id = f"0f0f0f0f-0000-4000-8000-{number:012}"
        await ledger.intend(question, attempt=1, request_id=request_id, time=NOW)
        await ledger.settle(question, Answer(number, AnswerState.ANSWERED, "MTCH", None, request_id, NOW, 1))
