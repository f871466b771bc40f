"""Check our own client certificate before a server does, which would refuse it without a reason.

Source: API reference, "VoP Standard: mutual TLS": a qualified website authentication certificate with the
authorisation number of the payment service provider. Where the number is, and its form: ETSI TS 119 495,
section 5.2.1, and ETSI EN 319 412-1, section 5.1.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import TlsError
from pipeline.wording import Moment, Sentence

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

EXPIRY_NOTICE = timedelta(days=30)
_ORGANISATION_IDENTIFIER_OID = "2.5.4.97"
_AUTHORISATION = re.compile(r"PSD[A-Z]{2}-[A-Z]{2,8}-.+")
"""PSD, the country, the authorising authority, and the provider's number with that authority."""


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """The facts that matter about a client certificate."""

    subject: str
    not_before: datetime
    not_after: datetime
    organisation_identifier: str | None  # the authorisation number, such as PSDFR-ACPR-99999
    problems: tuple[Sentence, ...]  # why a server would refuse it, one sentence each; may be empty
    expires_soon: bool  # whether a new one is due


def inspect_certificate(path: Path, *, now: datetime) -> CertificateFacts:
    """Read our certificate from a PEM file with its chain; list a server's possible objections (TlsError)."""
    # Slow to import, and needed only for mutual TLS.
    from cryptography.x509.oid import ObjectIdentifier

    try:
        certificate = chain_in(path.read_bytes())[0]
    except OSError as error:
        raise TlsError(Sentence("transport.client_certificate_unreadable", path=path, why=error)) from None
    except ValueError:
        raise TlsError(Sentence("transport.client_certificate_not_pem", path=path)) from None
    numbers = certificate.subject.get_attributes_for_oid(ObjectIdentifier(_ORGANISATION_IDENTIFIER_OID))
    number = str(numbers[0].value) if numbers else None
    expiry = certificate.not_valid_after_utc
    return CertificateFacts(
        subject=certificate.subject.rfc4514_string(),
        not_before=certificate.not_valid_before_utc,
        not_after=expiry,
        organisation_identifier=number,
        problems=tuple(_problems(path, certificate, number, now)),
        expires_soon=now <= expiry < now + EXPIRY_NOTICE,
    )


def chain_in(pem: bytes) -> list[Certificate]:
    """Return the certificates of a PEM file with ours first, and each before its issuer."""
    from cryptography import x509

    left = x509.load_pem_x509_certificates(pem)
    issuers = {one.issuer for one in left if one.issuer != one.subject}
    chain = [next((one for one in left if one.subject not in issuers), left[0])]
    left.remove(chain[0])
    while (issuer := next((one for one in left if one.subject == chain[-1].issuer), None)) is not None:
        left.remove(issuer)
        chain.append(issuer)
    return chain + left


def _problems(path: Path, certificate: Certificate, number: str | None, now: datetime) -> Iterator[Sentence]:
    not_before, not_after = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < not_before:
        time = Moment(not_before.isoformat())
        yield Sentence("transport.certificate_not_yet_valid", path=path, time=time)
    elif now > not_after:
        yield Sentence("transport.certificate_expired_on", path=path, day=not_after.date())
    if not _may_be_a_client(certificate):
        yield Sentence("transport.certificate_not_for_clients", path=path)
    if number is None:
        yield Sentence("transport.certificate_without_number", path=path)
    elif _AUTHORISATION.fullmatch(number) is None:
        yield Sentence("transport.certificate_number_malformed", path=path)


def _may_be_a_client(certificate: Certificate) -> bool:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        # RFC 5280, section 4.2.1.12: without the extension, every use is allowed.
        return True
    return ExtendedKeyUsageOID.CLIENT_AUTH in usages
