"""pain.001: ISO 20022 credit transfers, in every version and in banks' dialects.

A file is recognised by its content, read in one pass in a child process (`reading`) and changed by byte
edits. A payment is removed with the comments before it, and an empty batch as a whole. Counts and sums are
corrected if the file states them, and the message and its batches get new IDs.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import IO
from xml.sax.saxutils import escape

import polars as pl

from pipeline.errors import InputError
from pipeline.files.confined import parse_confined
from pipeline.formats.edits import Bytes, Edit, in_order, removals
from pipeline.formats.message import LOCATIONS, THE_FILE, FileIdentity, Message, Role, controls_frame
from pipeline.formats.pain001 import reading
from pipeline.formats.pain001.fields import ABSENT, ADDRESS, BLANKS, IDS
from pipeline.formats.pain001.fields import ORIGINS as ORIGINS
from pipeline.formats.pain001.levels import CHEQUES, amount_like, controls, totals
from pipeline.formats.pain001.versions import sniff as sniff
from pipeline.formats.table import ReadingOptions
from pipeline.formats.table import load as load
from pipeline.formats.xml_stream import WIDE
from pipeline.frames import slim
from pipeline.rules.account_country import AccountSigns
from pipeline.rules.unasked import CHEQUE
from pipeline.wording import Sentence
from schemas.payments import FIELDS

NAME = "pain001"
TITLE = Sentence("formats.title_pain001")
KNOWN_BY = Sentence("formats.known_pain001")
SUFFIXES = (".xml",)
MEMORY_PER_BYTE = 4
"""Covers the file in the child process and the resulting frames; a split holds the file twice."""
OPTIONS: tuple[str, ...] = ()  # reading options: none, because the file declares its encoding
ID_CHARS_MAX = 35
_SUFFIXES = {"release": "-R", "hold": "-H"}
_HASH_CHARS = 6
_NO_NAME_CHARACTER = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_EMPTY_TAG = b"/>"


def read(data: bytes, options: ReadingOptions, *, where: str) -> Message:  # noqa: ARG001 - the file needs no options
    """Read a message in a child process with limited memory and time.

    Raises InputError: it is not a credit transfer message, or is unsafe or ambiguous.
    """
    return read_file(data, where=where)


def read_file(file: bytes | IO[bytes], *, where: str) -> Message:
    """Read a file that only the child process holds in memory; otherwise like `read`."""
    parts = parse_confined(reading.__name__, file, where=where, what=Sentence("files.the_xml_file"))
    if parts.height == 1:
        raise InputError(Sentence("pain001.no_payments", where=where))
    return message_of(parts)


def message_of(parts: pl.DataFrame) -> Message:
    """Join the parts that `reading.parse` yields into a message."""
    whole, rows = parts.tail(1), slim(parts.head(-1))
    levels = whole["levels"].explode().struct.unnest()
    facts = {fact["name"]: fact["fact"] for fact in whole["facts"].item()}
    identity = FileIdentity(facts.pop("sha256"), int(facts.pop("byte_count")))
    count = int(facts.pop("data_payments"))
    found = totals(rows.select("batch", "amount"), levels.height)
    is_cheque = levels["method"].eq_missing(CHEQUES).gather(rows["batch"])
    return Message(
        payments=rows.select(FIELDS),
        defects=rows.select(defect=pl.when(is_cheque).then(pl.lit(CHEQUE)).otherwise("defect")).to_series(),
        locations=_locations(rows, levels),
        controls=controls_frame(controls(levels, found)),
        facts=facts,
        ids=rows.select(IDS),
        addresses=rows.select(ADDRESS),
        levels=levels,
        identity=identity,
        notes=(Sentence("pain001.payments_in_supplementary_data", count=count),) if count else (),
        signs=AccountSigns(
            rows["bank_country"], rows["says_sort_code"], pl.repeat(value=False, n=rows.height, eager=True)
        ),
    )


def _locations(rows: pl.DataFrame, levels: pl.DataFrame) -> pl.DataFrame:
    """Return `LOCATIONS` and what edits need: `level` (row of the batch in `levels`) and text offsets."""
    numbered = rows.select(pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).alias("row"), *reading.LOCATIONS)
    nth = pl.col("row") - pl.col("row").min().over("level") + 1
    return numbered.rename({"batch": "level"}).select(
        "row",
        "start",
        "end",
        pl.col("line").cast(LOCATIONS["line"]),
        pl.format("PmtInf[{}]/CdtTrfTxInf[{}]", pl.col("level"), nth).alias("path"),
        levels["id"].gather(rows["batch"]).alias("batch"),
        pl.lit(None, LOCATIONS["code"]).alias("code"),
        "level",
        "element",
        "name_start",
        "name_end",
    )


def obstacle(message: Message) -> Sentence | None:
    """Return why a file must not be changed; None if it may."""
    if "sealed" in message.facts:
        return Sentence("pain001.is_signed", file=THE_FILE)
    if (encoding := message.facts["encoding"]) in WIDE:
        return Sentence("pain001.encoding_not_editable", file=THE_FILE, encoding=encoding.upper())
    return message.difference


def split_obstacle(message: Message) -> Sentence | None:  # noqa: ARG001 - any payment can be removed
    """Return why payments cannot be removed from a file; None if they can."""
    return None


def fitted(name: str) -> str | None:
    """Return a name as the file holds it, without surrounding blanks; None for a placeholder.

    >>> fitted(" Ada Quillon "), fitted("NOTPROVIDED")
    ('Ada Quillon', None)
    """
    text = name.strip(BLANKS)
    return None if text in ("", ABSENT) else text


def name_obstacle(message: Message, row: int, name: str) -> Sentence | None:
    """Return why a payee cannot get a name; None if it can."""
    if message.locations["name_start"][row - 1] is None:
        return Sentence("pain001.no_element_for_name")
    text = fitted(name)
    if text is None:
        return Sentence("pain001.new_name_invalid")
    if _NO_NAME_CHARACTER.search(text):
        return Sentence("pain001.new_name_not_in_xml")
    longest = int(message.facts["name_chars_max"])
    if len(text) > longest:
        return Sentence("pain001.new_name_too_long", chars_max=longest, version=message.facts["version"])
    return None


def renamed(data: Bytes, message: Message, names: Mapping[int, str]) -> list[Edit]:
    """Return edits that give payees new names, by row."""
    assert obstacle(message) is None
    starts, ends = message.locations["name_start"], message.locations["name_end"]
    edits = []
    for row, name in names.items():
        assert name_obstacle(message, row, name) is None
        text = fitted(name)
        assert text is not None
        edits.append(_filled(data, starts[row - 1], ends[row - 1], _encoded(message, text)))
    return in_order(edits)


def kept(data: Bytes, message: Message, keep: pl.Series, role: Role) -> list[Edit]:  # noqa: ARG001 - other formats need the data
    """Return the edits that keep only these payments, at least one; the new IDs show the file's `role`."""
    assert obstacle(message) is None
    assert keep.any()
    payments = message.locations.select("start", "end", batch="level").with_columns(keep=keep)
    kept_in = payments.group_by("batch").agg(pl.col("keep").any())
    emptied = kept_in.filter(~pl.col("keep"))["batch"].implode()
    levels = message.levels.with_columns(emptied=pl.int_range(pl.len()).is_in(emptied))
    amounts = message.payments.select("amount").with_columns(batch=message.locations["level"]).filter(keep)
    left = levels.hstack(totals(amounts, levels.height).rename({"count": "left", "sum": "left_sum"}))
    return in_order(
        [
            *removals(levels.filter("emptied")),
            *removals(payments.filter(~pl.col("keep") & ~pl.col("batch").is_in(emptied))),
            *_said_anew(message, left.filter(~pl.col("emptied")), _SUFFIXES[role]),
        ]
    )


