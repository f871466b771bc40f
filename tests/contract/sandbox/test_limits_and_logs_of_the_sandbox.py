"""What the sandbox counts, writes and keeps."""

import json
import stat
import subprocess
import sys
import time
import uuid

from refusals import refused

from pipeline.errors import ConfigurationError, OutputError
from pipeline.sandbox.network import Network
from pipeline.sandbox.server import SandboxSettings, run
from schemas.cop import AccountType, NameVerification, ReasonCode

PATH = "/copgateway/v1.0/confirmation-payee/name-verification"


def body(name="Avery Thornwood", identification="00112200012345"):
    return {
        "data": {
            "schemeName": "SortCodeAccountNumber",
            "accountType": "Personal",
            "identification": identification,
            "name": name,
        }
    }


def test_the_test_server_answers_fifty_requests_a_day(serving, tmp_path):
    with serving(tmp_path / "folder") as sandbox:
        token = sandbox.token("test")
        statuses = [sandbox.check(f"/test{PATH}", body(), token=token).status for _ in range(50)]
        refused = sandbox.check(f"/test{PATH}", body(), token=token)
        other_role = sandbox.check(f"/sandbox{PATH}", body(), token=sandbox.token("sandbox"))
    assert statuses == [200] * 50
    assert (refused.status, refused.document["code"]) == (429, "TOO_MANY_REQUESTS")
    assert 0 < int(refused.headers["Retry-After"]) <= 86_400
    assert other_role.status == 200


def test_a_new_token_does_not_reset_the_cap(serving, tmp_path):
    with serving(tmp_path / "folder", daily_cap=1) as sandbox:
        replies = [sandbox.check(f"/test{PATH}", body(), token=sandbox.token("test")) for _ in range(2)]
    assert [reply.status for reply in replies] == [200, 429]


def test_a_rate_limit_is_kept_where_one_is_set(serving, tmp_path):
    with serving(tmp_path / "folder", rate_per_s_max=1) as sandbox:
        token = sandbox.token()
        statuses = {sandbox.check(f"/sandbox{PATH}", body(), token=token).status for _ in range(5)}
    assert statuses == {200, 429}


def test_misbehaving_banks_show_as_the_reference_describes_them(serving, tmp_path):
    changes = {"responder_faults": True, "cop_responder_wait_s": 0.2, "vop_responder_wait_s": 0.1}
    with serving(tmp_path / "folder", **changes) as sandbox:
        token = sandbox.token("production")

        def ask(identification):
            document = body(identification=identification)
            return sandbox.check(f"/production{PATH}", document, token=token)

        silent, broken = ask("55000000000001"), ask("57000000000001")
        started = time.monotonic()
        slow = ask("45000000000001")
        slow_took_s = time.monotonic() - started
        failing = [ask(f"500000{number:08d}") for number in range(30)]
    assert (silent.status, silent.document["code"]) == (504, "TIMEOUT_ERROR")
    assert "0.2 seconds" in silent.document["detail"]
    assert (broken.status, broken.document["code"]) == (502, "SSL_ERROR")
    assert slow.status == 200
    assert slow_took_s >= 0.18
    codes = {
        reply.document.get("code") or reply.document["data"]["verificationReport"]["reasonCode"]
        for reply in failing
    }
    assert codes == {"SERVER_ERROR", "HTTPERR", "FOURHUN"}


def test_every_call_is_one_line_of_the_log_and_no_line_tells_a_name(serving, tmp_path):
    log = tmp_path / "calls.jsonl"
    correlation_id = str(uuid.uuid4())
    with serving(tmp_path / "folder", call_log=log) as sandbox:
        token = sandbox.token()
        sandbox.check(f"/sandbox{PATH}", body(), token=token, **{"x-fapi-interaction-id": correlation_id})
        reordered = {"data": dict(reversed(body()["data"].items()))}
        sandbox.check(f"/sandbox{PATH}", json.dumps(reordered, indent=4), token=token)
        sandbox.check(f"/sandbox{PATH}", body(name="Rowan Blackmere"), token=token)
        sandbox.check(f"/sandbox{PATH}", body())
    text = log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["api"], line["status"]) for line in lines] == [
        ("token", 200),
        ("cop", 200),
        ("cop", 200),
        ("cop", 200),
        ("cop", 401),
    ]
    assert set(lines[1]) == {
        "time",
        "monotonic",
        "role",
        "api",
        "path",
        "status",
        "request_id",
        "question",
        "http_version",
        "byte_count",
        "cookie",
        "faults",
        "method",
        "connection",
        "waiting",
        "refused",
        "answered",
        "abandoned",
        "retry_after_s",
        "token",
    }
    assert lines[1]["token"] == lines[2]["token"] != lines[4]["token"]
    assert [line["refused"] for line in lines] == [None, None, None, None, "token missing"]
    assert lines[1]["request_id"] == correlation_id
    assert (lines[1]["role"], lines[1]["path"]) == ("sandbox", f"/sandbox{PATH}")
    assert lines[1]["http_version"] == "1.1"
    assert lines[1]["question"] == lines[2]["question"] != lines[3]["question"]
    assert lines[4]["question"] is None
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert not any(secret in text for secret in ("Thornwood", "00112200012345", token))


