"""The sandbox's certificates: an authority, server certificates, and a qualified client certificate.

The suites of the API reference need both an elliptic-curve and an RSA certificate. The client certificate has
the form of one for websites under PSD2 (ETSI EN 319 412, TS 119 495), issued by a separate authority.
"""

import ipaddress
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pipeline.files.private import write_private
from pipeline.sandbox.participants import QC_STATEMENTS, QUALIFIED_STATEMENTS
from pipeline.sandbox.settings import ServerCertificate

AUTHORISATION_NUMBER = "PSDFR-ACPR-99999"  # in the client certificate that the sandbox issues

_LIFE = timedelta(days=365)
_LIFE_LEFT_MIN = timedelta(days=7)
_CLOCK_SKEW = timedelta(hours=1)

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True, slots=True)
class Issuer:
    """An authority that can sign certificates."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


class CertificateFiles:
    """The paths of a sandbox's certificates; all PEM, mode 0600."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = folder / "ca.pem"  # a client must trust it
        self.servers = folder / "server_ec.pem", folder / "server_rsa.pem"  # with their keys
        self.client_authority = folder / "qwac_ca.pem"  # the server accepts its client certificates
        self.client_authority_key = folder / "qwac_ca.key"  # tests use it to issue more certificates
        self.client = folder / "client.pem"
        self.client_key = folder / "client.key"  # encrypted
        self.client_passphrase = folder / "client.passphrase"

    def bad_client(self, name: str) -> Path:
        """The file of a bad client certificate and its key, which has no passphrase."""
        return self.folder / f"client_{name}.pem"

    def bad_server(self, kind: ServerCertificate) -> Path:
        """The file with key and certificate of a server that a client must not trust."""
        return self.folder / f"server_{kind}.pem"

    def servers_of(self, kind: ServerCertificate) -> tuple[Path, ...]:
        """The certificate files of a server of this kind."""
        return self.servers if kind is ServerCertificate.GOOD else (self.bad_server(kind),)

    def certificates(self) -> tuple[Path, ...]:
        """The files whose certificates have an expiry date."""
        return (self.authority, *self.servers, self.client_authority, self.client)


BAD_CLIENTS: Mapping[str, str] = {
    "expired": "expired yesterday",
    "not-yet-valid": "becomes valid in ten years",
    "not-qualified": "has no QCStatements: no QWAC, and no PSD2 roles",
    "not-for-clients": "is for servers only",
    "no-authorisation-number": "has a VAT number where the PSD2 authorisation number should be",
    "not-in-directory": "has an authorisation number that no participant has",
    "other-authority": "was issued by an unknown authority",
}
"""Bad client certificates -> why VoP Standard refuses them; each with its key in `client_NAME.pem`."""


def provide_certificates(folder: Path, host: str, now: datetime) -> CertificateFiles:
    """Return usable certificates for the host, from the folder or new (OutputError: not writable)."""
    files = CertificateFiles(folder)
    if not _are_usable(files, host, now):
        _write_server_side(files, host, now)
        _write_client_side(files, now)
    return files


