"""Rows B17 and B18 of the fault table: certificates and TLS that must not be trusted, on either side."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from nginx import NGINX, answering_vop

from pipeline.files.private import write_private
from pipeline.sandbox.certificates import (
    CertificateFiles,
    Issuer,
    issue_client_certificate,
    load_client_issuer,
)
from pipeline.stages.ask.admission import ALIKE_MAX

SERVERS = {
    ("--server-certificate", "wrong-authority"): "certificate is not trusted",
    ("--server-certificate", "expired"): "certificate has expired",
    ("--server-certificate", "wrong-host"): "for another host",
    ("--tls", "1.1-only"): "TLS",
    ("--tls", "other-suite"): "suite",
}
"""How a server is started -> what the one sentence says."""


def is_refused(status, said, words):
    """Whether a run or a doctor ended as it should: the exit, and a sentence with these words."""
    return status in {77, 78} and words.casefold() in " ".join(said.split()).casefold()


def test_a_server_that_cannot_be_trusted_hears_nothing(lab, a_trial, tell):
    def try_server(number):
        words, sentence = list(SERVERS.items())[number]
        with lab.served(f"server-{number}", *words) as sandbox:
            seen = lab.attempt(f"desk-{number}", a_trial(lab.uk_rows(5)), sandbox)
            said = lab.consult(seen)
            calls = len(sandbox.calls())
        is_told = (
            seen.status == 78 and len(seen.sentences) == 1 and is_refused(seen.status, seen.err, sentence)
        )
        return is_told, is_refused(*said, sentence), calls, words[1]

    tried = lab.several(try_server, range(len(SERVERS)))
    calls = sum(count for _, _, count, _ in tried)
    lost = [name for is_told, is_found, _, name in tried if not (is_told and is_found)]
    tell(
        "B17", "wrong authority, expired, wrong host, TLS 1.1, other suite", tried=len(tried),
        survived=len(tried) - len(lost) if not calls else 0,
        figure=f"{calls} calls; not reported by run and doctor: {', '.join(lost) or 'none'}",
        goal="0, exit 78, one sentence, found by doctor",
    )  # fmt: skip


STRANGER = "unknown participant"


class Cases:
    """Sections of VoP Standard with one defect each, beside the sandbox's own good certificate."""

    def __init__(self, sandbox, folder):
        self._issuer = load_client_issuer(CertificateFiles(sandbox.folder))
        self._folder = folder

    def issued(self, name, *, issuer=None, **changes):
        now = datetime.now(UTC)
        dates = {"not_before": now - timedelta(days=2), "not_after": now + timedelta(days=90)}
        certificate, key = issue_client_certificate(issuer or self._issuer, **{**dates, **changes})
        paths = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        write_private(paths[0], certificate.public_bytes(serialization.Encoding.PEM))
        plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        write_private(paths[1], key.private_bytes(serialization.Encoding.PEM, *plain))
        return {
            "client_certificate": str(paths[0]),
            "client_key": str(paths[1]),
            "client_key_password_file": None,
        }

    def all(self):
        """Defect -> changes of the section, and a word of the sentence that says which."""
        now = datetime.now(UTC)
        wrong_word = self._folder / "wrong.passphrase"
        write_private(wrong_word, b"not the passphrase")
        other = self.issued("other")
        return {
            "missing": ({"client_certificate": str(self._folder / "nowhere.pem")}, "cannot be read"),
            "expired": (
                self.issued("expired", not_after=now - timedelta(days=1)), "expired",
            ),
            "foreign": (self.issued("foreign", issuer=foreign_authority()), "client certificate"),
            "no clientAuth": (self.issued("server-only", is_for_clients=False), "client authentication"),
            STRANGER: (
                self.issued("stranger", authorisation_number="PSDFR-ACPR-00001"), "PSDFR-ACPR-00001",
            ),
            "wrong passphrase": ({"client_key_password_file": str(wrong_word)}, "password"),
            "key mismatch": (
                {"client_key": other["client_key"], "client_key_password_file": None},
                "does not belong to the certificate",
            ),
        }  # fmt: skip


def foreign_authority():
    """An authority that the server does not know."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Foreign Authority (simulated)")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Issuer(certificate, key)


def told_of_payees(sandbox):
    """The calls that told the server of a payee."""
    return [call for call in sandbox.calls() if call["api"] != "token"]


@pytest.mark.parametrize("handshake", ["polite", "strict"])
def test_a_client_certificate_that_is_no_good_is_told_before_many_rows_are_sent(
    lab, handshake, a_trial, tmp_path, tell
):
    # Only an answer tells whom the scheme lists, and what a polite server thinks of an authority.
    by_answers = {"strict": {STRANGER}, "polite": {STRANGER, "foreign"}}[handshake]
    words = ("--client-certificate-required",) if handshake == "strict" else ()
    good = a_trial(lab.iban_rows(5), apis=("standard",))

    def try_case(name):
        changes, sentence = cases[name]
        seen = lab.attempt(name, replace(good, changes=changes), sandbox)
        is_told = len(seen.sentences) == 1 and is_refused(seen.status, seen.err, sentence)
        return is_told and (name in by_answers or is_refused(*lab.consult(seen), sentence))

    with lab.served("server", *words) as sandbox:
        cases = Cases(sandbox, tmp_path).all()
        assert lab.attempt("good", good, sandbox).status == 0
        before = len(told_of_payees(sandbox))
        told = dict(zip(cases, lab.several(try_case, cases), strict=True))
        told_after = told_of_payees(sandbox)[before:]
        assert {call["status"] for call in told_after} <= {401}
        sent_count = len(told_after)
    lost = [name for name, is_told in told.items() if not is_told]
    tell(
        "B18", f"bad client certificates, {handshake} server", tried=len(cases),
        survived=len(cases) - len(lost) if sent_count <= ALIKE_MAX * len(by_answers) else 0,
        figure=f"{sent_count} rows sent, one at a time; not reported by run and doctor: "
        f"{', '.join(lost) or 'none'}",
        goal=f"<= {ALIKE_MAX} for {' and '.join(sorted(by_answers))}, 0 for others, which doctor finds; "
        "exit 77 or 78, one sentence",
    )  # fmt: skip


@pytest.mark.skipif(NGINX is None, reason="no nginx")
def test_nginx_that_refuses_a_client_certificate_rejects_no_row(lab, a_trial, tmp_path, tell):
    rows = lab.iban_rows(40)
    with lab.served("server") as sandbox, answering_vop(tmp_path / "nginx", sandbox.folder) as url:
        foreign = Cases(sandbox, tmp_path).issued("foreign", issuer=foreign_authority())
        trials = [
            a_trial(rows, apis=("standard",), changes={"base_url": url, **more}) for more in (foreign, {})
        ]
        refused, answered = (lab.attempt("desk", trial, sandbox) for trial in trials)
    codes = set(answered.codes().values())
    is_good = refused.status == 77 and not refused.rejected and "certificate" in refused.err
    is_good = is_good and answered.status == 0 and codes == {("no_match", "NMTC")}
    tell(
        "B21", "nginx that refuses the client certificate with 400, then the right one", tried=len(rows),
        survived=len(answered.codes()) if is_good else 0,
        figure=f"exits {refused.status}, {answered.status}; {len(refused.rejected)} rows rejected",
        goal="exit 77, 0 rejected, then every row answered",
    )  # fmt: skip
