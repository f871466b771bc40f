"""pain.001: ISO 20022 credit transfers, in every version and in banks' dialects.

A file is recognised by its content, read in one pass in a child process (`reading`) and changed by byte
edits (`changes`). Sources: docs/payment-files.md.
"""

from typing import IO

import polars as pl

from pipeline.errors import InputError
from pipeline.files.confined import parse_confined
from pipeline.formats.message import LOCATIONS, FileIdentity, Message, controls_frame
from pipeline.formats.pain001 import reading
from pipeline.formats.pain001.changes import fitted as fitted
from pipeline.formats.pain001.changes import kept as kept
from pipeline.formats.pain001.changes import name_obstacle as name_obstacle
from pipeline.formats.pain001.changes import obstacle as obstacle
from pipeline.formats.pain001.changes import renamed as renamed
from pipeline.formats.pain001.changes import split_obstacle as split_obstacle
from pipeline.formats.pain001.fields import ADDRESS, IDS
from pipeline.formats.pain001.fields import ORIGINS as ORIGINS
from pipeline.formats.pain001.levels import CHEQUES, controls, totals
from pipeline.formats.pain001.versions import sniff as sniff
from pipeline.formats.table import ReadingOptions
from pipeline.formats.table import load as load
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
