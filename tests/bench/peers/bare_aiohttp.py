"""The floor: 64 tasks over aiohttp, which check nothing, keep nothing and parse what comes."""

import asyncio
import json
import ssl
import sys

import aiohttp
import wire


async def main(server, file, out):
    access_token = wire.token(server)
    context = ssl.create_default_context(cafile=server["ca_file"])
    todo = iter(wire.rows(file))
    checked = []

    async def work(session):
        for row in todo:
            body, headers = json.dumps(wire.body(row)), wire.headers(access_token)
            headers["Content-Type"] = "application/json"
            async with session.post(server["base_url"] + wire.PATH, data=body, headers=headers) as response:
                answer = json.loads(await response.read())
                checked.append((row, wire.outcome(response.status, answer)))

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, limit=64)) as session:
        await asyncio.gather(*(work(session) for _ in range(64)))
    wire.write(out, checked)


asyncio.run(main(json.loads(sys.stdin.read()), *sys.argv[1:]))