def test_a_restart_on_the_same_folder_and_port_goes_on(serving, tmp_path):
    folder = tmp_path / "folder"
    with serving(folder) as first:
        context, form = first.member_context(), first.form()
        _, port = first.address
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    with serving(folder, port=port) as second:
        assert second.send("GET", "/", context=context).status == 404
        assert second.ask_token(body=form).status == 200
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept


def test_what_lies_in_the_folder_is_the_owners_alone(sandbox):
    assert stat.S_IMODE(sandbox.folder.stat().st_mode) == 0o700
    files = list(sandbox.folder.iterdir())
    assert len(files) >= 10
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_the_configuration_has_a_profile_for_each_server_and_no_secret(sandbox):
    text = (sandbox.folder / "precheck.toml").read_text()
    profiles = sandbox.profiles
    assert {name: set(profile) - {"default_account_type"} for name, profile in profiles.items()} == {
        "sandbox": {"cop", "vop"},
        "sandbox-standard": {"vop"},
        "rehearse": {"cop", "vop"},
        "test": {"cop"},
        "production": {"cop", "vop"},
        "production-standard": {"vop"},
    }
    assert profiles["test"]["cop"]["daily_cap"] == 50
    assert profiles["production"]["vop"]["base_url"] == f"{sandbox.url}/production"
    secrets = [path.read_text() for path in sandbox.folder.glob("*secret")]
    secrets.append((sandbox.folder / "client.passphrase").read_text())
    assert len(secrets) == 4
    assert not any(secret in text for secret in secrets)


def test_certificates_of_two_authorities_are_made_anew(serving, tmp_path):
    folder = tmp_path / "folder"
    with serving(folder):
        first = (folder / "server_ec.pem").read_bytes()
    (folder / "ca.pem").unlink()
    with serving(folder):
        second = (folder / "server_ec.pem").read_bytes()
    (folder / "server_ec.pem").write_bytes(first)
    with serving(folder) as third:
        assert third.ask_token().status == 200
    assert first != second


def test_a_sandbox_of_its_own_process_ends_quietly_on_sigterm(tmp_path):
    script = (
        "from pathlib import Path\n"
        "from pipeline.sandbox.server import SandboxSettings, run\n"
        f"settings = SandboxSettings(folder=Path({str(tmp_path / 'folder')!r}))\n"
        "run(settings, announce=lambda url: print(url, flush=True))\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline().startswith("https://127.0.0.1:")
        child.terminate()
        assert child.wait(20) == 0
        assert child.stdout.read() == ""


def test_a_taken_port_is_said_in_one_sentence(serving, tmp_path, sandbox):
    _, port = sandbox.address
    with refused(ConfigurationError, "sandbox.cannot_listen", host="127.0.0.1", port=port):
        run(SandboxSettings(folder=tmp_path / "folder", port=port), announce=print)


def test_a_folder_that_cannot_be_made_is_said_in_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with refused(OutputError, "files.not_writable"):
        run(SandboxSettings(folder=tmp_path / "file" / "folder"), announce=print)


def test_another_seed_is_another_network():
    question = NameVerification(
        scheme_name="SortCodeAccountNumber",
        account_type=AccountType.PERSONAL,
        identification="01000000000001",
        name="Quentin Zylberstajn",
    )
    reports = {Network(seed, is_faulty=False).check_name(question)[0].reason_code for seed in range(40)}
    assert ReasonCode.ANNM in reports
    assert len(reports) > 1
