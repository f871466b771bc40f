"""The desk of a team behind a real nginx, started with the very file of docs/deployment."""

import re
import socket
import threading
from pathlib import Path

import pytest
from nginx import COOKIE, NAME, NGINX, free_port, proxied
from refusals import said
from visitors import REVIEWED, ROLES, served_team

MIXED = (Path(__file__).parents[3] / "sample_data" / "payments_mixed.csv").read_bytes()
UP, RITA, ANNA = (f"{name}@example.com" for name in ("up", "rita", "anna"))
MIB = 1024**2

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(NGINX is None, reason="no nginx; `make tools` fetches it"),
]


@pytest.fixture(scope="module")
def behind(tmp_path_factory):
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    with (
        served_team(folder, REVIEWED, host=f"{NAME}:{port}") as desk,
        proxied(folder / "proxy", port, desk.socket) as proxy,
    ):
        proxy.desk = desk
        yield proxy


@pytest.fixture(scope="module")
def checked(behind):
    return behind.person(UP).checked(MIXED, "payroll.csv")


def test_two_people_sign_in_and_make_four_eyes(behind, checked):
    rita, anna = behind.person(RITA), behind.person(ANNA)
    decided = rita.post(f"/files/{checked}/rows/10", {"decision": "release", "reason": "every month"})
    assert decided.status == 303
    assert rita.post(f"/files/{checked}/hand-over").status == 303
    assert behind.person(UP).post(f"/files/{checked}/release", {"shown": "x"}).status == 403
    assert anna.approve(checked).status == 303
    assert "four-eyes check met" in anna.get(f"/files/{checked}/release").text
    assert b"PAY-0010" in anna.get(f"/files/{checked}/download/release.simulated.csv").body
    assert [entry["by"] for entry in behind.desk.audit() if entry["deed"] == "approved"] == [ANNA]


def test_who_is_not_logged_in_is_sent_to_the_login(behind, checked):
    stranger = behind.person()
    for path in ("/", f"/files/{checked}/release", f"/files/{checked}/download/manifest.json"):
        answer = stranger.get(path)
        assert answer.status == 302
        assert "/oauth2/sign_in" in answer.to
    assert stranger.post("/sample").status == 302
    assert stranger.get("/oauth2/sign_in").text == "Log in"


@pytest.mark.parametrize("header", ["X-Forwarded-Email", "x-forwarded-email", "X_Forwarded_Email"])
def test_an_identity_from_the_browser_is_overwritten(behind, header):
    assert behind.person(None, **{header: ANNA}).get("/").status == 302
    forger = behind.person("nobody@example.com", **{header: ANNA})
    assert forger.get("/").status == 403  # that is what the login says, and it has no role
    page = behind.person(RITA, **{header: ANNA}).get("/").text
    assert RITA in page
    assert ANNA not in page


def test_identities_sent_twice_are_overwritten_too(behind):
    lines = [f"Host: {NAME}:{behind.port}", f"X-Forwarded-Email: {ANNA}", f"X-Forwarded-Email: {ANNA}"]
    for cookie, status in ((f"{COOKIE}=nobody@example.com", 403), ("other=1", 302)):
        head = "\r\n".join(["GET / HTTP/1.1", *lines, f"Cookie: {cookie}", "Connection: close", "", ""])
        assert behind.raw(head.encode()) == status


def test_a_login_without_an_identity_is_nobody(behind):
    answer = behind.person("nameless", **{"X-Forwarded-Email": ANNA}).get("/")
    assert answer.status == 401
    assert said("desk.proxy_named_nobody", "page") in answer.text


def test_another_host_and_another_page_are_refused_through_the_proxy(behind):
    rita = behind.person(RITA)
    assert rita.get("/", Host="evil.example").status in (403, 421)
    assert behind.person(UP).post("/sample", Origin="https://evil.example").status == 403


def test_a_large_upload_arrives_whole_and_as_it_comes(behind):
    line = b"P-1,Invented Payee,010203,10000001,1.00,GBP," + b"x" * 960 + b"\n"
    data = b"payment_id,name,sort_code,account_number,amount,currency,note\n" + line * (64 * MIB // len(line))
    at = behind.person(UP).file(data, "large.csv")
    [kept] = (behind.desk.folder(at) / "input").iterdir()
    assert kept.read_bytes() == data
    assert not [path for path in (behind.folder / "body").rglob("*") if path.is_file()]


def test_what_is_larger_than_both_allow_is_refused_and_nothing_is_left(behind):
    count = len(list((behind.desk.home / "runs").iterdir()))
    head = f"POST /files HTTP/1.1\r\nHost: {NAME}:{behind.port}\r\nCookie: {COOKIE}={UP}\r\n"
    head += f"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {2**33}\r\n\r\n"
    assert behind.raw(head.encode()) == 413
    assert len(list((behind.desk.home / "runs").iterdir())) == count


def test_progress_comes_through_while_the_check_runs(behind):
    up = behind.person(UP)
    rows = [f"P-{n},Invented Payee {n},010203,{10_000_000 + n},{n}.00,GBP" for n in range(2_000)]
    data = "\n".join(["payment_id,name,sort_code,account_number,amount,currency", *rows]).encode()
    at = up.planned(data)
    assert up.post(f"/files/{at}/start").status == 303
    seen = set()
    while (now := up.progress(at))["is_on"]:
        seen.add((now["done"], now["sentence"]))
        threading.Event().wait(0.05)
    assert len(seen) > 1
    assert up.get(f"/files/{at}").to.endswith("/review")


def test_the_headers_of_the_desk_come_through(behind):
    headers = behind.person(RITA).get("/").headers
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert headers["Strict-Transport-Security"]
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_the_socket_behind_it_is_for_the_proxy_alone(behind):
    assert ROLES["approver"]
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(behind.desk.socket))  # as the proxy's user, and with no identity
        line.sendall(f"GET / HTTP/1.1\r\nHost: {NAME}:{behind.port}\r\nConnection: close\r\n\r\n".encode())
        assert re.match(rb"HTTP/1.1 401", line.makefile("rb").readline())
