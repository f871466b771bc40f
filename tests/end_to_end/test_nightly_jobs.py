"""What a scheduler and those who watch it get: JSON on standard error, a metrics file, pings."""

import json
import os

import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families
from refusals import said

MATCH = {
    "payment_id": "P1",
    "name": "Avery Thornwood",
    "account_type": "Personal",
    "sort_code": "001122",
    "account_number": "00012345",
    "amount": "10.00",
    "currency": "GBP",
}
ROWS = [MATCH, MATCH | {"name": "Rowan Blackmere"}, MATCH | {"sort_code": "1122"}]
SECRET_PATH = "b7e1c0de-secret-job"


@pytest.fixture
def watcher(misbehaving):
    """`with watcher(status) as (url, paths)`: a service that takes pings, and which it got."""

    class Watcher:
        def __init__(self, status=200):
            self.paths = []
            self._server = misbehaving(self._answer)
            self._status = status

        async def _answer(self, request):
            self.paths.append((request.method, request.path, await request.read()))
            return web.Response(status=self._status)

        def __enter__(self):
            self.url = self._server.__enter__()
            return self

        def __exit__(self, *what):
            self._server.__exit__(*what)

    return Watcher


def metrics(path):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(path.read_text())
        for sample in family.samples
    }


def test_json_is_all_that_is_said_and_has_no_name_and_no_account(desk, sandbox):
    file = desk.payments(ROWS)

    finished = desk("run", file, "--log", "json", *sandbox.using("sandbox"))

    *events, _ended = [json.loads(line) for line in finished.err.splitlines()]
    [last] = [event for event in events if event["event"] == "file finished"]
    assert last["row_counts"]["match"] == 1
    assert last["row_counts"]["rejected"] == 1
    assert last["simulated"] is True
    assert all({"at", "level", "event", "file"} <= event.keys() for event in events)
    assert finished.out == ""
    for secret in ("Thornwood", "Blackmere", "00012345", "001122"):
        assert secret not in finished.err


@pytest.mark.parametrize("words", [("gone.csv",), ("payments.csv", "--profile", "nobody")])
def test_an_error_is_a_json_document_too(desk, words):
    desk.payments(ROWS)
    finished = desk("run", *words, "--log", "json")
    event, ended = [json.loads(line) for line in finished.err.splitlines()]
    assert (ended["event"], ended["status"]) == ("run ended", finished.status)
    assert ended["reason"].startswith(event["event"].partition(";")[0])
    assert finished.status in {65, 78}
    assert event["level"] == "error"
    assert event["file"] == words[0]
    assert event["status"] == finished.status


def test_an_error_of_one_file_of_several_is_told_by_its_file_and_status(desk, sandbox):
    desk.payments(ROWS)
    finished = desk(
        "run", "gone.csv", "payments.csv", "--out", "out", "--log", "json", *sandbox.using("sandbox")
    )
    *events, ended = [json.loads(line) for line in finished.err.splitlines()]
    assert [file["status"] for file in ended["files"]] == [65, 0]
    assert [(event["file"], event.get("status")) for event in events] == [
        ("gone.csv", 65),
        ("payments.csv", 0),
    ]


@pytest.mark.nightly
def test_text_stays_what_is_said_without_the_option(desk, sandbox):
    file = desk.payments(ROWS)
    said = [
        desk("run", file, "--quiet", "--out", folder, *words, *sandbox.using("sandbox")).err
        for folder, words in (("a", ()), ("b", ("--log", "text")))
    ]
    assert said[0] == said[1]
    assert said[0].startswith("precheck: payments.csv: SIMULATED")


def test_metrics_say_how_a_run_ended_and_may_be_read_by_everybody(desk, sandbox):
    file = desk.payments(ROWS)

    finished = desk(
        "run", file, "--metrics", "precheck.prom", "--fail-on", "no_match", *sandbox.using("sandbox")
    )

    path = desk.folder / "precheck.prom"
    found = metrics(path)
    assert path.stat().st_mode & 0o777 == 0o644
    assert found["precheck_exit_status",] == finished.status == 1
    assert found["precheck_rows", "no_match"] == 1
    assert found["precheck_requests", "cop"] == 2
    assert found["precheck_repeats", "cop"] == 0
    assert found["precheck_complete",] == found["precheck_simulated",] == 1
    assert "Thornwood" not in path.read_text()


def test_a_run_that_fails_leaves_metrics_too(desk):
    finished = desk("run", "gone.csv", "--metrics", "precheck.prom")
    found = metrics(desk.folder / "precheck.prom")
    assert found["precheck_exit_status",] == finished.status == 65
    assert ("precheck_rows", "match") not in found


@pytest.mark.parametrize(
    "path",
    [
        "nowhere/precheck.prom",
        *(pytest.param(path, marks=pytest.mark.nightly) for path in ("payments.csv/precheck.prom", ".")),
    ],
)
def test_metrics_that_cannot_be_written_change_nothing_but_a_warning(desk, sandbox, path):
    file = desk.payments(ROWS)
    finished = desk("run", file, "--metrics", path, *sandbox.using("sandbox"))
    assert finished.status == 0
    assert "the metrics file cannot be written" in finished.err
    assert "Traceback" not in finished.err


