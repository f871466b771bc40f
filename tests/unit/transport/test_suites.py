import ctypes
import socket
import ssl
import threading

import pytest
from refusals import refused

from pipeline.errors import TlsError
from pipeline.transport.tls import SUITES, TLS12_SUITES, client_context, limit_suites, limit_tls13, offered

# IANA numbers, https://www.iana.org/assignments/tls-parameters: independent of OpenSSL's names.
NUMBERS = {
    0x1302,  # TLS_AES_256_GCM_SHA384
    0xC02B,  # TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
    0xC02C,  # TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
    0xC030,  # TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
}
SIGNALLING = {0x00FF}  # TLS_EMPTY_RENEGOTIATION_INFO_SCSV: a flag in a suite's clothes, RFC 5746


def suites_on_the_wire(context):
    """The suites of a real ClientHello, read from its bytes (RFC 8446, section 4.1.2)."""
    out = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    hello = out.read()
    session_at = 5 + 4 + 2 + 32  # record header, handshake header, version, random
    at = session_at + 1 + hello[session_at]
    length = int.from_bytes(hello[at : at + 2], "big")
    numbers = hello[at + 2 : at + 2 + length]
    return {int.from_bytes(numbers[i : i + 2], "big") for i in range(0, length, 2)}


def negotiated(client, server):
    ours, theirs = socket.socketpair()

    def serve():
        with theirs, server.wrap_socket(theirs, server_side=True) as tls:
            tls.recv(1)

    thread = threading.Thread(target=serve)
    thread.start()
    with ours, client.wrap_socket(ours, server_hostname="localhost") as tls:
        agreed = (tls.version(), tls.cipher()[0])
        tls.send(b".")
    thread.join()
    return agreed


def test_the_client_hello_offers_exactly_the_four_suites_of_the_reference():
    assert suites_on_the_wire(client_context()) - SIGNALLING == NUMBERS


def test_without_a_way_to_limit_tls_13_the_hello_offers_the_three_suites_of_tls_12():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    limit_suites(context, limit_tls13=lambda _context: False)
    assert suites_on_the_wire(context) - SIGNALLING == NUMBERS - {0x1302}
    assert offered(context) == set(TLS12_SUITES)


def test_a_context_that_keeps_another_suite_of_tls_13_is_refused():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with refused(TlsError, "transport.cipher_suites_unavailable"):
        limit_suites(context, limit_tls13=lambda _context: True)


def test_this_python_has_a_way_to_limit_tls_13():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    assert limit_tls13(context)
    assert {suite["name"] for suite in context.get_ciphers() if suite["protocol"] == "TLSv1.3"} == {
        "TLS_AES_256_GCM_SHA384"
    }


def test_the_limit_holds_for_one_context_and_leaves_others_alone():
    client_context()
    assert offered(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)) > SUITES


def test_what_openssl_is_given_is_the_pointer_that_python_uses():
    context = client_context()
    pointer = ctypes.c_void_p.from_address(id(context) + object.__basicsize__)
    assert pointer.value


def test_tls_13_is_spoken_where_the_server_does(loopback):
    client = client_context(ca_file=loopback.authority.ca_file)
    assert negotiated(client, loopback.context) == ("TLSv1.3", "TLS_AES_256_GCM_SHA384")


@pytest.mark.parametrize("suite", TLS12_SUITES)
def test_each_suite_of_tls_12_works(loopback, suite):
    pair = loopback.authority.issue("suite", rsa_key="-RSA-" in suite)
    server = loopback.server_context(pair, restricted=False)
    server.maximum_version = ssl.TLSVersion.TLSv1_2
    server.set_ciphers(suite)
    client = client_context(ca_file=loopback.authority.ca_file)
    assert negotiated(client, server) == ("TLSv1.2", suite)
