"""Whose connection it is: programs of other users do not come in, whatever cookie they have."""

import asyncio
import json
import os
import re
import socket
from datetime import UTC, datetime
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from in_memory import visit

from pipeline.desk.access import LocalAccess, is_ours, system_tells
from pipeline.desk.refusals import Forbidden

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
PEER, DESK = ("127.0.0.1", 43690), ("127.0.0.1", 8770)
OVER_4, OVER_6 = "0100007F", "0000000000000000FFFF00000100007F"
OURS = os.geteuid()


def line(uid, *, inode=4711, host=OVER_4, ports=(43690, 8770), state="01"):
    """One connection, as Linux shows it."""
    ends = " ".join(f"{host}:{port:04X}" for port in ports)
    return f"   0: {ends} {state} 00000000:00000000 00:00000000 00000000 {uid:5} 0 {inode} 1 0\n"


def tables(folder, *lines):
    for name, text in zip(("tcp", "tcp6"), lines, strict=False):
        (folder / name).write_text(HEAD + text)
    return folder / "tcp", folder / "tcp6"


@pytest.mark.parametrize("uid", [OURS, 0])
@pytest.mark.parametrize("lines", [lambda uid: [line(uid)], lambda uid: ["", line(uid, host=OVER_6)]])
def test_programs_of_the_same_user_and_of_root_come_in(tmp_path, uid, lines):
    assert is_ours(PEER, DESK, tables(tmp_path, *lines(uid)))


@pytest.mark.parametrize(
    "lines",
    [
        (line(OURS + 1),),
        ("", line(OURS + 1, host=OVER_6)),
        (line(0, inode=0),),  # closed by its program: Linux shows root
        (line(0, inode=0, state="06"),),
        (line(OURS, ports=(8770, 43690)),),  # the desk's own end
        (
            line(OURS, ports=(43690, 8771)),
            line(OURS, host="0" * 24 + OVER_4),
        ),  # another port, another address
        ("",),
        (),
    ],
)
def test_programs_of_others_do_not(tmp_path, lines):
    assert not is_ours(PEER, DESK, tables(tmp_path, *lines))


def test_whether_the_system_tells_is_tried(tmp_path):
    assert system_tells()
    assert not system_tells(tables(tmp_path))
    assert not system_tells(tables(tmp_path, line(OURS)))


def test_a_connection_that_was_reset_is_nobodys():
    with socket.create_server(("127.0.0.1", 0)) as server:
        peer = socket.create_connection(server.getsockname())
        ends = peer.getsockname(), peer.getpeername()
        accepted, _ = server.accept()
        assert is_ours(*ends)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        peer.close()
        assert not is_ours(*ends)
        accepted.close()


class Connection:
    def __init__(self, peer):
        self.get_extra_info = {"sockname": peer.getpeername(), "peername": peer.getsockname()}.get


def test_a_connection_is_looked_up_once_and_the_next_one_by_itself():
    access = LocalAccess(1, None)
    with socket.create_server(("127.0.0.1", 0)) as server:
        peer = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        first, second = (SimpleNamespace(transport=Connection(peer)) for _ in range(2))
        access.require_peer(first)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        peer.close()
        access.require_peer(first)
        with pytest.raises(Forbidden):
            access.require_peer(second)
        accepted.close()


class _Addresses(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, _, attributes):
        names = {"href", "src", "action", "formaction", "data-now", "data-then"}
        self.found += [value for name, value in attributes if name in names and not value.startswith("#")]


SECRET = "/s3cret-part"


def test_where_the_system_does_not_tell_the_address_has_a_secret_part_that_every_page_keeps(tmp_path):
    async def steps(ask):
        answer, text = await ask("GET", f"{SECRET}/enter?token=token")
        assert answer.status == 200
        answer, _ = await ask("POST", f"{SECRET}/enter", token="token")
        assert (answer.status, answer.headers["Location"]) == (303, f"{SECRET}/")
        carried = re.sub("; Path=.*", "", answer.headers["Set-Cookie"])
        assert SECRET not in carried
        sample, _ = await ask("POST", f"{SECRET}/sample", language="en")
        assert sample.status == 303
        assert sample.headers["Location"].startswith(f"{SECRET}/files/")
        for path in (f"{SECRET}/", f"{SECRET}/search", sample.headers["Location"], f"{SECRET}/nothing"):
            answer, text = await ask("GET", path)
            page = _Addresses()
            page.feed(text)
            assert len(page.found) > 5
            assert all(address.startswith(f"{SECRET}/") for address in page.found)
        answer, _ = await ask("POST", f"{SECRET}/language", language="de", back="/search")
        assert answer.headers["Location"] == f"{SECRET}/search"
        assert (await ask("GET", f"{SECRET}/static/desk.css"))[0].status == 200

    asyncio.run(visit(tmp_path, steps, prefix=SECRET))
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET.encode() not in kept


def test_the_cookie_alone_lets_nobody_in_there_and_no_page_gives_the_secret_away(tmp_path):
    async def steps(ask):
        await ask("POST", f"{SECRET}/enter", token="token")
        for path in ("/", "/audit", "/static/desk.js", "/s3cret-par/", "/s3cret-partx/", f"/x{SECRET}/"):
            for method in ("GET", "POST"):
                answer, text = await ask(method, path)
                assert answer.status == 401
                assert SECRET not in text + str(answer.headers)

    asyncio.run(visit(tmp_path, steps, prefix=SECRET))
    assert SECRET not in (tmp_path / "audit.jsonl").read_text()


def test_who_is_turned_away_is_on_record_once_in_ten_minutes_without_what_was_asked_for(tmp_path):
    minutes = [0]

    async def steps(ask):
        for minutes[0] in (0, 1, 2, 12, 13):
            await ask("GET", f"{SECRET}/search?text=Thornwood")
        await ask("GET", f"{SECRET}/files/Thornwood/review")
        for method in ("GET", "PROPFIND"):
            await ask(method, "/Thornwood")

    now = lambda: datetime(2031, 1, 1, 8, minutes[0], tzinfo=UTC)  # noqa: E731
    asyncio.run(visit(tmp_path, steps, prefix=SECRET, now=now))
    kept = (tmp_path / "audit.jsonl").read_text()
    lines = [json.loads(line) for line in kept.splitlines()]
    assert {(line["by"], line["deed"], line["run"]) for line in lines} == {("the desk", "refused", None)}
    search = {"page": "GET /search", "rule": "session_ended"}
    assert [line["facts"] for line in lines] == [
        search,
        search | {"repeated_count": 2},
        {"page": "GET /files/{id}/review", "rule": "session_ended"},
        {"page": "", "rule": "address_without_secret"},
    ]
    assert "Thornwood" not in kept
    assert SECRET not in kept
