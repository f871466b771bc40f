"""Secrets, tokens, names and accounts go where they belong, and nowhere else."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web

from schemas.outcomes import COLUMNS

NAME = "Canary Featherstonehaugh"
HELD_NAME = "Canary Heldname"
SORT_CODE, ACCOUNT = "010203", "87654321"
IBAN = "FR7630003012340000482100733"
TOKEN = "quoted-token-5f1d"  # the impostor's
SECRET = "canary-secret-77aa"


@pytest.fixture
def file(desk):
    account = {"sort_code": SORT_CODE, "account_number": ACCOUNT, "account_type": "Personal"}
    rows = [
        {"name": NAME, **account},
        {"name": f"{NAME} II", **account},
        {"name": NAME, "iban": IBAN},
        {"name": f"{NAME} III", "iban": IBAN[:-1]},
        {"name": f"{NAME}\x07", **account, "account_number": ACCOUNT[:-1]},
    ]
    return desk.payments(rows)


@pytest.fixture
def words(desk, sandbox):
    """For both gateways at a server of the test's own, with a secret that can be recognised."""

    def at(url):
        secret = desk.folder / "secret"
        secret.touch(mode=0o600)
        secret.write_text(SECRET)
        changes = {"base_url": url, "token_url": f"{url}/token", "client_secret_file": str(secret)}
        sections = {api: sandbox.section("production", api, **changes) for api in ("cop", "vop")}
        return "--config", desk.configuration(mine=sections), "--profile", "mine"

    return at


def echo(request):
    return {name: value for name, value in request.headers.items() if name in CORRELATION}


CORRELATION = ("x-fapi-interaction-id", "X-Request-ID")


async def close_match(request):
    if "copgateway" in request.path:
        report = {"matched": False, "reasonCode": "MBAM", "name": HELD_NAME}
        return web.json_response({"data": {"verificationReport": report}}, headers=echo(request))
    return web.json_response({"partyNameMatch": "CMTC", "matchedName": HELD_NAME}, headers=echo(request))


async def quote(request):
    """An error that repeats what it was sent, as careless servers do."""
    said = {"code": "FORMAT_ERROR", "status": 400, "detail": (await request.read()).decode()}
    return web.json_response(said, status=400, headers=echo(request))


async def quote_in_a_login_page(request):
    page = f"{await request.read()} {request.headers['Authorization']}"
    return web.Response(text=page, content_type="text/html", headers=echo(request))


async def quote_as_a_code(request):
    said = {"code": f"CANARY_{request.headers['Authorization']}", "status": 500}
    return web.json_response(said, status=500, headers=echo(request))


async def refuse(request):
    said = {"code": "CLIENT_INVALID", "detail": request.headers["Authorization"]}
    return web.json_response(said, status=401, headers=echo(request))


async def hang_up(request):
    request.transport.abort()
    return web.Response()


@pytest.mark.parametrize(
    "handler",
    [
        close_match,
        quote,
        quote_in_a_login_page,
        *(pytest.param(handler, marks=pytest.mark.nightly) for handler in (quote_as_a_code, refuse, hang_up)),
    ],
)
def test_no_answer_of_a_server_brings_a_secret_a_name_or_an_account_into_the_open(
    desk, misbehaving, words, file, handler
):
    with misbehaving(handler) as url:
        finished = desk("run", file, *words(url), "--json")
        planned = desk("plan", file, *words(url))

    folder = desk.folder / "payments.precheck"
    private = (NAME, "Featherstonehaugh", ACCOUNT, SORT_CODE + ACCOUNT, IBAN)
    summaries = [path.read_text() for path in folder.glob("summary.json")]
    for said in (finished.out, finished.err, planned.out, planned.err, *summaries):
        for canary in (*private, HELD_NAME, TOKEN, SECRET):
            assert canary not in said
    for path in folder.iterdir():
        content = path.read_bytes()
        assert TOKEN.encode() not in content
        assert SECRET.encode() not in content
    ledgers = b"".join(path.read_bytes() for path in folder.glob("ledger.db*"))
    assert ledgers
    for canary in private:
        assert canary.encode() not in ledgers


