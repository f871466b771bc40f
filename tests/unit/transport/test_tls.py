import asyncio
import errno
import os
import shutil
import socket
import ssl
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio
import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from pydantic import SecretStr
from refusals import refused, says

from pipeline.apis import post
from pipeline.errors import CredentialsError, IncompleteError, TlsError
from pipeline.transport.certificates import inspect_certificate
from pipeline.transport.client import Client
from pipeline.transport.tls import EnvironmentKey, client_context, preflight, raced
from pipeline.wording import Sentence

NUMBER = "PSDFR-ACPR-99999"


def client_of(loopback, pair=None, **options):
    if pair is not None:
        options |= {"certificate": pair.certificate, "key": pair.key}
    return client_context(ca_file=loopback.authority.ca_file, **options)


class TestTheContext:
    def test_certificates_and_host_names_are_verified(self):
        context = client_context()
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2

    def test_public_authorities_are_trusted_unless_a_private_one_is_named(self, loopback):
        assert len(client_context().get_ca_certs()) > 50
        assert len(client_of(loopback).get_ca_certs()) == 1

    def test_the_environment_adds_no_authority_and_no_key_log(self, loopback, tmp_path):
        script = (
            "from pipeline.transport.tls import EnvironmentKey, client_context\n"
            "context = client_context()\n"
            "names = [str(ca['subject']) for ca in context.get_ca_certs()]\n"
            "print(context.keylog_filename, any('Test authority' in name for name in names))\n"
        )
        environment = os.environ | {
            "SSL_CERT_FILE": str(loopback.authority.ca_file),
            "SSL_CERT_DIR": str(loopback.authority.ca_file.parent),
            "SSLKEYLOGFILE": str(tmp_path / "keys"),
        }
        child = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        assert child.stdout.split() == ["None", "False"]
        assert not (tmp_path / "keys").exists()

    def test_an_authority_file_that_is_missing_is_named(self, tmp_path):
        path = tmp_path / "absent.pem"
        with refused(
            TlsError, Sentence("transport.tls_file_unreadable", what="ca_file", path=path)
        ) as raised:
            client_context(ca_file=path)
        says(raised.value, why="system.enoent")

    def test_an_authority_file_without_a_certificate_is_named(self, tmp_path):
        path = tmp_path / "empty.pem"
        path.write_text("nothing here\n")
        with refused(TlsError, Sentence("transport.ca_file_not_pem", what="ca_file", ca_file=path)):
            client_context(ca_file=path)


