"""docs/many-machines.md and its files: Kubernetes and systemd take them, their words are the command's."""

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml
from systemd_units import needs_systemd, systemd_on

from pipeline.cli.main import main as command
from pipeline.config.file import load
from pipeline.errors import PrecheckError
from pipeline.stores.postgres.address import parsed
from pipeline.stores.postgres.shared_run import LEASE_S
from pipeline.stores.sharing import LEASE_S as SHARE_LEASE_S

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "many-machines.md").read_text("utf-8")
MANIFESTS = [*yaml.safe_load_all((DOCS / "deployment" / "kubernetes.yaml").read_text())]
COMPOSE = yaml.safe_load((DOCS / "deployment" / "compose.yaml").read_text())
UNIT = (DOCS / "deployment" / "precheck-worker.service").read_text()
PROGRAM = ["/opt/precheck/bin/python", "-IB", "-m", "payee_precheck"]
kinds = pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest["kind"])


def known(words):
    """Parse the words of a command, of a group or not, and run nothing: the command and its parameters."""
    at, name = command, "precheck"
    while isinstance(at, click.Group):
        name, *words = words
        at = at.commands[name]
    return name, at.make_context(name, list(words)).params


def statuses_for_a_person():
    """Every status of an error that starting again does not mend."""
    classes, found = [PrecheckError], set()
    while classes:
        kind = classes.pop()
        classes += kind.__subclasses__()
        found.add(getattr(kind, "exit_code", None))
    return found - {None, 75}


def pods():
    """Of every object that makes pods: its kind, and the pod."""
    for manifest in MANIFESTS:
        spec = manifest.get("spec", {})
        if "jobTemplate" in spec:
            spec = spec["jobTemplate"]["spec"]
        if "template" in spec:
            yield manifest["kind"], spec["template"]["spec"]


def words_of(container):
    """What the command is called with, in a container of our image."""
    if "command" not in container:
        return container["args"]
    assert container["command"] == ["/bin/sh", "-c"]
    words = shlex.split(container["args"][0])
    assert words[:5] == ["exec", *PROGRAM]
    return words[5:]


@pytest.mark.nightly
@kinds
def test_kubernetes_takes_each_manifest_and_knows_each_of_its_keys(manifest):
    import kubernetes_validate  # takes longer than all tests of this file

    kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


def test_a_key_that_kubernetes_does_not_know_would_be_noticed():
    import kubernetes_validate

    manifest = MANIFESTS[-1] | {"specs": {}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


def test_the_commands_of_the_pods_are_understood():
    said = {kind: known(words_of(pod["containers"][0])) for kind, pod in pods()}
    assert {kind: name for kind, (name, _) in said.items()} == {
        "Job": "init",
        "CronJob": "run",
        "Deployment": "worker",
    }
    assert all(Path("work") in said[kind][1].values() for kind in ("CronJob", "Deployment"))


def test_pods_run_as_the_user_of_the_image_and_write_nowhere_but_where_they_must():
    [user] = re.findall(r"^USER (\d+)$", (DOCS.parent / "Dockerfile").read_text(), re.MULTILINE)
    for _, pod in pods():
        [container] = pod["containers"]
        assert pod["securityContext"]["runAsUser"] == int(user)
        assert pod["securityContext"]["runAsNonRoot"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {
            volume["name"] for volume in pod["volumes"]
        }


def test_what_a_person_must_mend_is_not_tried_again():
    [job] = (
        manifest["spec"]["jobTemplate"]["spec"] for manifest in MANIFESTS if manifest["kind"] == "CronJob"
    )
    rule = job["podFailurePolicy"]["rules"][0]
    assert rule["action"] == "FailJob"
    assert {*rule["onExitCodes"]["values"]} == statuses_for_a_person()
    [prevented] = re.findall(r"^RestartPreventExitStatus=(.*)$", UNIT, re.MULTILINE)
    # A worker reads no payment file.
    assert {int(status) for status in prevented.split()} == statuses_for_a_person() - {65}


def test_the_configuration_of_the_pods_is_read_and_its_secrets_are_those_that_they_get(tmp_path, monkeypatch):
    [configuration] = (manifest["data"] for manifest in MANIFESTS if manifest["kind"] == "ConfigMap")
    file = tmp_path / "precheck.toml"
    file.write_text(configuration["precheck.toml"])
    [*_, (_, pod)] = pods()
    given = {variable["name"] for variable in pod["containers"][0]["env"]}
    for name in given:
        monkeypatch.setenv(name, "a secret of this test")

    profile = load(file, "production")

    assert parsed(profile.ledger).parameters() == {
        "host": "db.payments.svc",
        "port": 5432,
        "user": "precheck",
        "dbname": "precheck",
        "sslmode": "verify-full",
        "sslrootcert": "/etc/precheck/db-ca.pem",
    }
    assert "db-ca.pem" in configuration
    named = set(re.findall(r'_env = "(\w+)"', configuration["precheck.toml"]))
    assert named == given - {"PGPASSWORD"}


def test_the_commands_of_compose_are_understood():
    services = COMPOSE["services"]
    assert known(services["ledger-init"]["command"])[0] == "init"
    assert Path("work") in known(services["worker"]["command"])[1].values()
    entry = services["run"]["entrypoint"]
    assert entry[:4] == PROGRAM
    name, said = known([*entry[4:], "payroll-2026-11-20.csv"])
    assert (name, said["files"]) == ("run", (Path("payroll-2026-11-20.csv"),))


def test_the_lines_for_cron_and_for_systemd_are_understood():
    [line] = re.findall(r"precheck (run .*) 2>>", PAGE)
    assert known(shlex.split(line))[0] == "run"
    [line] = re.findall(r"^ExecStart=/opt/precheck/bin/precheck (.*)$", UNIT, re.MULTILINE)
    assert known(shlex.split(line))[1]["metrics_listen"] == ("127.0.0.1", 9464)
    for line in re.findall(r"^precheck (ledger .*)$", PAGE, re.MULTILINE):
        known(shlex.split(line))


@needs_systemd
def test_systemd_takes_the_unit_of_a_worker(tmp_path):
    assert systemd_on(UNIT, tmp_path / "precheck-worker.service") == (0, "")


def test_the_page_has_the_leases_as_they_are():
    assert f"leased to a process for {LEASE_S:g} s, and its part of the rate for {SHARE_LEASE_S:g} s" in PAGE


def test_the_roles_that_the_page_names_are_created():
    roles = (DOCS / "deployment" / "roles.sql").read_text()
    [owner] = re.findall(r"--as (\w+)$", PAGE, re.MULTILINE)
    [runner] = re.findall(r'^ledger = "postgresql://(\w+)@', PAGE, re.MULTILINE)
    assert re.findall(r"^CREATE ROLE (\w+) LOGIN;$", roles, re.MULTILINE) == [owner, runner]
    assert f"CREATE DATABASE precheck OWNER {owner};" in roles


def test_what_watches_a_container_asks_where_its_program_listens():
    """The port and the socket of each health check are those of the command beside it."""
    for name, option in (("worker", "--metrics-listen"), ("desk", "--socket")):
        service = COMPOSE["services"][name]
        asked = service["healthcheck"]["test"]
        assert asked[:2] == ["CMD", PROGRAM[0]]
        compile(asked[-1], name, "exec")
        assert service["command"][service["command"].index(option) + 1] in asked[-1]
    [worker] = (manifest for manifest in MANIFESTS if manifest["kind"] == "Deployment")
    [container] = worker["spec"]["template"]["spec"]["containers"]
    assert container["livenessProbe"]["httpGet"] == {"path": "/metrics", "port": "metrics"}
