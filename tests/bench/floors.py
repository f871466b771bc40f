"""What the chosen libraries alone cost for the same rows: no figure of ours can be below its floor."""

import sys
import time
from statistics import median

import anyio
import anyio.to_thread
import polars as pl
import psycopg
from children import cost_of, payments
from payment_formats import MILLION, PER_BATCH
from paymentfiles.pain001 import write_many
from postgres import OWNER, PostgresServer, programs
from shared_ledger import IN_FLIGHT, STEP, collected_as_in_a_run, cpu_s_of_server
from table import Figure, spread

ON_ONE_CORE = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
IMPORTS = "import polars, pydantic, httpx, aiohttp, anyio, aiolimiter, click"
TABLE = (
    ON_ONE_CORE + "import sys; import polars as pl; frame = pl.READ; "
    "frame.with_columns(pl.lit('The name is that of the account.').alias(f'c{n}') for n in range(9)).WRITE"
)
CSV = TABLE.replace("READ", "read_csv(sys.argv[1], infer_schema=False)").replace(
    "WRITE", "write_csv(sys.argv[2])"
)
PARQUET = TABLE.replace("READ", "read_parquet(sys.argv[1])").replace("WRITE", "write_parquet(sys.argv[2])")
EXPAT = (
    ON_ONE_CORE + "import sys; from operator import is_, not_; from xml.parsers.expat import ParserCreate; "
    "parser = ParserCreate(); parser.buffer_text = True; parser.StartElementHandler = is_; "
    "parser.EndElementHandler = not_; parser.CharacterDataHandler = not_; "
    "parser.ParseFile(open(sys.argv[1], 'rb'))"
)
"""Every handler is a function in C that does nothing."""


def figures(folder, options):
    yield _floor("imports of the chosen libraries: CPU", IMPORTS, (), options.rounds)
    rows = MILLION if options.full else MILLION // 10
    file, written = payments(folder / "floor.csv", rows, cop_only=False), folder / "floor.out"
    what = f"{rows:,} rows, read as text and written with nine more columns"
    yield _floor(f"polars alone, {what}, CSV: CPU", CSV, (file, written), options.rounds)
    parquet = file.with_suffix(".parquet")
    pl.scan_csv(file, infer_schema=False).sink_parquet(parquet)
    yield _floor(f"polars alone, {what}, Parquet: CPU", PARQUET, (parquet, written), options.rounds)
    message = folder / "floor.xml"
    write_many(message, rows, per_batch=PER_BATCH)
    yield _floor(f"expat alone, {rows:,} payments of pain.001: CPU", EXPAT, (message,), options.rounds)
    for path in (file, parquet, message, written):
        path.unlink()
    yield from _of_postgres(options)


def _floor(what, code, words, rounds):
    costs = [cost_of([sys.executable, "-c", code, *words]).cpu_s for _ in range(rounds)]
    return Figure(what, spread(costs, "s", decimals=2), "")


def _of_postgres(options):
    """An intent and an answer a check, copied a thousand at a time, each thousand durable before the next."""
    if programs() is None:
        return
    server = PostgresServer(programs())
    try:
        server.start()
        server.require_roles()
        with psycopg.connect(server.url(server.empty_database(), OWNER), autocommit=True) as db:
            costs = [_copied(db, server, number) for number in range(options.rounds)]
    finally:
        server.close()
    for whose, us in zip(("client", "server"), zip(*costs, strict=True), strict=True):
        what = (
            f"psycopg and {IN_FLIGHT:,} tasks alone, an intent and an answer copied, {whose}: CPU per check"
        )
        yield Figure(what, f"{median(us):.1f} us ({min(us):.1f} to {max(us):.1f})", "")


def _copied(db, server, number):
    """An intent and an answer of each of many tasks, which wait until those of their thousand are durable."""
    tables = {"intents": "question bytea, attempt int, request uuid, at text",
              "answers": "question bytea, state text, code text, request uuid, at text"}  # fmt: skip
    for name, columns in tables.items():
        db.execute(f"CREATE TABLE {name}{number} ({columns}, PRIMARY KEY (question))")
    waiting = {name: ([], anyio.Event()) for name in tables}

    def copy(name, rows):
        with db.cursor() as cursor, cursor.copy(f"COPY {name}{number} FROM STDIN") as into:
            for row in rows:
                into.write_row(row)

    async def write(name, row):
        rows, durable = waiting[name]
        rows.append(row)
        if len(rows) < IN_FLIGHT:
            await durable.wait()
            return
        waiting[name] = [], anyio.Event()
        await anyio.to_thread.run_sync(copy, name, rows)
        durable.set()

    async def work(start):
        for at in range(start, STEP, IN_FLIGHT):
            key, request = at.to_bytes(32), f"0f0f0f0f-0000-4000-8000-{at:012}"
            await write("intents", (key, 1, request, "2030-01-02T03:04:05.678Z"))
            await write("answers", (key, "answered", "MTCH", request, "2030-01-02T03:04:05.678Z"))

    async def work_all():
        async with anyio.create_task_group() as tasks:
            for start in range(IN_FLIGHT):
                tasks.start_soon(work, start)

    before = time.process_time(), cpu_s_of_server(server.folder)
    with collected_as_in_a_run():
        anyio.run(work_all, backend_options={"use_uvloop": True})
    after = time.process_time(), cpu_s_of_server(server.folder)
    return [(end - start) / STEP * 1e6 for start, end in zip(before, after, strict=True)]