class TestOurOwnCertificate:
    def test_a_pair_is_loaded(self, loopback):
        client_of(loopback, loopback.authority.issue("plain"))

    @pytest.mark.parametrize("password", ["sesame", SecretStr("sesame")])
    def test_an_encrypted_key_opens_with_its_passphrase(self, loopback, password):
        client_of(loopback, loopback.authority.issue("locked", password=b"sesame"), key_password=password)

    def test_a_key_in_the_file_of_its_certificate_needs_no_path_of_its_own(self, loopback, tmp_path):
        pair = loopback.authority.issue("together")
        path = tmp_path / "both.pem"
        path.touch(mode=0o600)
        path.write_bytes(pair.certificate.read_bytes() + pair.key.read_bytes())
        client_context(certificate=path)

    def test_an_encrypted_key_without_a_passphrase_never_asks_on_the_terminal(self, loopback):
        pair = loopback.authority.issue("locked", password=b"sesame")
        with refused(TlsError, "transport.client_key_encrypted", what=pair.key):
            client_context(certificate=pair.certificate, key=pair.key)

    def test_a_wrong_passphrase_is_called_that_and_not_shown(self, loopback):
        pair = loopback.authority.issue("locked", password=b"sesame")
        with refused(TlsError, "transport.client_key_password_wrong", what=pair.key) as raised:
            client_context(certificate=pair.certificate, key=pair.key, key_password="open-barley")
        assert "barley" not in str(raised.value)

    @pytest.mark.parametrize("cipher", ["-des", "PBE-MD5-DES", "PBE-SHA1-RC2-40"])
    @pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")
    def test_a_key_under_an_old_cipher_is_called_that(self, loopback, tmp_path, cipher):
        pair, old = loopback.authority.issue("ours", rsa_key=True), tmp_path / "old.pem"
        kind = ["rsa", "-traditional", cipher] if cipher[0] == "-" else ["pkcs8", "-topk8", "-v1", cipher]
        words = ["-in", pair.key, "-out", old, "-passout", "pass:sesame"]
        providers = ["-provider", "legacy", "-provider", "default"]
        subprocess.run(["openssl", *kind, *words, *providers], check=True, capture_output=True)
        old.chmod(0o600)
        with refused(TlsError, "transport.client_key_old_cipher", what=old) as raised:
            client_context(certificate=pair.certificate, key=old, key_password="sesame")
        assert "sesame" not in str(raised.value)

    def test_a_chain_may_be_in_any_order(self, loopback, tmp_path):
        pair, path = loopback.authority.issue("ours", number=NUMBER), tmp_path / "chain.pem"
        path.write_bytes(loopback.authority.ca_file.read_bytes() + pair.certificate.read_bytes())
        client_context(certificate=path, key=pair.key)
        assert inspect_certificate(path, now=datetime.now(UTC)).organisation_identifier == NUMBER

    def test_a_server_that_asks_later_gets_the_certificate(self, loopback):
        """As servers do that ask by the path of a request (RFC 8446, section 4.6.2)."""
        server = loopback.server_context(loopback.pair)
        server.load_verify_locations(loopback.authority.ca_file)
        server.verify_mode, server.post_handshake_auth = ssl.CERT_REQUIRED, True

        async def session(reader, writer):
            tls = writer.get_extra_info("ssl_object")
            for number in range(2):
                await reader.readuntil(b"{}")
                status = b"200 OK" if tls.getpeercert() else b"403 Forbidden"
                if number == 0:
                    tls.verify_client_post_handshake()  # it goes with what is written next
                writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
            await reader.read()

        async def main():
            context = client_of(loopback, loopback.authority.issue("ours"))
            async with (
                loopback.talking(session, server) as port,
                Client(f"https://127.0.0.1:{port}", context=context, in_flight_max=1) as client,
            ):
                return [(await client.send(post("/", {}, b"{}"), deadline_s=5)).status_code for _ in range(2)]

        assert anyio.run(main) == [403, 200]

    @pytest.mark.parametrize("password", [None, b"sesame"])
    def test_a_key_of_the_environment_is_used_and_lies_on_no_disk(self, loopback, password):
        pair = loopback.authority.issue("of the environment", password=password)
        key = EnvironmentKey("QWAC_KEY", SecretStr(pair.key.read_text()))
        pair.key.unlink()
        before = len(list(Path("/dev/fd").iterdir()))

        client_context(certificate=pair.certificate, key=key, key_password=SecretStr("sesame"))

        assert len(list(Path("/dev/fd").iterdir())) == before

    def test_what_is_wrong_with_a_key_of_the_environment_is_said_of_its_variable(self, loopback):
        pair = loopback.authority.issue("ours")
        other = loopback.authority.issue("locked", password=b"sesame").key.read_text()
        for pem, key, name in (
            ("barley", "transport.client_key_absent", "path"),
            (other, "transport.client_key_encrypted", "what"),
        ):
            key_of_it = EnvironmentKey("QWAC_KEY", SecretStr(pem))
            with refused(TlsError, key, **{name: key_of_it}) as raised:
                client_context(certificate=pair.certificate, key=key_of_it)
            assert "client_key QWAC_KEY: " in str(raised.value)

    @pytest.mark.parametrize("rsa_key", [False, True])
    def test_a_key_of_another_certificate_is_called_that(self, loopback, rsa_key):
        ours = loopback.authority.issue("ours")
        other = loopback.authority.issue("other", rsa_key=rsa_key)
        with refused(TlsError, "transport.client_key_mismatch", what=other.key, certificate=ours.certificate):
            client_context(certificate=ours.certificate, key=other.key)

    @pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o601])
    def test_a_key_that_others_can_read_is_refused(self, loopback, mode):
        pair = loopback.authority.issue("open")
        pair.key.chmod(mode)
        with refused(TlsError, "transport.client_key_open_to_others", what=pair.key, mode=mode):
            client_context(certificate=pair.certificate, key=pair.key)

    def test_missing_files_are_named(self, loopback, tmp_path):
        pair = loopback.authority.issue("ours")
        absent = tmp_path / "absent.pem"
        for what, files in (
            ("client_key", (pair.certificate, absent)),
            ("client_certificate", (absent, pair.key)),
        ):
            with refused(TlsError, "transport.tls_file_unreadable", what=what, path=absent):
                client_context(certificate=files[0], key=files[1])

    def test_files_that_hold_something_else_are_named(self, loopback):
        pair = loopback.authority.issue("ours")
        pair.certificate.chmod(0o600)
        for what, path in (("client_certificate", pair.key), ("client_key", pair.certificate)):
            with refused(TlsError, f"transport.{what}_absent", path=path):
                client_context(certificate=path, key=path)

    def test_a_damaged_key_is_named(self, loopback):
        pair = loopback.authority.issue("damaged")
        pair.key.write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
        files = {"certificate": pair.certificate, "key_file": pair.key}
        with refused(TlsError, Sentence("transport.pair_unusable", **files)):
            client_context(certificate=pair.certificate, key=pair.key)


