"""What is no payment file, whatever its name says: other kinds of files, known by their first bytes."""

import codecs
import re

_START_BYTES = 8 * 1024
_EXPORT = "export the payments as CSV, or give the file that the bank takes"
_STARTS: tuple[tuple[bytes, str], ...] = (
    (rb"%PDF-", f"is a PDF; {_EXPORT}"),
    (rb"\{\\rtf", f"is a text of a word processor (RTF); {_EXPORT}"),
    (rb"\x89PNG\r|\xff\xd8\xff|GIF8[79]a|II\*\x00|MM\x00\*", f"is a picture; {_EXPORT}"),
    (rb"BZh[1-9]|\xfd7zXZ|7z\xbc\xaf|Rar!\x1a|\x28\xb5\x2f\xfd|PK\x05\x06", "is an archive; unpack it first"),
    (
        rb"-----BEGIN PGP|-----BEGIN CMS|-----BEGIN PKCS7",
        "is encrypted or signed; give the file that is in it",
    ),
    (rb"SQLite format 3\x00", f"is a database; {_EXPORT}"),
    (rb"\{1:F|:20:", f"is a SWIFT message; {_EXPORT}"),
    (rb"[\[{]\s*[\"{\[]", f"is JSON; {_EXPORT}"),
    (rb"<!DOCTYPE html|<html[\s>]", f"is a web page, not a table; {_EXPORT}"),
    (
        rb"<[A-Za-z_][\w:.-]*(\s[^<>]{0,4096})?>\s*<",
        "is XML of another kind; of XML only pain.001 (credit transfers) is read",
    ),
)
_FOREIGN = tuple((re.compile(rb"\s*(?:" + start + rb")", re.IGNORECASE), kind) for start, kind in _STARTS)


def what_else_it_is(head: bytes) -> str | None:
    """What a file is, as a sentence about it; None where it could be a payment file.

    Args:
        head: Its first bytes.

    >>> what_else_it_is(b"%PDF-1.7").partition(";")[0], what_else_it_is(b"name,iban")
    ('is a PDF', None)
    """
    start = head.removeprefix(codecs.BOM_UTF8)[:_START_BYTES]
    return next((kind for pattern, kind in _FOREIGN if pattern.match(start)), None)
