"""A client that is wrong on purpose: it trusts every server, and does not care how a request should look.

It takes any certificate, gets a token for each question, sends all requests at once on a connection, writes
the time as it likes, tries plain HTTP and paths that are not there, and puts its secret into a URL.

    careless.py FOLDER FILE PROFILE...
"""

import contextlib
import http.client
import json
import socket
import ssl
import sys
import time
import tomllib
import uuid
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

sys.path.insert(0, str(Path(__file__).parents[1] / "bench" / "peers"))

import wire

CONTEXT = ssl.create_default_context()
CONTEXT.check_hostname = False
CONTEXT.verify_mode = ssl.CERT_NONE


def token(section, secret):
    address = urlsplit(section["token_url"])
    fields = {
        "grant_type": "client_credentials",
        "client_id": section["client_id"],
        "scope": section["scope"],
    }
    form = urlencode({**fields, "client_secret": secret})
    connection = http.client.HTTPSConnection(address.hostname, address.port, context=CONTEXT, timeout=20)
    connection.request("GET", address.path, form, {"Content-Type": "application/x-www-form-urlencoded"})
    return json.load(connection.getresponse())["access_token"]


def request(section, row, access_token):
    body = json.dumps(wire.body(row))
    address = urlsplit(section["base_url"])
    stamp = wire.headers("")["X-Request-Timestamp"]
    headers = {
        "Host": address.netloc,
        "x-fapi-interaction-id": uuid.uuid4(),
        "X-Request-Timestamp": time.strftime("%d.%m.%Y %H:%M") if "Averi" in row["name"] else stamp,
        "Content-Type": "text/json" if "Imogen" in row["name"] else "application/json",
        "Authorization": f"Bearer {access_token}",
        "Content-Length": len(body),
    }
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"POST {address.path}{wire.PATH} HTTP/1.1", *lines, "", body]).encode()


def check(folder, profile, rows):
    section = tomllib.loads((folder / "precheck.toml").read_text())["profiles"][profile]["cop"]
    secret = (folder / section["client_secret_file"]).read_text()
    address = urlsplit(section["base_url"])
    sent = b"".join(request(section, row, token(section, secret)) for row in rows)
    with (
        socket.create_connection((address.hostname, address.port), timeout=20) as plain,
        CONTEXT.wrap_socket(plain) as secured,
    ):
        secured.sendall(sent)
        answered = b""
        while answered.count(b"HTTP/1.1 ") < len(rows) and (piece := secured.recv(100_000)):
            answered += piece
    connection = http.client.HTTPSConnection(address.hostname, address.port, context=CONTEXT, timeout=20)
    token_path = urlsplit(section["token_url"]).path
    for path in ("/v2/checks", f"{token_path}?client_secret={quote(secret)}"):
        connection.request("GET", path)
        connection.getresponse().read()
    with socket.create_connection((address.hostname, address.port), timeout=20) as plain:
        plain.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        plain.recv(100)


folder, file, *profiles = sys.argv[1:]
payments = [row for row in wire.rows(file) if row["sort_code"]][:6]
for each in profiles:
    with contextlib.suppress(OSError):
        check(Path(folder), each, payments)
