"""A peer: requests in a pool of 64 threads, one session each."""

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import requests
import wire


def main(server, file, out):
    access_token = wire.token(server)
    own = threading.local()

    def check(row):
        if not hasattr(own, "session"):
            own.session = requests.Session()
        response = own.session.post(
            server["base_url"] + wire.PATH,
            json=wire.body(row),
            headers=wire.headers(access_token),
            verify=server["ca_file"],
            timeout=60,
        )
        return row, wire.outcome(response.status_code, response.json())

    with ThreadPoolExecutor(64) as pool:
        wire.write(out, list(pool.map(check, wire.rows(file))))


main(json.loads(sys.stdin.read()), *sys.argv[1:])
