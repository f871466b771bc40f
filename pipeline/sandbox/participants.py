"""Participants of VoP Standard: the scheme directory, and proof of membership by client certificate.

Source: API reference, "VoP Standard: mutual TLS". A qualified website authentication certificate
carries the authorisation number in its subject (ETSI EN 319 412-1, organizationIdentifier) and its
PSD2 roles in the QCStatements (ETSI TS 119 495).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pipeline.sandbox.problems import Refusal, client_invalid

DIRECTORY: Mapping[str, frozenset[str]] = {
    "PSDFR-ACPR-99999": frozenset({"TREZFRP0XXX"}),
    "PSDDE-BAFIN-99998": frozenset({"TREZDEF0XXX", "TREZDEF0MUC"}),
}
"""Authorisation number -> the participant's BICs; all are invented."""

QC_STATEMENTS = "1.3.6.1.5.5.7.1.3"
_QC_COMPLIANCE = "0.4.0.1862.1.1"
_QC_TYPE = "0.4.0.1862.1.6"
_QC_TYPE_WEB = "0.4.0.1862.1.6.3"
_PSD2_STATEMENT = "0.4.0.19495.2"
_PSD2_ROLES = "0.4.0.19495.1"

_AUTHORISATION_NUMBER = re.compile(r"PSD[A-Z]{2}-[A-Z]{2,8}-.+")


@dataclass(frozen=True, slots=True)
class _Certificate:
    authorisation_number: str
    is_issued_here: bool
    is_for_clients: bool
    is_qualified: bool
    not_before: datetime
    not_after: datetime


def requester_of(certificate: bytes | None, authority: x509.Certificate, now: datetime) -> str:
    """Return the authorisation number in a client certificate (DER).

    TLS has only verified that the client holds the key.

    Raises:
        ProblemError: 401, if the certificate is missing or faulty; the detail says why.
    """
    if certificate is None:
        raise client_invalid("no client certificate was presented", Refusal.CERTIFICATE_MISSING)
    read = _read(certificate, authority)
    number = read.authorisation_number
    for is_good, detail in (
        (read.is_issued_here, "the client certificate is not of an authority that is known here"),
        (now <= read.not_after, "the client certificate has expired"),
        (now >= read.not_before, "the client certificate is not valid yet"),
        (read.is_for_clients, "the client certificate is not for clients"),
        (read.is_qualified, "the client certificate is not a qualified website certificate with PSD2 roles"),
        (
            _AUTHORISATION_NUMBER.fullmatch(number),
            "the client certificate holds no PSD2 authorisation number",
        ),
        (number in DIRECTORY, "the authorisation number is not in the participant directory"),
    ):
        if not is_good:
            raise client_invalid(detail, Refusal.CERTIFICATE)
    return number


def check_requesting_bic(authorisation_number: str, bic: str) -> None:
    """Require that a requesting BIC belongs to the certificate's participant; otherwise 401."""
    if bic not in DIRECTORY[authorisation_number]:
        raise client_invalid(
            "requestingAgent is not a BIC of the participant named by the certificate",
            Refusal.REQUESTING_BANK,
        )


@lru_cache(maxsize=1024)
def _read(certificate: bytes, authority: x509.Certificate) -> _Certificate:
    # Cached: parsing costs far more than a check, and one certificate sends many requests.
    try:
        parsed = x509.load_der_x509_certificate(certificate)
        subject = parsed.subject.get_attributes_for_oid(NameOID.ORGANIZATION_IDENTIFIER)
        return _Certificate(
            authorisation_number=str(subject[0].value) if subject else "",
            is_issued_here=_is_issued_by(parsed, authority),
            is_for_clients=_is_for_clients(parsed),
            is_qualified=_is_qualified(parsed),
            not_before=parsed.not_valid_before_utc,
            not_after=parsed.not_valid_after_utc,
        )
    except ValueError:
        raise client_invalid("the client certificate cannot be read", Refusal.CERTIFICATE) from None


def _is_issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _is_for_clients(certificate: x509.Certificate) -> bool:
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return False
    return ExtendedKeyUsageOID.CLIENT_AUTH in usages


def _is_qualified(certificate: x509.Certificate) -> bool:
    """True if the QCStatements name all that a website certificate of a PSD2 provider has, and a role."""
    try:
        extension = certificate.extensions.get_extension_for_oid(x509.ObjectIdentifier(QC_STATEMENTS))
    except x509.ExtensionNotFound:
        return False
    statements = extension.value.public_bytes()
    needed = (_QC_COMPLIANCE, _QC_TYPE_WEB, _PSD2_STATEMENT)
    has_role = any(_identifier(f"{_PSD2_ROLES}.{number}") in statements for number in range(1, 5))
    return has_role and all(_identifier(dotted) in statements for dotted in needed)


def qualified_statements() -> bytes:
    """Encode QcCompliance, QcType web, and the PSD2 statement with roles and competent authority, in DER."""
    roles = [
        _sequence(_identifier(f"{_PSD2_ROLES}.2"), _text("PSP_PI")),
        _sequence(_identifier(f"{_PSD2_ROLES}.3"), _text("PSP_AI")),
    ]
    psd2 = _sequence(_sequence(*roles), _text("Invented Competent Authority"), _text("FR-ACPR"))
    return _sequence(
        _sequence(_identifier(_QC_COMPLIANCE)),
        _sequence(_identifier(_QC_TYPE), _sequence(_identifier(_QC_TYPE_WEB))),
        _sequence(_identifier(_PSD2_STATEMENT), psd2),
    )


def _sequence(*members: bytes) -> bytes:
    return _encoded(0x30, b"".join(members))


def _text(text: str) -> bytes:
    return _encoded(0x0C, text.encode())


def _identifier(dotted: str) -> bytes:
    """Encode an object identifier in DER (ITU-T X.690, section 8.19)."""
    first, second, *arcs = (int(arc) for arc in dotted.split("."))
    content = bytearray([40 * first + second])
    for arc in arcs:
        septets = [arc & 0x7F]
        while arc := arc >> 7:
            septets.append(arc & 0x7F | 0x80)
        content += bytes(reversed(septets))
    return _encoded(0x06, bytes(content))


def _encoded(tag: int, content: bytes) -> bytes:
    length = len(content)
    assert length < 256
    return bytes([tag, length] if length < 128 else [tag, 0x81, length]) + content
