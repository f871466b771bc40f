"""Who comes in at one's own desk, and every request that is turned away. Each test sends the hostile one."""

import os
import shutil
import stat
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from refusals import said

from pipeline.desk.access import Sessions, new_link

PAYMENTS = b"name,sort_code,account_number,amount,currency\nAda Quillon,001122,00012345,10.00,GBP\n"
PAGES = ("/", "/search", "/audit")
LASTS = {"idle_max_s": 60, "max_s": 3600}


def test_a_link_works_once(own_desk):
    said = own_desk.desk("desk", "--home", own_desk.home, "--new-link", "Ada").out
    token = said.strip().partition("token=")[2]
    first, second = own_desk.stranger(), own_desk.stranger()
    for _ in range(2):  # what only looks at the link, as some programs do, does not use it up
        assert token in first.get(f"/enter?token={token}").text
    assert first.post("/enter", {"token": token}).status == 303
    assert second.post("/enter", {"token": token}).status == 401
    assert (first.get("/").status, second.get("/").status) == (200, 401)


def test_two_who_use_a_link_at_the_same_moment_get_one_session(tmp_path):
    sessions = Sessions(tmp_path, **LASTS, clock=lambda: 0.0, chance=lambda: "x" * 9)
    new_link(tmp_path, "Ada", "token", 0.0)
    assert [sessions.enter("token") is not None for _ in range(2)] == [True, False]


def test_links_lie_in_files_that_only_their_owner_may_read_and_do_not_show_the_token(own_desk):
    token = (
        own_desk.desk("desk", "--home", own_desk.home, "--new-link", "Bram")
        .out.strip()
        .partition("token=")[2]
    )
    files = list((own_desk.home / "links").iterdir())
    assert files
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert token not in file.name + file.read_text()


def test_no_token_is_in_a_process_list(tmp_path, serve_desk):
    with serve_desk(tmp_path, is_warm=False) as desk:
        words = Path(f"/proc/{desk.process.pid}/cmdline").read_bytes()
        assert b"--no-browser" in words
        assert desk.token.encode() not in words


def test_the_browser_is_opened_by_a_private_file_and_its_command_line_has_no_token(
    tmp_path, desk_in, wait_until
):
    told = tmp_path / "told"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {told}\n')
    browser.chmod(0o700)
    desk = desk_in(tmp_path / "desk")
    words = ("desk", "--home", tmp_path / "home", "--port", "0")
    with desk.start(*words, BROWSER=f"{browser} %s") as running:
        wait_until(lambda: told.exists() and told.read_text().strip())
        running.terminate()
        ended = running.end()
    page = Path(told.read_text().strip().removeprefix("file://"))
    token = page.read_text().partition("token=")[2].partition('"')[0]
    assert len(token) > 40
    assert token not in told.read_text() + ended.out + ended.err
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


@pytest.mark.parametrize("age_s", [24 * 3600 + 1])
def test_an_old_link_lets_nobody_in(tmp_path, age_s):
    sessions = Sessions(tmp_path, **LASTS, clock=lambda: float(age_s), chance=lambda: "x" * 9)
    new_link(tmp_path, "Ada", "token", 0.0)
    assert sessions.enter("token") is None


def test_a_session_ends_after_idle_time_and_a_page_that_asks_by_itself_does_not_keep_it(tmp_path):
    now = [0.0]
    sessions = Sessions(tmp_path, **LASTS, clock=lambda: now[0], chance=lambda: "session")
    new_link(tmp_path, "Ada", "token", 0.0)
    session, person = sessions.enter("token")
    now[0] = 50
    assert sessions.person(session) == person
    now[0] = 100
    assert sessions.person(session, counts=False) == person
    now[0] = 111
    assert sessions.person(session) is None


def test_a_session_ends_after_its_longest_time_however_much_is_asked(tmp_path):
    now = [0.0]
    sessions = Sessions(tmp_path, **LASTS, clock=lambda: now[0], chance=lambda: "session")
    new_link(tmp_path, "Ada", "token", 0.0)
    session, person = sessions.enter("token")
    for at_s in range(50, 3601, 50):
        now[0] = at_s
        assert sessions.person(session) == person
    now[0] = 3601
    assert sessions.person(session) is None
    now[0] = 3000
    assert sessions.person(session) is None


def test_the_cookie_is_for_no_script_and_no_other_page_and_names_the_port(own_desk):
    token = own_desk.link_for("Cora").partition("token=")[2]
    answer = own_desk.stranger().post("/enter", {"token": token})
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"precheck-desk-{own_desk.port}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}


