"""Scenarios and verdicts: this client passes each, and clients that are wrong on purpose fail."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from refusals import said

from pipeline.sandbox.scenarios import SCENARIOS, scenario_named
from pipeline.sandbox.verdict.rules import RULES, WRONG_PORTS

WRONG_CLIENTS = Path(__file__).parents[1] / "wrong_clients"
CLIENT_MAX_S = 100
WALKS = {
    "basic": {"sandbox": ("scenario.csv", {0}), "sandbox-standard": ("scenario-standard.csv", {0})},
    "faults": {"production": ("scenario.csv", {75})},
    "tls": {
        "sandbox": ("scenario.csv", {0}),
        **{f"tls-{port}": ("scenario.csv", {78}) for port in WRONG_PORTS},
    },
    "caps": {"test": ("scenario.csv", {75})},
}


@pytest.fixture
def walked(serve, tmp_path):
    """`walked(scenario, walk)`: the verdict, once the walk is over."""

    def walk_through(name, walk):
        verdicts = {form: tmp_path / f"verdict.{form}" for form in ("json", "xml", "txt")}
        words = [word for path in verdicts.values() for word in ("--verdict", path)]
        with serve(tmp_path / name, "--scenario", name, "--cop-wait", 1, *words) as sandbox:
            walk(sandbox)
            sandbox.process.send_signal(signal.SIGTERM)
            assert sandbox.process.wait(30) == 0
        return {form: path.read_text() for form, path in verdicts.items()}

    return walk_through


def broken(verdict):
    return {rule["name"] for rule in json.loads(verdict["json"])["rules"] if rule["standing"] == "broken"}


def run_wrong(client, *words):
    command = [sys.executable, WRONG_CLIENTS / f"{client}.py", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CLIENT_MAX_S, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.nightly] * (name != "basic")) for name in WALKS]
)
def test_this_client_passes(walked, desk, name):
    def walk(sandbox):
        for number, (profile, (file, statuses)) in enumerate(WALKS[name].items()):
            out = ("--out", desk.folder / f"out{number}")
            done = desk("run", sandbox.folder / file, *sandbox.using(profile), *out, "--quiet")
            assert done.status in statuses, done.err

    verdict = walked(name, walk)
    document = json.loads(verdict["json"])
    assert document["passed"], verdict["txt"]
    kept = {rule["name"] for rule in document["rules"] if rule["standing"] == "kept"}
    assert kept >= set(scenario_named(name).expected)


def test_every_rule_of_other_clients_is_met_in_a_scenario():
    expected = {name for scenario in SCENARIOS for name in scenario.expected}
    assert {rule.name for rule in RULES} == expected


def test_a_hasty_client_fails_where_it_should(walked, wait_until):
    def walk(sandbox):
        run_wrong("hasty", sandbox.folder, "production", sandbox.folder / "scenario.csv")
        # It has hung up, and the gateway still waits.
        wait_until(lambda: any("504-after-wait" in call["faults"] for call in sandbox.calls()))

    verdict = walked("faults", walk)
    assert broken(verdict) == {
        "correlation-id-once",
        "no-repeat-after-400",
        "token-renewal",
        "retry-after",
        "echo",
        "content",
        "responder-wait",
        "cookie",
        "redirect",
        "endpoint",  # to which the redirect led
    }, verdict["txt"]
    suite = ET.fromstring(verdict["xml"])
    failed = {case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None}
    assert failed == broken(verdict)
    assert int(suite.get("failures")) == len(failed)
    assert "POST /production/copgateway/" in suite.find("testcase[@name='echo']/failure").text
    assert not [secret for secret in ("Invented Payee", "010203") if secret in "".join(verdict.values())]


def test_a_careless_client_fails_where_it_should(walked):
    def walk(sandbox):
        profiles = ("sandbox", *(f"tls-{port}" for port in WRONG_PORTS))
        run_wrong("careless", sandbox.folder, sandbox.folder / "scenario.csv", *profiles)

    verdict = walked("tls", walk)
    assert broken(verdict) == {
        "https",
        "tls-wrong-authority",
        "tls-expired",
        "tls-wrong-host",
        "tls-other-suite",
        "pipelining",
        "endpoint",
        "token-request",
        "token-reuse",
        "timestamp",
        "content-type",
    }, verdict["txt"]


def test_a_verdict_that_cannot_be_written_is_told_before_anything_is_served(desk):
    done = desk("sandbox", "--folder", desk.folder / "here", "--verdict", desk.folder / "nowhere" / "v.json")
    assert done.status == 73
    assert "nowhere" in done.sentences[0]
    assert not done.out


def test_a_scenario_that_was_not_walked_is_not_passed(walked):
    verdict = walked("basic", lambda _sandbox: None)
    document = json.loads(verdict["json"])
    assert not document["passed"]
    assert set(document["missed"]) == set(scenario_named("basic").expected)
    assert verdict["txt"].startswith(
        said(
            "sandbox.verdict_in_scenario", result="The client has failed", scenario="basic", kept=0, broken=0
        )
    )
