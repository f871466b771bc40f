"""The ledger in PostgreSQL alone: what the intent and the answer of a check cost client and server."""

import gc
import os
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from uuid import uuid4

import anyio
import polars as pl
from postgres import LEDGER_KEY, OWNER, RUNNER, PostgresServer, clocks, programs
from table import Figure

from payee_precheck import _COLLECTED_AFTER
from pipeline.frames import CHECKS, Answer, AnswerState, Check
from pipeline.stores.postgres.address import parsed
from pipeline.stores.postgres.administration import PostgresCare
from pipeline.stores.postgres.store import PostgresStore
from pipeline.stores.protocols import AskingProcess, QuestionPlan
from pipeline.stores.values import PlannedChunk, RunIdentity
from schemas.outcomes import ApiName

IN_FLIGHT = 1_000
STEP = 20_000
CHUNK = 100
CPU_MAX_US = 15
NOW = "2030-01-02T03:04:05.678Z"
IDENTITY = RunIdentity("a" * 64, "b" * 64, "sandbox", "1")


def figures(_folder, options):
    """Ask as many questions as fit, over and over, at a server with fsync on."""
    if programs() is None:
        yield Figure("ledger in PostgreSQL", "no PostgreSQL here", "")
        return
    server = PostgresServer(programs())
    try:
        server.start()
        server.require_roles()
        yield from _figures(server, options)
    finally:
        server.close()


def _figures(server, options):
    database = server.empty_database()
    with PostgresCare(parsed(server.url(database, OWNER)), clocks()) as care:
        care.create(LEDGER_KEY, grant_to=RUNNER)
    process = AskingProcess(uuid4(), "bench", os.getpid(), "1")
    client_us, server_us = [], []
    with PostgresStore.open(parsed(server.url(database)), LEDGER_KEY, process, clocks()) as store:
        for number in range(options.rounds):
            for list_, cost in zip((client_us, server_us), _costs(store, server, number), strict=True):
                list_.append(cost)
    for whose, costs in (("client", client_us), ("server", server_us)):
        yield Figure(
            f"CPU per check of a ledger in PostgreSQL, {whose}, {IN_FLIGHT:,} in flight",
            f"{median(costs):.1f} us ({min(costs):.1f} to {max(costs):.1f})",
            f"at most {CPU_MAX_US} us",
            median(costs) <= CPU_MAX_US,
        )


def _costs(store, server, number):
    """CPU of an intent and an answer in us, here and at the server; the claims before are not counted."""
    checks = pl.DataFrame(
        [
            Check(place, ApiName.COP, f"{place:014}", f"Payee {place}", *[None] * 9)
            for place in range(1, STEP + 1)
        ],
        schema=CHECKS,
        orient="row",
    )
    run = store.join(IDENTITY._replace(input_sha256=str(number)), QuestionPlan(b"plan", 1), new_id=uuid4())
    with store.shared_run(run, lambda _: checks) as shared, collected_as_in_a_run():
        return anyio.run(_record, shared, server.folder, backend_options={"use_uvloop": True})


@contextmanager
def collected_as_in_a_run():
    """Collect garbage as the command does while it asks (docs/adr/0012)."""
    before = gc.get_threshold()
    gc.set_threshold(_COLLECTED_AFTER)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


async def _record(shared, folder):
    chunks = [PlannedChunk("cop", 0, range(start, start + CHUNK)) for start in range(0, STEP, CHUNK)]
    await shared.open_round(chunks, after=0)
    questions = []
    while (chunk := await shared.claim(ApiName.COP)) is not None:
        questions += chunk.questions
    assert len(questions) == STEP
    left = iter(questions)
    before = time.process_time(), cpu_s_of_server(folder)
    async with shared.writing(), anyio.create_task_group() as tasks:
        for _ in range(IN_FLIGHT):
            tasks.start_soon(_work, shared, left)
    after = time.process_time(), cpu_s_of_server(folder)
    return [(end - start) / STEP * 1e6 for start, end in zip(before, after, strict=True)]


async def _work(shared, questions):
    for question in questions:
        number = question.check.check
        request_id = f"0f0f0f0f-0000-4000-8000-{number:012}"
        await shared.intend(question.key, attempt=1, request_id=request_id, time=NOW)
        answer = Answer(number, AnswerState.ANSWERED, "MTCH", None, request_id, NOW, 1)
        await shared.settle(question.key, answer)


def cpu_s_of_server(folder):
    """Of all processes of the server, those that write to its disk among them."""
    main = (folder / "data" / "postmaster.pid").read_text().split()[0]
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if main in {fields[1], stat.parent.name}:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