def _said_anew(message: Message, levels: pl.DataFrame, suffix: str) -> Iterator[Edit]:
    """Yield edits of the IDs, counts and sums of the remaining levels."""
    ids = _new_ids(levels["id"], suffix)
    for level in levels.iter_rows(named=True):
        new = {
            "id": ids.get(level["id"]),
            "count": None if level["count"] is None else str(level["left"]),
            "sum": None if level["sum"] is None else amount_like(level["left_sum"], level["sum"]),
        }
        for what, text in new.items():
            if text is not None and text != level[what]:
                yield Edit(level[f"{what}_start"], level[f"{what}_end"], _encoded(message, text))


def _new_ids(ids: pl.Series, suffix: str) -> dict[str, str]:
    """Return a new ID for each ID; different IDs stay different."""
    new: dict[str, str] = {}
    taken: set[str] = set()
    for old in ids.drop_nulls().unique(maintain_order=True):
        candidate, attempt = old + suffix, 0
        while len(candidate) > ID_CHARS_MAX or candidate in taken:
            digest = hashlib.sha256(f"{attempt}{old}".encode()).hexdigest()[:_HASH_CHARS]
            room = ID_CHARS_MAX - len(suffix) - len(digest) - 1
            candidate, attempt = f"{old[:room].rstrip()}-{digest}{suffix}", attempt + 1
        new[old] = candidate
        taken.add(candidate)
    return new


def _filled(data: Bytes, start: int, end: int, text: bytes) -> Edit:
    """Replace the content of an element; a self-closing tag becomes a pair."""
    if start != end or data[start - len(_EMPTY_TAG) : start] != _EMPTY_TAG:
        return Edit(start, end, text)
    name = re.match(rb"<([^\s/>]+)", data[data.rfind(b"<", 0, start) : start])
    assert name is not None
    return Edit(start - len(_EMPTY_TAG), end, b">" + text + b"</" + name[1] + b">")


def _encoded(message: Message, text: str) -> bytes:
    """Encode a text for the file, with numeric references for characters that the encoding lacks."""
    return escape(text).encode(message.facts["encoding"], "xmlcharrefreplace")
