"""Transport security of the sandbox: exactly what the reference allows, and nothing else."""

import contextlib
import shutil
import socket
import ssl
import subprocess

import pytest

from pipeline.sandbox.certificates import BAD_CLIENTS, CertificateFiles
from pipeline.sandbox.tls import server_context

TLS12 = {
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES256-GCM-SHA384",
}


COP = "/sandbox/copgateway/v1.0/confirmation-payee/name-verification"


def question():
    data = {
        "schemeName": "SortCodeAccountNumber",
        "accountType": "Personal",
        "identification": "00112200012345",
        "name": "Avery Thornwood",
    }
    return {"data": data}


def negotiate(sandbox, context):
    with (
        socket.create_connection(sandbox.address, timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        return secured.version(), secured.cipher()[0]


def test_tls_1_3_is_spoken_with_its_one_suite(sandbox):
    assert negotiate(sandbox, sandbox.context()) == ("TLSv1.3", "TLS_AES_256_GCM_SHA384")


def test_tls_1_2_is_spoken_with_exactly_three_suites(sandbox):
    accepted = set()
    offered = [cipher["name"] for cipher in ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).get_ciphers()]
    for name in offered:
        context = sandbox.context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            context.set_ciphers(name)
            accepted.add(negotiate(sandbox, context)[1])
    assert len(offered) > 10
    assert accepted == TLS12


def test_the_server_offers_exactly_four_suites(sandbox):
    files = CertificateFiles(sandbox.folder)
    context = server_context(files.servers, files.client_authority, is_client_certificate_required=False)
    assert {cipher["name"] for cipher in context.get_ciphers()} == {"TLS_AES_256_GCM_SHA384", *TLS12}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
@pytest.mark.parametrize(
    ("suite", "is_accepted"),
    [
        ("TLS_AES_256_GCM_SHA384", True),
        ("TLS_AES_128_GCM_SHA256", False),
        ("TLS_CHACHA20_POLY1305_SHA256", False),
    ],
)
def test_tls_1_3_has_no_other_suite(sandbox, suite, is_accepted):
    host, port = sandbox.address
    command = ["openssl", "s_client", "-connect", f"{host}:{port}", "-tls1_3", "-ciphersuites", suite]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=30, check=False)
    assert (b"BEGIN CERTIFICATE" in done.stdout) is is_accepted


def test_plain_http_is_not_spoken(sandbox):
    with socket.create_connection(sandbox.address, timeout=10) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert not plain.recv(1000).startswith(b"HTTP/")


def test_the_strictest_verification_of_the_standard_library_passes(sandbox):
    context = ssl.create_default_context(cafile=sandbox.folder / "ca.pem")
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    assert negotiate(sandbox, context)[0] == "TLSv1.3"


def test_a_strict_sandbox_lets_nobody_in_without_a_certificate(serving, tmp_path):
    with serving(tmp_path / "folder", client_certificate_required=True) as strict:
        assert strict.send("GET", "/", context=strict.member_context()).status == 404
        # In TLS 1.3 the refusal comes with the first read, as an alert or as a closed connection.
        with pytest.raises(ssl.SSLError, match=r"CERTIFICATE_REQUIRED|certificate required"):
            strict.send("GET", "/")
        with pytest.raises(ssl.SSLError, match=r"UNKNOWN_CA|unknown ca"):
            strict.send("GET", "/", context=strict.context(certificate=strict.folder / "server_ec.pem"))


def test_a_client_without_a_suite_of_the_reference_gets_the_alert(sandbox):
    context = sandbox.context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")
    with pytest.raises(ssl.SSLError, match=r"ALERT_HANDSHAKE_FAILURE|handshake failure"):
        negotiate(sandbox, context)


def test_tls_1_1_is_not_spoken_and_its_client_gets_the_alert(sandbox):
    context = sandbox.context()
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        context.minimum_version = ssl.TLSVersion.TLSv1_1
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError, match=r"ALERT_PROTOCOL_VERSION|protocol version"):
        negotiate(sandbox, context)


def test_a_handshake_that_never_ends_is_cut(serving, tmp_path):
    with (
        serving(tmp_path / "folder", request_wait_s=0.3) as hasty,
        socket.create_connection(hasty.address, timeout=10) as plain,
    ):
        plain.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert plain.recv(100) == b""


@pytest.mark.parametrize("name", sorted(BAD_CLIENTS))
def test_a_bad_client_certificate_is_told_by_standard_and_of_no_matter_to_the_others(sandbox, token, name):
    context = sandbox.context(certificate=sandbox.folder / f"client_{name}.pem")
    answer = sandbox.check(COP, question(), token=token, context=context)
    assert (answer.status, answer.document["data"]["verificationReport"]) == (200, {"matched": True})
    refused = sandbox.check("/sandbox/vop/v1/payee-verifications", {}, context=context)
    assert (refused.status, refused.document["code"]) == (401, "CLIENT_INVALID")
    assert "no client certificate" not in refused.document["detail"]


def test_a_certificate_of_the_server_is_none_for_a_client(sandbox, token):
    stranger = sandbox.context(certificate=sandbox.folder / "server_ec.pem")
    assert sandbox.check(COP, question(), token=token, context=stranger).status == 200
    assert sandbox.check("/sandbox/vop/v1/payee-verifications", {}, context=stranger).status == 401