class TestPreflight:
    def demanding(self, loopback):
        context = loopback.server_context(loopback.pair)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(loopback.authority.ca_file)
        return context

    def greet(self, loopback, server, client, *, blocking):
        """Preflight against a server that sends alerts, or against one that just closes."""

        async def session(reader, _writer):
            await reader.read()

        async def main():
            async with loopback.talking(session, server) as port:
                return await preflight("127.0.0.1", port, client)

        if not blocking:
            return anyio.run(main)
        with loopback.blocking(server) as port:
            return anyio.run(preflight, "127.0.0.1", port, client)

    @pytest.mark.parametrize("blocking", [True, False])
    def test_a_good_server_is_reported_with_version_and_suite(self, loopback, blocking):
        said = self.greet(loopback, loopback.context, client_of(loopback), blocking=blocking)
        assert said == "TLSv1.3 TLS_AES_256_GCM_SHA384"

    @pytest.mark.parametrize("blocking", [True, False])
    def test_an_accepted_client_certificate_is_no_refusal(self, loopback, blocking):
        client = client_of(loopback, loopback.authority.issue("client"))
        said = self.greet(loopback, self.demanding(loopback), client, blocking=blocking)
        assert said.startswith("TLSv1.3")

    @pytest.mark.parametrize("blocking", [True, False])
    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    @pytest.mark.parametrize(
        ("certificate", "key"),
        [
            ("none", {"transport.requires_client_certificate", "transport.no_suite_or_no_certificate"}),
            ("stranger", "transport.client_issuer_untrusted"),
            ("expired", "transport.client_certificate_expired"),
            ("server only", "transport.client_certificate_wrong_use"),
        ],
    )
    def test_a_refused_client_certificate_is_found_before_any_row(
        self, loopback, certificate, key, version, blocking
    ):
        pair = {
            "none": lambda: None,
            "stranger": lambda: loopback.stranger.issue("client"),
            "expired": lambda: loopback.authority.issue(
                "expired-client", not_after=datetime(2021, 1, 1, tzinfo=UTC)
            ),
            "server only": lambda: loopback.authority.issue(
                "server-only", usages=(ExtendedKeyUsageOID.SERVER_AUTH,)
            ),
        }[certificate]()
        server = self.demanding(loopback)
        server.maximum_version = version
        with pytest.raises((CredentialsError, TlsError, IncompleteError)) as caught:
            self.greet(loopback, server, client_of(loopback, pair), blocking=blocking)
        if blocking:
            says(caught.value, key)
        elif version is ssl.TLSVersion.TLSv1_3:
            says(caught.value, "transport.closed_after_handshake")
            assert caught.value.exit_code == 77
        else:  # it closed without an alert, as a server does that reloads
            assert caught.value.exit_code == 75

    def test_a_certificate_that_is_no_root_is_trusted_where_it_is_named(self, loopback):
        context = client_context(ca_file=loopback.pair.certificate)
        server = loopback.server_context(loopback.pair)
        assert self.greet(loopback, server, context, blocking=False).startswith("TLSv1.3")

    def test_a_server_of_another_authority_is_not_trusted(self, loopback):
        server = loopback.server_context(loopback.stranger.issue("server"))
        with refused(TlsError, "transport.name_issuing_authority", authority="ca_file"):
            self.greet(loopback, server, client_of(loopback), blocking=True)

    def test_an_expired_server_is_not_trusted(self, loopback):
        pair = loopback.authority.issue("expired-server", not_after=datetime(2021, 1, 1, tzinfo=UTC))
        with refused(TlsError, "transport.server_certificate_untrusted", "transport.untrusted_expired"):
            self.greet(loopback, loopback.server_context(pair), client_of(loopback), blocking=True)

    def test_a_certificate_for_clients_is_none_of_a_server(self, loopback):
        pair = loopback.authority.issue("client-only", usages=(ExtendedKeyUsageOID.CLIENT_AUTH,))
        with refused(TlsError, "transport.untrusted_not_for_servers", "transport.ask_operator"):
            self.greet(loopback, loopback.server_context(pair), client_of(loopback), blocking=True)

    def test_a_server_for_another_host_is_not_trusted(self, loopback):
        pair = loopback.authority.issue("elsewhere", hosts=("pay.example",))
        with refused(TlsError, "transport.untrusted_other_host", "transport.check_host"):
            self.greet(loopback, loopback.server_context(pair), client_of(loopback), blocking=True)

    @pytest.mark.parametrize(
        ("blocking", "kind", "key"),
        [
            (True, TlsError, "transport.no_suite_or_no_certificate"),
            (False, IncompleteError, "transport.closed_during_handshake"),
        ],
    )
    def test_a_server_with_other_suites_is_a_matter_of_tls_if_it_says_so(self, loopback, blocking, kind, key):
        server = loopback.server_context(loopback.pair, restricted=False)
        server.maximum_version = ssl.TLSVersion.TLSv1_2
        server.set_ciphers("ECDHE-ECDSA-CHACHA20-POLY1305")
        with refused(kind, key):
            self.greet(loopback, server, client_of(loopback), blocking=blocking)

    @pytest.mark.parametrize(
        "alert", [80, 112, 0], ids=["internal_error", "unrecognized_name", "close_notify"]
    )
    def test_an_alert_of_a_server_that_reloads_is_an_outage(self, loopback, alert):
        async def session(reader, writer):
            await reader.read(1)
            writer.write(bytes([21, 3, 3, 0, 2, 2, alert]))

        async def main():
            async with loopback.talking_plainly(session) as port:
                await preflight("127.0.0.1", port, client_of(loopback))

        with pytest.raises(IncompleteError):
            anyio.run(main)

    @pytest.mark.parametrize(
        ("alert", "kind"),
        [
            *((alert, TlsError) for alert in (40, 70, 71)),
            # About ours: bad, unsupported, revoked, expired, unknown, of an unknown authority, denied.
            *((alert, CredentialsError) for alert in (42, 43, 44, 45, 46, 48, 49)),
        ],
    )
    def test_an_alert_that_says_that_we_do_not_fit_is_final(self, loopback, alert, kind):
        async def session(reader, writer):
            await reader.read(1)
            writer.write(bytes([21, 3, 3, 0, 2, 2, alert]))

        async def main():
            async with loopback.talking_plainly(session) as port:
                await preflight("127.0.0.1", port, client_of(loopback))

        with pytest.raises(kind):
            anyio.run(main)

    @pytest.mark.parametrize("failure_count", [1, 2, 3])
    def test_a_server_that_is_away_for_a_moment_is_tried_again(self, loopback, failure_count):
        waits_s, seen = (0.0, 0.0), []

        def reloading(_socket, _name, _context):
            seen.append(1)
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR if len(seen) <= failure_count else None

        async def session(reader, _writer):
            await reader.read()

        async def main():
            server = loopback.server_context(loopback.pair)
            server.sni_callback = reloading
            async with loopback.talking(session, server) as port:
                return await preflight("127.0.0.1", port, client_of(loopback), waits_s=waits_s)

        if failure_count > len(waits_s):
            with pytest.raises(IncompleteError):
                anyio.run(main)
        else:
            assert anyio.run(main).startswith("TLSv1.3")
        assert len(seen) == min(failure_count, len(waits_s)) + 1

    def test_too_few_open_files_are_no_matter_of_the_server(self, loopback):
        async def connect(*_):
            raise OSError(errno.EMFILE, "Too many open files")

        with refused(IncompleteError, "transport.open_files_limit_reached"):
            anyio.run(partial(preflight, "127.0.0.1", 443, client_of(loopback), connect=connect))

    def test_a_suite_that_the_reference_does_not_list_is_refused_after_the_handshake(self, loopback):
        lax = ssl.create_default_context(cafile=loopback.authority.ca_file)
        lax.verify_flags &= ~ssl.VERIFY_X509_STRICT  # on by default since Python 3.13; not what is tried here
        server = loopback.server_context(loopback.pair, restricted=False)
        server.maximum_version = ssl.TLSVersion.TLSv1_2
        server.set_ciphers("ECDHE-ECDSA-CHACHA20-POLY1305")
        with refused(TlsError, "transport.cipher_suite_not_listed", suite="ECDHE-ECDSA-CHACHA20-POLY1305"):
            self.greet(loopback, server, lax, blocking=True)

    def test_no_server_at_all_is_an_outage_to_wait_out(self, loopback):
        async def nobody(_reader, _writer): ...

        async def main():
            async with loopback.talking_plainly(nobody) as port:
                pass
            await preflight("127.0.0.1", port, client_of(loopback))

        with refused(IncompleteError, "transport.no_connection"):
            anyio.run(main)


class TwoAddresses(asyncio.SelectorEventLoop):
    """Every host has two addresses."""

    async def getaddrinfo(self, _host, port, **_):
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in ("127.0.0.2", "127.0.0.1")
        ]


def test_an_address_that_answers_nothing_costs_a_moment():
    silent = socket.create_server(("127.0.0.2", 0), backlog=0)
    port = silent.getsockname()[1]
    clients = [socket.socket() for _ in range(4)]  # more than its queue holds: the rest is dropped
    for client in clients:
        client.setblocking(False)
        client.connect_ex(("127.0.0.2", port))
    with (
        silent,
        socket.create_server(("127.0.0.1", port)),
        asyncio.Runner(loop_factory=TwoAddresses) as runner,
        runner.run(asyncio.wait_for(raced("bank.example", port), 2)) as winner,
    ):
        assert winner.getpeername() == ("127.0.0.1", port)
    for client in clients:
        client.close()
