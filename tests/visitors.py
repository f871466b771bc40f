"""`precheck desk` in a process of its own, and people who ask it for pages without a browser.

A pytest plugin: tests/conftest.py loads it.
"""

import atexit
import fcntl
import getpass
import html
import http.client
import json
import re
import shutil
import signal
import socket
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from desk import COMMAND_MAX_S, Desk, Running, hold_until

from pipeline.desk.access import new_link

_NUMBERS = count(1)
_ACTS = "/files/([^/]+)/(release|hand-over|groups|rows/[0-9]+)"
"""Forms that act on what their page showed."""
BOUNDARY = "------------------------visitor"
HOST = "desk.example"
ROLES = {
    "uploader": ["up@example.com", "uma@example.com", "all@example.com"],
    "reviewer": ["rita@example.com", "both@example.com", "all@example.com"],
    "approver": ["anna@example.com", "up@example.com", "both@example.com", "all@example.com"],
    "auditor": ["otto@example.com"],
}

REVIEWED = '[profiles.sandbox.policy]\nclose_match = "review"\n'
"""Profiles by which a close match is left to a person."""
CHECKED: dict[tuple, Path] = {}
"""By which profiles which file was checked under which name -> a copy of what the check left."""


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self):
        return self.body.decode()

    @property
    def to(self):
        return self.headers["Location"]


class _OnSocket(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path):
        super().__init__(HOST, timeout=COMMAND_MAX_S)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self._path)


