"""The libraries of this project alone, each used for what it was chosen for, without a line of the project.

anyio's tasks, aiolimiter's pace (once in line, once at the door), httpx's values in front of aiohttp's
connections, pydantic's documents, and an intent and an answer in SQLite, durable before anything goes on.
It validates no row, judges no reply, retries nothing and writes no report.
"""

import json
import sqlite3
import ssl
import sys
import uuid
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import aiohttp
import anyio
import anyio.to_thread
import httpx
import wire
from aiolimiter import AsyncLimiter
from pydantic import BaseModel

RATE_PER_S = 5000
TABLES = "CREATE TABLE intents (id, at); CREATE TABLE answers (id PRIMARY KEY, at, code)"


class Question(BaseModel):
    schemeName: str  # noqa: N815
    accountType: str  # noqa: N815
    identification: str
    name: str
    secondaryIdentification: str | None = None  # noqa: N815


class Asked(BaseModel):
    data: Question


class Report(BaseModel):
    matched: bool
    name: str | None = None
    reasonCode: str | None = None  # noqa: N815


class Verified(BaseModel):
    verificationReport: Report  # noqa: N815


class Answered(BaseModel):
    data: Verified


class Ledger:
    """Rows that tasks write together; each task goes on once its own is on the disk."""

    def __init__(self, path):
        self.db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.executescript(TABLES)
        self.turn, self.lines, self.ended = anyio.Lock(), [], anyio.Event()

    async def write(self, statement, row):
        lines, ended = self.lines, self.ended
        lines.append((statement, row))
        if len(lines) > 1:
            await ended.wait()
            return
        async with self.turn:
            await anyio.sleep(0.001)
            self.lines, self.ended = [], anyio.Event()
            await anyio.to_thread.run_sync(self.commit, lines)
        ended.set()

    def commit(self, lines):
        self.db.execute("BEGIN IMMEDIATE")
        for statement in {statement for statement, _ in lines}:
            self.db.executemany(statement, [row for of, row in lines if of == statement])
        self.db.execute("COMMIT")


async def main(server, file, out):
    base, access_token = server["base_url"], wire.token(server)
    context = ssl.create_default_context(cafile=server["ca_file"])
    todo, checked = iter(wire.rows(file)), []
    ledger = Ledger(Path(out).with_suffix(f".{uuid.uuid4()}.sqlite"))
    line, door = AsyncLimiter(RATE_PER_S, 1), AsyncLimiter(RATE_PER_S, 1)

    async def work(session):
        for row in todo:
            await line.acquire()
            request_id, now = str(uuid.uuid4()), datetime.now(UTC).isoformat(timespec="milliseconds")
            await ledger.write("INSERT INTO intents VALUES (?, ?)", (request_id, now))
            body = Asked.model_validate(wire.body(row)).model_dump_json(exclude_none=True).encode()
            headers = wire.headers(access_token) | {"Content-Type": "application/json"}
            headers["x-fapi-interaction-id"] = request_id
            request = httpx.Request("POST", base + wire.PATH, headers=headers, stream=httpx.ByteStream(body))
            await door.acquire()
            with anyio.fail_after(30):
                async with session.request(
                    request.method,
                    str(request.url),
                    headers=[(name.decode(), value.decode()) for name, value in request.headers.raw],
                    data=body,
                ) as response:
                    reply = httpx.Response(
                        response.status, headers=response.raw_headers, content=await response.read()
                    )
            if reply.status_code == 200:
                report = Answered.model_validate_json(reply.content).data.verificationReport
                code = "match" if report.matched else report.reasonCode
            else:
                code = json.loads(reply.content)["code"]
            await ledger.write("INSERT INTO answers VALUES (?, ?, ?)", (request_id, now, code))
            checked.append((row, code))

    connector = aiohttp.TCPConnector(ssl=context, limit=64)
    async with aiohttp.ClientSession(connector=connector) as session, anyio.create_task_group() as tasks:
        for _ in range(64):
            tasks.start_soon(work, session)
    wire.write(out, checked)


anyio.run(partial(main, json.loads(sys.stdin.read()), *sys.argv[1:]), backend_options={"use_uvloop": True})
