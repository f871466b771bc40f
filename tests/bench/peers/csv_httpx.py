"""A peer: csv, httpx.AsyncClient and a semaphore, as most people would write it."""

import asyncio
import json
import ssl
import sys

import httpx
import wire


async def main(server, file, out):
    access_token = wire.token(server)
    limit = asyncio.Semaphore(100)
    context = ssl.create_default_context(cafile=server["ca_file"])

    async def check(client, row):
        async with limit:
            response = await client.post(wire.PATH, json=wire.body(row), headers=wire.headers(access_token))
        return row, wire.outcome(response.status_code, response.json())

    limits = httpx.Limits(max_connections=100, max_keepalive_connections=100)
    async with httpx.AsyncClient(
        base_url=server["base_url"], verify=context, limits=limits, timeout=60
    ) as client:
        checked = await asyncio.gather(*(check(client, row) for row in wire.rows(file)))
    wire.write(out, checked)


asyncio.run(main(json.loads(sys.stdin.read()), *sys.argv[1:]))