def test_a_name_that_the_bank_returned_is_in_the_ledger_and_in_its_column_only(
    desk, misbehaving, words, file
):
    with misbehaving(close_match) as url:
        desk("run", file, *words(url))

    folder = desk.folder / "payments.precheck"
    assert HELD_NAME.encode() in (folder / "ledger.db").read_bytes()
    for row in desk.outcomes():
        columns = [column for column in COLUMNS if HELD_NAME in row[column]]
        assert columns in ([], ["check_matched_name"])


def test_the_environment_cannot_listen_in(desk, sandbox, network_payments):
    """No proxy is used, and no TLS secret is written for a network sniffer."""
    keys = desk.folder / "keys.log"
    proxy = "http://127.0.0.1:9"

    finished = desk(
        "run",
        desk.payments(network_payments(2)),
        *sandbox.using("production"),
        SSLKEYLOGFILE=str(keys),
        HTTPS_PROXY=proxy,
        ALL_PROXY=proxy,
    )

    assert finished.status == 0
    assert not keys.exists(), "no library opens it either"


def test_what_others_set_for_libraries_is_not_even_read(desk, sandbox):
    """A library that obeyed would fail at the file of TLS secrets, or note that it was called as a plugin.

    It would wait for ever for the authorities: no process writes to the pipe.
    """
    pipe = desk.folder / "authorities.pem"
    os.mkfifo(pipe)
    plugins, seen = desk.folder / "plugins", desk.folder / "seen"
    known = plugins / "listener-1.0.dist-info"
    known.mkdir(parents=True)
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: listener\nVersion: 1.0\n")
    (known / "entry_points.txt").write_text("[pydantic]\nlistener = listener:plugin\n")
    (plugins / "listener.py").write_text(f"open({str(seen)!r}, 'w').close()\nplugin = None\n")
    theirs = {"SSLKEYLOGFILE": "/dev/null/keys", "SSL_CERT_FILE": str(pipe), "PYTHONPATH": str(plugins)}

    finished = desk("doctor", *sandbox.using("production"), **theirs)

    assert finished.status == 0
    assert not seen.exists()


def no_limit():
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


needs_cores = pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY
    or not Path("/proc/sys/kernel/core_pattern").exists(),
    reason="the system lets no process leave a core file",
)


def dies_with_a_core(process):
    """Let the kernel kill a process as it does those that touch memory which is not theirs."""
    os.kill(process.pid, signal.SIGSEGV)
    died = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert died.si_status == signal.SIGSEGV
    return died.si_code == os.CLD_DUMPED


@needs_cores
def test_no_core_file_is_left_of_a_process_that_holds_payees(
    desk, serve, wait_until, tmp_path, network_payments
):
    with subprocess.Popen(["/bin/sh", "-c", "ulimit -c unlimited; exec sleep 60"], cwd=tmp_path) as other:
        wait_until(lambda: Path(f"/proc/{other.pid}/comm").read_text() == "sleep\n")
        state = "".join(Path(f"/proc/{other.pid}/{of}").read_text() for of in ("limits", "status"))
        assert dies_with_a_core(other), f"of others there is one here:\n{state}"
    file = desk.payments(network_payments(200))
    with (
        serve(tmp_path / "slow", "--latency", 0.5) as sandbox,
        desk.start("run", file, *sandbox.using("production"), limits=no_limit) as running,
    ):
        sandbox.wait_for_calls(1, 0)
        assert not dies_with_a_core(running)


CHILD_THAT_PARSES = """
import ctypes, json, resource, sys
from pipeline.files import confined
sys.argv = ["", json.dumps({"module": "json", "options": {}, "memory_max_bytes": -1})]
try:
    confined.main()
except SystemExit:
    print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), resource.getrlimit(resource.RLIMIT_CORE))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the mark is one of Linux")
def test_a_child_that_parses_leaves_no_core_file(tmp_path):
    """What the limit does not reach, a program that images are piped to, the mark of the process does."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD_THAT_PARSES],
        input="",
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.split() == ["0", "(0,", "0)"]