@dataclass
class Visitor:
    """Somebody who asks for pages; cookies are kept as a browser would."""

    connect: object
    origin: str
    headers: dict = field(default_factory=dict)
    cookies: dict = field(default_factory=dict)
    home: Path | None = None
    """Of the desk, where it is known."""
    profiles: str | None = None
    """The profiles of the desk as its configuration has them, where they are known."""

    def ask(self, method, path, body=None, *, bare=False, **headers):
        """One request; `bare` without what a browser adds by itself. None as a value leaves a header out."""
        own = {} if bare else {"Origin": self.origin, "Sec-Fetch-Site": "same-origin"}
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {**self.headers, **own, **({"Cookie": cookies} if cookies else {})}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = self.connect()
        try:
            connection.request(method, path, body, {name: v for name, v in sent.items() if v is not None})
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
        finally:
            connection.close()
        for cookie in answer.headers.get_all("Set-Cookie", []):
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def post(self, path, fields=(), **headers):
        fields = dict(fields)
        if "shown" not in fields and (acted := re.fullmatch(_ACTS, path)):
            fields["shown"] = self.shown(acted[1], "release" if acted[2] == "release" else "review")
            fields.setdefault("voids", "yes")
        headers = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        return self.ask("POST", path, urlencode(fields), **headers)

    def shown(self, at, page="release"):
        """What a page showed of a file, as its forms carry it; empty where it has none."""
        found = re.search('name="shown" value="([0-9a-f-]+)"', self.get(f"/files/{at}/{page}").text)
        return found[1] if found else ""

    def upload(self, path, name, data, reports=(), **headers):
        quoted = name.replace('"', "%22")
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{quoted}"\r\n\r\n'
        if not name:
            head, data = "", b""
        for at, report in enumerate(reports, 1):
            told = f'name="report"; filename="vop-{at}.xml"'
            next_head = f"\r\n--{BOUNDARY}\r\nContent-Disposition: form-data; {told}\r\n\r\n"
            data += next_head.encode() + report
        body = head.encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()
        kind = f"multipart/form-data; boundary={BOUNDARY}"
        return self.ask("POST", path, body, **{"Content-Type": kind, **headers})

    def file(self, data, name="payments.csv"):
        """Upload a payment file; give its id."""
        answer = self.upload("/files", name, data)
        assert answer.status == 303, answer.text
        return answer.to.split("/")[2]

    def planned(self, data, name="payments.csv"):
        """Upload one, and agree with how it is read."""
        at = self.file(data, name)
        assert self.post(f"/files/{at}/columns", {"then": "plan"}).to.endswith("/plan")
        return at

    def checked(self, data, name="payments.csv"):
        """Upload one and have it checked to its end; the same is checked once, and what that left is copied.

        For what a test begins with: where it was copied, no start is on record.
        """
        at = self.planned(data, name)
        key = self.profiles, name, data
        if key in CHECKED:
            _copy_check(CHECKED[key], self.home / "runs" / at)
            return at
        self.check(at)
        if self.profiles is not None:
            kept = CHECKED[key] = Path(tempfile.mkdtemp(prefix="kept"))
            atexit.register(shutil.rmtree, kept, ignore_errors=True)
            _copy_check(self.home / "runs" / at, kept)
        return at

    def check(self, at):
        """Have a planned file checked to its end."""
        assert self.post(f"/files/{at}/start").status == 303
        self.wait(at)

    def start(self, at, profile):
        """Start the check of a planned file by a profile, as from a page that shows its plan."""
        self.post(f"/files/{at}/plan", {"profile": profile})
        return self.post(f"/files/{at}/start", {"profile": profile, "planned": profile})

    def progress(self, at):
        return json.loads(self.get(f"/files/{at}/progress.json").text)

    def wait(self, at):
        """Return once the check of a file has ended: its process holds a lock until then."""
        if self.home is None:
            hold_until(lambda: not self.progress(at)["is_on"])
            return
        with (self.home / "runs" / at / "check.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)

    def approve(self, at, **fields):
        return self.post(f"/files/{at}/release", fields)


def _copy_check(there, here):
    """Copy what the check of a file left in its folder."""
    shutil.copytree(there / "run.precheck", here / "run.precheck")
    for name in ("check.lock", "progress.json", "log.jsonl"):
        shutil.copy2(there / name, here)


@dataclass
class ServedDesk:
    """A desk that runs."""

    home: Path
    process: Running
    desk: Desk
    link: str = ""
    socket: Path | None = None
    profiles: str | None = None

    @property
    def port(self):
        return urlsplit(self.link).port

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.port}" if self.socket is None else f"https://{HOST}"

    @property
    def token(self):
        return urlsplit(self.link).query.removeprefix("token=")

    def stranger(self):
        """Somebody who is not signed in."""
        connect = lambda: http.client.HTTPConnection("127.0.0.1", self.port, timeout=COMMAND_MAX_S)  # noqa: E731
        return Visitor(connect, self.origin, home=self.home, profiles=self.profiles)

    def visitor(self, name="Mara"):
        """Somebody who has used a link of this name."""
        return self._come_in(self.link_for(name))

    def link_for(self, name):
        """A link of this name, as `precheck desk --new-link` makes one."""
        token = f"token-{next(_NUMBERS)}-of-the-tests"
        new_link(self.home, name, token, time.time())
        return f"{self.origin}/enter?token={token}"

    def first_visitor(self):
        """Whoever started the desk, by the link that it printed: also where its clock is another one."""
        return self._come_in(self.link)

    def _come_in(self, link):
        visitor = self.stranger()
        token = urlsplit(link).query.removeprefix("token=")
        assert visitor.post("/enter", {"token": token}).status == 303
        return visitor

    def person(self, name):
        """Somebody of a team, as its proxy lets them through."""
        identity = {"X-Forwarded-Email": name}
        headers = {"Host": HOST, **identity}
        return Visitor(lambda: _OnSocket(self.socket), self.origin, headers, {}, self.home, self.profiles)

    def folder(self, at):
        return self.home / "runs" / at

    def refusals(self, visitor, name, data, said=()):
        """A file that cannot be used: its id, the command's reason, and the words of the page about it."""
        file = self.desk.file(name, data)
        refused = self.desk("columns", file, *said)
        assert refused.status in (2, 65), refused
        [sentence] = refused.sentences
        reason = sentence.removeprefix("precheck: ").split(";")[0].split(" --")[0]
        reason = reason.split(" of memory, of")[0]  # how much there is changes meanwhile
        told = reason.removeprefix(str(file)).removeprefix(name).strip(": ")
        at = visitor.file(data, name)
        if said:
            visitor.post(f"/files/{at}/columns", {said[0].removeprefix("--"): said[1], "then": "look"})
        answer = visitor.get(f"/files/{at}/columns")
        assert answer.status == 200, answer.text
        return at, told, html.unescape(re.sub("<[^>]*>", "", answer.text))

    def copy(self, at):
        """Another file at the desk, as this one is: a check takes longer than what is tried with it."""
        new = f"{at[:14]}{next(_NUMBERS):010x}"
        shutil.copytree(self.folder(at), self.folder(new))
        return new

    def decisions(self, at):
        lines = (self.folder(at) / "decisions.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def audit(self):
        return [json.loads(line) for line in (self.home / "audit.jsonl").read_text().splitlines()]

    def done(self):
        """The same without what was refused."""
        return [entry for entry in self.audit() if entry["deed"] != "refused"]

    def refused(self):
        """Who was turned away, where, and by which rule."""
        entries = [entry for entry in self.audit() if entry["deed"] == "refused"]
        return [(entry["by"], entry["facts"]["page"], entry["facts"]["rule"]) for entry in entries]


@contextmanager
def served_desk(folder, *words, profiles="", environment=(), home=None, is_warm=True):
    """A desk of one person, while the block lasts; `profiles` is what its configuration says."""
    home, is_known = home or folder / "desk", not environment and "--config" not in words
    words = ("desk", "--home", home, "--port", "0", "--no-browser", *words)
    if profiles:
        written = folder / "profiles.toml"
        written.write_text(profiles)
        words += ("--config", written)
    with _desk_in(folder, words, dict(environment), is_warm=is_warm) as (desk, process):
        link = process.stdout.readline().strip()
        assert link.startswith("http://127.0.0.1:"), (folder / "desk.err").read_text()
        yield ServedDesk(home, process, desk, link, profiles=profiles if is_known else None)


@contextmanager
def served_team(folder, profiles="", **told):
    """The desk of a team, while the block lasts: on a socket to which this process is the proxy."""
    folder.mkdir(exist_ok=True)
    path, written = folder / "s", folder / "team.toml"
    said = {"host": HOST, "proxy_user": getpass.getuser(), **told}
    section = "\n".join(f"{key} = {json.dumps(value)}" for key, value in said.items())
    roles = "\n".join(f"{role} = {json.dumps(names)}" for role, names in ROLES.items())
    written.write_text(f"[desk]\n{section}\n[desk.roles]\n{roles}\n{profiles}")
    words = ("desk", "--home", folder / "desk", "--config", written, "--socket", path)
    with _desk_in(folder, words) as (desk, process):
        errors = folder / "desk.err"
        hold_until(lambda: "listens" in errors.read_text() or process.has_ended)
        assert not process.has_ended, errors.read_text()
        yield ServedDesk(folder / "desk", process, desk, socket=path, profiles=profiles)


@contextmanager
def _desk_in(folder, words, changes=(), *, is_warm=True):
    """It runs while the block lasts, and what it says of errors is kept in the folder."""
    desk = Desk(folder)
    desk.is_warm = desk.is_warm and is_warm
    with (
        (folder / "desk.err").open("w") as errors,
        desk.start(*words, stderr=errors, **dict(changes)) as process,
    ):
        try:
            yield desk, process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(COMMAND_MAX_S)


@pytest.fixture(scope="session")
def own_desk(tmp_path_factory):
    """A desk of one person that many tests share."""
    with served_desk(tmp_path_factory.mktemp("own")) as running:
        yield running


@pytest.fixture(scope="module")
def desk_here(tmp_path_factory):
    """A desk of one person for the tests of one module, at which close matches are to be looked at."""
    with served_desk(tmp_path_factory.mktemp("desk"), profiles=REVIEWED) as running:
        yield running


@pytest.fixture(scope="session")
def team_desk(tmp_path_factory):
    """The desk of a team that many tests share."""
    with served_team(tmp_path_factory.mktemp("team"), REVIEWED) as running:
        yield running


@pytest.fixture(scope="session")
def mara(own_desk):
    """Somebody at one's own desk."""
    return own_desk.visitor("Mara Ellery")


@pytest.fixture
def serve_desk():
    """`serve_desk(folder)`: a desk for a test of its own."""
    return served_desk


@pytest.fixture
def serve_team():
    """`serve_team(folder)`: the desk of a team for a test of its own."""
    return served_team
