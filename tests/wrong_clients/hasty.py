"""A client that is wrong on purpose: it has no time, checks nothing and asks at once again.

It sends one correlation id for all, takes whatever comes with a 200, knows of no pause, sends a refused
question again, keeps its first token for ever and every cookie, follows every redirect with all it has, and
hangs up after half a second.

    hasty.py FOLDER PROFILE FILE        the folder of a sandbox, the profile and the payment file to use
"""

import contextlib
import http.client
import json
import ssl
import sys
import tomllib
import uuid
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1] / "bench" / "peers"))

import wire

ATTEMPTS = 3
PATIENCE_S = 0.5


def section_of(folder, profile):
    """The CoP section of a profile, as the peers take it."""
    section = tomllib.loads((folder / "precheck.toml").read_text())["profiles"][profile]["cop"]
    secret = (folder / section["client_secret_file"]).read_text()
    return {**section, "client_secret": secret, "ca_file": str(folder / section["ca_file"])}


class Client:
    def __init__(self, section):
        self.url = urlsplit(section["base_url"] + wire.PATH)
        self.context = ssl.create_default_context(cafile=section["ca_file"])
        self.headers = {**wire.headers(wire.token(section)), "Content-Type": "application/json"}
        self.headers["x-fapi-interaction-id"] = str(uuid.uuid4())
        self.connection = None

    def ask(self, row):
        body = json.dumps(wire.body(row))
        for _ in range(ATTEMPTS):
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.send(self.url, body) == 200:
                    return
                continue
            self.connection = None

    def send(self, url, body):
        if self.connection is None:
            self.connection = http.client.HTTPSConnection(
                url.hostname, url.port, context=self.context, timeout=PATIENCE_S
            )
        stamp = {name: value for name, value in wire.headers("").items() if name == "X-Request-Timestamp"}
        self.connection.request("POST", url.path, body, {**self.headers, **stamp})
        response = self.connection.getresponse()
        response.read()
        if cookie := response.getheader("Set-Cookie"):
            self.headers["Cookie"] = cookie.partition(";")[0]
        if location := response.getheader("Location"):
            self.connection = None
            return self.send(urlsplit(location), body)
        return response.status


folder, profile, file = sys.argv[1:]
client = Client(section_of(Path(folder), profile))
for row in wire.rows(file):
    client.ask(row)