def load_client_issuer(files: CertificateFiles) -> Issuer:
    """Load the authority of client certificates, to issue more of them."""
    key = serialization.load_pem_private_key(files.client_authority_key.read_bytes(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("the authority's key is on an elliptic curve")
    return Issuer(x509.load_pem_x509_certificate(files.client_authority.read_bytes()), key)


def issue_client_certificate(  # noqa: PLR0913 (one argument per defect)
    issuer: Issuer,
    *,
    authorisation_number: str = AUTHORISATION_NUMBER,
    is_qualified: bool = True,
    is_for_clients: bool = True,
    not_before: datetime,
    not_after: datetime,
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Issue a valid client certificate, or one with a chosen defect."""
    key = _new_key()
    subject = {
        NameOID.COUNTRY_NAME: authorisation_number[3:5],
        NameOID.ORGANIZATION_NAME: "Invented Treasury",
        NameOID.ORGANIZATION_IDENTIFIER: authorisation_number,
        NameOID.COMMON_NAME: "treasury.invalid",
    }
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH] if is_for_clients else []
    extensions = _leaf_extensions(issuer, [x509.DNSName("treasury.invalid")], usages)
    if is_qualified:
        extensions.append(x509.UnrecognizedExtension(QC_STATEMENTS, QUALIFIED_STATEMENTS))
    return _signed(subject, key, issuer, not_before, not_after, extensions), key


def _are_usable(files: CertificateFiles, host: str, now: datetime) -> bool:
    rest = (files.client_authority_key, files.client_key, files.client_passphrase)
    bad_servers = (files.bad_server(kind) for kind in ServerCertificate if kind is not ServerCertificate.GOOD)
    bad = (*map(files.bad_client, BAD_CLIENTS), *bad_servers)
    if not all(path.is_file() for path in (*files.certificates(), *rest, *bad)):
        return False
    try:
        found = [x509.load_pem_x509_certificate(path.read_bytes()) for path in files.certificates()]
        authority, *servers, client_authority, client = found
        # An aborted start may have left certificates by two authorities behind.
        for server in servers:
            server.verify_directly_issued_by(authority)
        client.verify_directly_issued_by(client_authority)
        names = servers[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, InvalidSignature, x509.ExtensionNotFound):
        return False
    is_valid = all(certificate.not_valid_after_utc - now > _LIFE_LEFT_MIN for certificate in found)
    return is_valid and all(name in names for name in _alternative_names(host))


def _write_server_side(files: CertificateFiles, host: str, now: datetime) -> None:
    authority = _issue_authority("Sandbox Authority (simulated)", now)
    another = _issue_authority("Another Authority (simulated)", now)
    names, elsewhere = _alternative_names(host), [x509.DNSName("elsewhere.invalid")]
    write_private(files.authority, _pem(authority.certificate))
    rsa_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    for path, key, issuer, kind_names, not_after in (
        (files.servers[0], _new_key(), authority, names, now + _LIFE),
        (files.servers[1], rsa_key, authority, names, now + _LIFE),
        (files.bad_server(ServerCertificate.WRONG_AUTHORITY), _new_key(), another, names, now + _LIFE),
        (files.bad_server(ServerCertificate.EXPIRED), _new_key(), authority, names, now - _CLOCK_SKEW / 2),
        (files.bad_server(ServerCertificate.WRONG_HOST), _new_key(), authority, elsewhere, now + _LIFE),
    ):
        subject = {NameOID.COMMON_NAME: "payee-precheck sandbox"}
        extensions = _leaf_extensions(issuer, kind_names, [])
        certificate = _signed(subject, key, issuer, now - _CLOCK_SKEW, not_after, extensions)
        write_private(path, _pem(certificate) + _key_pem(key, None))


def _write_client_side(files: CertificateFiles, now: datetime) -> None:
    authority = _issue_authority("Sandbox QWAC Authority (simulated)", now)
    passphrase = secrets.token_urlsafe(24).encode()
    certificate, key = issue_client_certificate(
        authority, not_before=now - _CLOCK_SKEW, not_after=now + _LIFE
    )
    write_private(files.client_authority, _pem(authority.certificate))
    write_private(files.client_authority_key, _key_pem(authority.key, None))
    write_private(files.client_passphrase, passphrase)
    write_private(files.client_key, _key_pem(key, passphrase))
    write_private(files.client, _pem(certificate))
    _write_bad_clients(files, authority, now)


def _write_bad_clients(files: CertificateFiles, authority: Issuer, now: datetime) -> None:
    another, day = _issue_authority("Another QWAC Authority (simulated)", now), timedelta(days=1)
    always = partial(issue_client_certificate, not_before=now - 2 * day, not_after=now + _LIFE)
    bad = {
        "expired": always(authority, not_after=now - day),
        "not-yet-valid": always(authority, not_before=now + 10 * _LIFE, not_after=now + 11 * _LIFE),
        "not-qualified": always(authority, is_qualified=False),
        "not-for-clients": always(authority, is_for_clients=False),
        "no-authorisation-number": always(authority, authorisation_number="VATFR-999999999"),
        "not-in-directory": always(authority, authorisation_number="PSDFR-ACPR-00000"),
        "other-authority": always(another),
    }
    for name in BAD_CLIENTS:
        certificate, key = bad[name]
        write_private(files.bad_client(name), _pem(certificate) + _key_pem(key, None))


def _issue_authority(common_name: str, now: datetime) -> Issuer:
    key = _new_key()
    subject = {NameOID.COMMON_NAME: common_name}
    return Issuer(_signed(subject, key, None, now - _CLOCK_SKEW, now + 2 * _LIFE, ()), key)


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _signed(  # noqa: PLR0913, PLR0917 (the contents of a certificate)
    subject: Mapping[x509.ObjectIdentifier, str],
    key: PrivateKey,
    issuer: Issuer | None,
    not_before: datetime,
    not_after: datetime,
    extensions: Sequence[x509.ExtensionType],
) -> x509.Certificate:
    """Sign a certificate for a key; without an issuer, a self-signed authority."""
    is_authority = issuer is None
    name = x509.Name([x509.NameAttribute(kind, text) for kind, text in subject.items()])
    constraints = x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None)
    usage = x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before.astimezone(UTC))
        .not_valid_after(not_after.astimezone(UTC))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(constraints, critical=True)
        .add_extension(usage, critical=True)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(key if issuer is None else issuer.key, hashes.SHA256())


def _leaf_extensions(
    issuer: Issuer,
    alternative_names: Sequence[x509.GeneralName],
    further_usages: Sequence[x509.ObjectIdentifier],
) -> list[x509.ExtensionType]:
    return [
        x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key()),
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, *further_usages]),
        x509.SubjectAlternativeName(alternative_names),
    ]


def _alternative_names(host: str) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    try:
        own: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        own = x509.DNSName(host)
    return names if own in names else [*names, own]


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: PrivateKey, passphrase: bytes | None) -> bytes:
    encryption = (
        serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    )
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
