"""The OpenAPI document of the sandbox: whole, true of the server, and tried by two tools of others."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from pipeline.files.private import write_private
from pipeline.sandbox.settings import APIS

SSLYZE = Path(__file__).parents[3] / ".cache" / "sslyze" / "bin" / "sslyze"
EXAMPLES_MAX = 5
TOOL_MAX_S = 120
SUITES = {
    "tls_1_2_cipher_suites": {
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    },
    "tls_1_3_cipher_suites": {"TLS_AES_256_GCM_SHA384"},
}


@pytest.fixture(scope="module")
def document(sandbox):
    reply = sandbox.send("GET", "/openapi.json")
    assert reply.status == 200
    return reply.document


def references(node):
    if isinstance(node, dict):
        yield from [node["$ref"]] if "$ref" in node else []
        for value in node.values():
            yield from references(value)
    if isinstance(node, list):
        for value in node:
            yield from references(value)


def test_every_path_of_the_server_is_described(document, sandbox):
    paths = {f"/{role.value}{api.path}" for api in APIS for role in api.roles}
    assert set(document["paths"]) == {*paths, sandbox.token_path()}


def test_every_reference_leads_to_a_schema(document):
    schemas = document["components"]["schemas"]
    found = set(references(document))
    assert len(found) > 10
    assert {reference.removeprefix("#/components/schemas/") for reference in found} <= set(schemas)


def test_no_member_may_be_null_on_this_wire(document):
    assert '"null"' not in json.dumps(document)


def test_members_are_named_as_on_the_wire(document):
    schemas = document["components"]["schemas"]
    assert set(schemas["VerificationReport"]["properties"]) == {"matched", "reasonCode", "name"}
    assert "anyBIC" in schemas["OrganisationId"]["properties"]


def test_the_servers_and_the_grant_are_those_of_this_sandbox(document, sandbox):
    assert [server["url"] for server in document["servers"]] == [sandbox.url]
    flow = document["components"]["securitySchemes"]["token"]["flows"]["clientCredentials"]
    section = sandbox.profiles["production"]["cop"]
    assert flow["tokenUrl"] == section["token_url"]
    checks = document["paths"]["/production/vopgateway/v1/payee-verifications"]["post"]
    assert checks["security"] == [{"token": [section["scope"]]}]
    assert section["scope"] in flow["scopes"]


def test_a_party_needs_a_name_or_an_identification(document):
    party = document["components"]["schemas"]["Party"]
    assert party["anyOf"] == [{"required": ["name"]}, {"required": ["identification"]}]


def test_every_example_is_answered_as_its_twin_says(document, sandbox, token):
    tried = 0
    for path, methods in document["paths"].items():
        questions = methods.get("post", {}).get("requestBody", {}).get("content", {})
        for name, example in questions.get("application/json", {}).get("examples", {}).items():
            context = sandbox.member_context() if "/vop/" in path else None
            reply = sandbox.check(path, example["value"], token=token, context=context)
            told = methods["post"]["responses"]["200"]["content"]["application/json"]["examples"][name]
            assert (reply.status, reply.document) == (200, told["value"]), f"{path} {name}"
            tried += 1
    assert tried > 20


def test_the_description_needs_no_token_and_is_read_only(sandbox):
    assert sandbox.send("POST", "/openapi.json", b"{}").status == 405


@pytest.mark.nightly
@pytest.mark.skipif(importlib.util.find_spec("schemathesis") is None, reason="schemathesis is not installed")
def test_schemathesis_finds_no_answer_that_the_description_does_not_allow(sandbox, tmp_path):
    key = serialization.load_pem_private_key(
        (sandbox.folder / "client.key").read_bytes(), (sandbox.folder / "client.passphrase").read_bytes()
    )
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    write_private(tmp_path / "plain.key", key.private_bytes(serialization.Encoding.PEM, *plain))
    words = {
        "--tls-verify": sandbox.folder / "ca.pem",
        "--request-cert": sandbox.folder / "client.pem",
        "--request-cert-key": tmp_path / "plain.key",
        "--header": f"Authorization: Bearer {sandbox.token('production')}",
        "--include-path-regex": "^/(production/|[0-9a-f]{8}-)",
        "--phases": "coverage,fuzzing",
        "--max-examples": EXAMPLES_MAX,
        "--seed": 1,
        "--generation-database": "none",
        # The check digits of an IBAN have no word in a schema: good data may be refused.
        "--exclude-checks": "positive_data_acceptance",
    }
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{sandbox.url}/openapi.json", "--no-color"]
    command += [str(word) for pair in words.items() for word in pair]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=TOOL_MAX_S, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "Tested: 5" in done.stdout


@pytest.mark.nightly
@pytest.mark.skipif(not SSLYZE.exists(), reason="no sslyze; `make tools` fetches it")
def test_sslyze_finds_exactly_the_four_suites(sandbox, tmp_path):
    versions = ("--sslv2", "--sslv3", "--tlsv1", "--tlsv1_1", "--tlsv1_2", "--tlsv1_3")
    report = tmp_path / "report.json"
    host, port = sandbox.address
    command = [str(SSLYZE), f"--json_out={report}", *versions, f"{host}:{port}"]
    subprocess.run(command, capture_output=True, timeout=TOOL_MAX_S, check=False, env=os.environ)
    [scanned] = json.loads(report.read_text())["server_scan_results"]
    found = {
        name: {suite["cipher_suite"]["name"] for suite in part["result"]["accepted_cipher_suites"]}
        for name, part in scanned["scan_result"].items()
        if name.endswith("cipher_suites") and part["result"]
    }
    assert len(found) == len(versions)
    assert {name: suites for name, suites in found.items() if suites} == SUITES