@pytest.mark.parametrize("path", [*PAGES, "/files/20300102030405abcdef0123", "/nothing"])
def test_without_a_session_there_is_nothing(own_desk, path):
    assert own_desk.stranger().get(path).status == 401
    forged = own_desk.stranger()
    forged.cookies[f"precheck-desk-{own_desk.port}"] = "forged"
    assert forged.get(path).status == 401


def test_signing_out_ends_the_session(own_desk):
    visitor = own_desk.visitor("Dora")
    kept = dict(visitor.cookies)
    assert visitor.post("/leave").status == 200
    visitor.cookies = kept
    assert visitor.get("/").status == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "localhost.evil.example"])
def test_a_name_that_is_not_the_desks_is_refused(own_desk, mara, host):
    assert mara.get("/", Host=host).status in (400, 403)
    assert mara.get(f"/enter?token={own_desk.token}", Host=host).status in (400, 403)


def test_another_name_of_this_computer_is_refused(own_desk, mara):
    assert mara.get("/", Host=f"localhost:{own_desk.port}").status == 403


OTHER_USER = 65534
_AND_AWAY = """
import encodings.idna, os, socket, struct, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
port, how, request = int(sys.argv[1]), sys.argv[2], sys.argv[3].encode()
for _ in range(20):
    peer = socket.create_connection(("127.0.0.1", port))
    if how == "reset":
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.sendall(request)
    peer.close()
"""


@pytest.fixture
def other_user():
    """Runs a command as another user of this computer, who has this session's cookie."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")

    def run(*command):
        other = {"user": OTHER_USER, "group": OTHER_USER, "extra_groups": [], "cwd": "/"}
        said = {"capture_output": True, "text": True, "timeout": 30}
        done = subprocess.run(command, env={"PATH": os.environ["PATH"]}, check=False, **other, **said)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("path", ["/", "/audit", "/static/desk.js", "/enter?token=x"])
def test_another_user_of_the_computer_with_the_session_cookie_sees_nothing(own_desk, mara, other_user, path):
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("no curl")
    [(name, value)] = mara.cookies.items()
    url = f"{own_desk.origin}{path}"
    command = [curl, "-sS", "--noproxy", "*", "-b", f"{name}={value}", "-w", "%{http_code}", url]
    answer = other_user(*command)
    assert answer.endswith("403")
    assert said("desk.of_another_user") in answer
    assert mara.get("/").status == 200
    page = path.partition("?")[0].replace("desk.js", "{name}")
    assert ("the desk", f"GET {page}", "of_another_user") in own_desk.refused()


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_another_user_who_is_gone_before_the_desk_looks_has_nothing_done(own_desk, mara, how):
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    [(name, value)] = mara.cookies.items()
    request = (
        f"POST /sample HTTP/1.1\r\nHost: 127.0.0.1:{own_desk.port}\r\nOrigin: {own_desk.origin}\r\n"
        f"Cookie: {name}={value}\r\nContent-Length: 0\r\n\r\n"
    )
    before = len(own_desk.done())
    command = [sys.executable, "-I", "-S", "-c", _AND_AWAY, str(own_desk.port), how, request]
    subprocess.run(command, check=True, timeout=30)
    assert mara.get("/").status == 200
    assert len(own_desk.done()) == before


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": None, "Origin": None},
        {"Sec-Fetch-Site": None, "Origin": "null"},
        {"Sec-Fetch-Site": None, "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": None, "Origin": "http://127.0.0.1:1"},
    ],
    ids=str,
)
def test_what_another_page_sends_is_refused(own_desk, mara, headers):
    before = len(own_desk.done())
    assert mara.post("/sample", **headers).status == 403
    assert mara.upload("/files", "a.csv", PAYMENTS, **headers).status == 403
    assert mara.post("/enter", {"token": own_desk.token}, **headers).status == 403
    assert len(own_desk.done()) == before


def test_an_old_browser_that_only_says_the_origin_is_let_in(own_desk):
    visitor = own_desk.visitor("Ebba")
    assert visitor.post("/leave", **{"Sec-Fetch-Site": None}).status == 200


@pytest.mark.parametrize("path", [*PAGES, "/nothing", "/static/desk.css", "/static/none", "/enter"])
def test_every_answer_carries_the_headers_that_forbid_what_is_not_needed(mara, path):
    headers = mara.get(path).headers
    policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert {
        policy[name] for name in ("script-src", "style-src", "img-src", "connect-src", "form-action")
    } == {"'self'"}
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in headers


def test_redirections_and_downloads_carry_them_too(mara):
    at = mara.file(PAYMENTS)
    for answer in (mara.get(f"/files/{at}"), mara.post(f"/files/{at}/columns", {"then": "look"})):
        assert answer.status == 303
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


class Markup(HTMLParser):
    """What a page is made of."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.loaded = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.loaded |= {value for name, value in attributes if name in ("src", "href", "action") and value}
        assert not [name for name, _ in attributes if name.startswith("on") or name == "style"]


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>.csv", '"><script>alert(1)</script>.csv'])
def test_a_hostile_name_and_hostile_cells_are_text(mara, name):
    cells = b"<script>alert(1)</script>,001122,00012345,10.00,GBP\n"
    header = PAYMENTS.splitlines()[0] + b",<b onclick=x>\n"
    at = mara.file(header + cells.rstrip() + b",<svg onload=y>\n", name)
    for page in ("/", f"/files/{at}/columns"):
        found = Markup(mara.get(page).text)
        assert not {"img", "svg", "b onclick"} & found.tags
        assert not [link for link in found.loaded if link.startswith(("http", "//", "javascript"))]


