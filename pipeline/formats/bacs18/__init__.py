"""Bacs Standard 18: files that payroll and ledger software writes for Bacs and that most UK banks accept.

Labels enclose payments, and contras that balance them; many exports leave the labels out. A credit (code 99)
is a payment; direct debits and their instructions are reported and never checked.
"""

import re

from pipeline.formats.bacs18.payments import fitted as fitted
from pipeline.formats.bacs18.payments import kept as kept
from pipeline.formats.bacs18.payments import name_obstacle as name_obstacle
from pipeline.formats.bacs18.payments import obstacle as obstacle
from pipeline.formats.bacs18.payments import read as read
from pipeline.formats.bacs18.payments import renamed as renamed
from pipeline.formats.foreign import what_else_it_is
from pipeline.formats.message import split_obstacle as split_obstacle
from pipeline.formats.table import load as load
from pipeline.formats.text_lines import start_of
from pipeline.wording import Sentence

NAME = "bacs18"
TITLE = "Bacs Standard 18"
KNOWN_BY = Sentence("formats.known_bacs18")
SUFFIXES = (".bac", ".bacs", ".s18", ".txt", ".dat")
MEMORY_PER_BYTE = 12  # measured with a million payments: 5 to read them, 12 to split them
ORIGINS = {
    "sort_code": Sentence("column.characters", first=1, last=6),
    "account_number": Sentence("column.characters", first=7, last=14),
    "amount": Sentence("column.characters", first=36, last=46),
    "currency": Sentence("column.by_the_format", currencies=["GBP"]),
    "reference": Sentence("column.characters", first=65, last=82),
    "name": Sentence("column.characters", first=83, last=100),
}
OPTIONS: tuple[str, ...] = ()  # reading options: none, because this format needs no hints

_STARTS = (
    r"[ \t]*(?i:VOL1|HDR1|HDR2|UHL1)[0-9A-Za-z .&/-]{2,120}(?:[\r\n]|HDR1|$)",
    r"[0-9]{14}.[0-9A-Z]{2}[0-9]{14}.{4}[0-9]{11}[\x20-\x7e]{30}",
)
_START = re.compile("|".join(_STARTS))
_START_BYTES = 256


def sniff(head: bytes) -> bool:
    """True if a file starts like Standard 18, with a label or a record."""
    return _START.match(start_of(head[:_START_BYTES])) is not None and what_else_it_is(head) is None
