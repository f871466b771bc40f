"""Find the message type and version of a file."""

import codecs
import re

from pipeline.formats.xml_stream import wide_encoding_of
from pipeline.wording import Sentence

CREDIT_TRANSFERS = ("CstmrCdtTrfInitn", "pain.001.001.02", "CBIPaymentRequest")
"""The elements that hold the message; the second one up to version .02, the third one in Italy."""
OTHER_MESSAGES = {
    "CstmrDrctDbtInitn": Sentence("pain001.is_direct_debits"),
    "pain.008.001.01": Sentence("pain001.is_direct_debits"),
    "CstmrPmtStsRpt": Sentence("pain001.is_bank_report"),
    "pain.002.001.02": Sentence("pain001.is_bank_report"),
    "CstmrPmtRvsl": Sentence("pain001.is_reversals"),
    "MndtInitnReq": Sentence("pain001.is_mandate"),
    "CdtrPmtActvtnReq": Sentence("pain001.is_requests_to_pay"),
    "BkToCstmrAcctRpt": Sentence("pain001.is_account_report"),
    "BkToCstmrStmt": Sentence("pain001.is_account_statement"),
    "BkToCstmrDbtCdtNtfctn": Sentence("pain001.is_booking_notices"),
    "CstmrPmtCxlReq": Sentence("pain001.is_cancellations"),
    "FIToFICstmrCdtTrf": Sentence("pain001.is_interbank_transfer"),
    "FIToFIPmtStsRpt": Sentence("pain001.is_interbank_status_report"),
    "PmtRtr": Sentence("pain001.is_interbank_return"),
}
"""Element of a message that holds no credit transfers -> its refusal."""

_VERSION = re.compile(r"(?:pain\.001\.\d{3}|CBIPaymentRequest\.\d{2}\.\d{2})\.\d{2}(?:\.ch\.\d{2})?")
_SHORT_NAMES = re.compile(r"pain\.001\.(001\.02|002\.\d{2}|003\.\d{2})$|CBI")
_NAME_CHARS, _SHORT_NAME_CHARS = 140, 70
_MESSAGES = "|".join(map(re.escape, ("Document", *CREDIT_TRANSFERS, *OTHER_MESSAGES)))
_COMMENTS = r"(?><!--(?>.*?-->)\s*+)*+"
"""Possessive: comments without a matching element after them are scanned only once.

Repeated groups are atomic: before 3.11.5, Python mishandles possessive repeats that may backtrack.
"""
_OPENING = re.compile(
    rf"\s*(<\?xml\s|{_COMMENTS}(<!DOCTYPE\s+(?!(?i:html)\b)|<([^\s<>:/]+:)?({_MESSAGES})[\s>/]))", re.DOTALL
)
_HEAD_BYTES_MAX = 64 * 1024


def sniff(head: bytes) -> bool:
    """True if a file is XML, by its start; only `read` can tell whether it is a credit transfer message.

    >>> sniff(b'<?xml version="1.0"?><Document>'), sniff(b"name,iban")
    (True, False)
    """
    head = head[:_HEAD_BYTES_MAX].removeprefix(codecs.BOM_UTF8)
    return _OPENING.match(head.decode(wide_encoding_of(head) or "latin-1", errors="replace")) is not None


def version_of(namespace: str | None, element: str) -> str:
    """Return the version of a message by its namespace, or else by its element.

    >>> version_of("http://www.six-interbank-clearing.com/de/pain.001.001.03.ch.02.xsd", "CstmrCdtTrfInitn")
    'pain.001.001.03.ch.02'
    >>> version_of(None, "CstmrCdtTrfInitn")
    'pain.001'
    """
    found = _VERSION.search(namespace or "") or _VERSION.search(element)
    return found[0] if found else "pain.001"


def dialect_of(namespace: str | None) -> str:
    """Return the bank dialect of a message by its namespace.

    >>> dialect_of("urn:swift:xsd:$pain.001.002.02")
    'German'
    """
    known = {"German": r"pain\.001\.00[23]\.\d{2}", "Italian": ":CBI:", "Swiss": r"\.ch\."}
    return next((dialect for dialect in known if re.search(known[dialect], namespace or "")), "ISO 20022")


def name_chars_max(version: str) -> int:
    """Return the longest name that a version allows, in characters.

    >>> name_chars_max("pain.001.003.03"), name_chars_max("pain.001.001.09")
    (70, 140)
    """
    return _SHORT_NAME_CHARS if _SHORT_NAMES.match(version) else _NAME_CHARS