@pytest.mark.parametrize(
    "file_id",
    [
        "..",
        "%2e%2e",
        "..%2f..%2fetc",
        "20300102030405abcdef0123",
        "20300102030405ABCDEF0123",
        "x" * 300,
        "%00",
    ],
)
def test_no_path_comes_from_a_request(mara, file_id):
    for page in ("", "/columns", "/plan", "/progress", "/review", "/release", "/download/manifest.json"):
        assert mara.get(f"/files/{file_id}{page}").status in (400, 404)


def test_only_files_from_the_list_leave_the_desk(own_desk, mara):
    at = mara.checked(PAYMENTS)
    assert mara.get(f"/files/{at}/download/manifest.json").status == 200
    for name in (
        "ledger.db",
        ".lock",
        "..%2fdesk.json",
        "%2e%2e%2fdesk.json",
        "desk.json",
        "nothing.csv",
        "*",
    ):
        assert mara.get(f"/files/{at}/download/{name}").status == 404
    link = own_desk.folder(at) / "run.precheck" / "release.csv"
    link.symlink_to("/etc/passwd")
    assert mara.get(f"/files/{at}/download/release.csv").status == 404
    link.unlink()


def test_everything_is_for_its_owner_only(own_desk, mara):
    at = mara.checked(PAYMENTS)
    for path in own_desk.folder(at).rglob("*"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path
    for path in (own_desk.home, own_desk.home / "runs", own_desk.home / "audit.jsonl"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_names_and_accounts_are_in_no_log_and_no_address(own_desk, mara):
    at = mara.checked(PAYMENTS)
    assert mara.post("/search", {"text": "Quillon"}).status == 200
    assert mara.post(f"/files/{at}/review", {"text": "Quillon"}).status == 200
    written = (own_desk.home / "audit.jsonl").read_text() + (own_desk.desk.folder / "desk.err").read_text()
    written += (own_desk.folder(at) / "log.jsonl").read_text()
    written += (own_desk.folder(at) / "progress.json").read_text()
    assert "Quillon" not in written
    assert "00012345" not in written


def test_an_answer_to_a_page_that_breaks_says_nothing_of_the_program(own_desk, mara):
    at = mara.file(PAYMENTS)
    (own_desk.folder(at) / "desk.json").write_text("{")
    answer = mara.get(f"/files/{at}/columns")
    assert answer.status == 422
    assert "Traceback" not in answer.text
    assert str(own_desk.home) not in answer.text
    assert mara.get("/").status == 200  # the others are listed
    assert mara.file(PAYMENTS)  # and what is unreadable keeps nobody from the next file


def test_the_desk_listens_on_this_computer_only(own_desk):
    with Path("/proc/net/tcp").open() as lines:
        found = [line.split()[1] for line in lines if line.split()[1].endswith(f":{own_desk.port:04X}")]
    assert set(found) >= {f"0100007F:{own_desk.port:04X}"}
    assert not [one for one in found if one.startswith("00000000:")]


def test_a_slow_upload_does_not_keep_others_waiting(own_desk, mara):
    connection = mara.connect()
    connection.putrequest("POST", "/files")
    cookies = "; ".join(f"{name}={value}" for name, value in mara.cookies.items())
    for name, value in {
        "Origin": own_desk.origin,
        "Cookie": cookies,
        "Content-Type": "multipart/form-data; boundary=x",
        "Content-Length": "100000",
    }.items():
        connection.putheader(name, value)
    connection.endheaders()
    connection.send(b'--x\r\nContent-Disposition: form-data; name="file"; filename="slow.csv"\r\n\r\nname')
    before = time.monotonic()
    assert mara.get("/").status == 200
    assert time.monotonic() - before < 5
    connection.close()