def test_a_watcher_hears_of_the_start_and_of_the_status_and_of_nothing_else(desk, sandbox, watcher):
    file = desk.payments(ROWS)
    with watcher() as heard:
        words = ("--ping", f"{heard.url}/{SECRET_PATH}", "--ping-ca", sandbox.folder / "ca.pem")
        well = desk("run", file, *words, *sandbox.using("sandbox"))
        badly = desk("run", "gone.csv", *words)

    assert (well.status, badly.status) == (0, 65)
    assert heard.paths == [("GET", f"/{SECRET_PATH}/{word}", b"") for word in ("start", "0", "start", "65")]


def test_the_address_of_the_ping_may_come_from_the_environment(desk, sandbox, watcher):
    with watcher() as heard:
        ca = sandbox.folder / "ca.pem"
        desk("run", "gone.csv", "--ping-ca", ca, PRECHECK_PING=f"{heard.url}/{SECRET_PATH}")
    assert [path for _, path, _ in heard.paths] == [f"/{SECRET_PATH}/start", f"/{SECRET_PATH}/65"]


def test_a_ping_that_is_not_taken_is_a_warning_without_the_secret_address(desk, sandbox, watcher):
    file = desk.payments(ROWS)
    ca = ("--ping-ca", sandbox.folder / "ca.pem")
    with watcher(status=500) as heard:
        refused = desk("run", file, "--ping", f"{heard.url}/{SECRET_PATH}", *ca, *sandbox.using("sandbox"))
    untrusted = desk("run", file, "--ping", f"{sandbox.url}/{SECRET_PATH}", *sandbox.using("sandbox"))
    silent = desk("run", file, "--ping", f"https://127.0.0.1:1/{SECRET_PATH}", *ca, *sandbox.using("sandbox"))
    plain = desk("run", file, "--ping", f"http://127.0.0.1:1/{SECRET_PATH}", *sandbox.using("sandbox"))

    for finished in (refused, untrusted, silent, plain):
        assert finished.status == 0
        assert finished.err.count("the ping was not taken") == 2
        assert SECRET_PATH not in finished.err
    assert "HTTP 500" in refused.err
    assert said("transport.name_issuing_authority", authority="--ping-ca") in untrusted.err
    assert "Connection refused" in silent.err
    assert said("transport.address_not_https") in plain.err


def test_what_an_option_named_is_named_by_that_option(desk):
    words = ("--ping", f"https://127.0.0.1:1/{SECRET_PATH}", "--ping-ca", "gone.pem")
    errors = desk("run", "gone.csv", *words).err
    assert said("config.cannot_read", path="--ping-ca gone.pem") in errors
    assert "profile" not in errors.partition("--ping-ca")[2].partition("precheck:")[0]


def test_pings_and_metrics_go_without_a_users_proxy(desk, sandbox, watcher):
    with watcher() as heard:
        proxies = dict.fromkeys(("HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:1")
        desk(
            *("run", "gone.csv", "--ping", f"{heard.url}/x", "--ping-ca", sandbox.folder / "ca.pem"),
            **proxies,
        )
    assert len(heard.paths) == 2
    assert os.environ.get("PRECHECK_PING") is None


def told_to(desk, sandbox, *lines):
    """The sandbox's configuration with `[notify]`, in the folder that its files are relative to."""
    config = sandbox.folder / "notify.toml"
    config.write_text(sandbox.config.read_text() + "\n".join(("\n[notify]", *lines)))
    return "--profile", "sandbox", "--config", config


def test_a_webhook_hears_of_a_run_that_is_not_complete_and_of_no_payee(desk, sandbox, watcher):
    file = desk.payments(ROWS)
    with watcher() as heard:
        words = told_to(desk, sandbox, 'webhook_env = "HOOK"', 'webhook_ca_file = "ca.pem"')
        address = f"{heard.url}/{SECRET_PATH}?key=1"
        some = desk("run", file, "--limit", "1", "--log", "json", *words, HOOK=address)
        rest = desk("run", file, *words, HOOK=address)

    assert (some.status, rest.status) == (75, 0)
    [(method, path, body)] = heard.paths
    assert (method, path) == ("POST", f"/{SECRET_PATH}")
    errors = json.loads(body)
    assert (errors["event"], errors["status"], errors["profile"]) == ("run ended", 75, "sandbox")
    assert errors["files"][0]["row_counts"]["match"] == 1
    assert said("executors.questions_left", "") in errors["reason"]
    last = json.loads(some.err.splitlines()[-1])
    assert last["event"] == "run ended"
    assert errors.items() <= last.items()
    for secret in ("Thornwood", "Blackmere", "00012345", "001122", SECRET_PATH):
        assert secret not in body.decode() + some.err


def test_a_notification_that_is_not_taken_is_a_warning_and_the_status_stays(desk, sandbox, watcher):
    with watcher(status=500) as heard:
        words = told_to(desk, sandbox, 'webhook_env = "HOOK"', 'webhook_ca_file = "ca.pem"')
        refused = desk("run", "gone.csv", *words, HOOK=f"{heard.url}/{SECRET_PATH}")
    assert refused.status == 65
    assert "the notification was not sent (reason: 127.0.0.1: HTTP 500" in refused.err
    assert SECRET_PATH not in refused.err
    assert json.loads(heard.paths[0][2])["reason"].startswith("gone.csv")


def test_a_run_whose_servers_refused_it_says_that_nothing_is_checked_yet(desk, sandbox):
    file = desk.payments(ROWS)
    asked = desk("run", file, "--limit", "0", *sandbox.using("sandbox"))
    assert said("terminal.nothing_checked", count=1, row_count=3) in asked.out
    assert (
        "need"
        not in asked.out.partition(said("terminal.nothing_checked", count=1))[2].partition("outcome")[0]
    )
