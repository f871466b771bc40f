"""The control address: what can be changed while the sandbox serves, and by whom."""

import http.client
import json
import shutil
import socket
import stat
import tempfile
from pathlib import Path

import pytest
from refusals import refused

from pipeline.errors import ConfigurationError
from pipeline.sandbox.server import SandboxSettings, run

PATH = "/sandbox/copgateway/v1.0/confirmation-payee/name-verification"
TEST = PATH.replace("/sandbox", "/test")
QUESTION = {
    "data": {
        "schemeName": "SortCodeAccountNumber",
        "accountType": "Personal",
        "identification": "00112200012345",
        "name": "Avery Thornwood",
    }
}


class LocalConnection(http.client.HTTPConnection):
    """HTTP over a UNIX socket."""

    def __init__(self, path):
        super().__init__("sandbox")
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


@pytest.fixture
def folder():
    """A folder with a path short enough for a socket in it."""
    path = Path(tempfile.mkdtemp())
    yield path / "sb"
    shutil.rmtree(path)


@pytest.fixture
def controlled(serving, folder):
    """A sandbox, and `tell(method, path, document)`."""
    with serving(folder, has_control=True) as sandbox:

        def tell(method, path, document=None):
            connection = LocalConnection(folder / "control.sock")
            connection.request(method, path, None if document is None else json.dumps(document))
            response = connection.getresponse()
            content = response.read().decode()
            connection.close()
            return response.status, content

        yield sandbox, tell


def test_the_address_is_the_users_alone_and_gone_at_the_end(serving, folder):
    with serving(folder, has_control=True):
        address = folder / "control.sock"
        assert stat.S_ISSOCK(address.stat().st_mode)
        assert stat.S_IMODE(address.stat().st_mode) == 0o600
    assert not address.exists()
    with serving(folder):
        assert not address.exists()


def test_faults_come_and_go(controlled):
    sandbox, tell = controlled
    token = sandbox.token()
    assert sandbox.check(PATH, QUESTION, token=token).status == 200
    status, state = tell("PUT", "/faults", ["500:first=1", "no-response-timestamp"])
    assert (status, json.loads(state)["faults"]) == (200, ["500:first=1", "no-response-timestamp"])
    assert [sandbox.check(PATH, QUESTION, token=token).status for _ in range(2)] == [500, 200]
    tell("PUT", "/faults", [])
    assert "X-Response-Timestamp" in sandbox.check(PATH, QUESTION, token=token).headers


def test_caps_and_rates_change(controlled):
    sandbox, tell = controlled
    token = sandbox.token("test")
    assert tell("PUT", "/limits", {"daily_cap": 1})[0] == 200
    assert [sandbox.check(TEST, QUESTION, token=token).status for _ in range(2)] == [200, 429]
    tell("PUT", "/limits", {"daily_cap": 50, "rate_max": 1})
    statuses = [sandbox.check(TEST, QUESTION, token=token).status for _ in range(4)]
    assert set(statuses) == {200, 429}
    tell("PUT", "/limits", {"rate_max": None})
    assert [sandbox.check(TEST, QUESTION, token=token).status for _ in range(4)] == [200] * 4


def test_the_clock_changes_for_what_is_sent_and_what_is_received(controlled, stamp):
    sandbox, tell = controlled
    token = sandbox.token()
    tell("PUT", "/clock", {"ahead_s": 3600})
    refused = sandbox.check(PATH, QUESTION, token=token)
    assert (refused.status, "X-Request-Timestamp" in refused.document["detail"]) == (400, True)
    reply = sandbox.check(PATH, QUESTION, token=token, X_Request_Timestamp=stamp(3600))
    assert reply.status == 200
    assert reply.headers["X-Response-Timestamp"][:13] == stamp(3600)[:13]


@pytest.mark.parametrize("form", ["text", "json", "xml"])
def test_the_verdict_is_told_on_request(controlled, form):
    sandbox, tell = controlled
    sandbox.check(PATH, QUESTION)
    status, verdict = tell("GET", f"/verdict?form={form}")
    assert status == 200
    assert "token missing" in verdict
    assert "Thornwood" not in verdict


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("/faults", ["no-such-fault"]),
        ("/faults", {"500": 1}),
        ("/faults", [500]),
        ("/limits", {"daily_cap": None}),
        ("/limits", {"rate_max": 0}),
        ("/limits", {"rate_max": True}),
        ("/limits", {"other": 1}),
        ("/limits", 5),
        ("/clock", {}),
        ("/clock", {"ahead_s": "soon"}),
        ("/clock", {"ahead_s": float("nan")}),
        ("/clock", {"ahead_s": 1e300}),
    ],
)
def test_what_makes_no_sense_changes_nothing(controlled, path, document):
    _, tell = controlled
    before = tell("GET", "/state")
    status, answer = tell("PUT", path, document)
    assert status == 400
    assert json.loads(answer)["detail"]
    assert tell("GET", "/state") == before


def test_a_folder_whose_path_is_too_long_is_told_in_one_sentence(tmp_path):
    settings = SandboxSettings(folder=tmp_path / ("x" * 120), has_control=True)
    with refused(ConfigurationError, "sandbox.control_address_unusable"):
        run(settings, announce=print)
