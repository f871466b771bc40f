"""A process that asks questions of a shared run for as long as its daily cap lasts, or until it is killed.

A program: `python spenders.py URL RUN COUNT CAP`.
"""

import sys
from uuid import UUID, uuid4

import anyio

CAPPED = "cop.example|0123456789abcdef"


async def spend(shared):
    """Claim and ask until no unit is left, or no chunk."""
    from shared_ledgers import ask

    from pipeline.errors import CapSpentError
    from schemas.outcomes import ApiName

    is_spent = False

    async def one(question):
        nonlocal is_spent
        try:
            await ask(shared, question)
        except CapSpentError:
            is_spent = True

    async with shared.writing():
        while not is_spent and (chunk := await shared.claim(ApiName.COP)) is not None:
            async with anyio.create_task_group() as tasks:
                for question in chunk.questions:
                    tasks.start_soon(one, question)
    await shared.give_back()


def main(url, run_id, count, cap):
    from postgres import LEDGER_KEY, clocks
    from shared_ledgers import checks_of

    from pipeline.stores.postgres.address import parsed
    from pipeline.stores.postgres.store import PostgresStore
    from pipeline.stores.protocols import AccountCap, AskingProcess

    process = AskingProcess(uuid4(), "host", 1, "0.1.0")
    caps = {"cop": AccountCap(CAPPED, int(cap), "utc_day")}
    with PostgresStore.open(parsed(url), LEDGER_KEY, process, clocks()) as store:
        run = store.find(UUID(run_id))
        with store.shared_run(run, lambda _: checks_of(int(count)), caps=caps) as shared:
            anyio.run(spend, shared)


if __name__ == "__main__":
    main(*sys.argv[1:])
