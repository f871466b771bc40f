"""Participants of VoP Standard: the scheme directory, and proof of membership by client certificate.

Source: API reference, "VoP Standard: mutual TLS"; the authorisation number is in the certificate's subject
(ETSI EN 319 412-1), the PSD2 roles are in its QCStatements (ETSI TS 119 495).
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

QC_STATEMENTS = x509.ObjectIdentifier("1.3.6.1.5.5.7.1.3")
_COMPLIANCE, _WEB = "0606 04008e460101", "0607 04008e46010603"  # 0.4.0.1862.1.1 and 0.4.0.1862.1.6.3
_PSD2, _ROLE = ("0606 040081982702", "0607 040081982701")  # 0.4.0.19495.2 and the start of 0.4.0.19495.1.*
_OF_A_QWAC = tuple(map(bytes.fromhex, (_COMPLIANCE, _WEB, _PSD2, _ROLE)))
"""Object identifiers in the QCStatements of a website certificate of a PSD2 provider, encoded in DER."""
QUALIFIED_STATEMENTS = (
    bytes.fromhex(f"307a 3008 {_COMPLIANCE}")  # QcCompliance
    + bytes.fromhex(f"3013 0606 04008e460106 3009 {_WEB}")  # QcType: web
    + bytes.fromhex(f"3059 {_PSD2} 304f 3026")  # the PSD2 statement: two roles, the authority's name and id
    + (bytes.fromhex(f"3011 {_ROLE}02 0c06") + b"PSP_PI" + bytes.fromhex(f"3011 {_ROLE}03 0c06") + b"PSP_AI")
    + (b"\x0c\x1cInvented Competent Authority" + b"\x0c\x07FR-ACPR")
)
"""Such QCStatements."""

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
    """Return the authorisation number in a client certificate (DER); TLS has only proved that it has the key.

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
        extension = certificate.extensions.get_extension_for_oid(QC_STATEMENTS)
    except x509.ExtensionNotFound:
        return False
    return all(identifier in extension.value.public_bytes() for identifier in _OF_A_QWAC)
