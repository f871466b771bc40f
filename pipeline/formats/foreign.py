"""Name files that are not payments in any format that is read, by how they start."""

import re
import tomllib
from functools import cache
from importlib.resources import files

from pipeline.formats.text_lines import start_of
from pipeline.wording import Sentence

_START_BYTES = 8 * 1024
_STARTS: tuple[tuple[str, Sentence], ...] = (
    (r"%PDF-", Sentence("formats.is_pdf")),
    (r"\{\\rtf", Sentence("formats.is_rtf")),
    ("\x89PNG\r|\xff\xd8\xff|GIF8[79]a|II\\*\x00|MM\x00\\*", Sentence("formats.is_picture")),
    ("BZh[1-9]|\xfd7zXZ|7z\xbc\xaf|Rar!\x1a|\\x28\xb5\\x2f\xfd|PK\x05\x06", Sentence("formats.is_archive")),
    (r"-----BEGIN PGP|-----BEGIN CMS|-----BEGIN PKCS7", Sentence("formats.is_encrypted")),
    (r"SQLite format 3\x00", Sentence("formats.is_database")),
    (r"\x01?\{1:F|:20:", Sentence("formats.is_swift")),
    (r"[\[{]\s*[\"{\[]", Sentence("formats.is_json")),
    (r"<!DOCTYPE html|<\s*(?:html|head|body|meta|style|table|div)[\s>]", Sentence("formats.is_web_page")),
)
_KINDS = {"statements": "formats.is_statement", "direct debits": "formats.is_direct_debit"}
_XML = (r"<[A-Za-z_][\w:.-]*(\s[^<>]{0,4096})?>\s*<", Sentence("formats.is_other_xml"))


def what_else_it_is(head: bytes) -> Sentence | None:
    """Name the kind of a file that cannot hold payments, by its first bytes; None if it may.

    >>> str(what_else_it_is(b"LM03"))[:20], what_else_it_is(b"name,iban")
    ('has the layout LM03,', None)
    """
    start = start_of(head[:_START_BYTES])
    return next((kind for pattern, kind in _known() if pattern.match(start)), None)


@cache
def _known() -> list[tuple[re.Pattern[str], Sentence]]:
    layouts = tomllib.loads((files(__package__) / "foreign.toml").read_text("utf-8"))
    named = [
        (each, Sentence(_KINDS.get(kind, "formats.is_layout"), layout=name))
        for kind, some in layouts.items()
        for name, each in some.items()
    ]
    return [
        (re.compile(rf"\s*(?:{start})", re.IGNORECASE | re.ASCII), kind)
        for start, kind in (*_STARTS, *named, _XML)
    ]
