"""nginx of Debian, unprivileged, on loopback: the desk of a team behind it, by the file of the documentation.

What oauth2-proxy answers is simulated by a second server of the same nginx: who has its cookie is logged in.
"""

import http.client
import os
import pwd
import re
import shutil
import signal
import socket
import ssl
import subprocess
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from desk import COMMAND_MAX_S, hold_until
from visitors import Visitor

from pipeline.sandbox.certificates import provide_certificates

ROOT = Path(__file__).resolve().parents[1]
FETCHED = ROOT / ".cache" / "nginx" / "usr" / "sbin" / "nginx"
NGINX = shutil.which("nginx") or (str(FETCHED) if FETCHED.exists() else None)
RECIPE = (ROOT / "docs" / "deployment" / "desk-nginx.conf").read_text("utf-8")
NAME = "payments.example"
COOKIE = "_oauth2_proxy"
MAIN = """
daemon off;
master_process on;
{user}
pid {folder}/nginx.pid;
error_log stderr warn;
events {{}}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxied;
    fastcgi_temp_path {folder}/f;
    uwsgi_temp_path {folder}/u;
    scgi_temp_path {folder}/s;
    {servers}
}}
"""
BEFORE_A_DESK = """
    map $cookie_{cookie} $identity {{ default $cookie_{cookie}; nameless ""; }}
    include {folder}/desk.conf;
    server {{
        listen 127.0.0.1:{login_port};
        location = /oauth2/auth {{
            if ($cookie_{cookie} = "") {{ return 401; }}
            add_header X-Auth-Request-Email $identity always;
            return 202;
        }}
        location = /oauth2/sign_in {{ return 200 "Log in"; }}
    }}
"""
ANSWERING_VOP = """
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {sandbox}/server_ec.pem;
        ssl_certificate_key {sandbox}/server_ec.pem;
        ssl_client_certificate {sandbox}/qwac_ca.pem;
        ssl_verify_client on;
        location / {{
            default_type application/json;
            add_header X-Request-ID $http_x_request_id;
            return 200 '{{"partyNameMatch":"NMTC"}}';
        }}
    }}
"""
"""A server of the VoP Standard API that answers every question alike."""


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def recipe(folder, port, login_port, desk_socket):
    """The file of the documentation, with other paths and ports in it."""
    places = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/ssl/payments.example.crt": str(folder / "server_ec.pem"),
        "/etc/ssl/payments.example.key": str(folder / "server_ec.pem"),
        "127.0.0.1:4180": f"127.0.0.1:{login_port}",
        "/run/precheck/desk.sock": str(desk_socket),
    }
    text = RECIPE
    for there, here in places.items():
        assert there in text, there
        text = text.replace(there, here)
    return text


class _Connection(http.client.HTTPSConnection):
    """By its name to the address of this computer."""

    def connect(self):
        plain = socket.create_connection(("127.0.0.1", self.port), self.timeout)
        self.sock = self._context.wrap_socket(plain, server_hostname=self.host)


class Proxied:
    """nginx, with a desk behind it."""

    def __init__(self, folder, port):
        self.port = port
        self.folder = folder
        self._trust = ssl.create_default_context(cafile=str(folder / "ca.pem"))

    def person(self, name=None, **headers):
        """Somebody with a browser, logged in at the simulated oauth2-proxy under this name."""
        cookies = {} if name is None else {COOKIE: name}
        connect = lambda: _Connection(NAME, self.port, timeout=COMMAND_MAX_S, context=self._trust)  # noqa: E731
        return Visitor(connect, f"https://{NAME}:{self.port}", headers, cookies)

    def raw(self, request):
        """The status of what comes back for bytes that no browser would send."""
        with (
            socket.create_connection(("127.0.0.1", self.port), COMMAND_MAX_S) as plain,
            self._trust.wrap_socket(plain, server_hostname=NAME) as line,
        ):
            line.sendall(request)
            return int(line.makefile("rb").readline().split()[1])


@contextmanager
def proxied(folder, port, desk_socket):
    """nginx by the recipe while the block lasts, in front of a desk on a socket."""
    folder.mkdir()
    login_port = free_port()
    provide_certificates(folder, NAME, datetime.now(UTC))
    (folder / "desk.conf").write_text(recipe(folder, port, login_port, desk_socket))
    with _serving(folder, port, BEFORE_A_DESK.format(folder=folder, login_port=login_port, cookie=COOKIE)):
        yield Proxied(folder, port)


@contextmanager
def answering_vop(folder, sandbox):
    """nginx with the certificates of a sandbox's folder, which answers questions to VoP; its address."""
    folder.mkdir()
    port = free_port()
    with _serving(folder, port, ANSWERING_VOP.format(port=port, sandbox=sandbox)):
        yield f"https://127.0.0.1:{port}"


@contextmanager
def _serving(folder, port, servers):
    user = f"user {pwd.getpwuid(0).pw_name} root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=user, servers=servers))
    errors = folder / "nginx.err"
    with (
        errors.open("w") as said,
        subprocess.Popen(
            [NGINX, "-p", folder, "-c", folder / "nginx.conf"], stderr=said, stdout=said
        ) as process,
    ):
        try:
            hold_until(lambda: _answers(port) or process.poll() is not None)
            assert process.poll() is None, errors.read_text()
            yield
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait(COMMAND_MAX_S)
            assert not re.search(r"\[(emerg|alert|crit)\]", errors.read_text()), errors.read_text()


def _answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
