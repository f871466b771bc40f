"""Bacs Standard 18: what payroll and ledger software writes for Bacs, and what most UK banks take.

Labels of 80 characters around payments of 100, or 106 where each has a day of its own, and contras that
balance them. Many exports leave the labels out. A credit (code 99) is a payment; direct debits and their
instructions are told and never checked. Places in the records: `records` and `labels`.
"""

import re

from pipeline.formats.bacs18.reading import read
from pipeline.formats.bacs18.writing import fitted, kept, name_obstacle, obstacle, renamed
from pipeline.formats.line_message import split_obstacle

__all__ = [
    "MEMORY_PER_BYTE",
    "NAME",
    "OPTIONS",
    "SUFFIXES",
    "fitted",
    "kept",
    "name_obstacle",
    "obstacle",
    "read",
    "renamed",
    "sniff",
    "split_obstacle",
]

NAME = "bacs18"
SUFFIXES = (".bac", ".bacs", ".s18", ".txt", ".dat")
MEMORY_PER_BYTE = 12
"""Of a million payments: 5 to read them, 12 to split them."""
OPTIONS: tuple[str, ...] = ()
"""Nothing needs to be said about a file of this format."""

_STARTS = (
    rb"VOL1[0-9A-Z ]{7} {26}",
    rb"HDR1A[0-9A-Z]{6}S",
    rb"HDR2F[0-9]{10}",
    rb"UHL1 [0-9]{5}[ 0-9]{6} ",
    rb"[0-9]{14}.[0-9A-Z]{2}[0-9]{14}.{4}[0-9]{11}[\x20-\x7e]{30}",
)
_START = re.compile(b"|".join(_STARTS))


def sniff(head: bytes) -> bool:
    """Whether a file starts as Standard 18 does: with a label, or with a record of its shape."""
    return _START.match(head) is not None
