"""The ledger alone: what a check costs it when it is large, beside what one costs an empty ledger."""

import hashlib
import time
from statistics import median

import anyio
from table import Figure

from pipeline.frames import Answer, AnswerState
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import RunIdentity

WORKERS = 1000
STEP = 50_000
ROUNDS = 5
GROWTH_MAX = 1.2
"""Of the cost of a check in a ledger that is large, to that in one that has just begun."""
NOW = "2030-01-02T03:04:05.678Z"
IDENTITY = RunIdentity("a" * 64, "b" * 64, "sandbox", "1")


def figures(folder, options):
    """Fill one ledger, then write to it and to a new one in turn: a machine's speed changes in minutes."""
    count = 10_000_000 if options.long else 500_000
    large_us, new_us = [], []
    with SqliteLedger.open(folder / "large" / "ledger.db", IDENTITY, now=NOW) as large:
        for start in range(1, count, STEP):
            _cost_us(large, start)
        with SqliteLedger.open(folder / "new" / "ledger.db", IDENTITY, now=NOW) as new:
            for start in range(count + 1, count + ROUNDS * STEP, STEP):
                large_us.append(_cost_us(large, start))
                new_us.append(_cost_us(new, start))
    growth = median(large_us) / median(new_us)
    yield Figure(
        f"CPU per check of a ledger that holds {count:,}, as a multiple of a new one's",
        f"{growth:.2f} ({median(large_us):.0f} and {median(new_us):.0f} us)",
        f"at most {GROWTH_MAX}",
        growth <= GROWTH_MAX,
    )


def _cost_us(ledger, start):
    before = time.process_time()
    anyio.run(_record, ledger, iter(range(start, start + STEP)))
    return (time.process_time() - before) / STEP * 1e6


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
