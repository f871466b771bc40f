"""Bacs Standard 18: what payroll and ledger software writes for Bacs, and what most UK banks take.

Labels of 80 characters around payments of 100, or 106 where each has a day of its own, and contras that
balance them. Many exports leave the labels out. A credit (code 99) is a payment; direct debits and their
instructions are told and never checked. Places in the records: `records` and `labels`.
"""

import re

from pipeline.formats.bacs18.reading import read
from pipeline.formats.bacs18.records import LABELS
from pipeline.formats.bacs18.writing import fitted, kept, renamed

__all__ = ["MEMORY_PER_BYTE", "NAME", "OPTIONS", "SUFFIXES", "fitted", "kept", "read", "renamed", "sniff"]

NAME = "bacs18"
SUFFIXES = (".bac", ".bacs", ".s18", ".txt", ".dat")
MEMORY_PER_BYTE = 12
"""Measured: docs/performance.md."""
OPTIONS: tuple[str, ...] = ()
"""Nothing needs to be said about a file of this format."""

_LABEL = re.compile(rf"({'|'.join(LABELS[:4])})[\x20-\x7e]{{20,76}}\s*".encode())
_RECORD = re.compile(rb"[0-9]{14}.[0-9A-Z]{2}[0-9]{14}.{4}[0-9]{11}[\x20-\x7e]{30,}")


def sniff(head: bytes) -> bool:
    """Whether a file starts as Standard 18 does: with a label, or with a record of its shape."""
    first = head.split(b"\n", 1)[0].removesuffix(b"\r")
    if first.startswith(tuple(label.encode() for label in LABELS)):
        return _LABEL.fullmatch(first) is not None
    return _RECORD.match(first) is not None
