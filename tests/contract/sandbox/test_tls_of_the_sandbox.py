"""Transport security of the sandbox: exactly what the reference allows, and nothing else."""

import contextlib
import shutil
import socket
import ssl
import subprocess

import pytest

from pipeline.sandbox.certificates import CertificateFiles
from pipeline.sandbox.tls import server_context

TLS12 = {
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES256-GCM-SHA384",
}


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


def test_tls_1_1_is_not_spoken(sandbox):
    context = sandbox.context()
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        context.minimum_version = ssl.TLSVersion.TLSv1_1
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        negotiate(sandbox, context)


def test_plain_http_is_not_spoken(sandbox):
    with socket.create_connection(sandbox.address, timeout=10) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert not plain.recv(1000).startswith(b"HTTP/")


def test_the_strictest_verification_of_the_standard_library_passes(sandbox):
    context = ssl.create_default_context(cafile=sandbox.folder / "ca.pem")
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    assert negotiate(sandbox, context)[0] == "TLSv1.3"


def test_a_client_certificate_of_another_authority_is_refused(sandbox):
    stranger = sandbox.context(certificate=sandbox.folder / "server_ec.pem")
    with pytest.raises((ssl.SSLError, OSError)):
        sandbox.send("GET", "/", context=stranger)


def test_a_strict_sandbox_lets_nobody_in_without_a_certificate(serving, tmp_path):
    with serving(tmp_path / "folder", client_certificate_required=True) as strict:
        assert strict.send("GET", "/", context=strict.member_context()).status == 404
        # In TLS 1.3 the refusal comes with the first read, as an alert or as a closed connection.
        with pytest.raises((ssl.SSLError, OSError)):
            strict.send("GET", "/")
