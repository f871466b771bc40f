"""pain.001: credit transfers as ISO 20022 has them, in every version and in the dialects of banks.

A file is known by its content, read in a child in one pass (`reading`), and changed by edits of its bytes
(`changes`). Sources: docs/payment-files.md.
"""

import polars as pl

from pipeline.errors import InputError
from pipeline.files.confined import parse_confined
from pipeline.formats.message import Message
from pipeline.formats.pain001 import reading
from pipeline.formats.pain001.changes import (
    SINGLE_PAYMENT,
    is_single,
    kept,
    name_obstacle,
    obstacle,
    renamed,
)
from pipeline.formats.pain001.controls import controls, difference, totals
from pipeline.formats.pain001.fields import CHEQUE, DEFECTS, IDS
from pipeline.formats.pain001.levels import CHEQUES
from pipeline.formats.pain001.versions import sniff
from schemas.payments import FIELDS

NAME = "pain001"
SUFFIXES = (".xml",)

__all__ = [
    "DEFECTS",
    "NAME",
    "SINGLE_PAYMENT",
    "SUFFIXES",
    "difference",
    "is_single",
    "kept",
    "message_of",
    "name_obstacle",
    "obstacle",
    "read",
    "renamed",
    "sniff",
]


def read(data: bytes, *, where: str) -> Message:
    """Read a message, in a child with limits on its memory and time.

    Args:
        data: the bytes of the file.
        where: the file, for messages.

    Raises:
        InputError: it is no credit transfer message, or not to be read safely or in one way only.
    """
    if not data:
        raise InputError(f"{where}: the file is empty; give a file with payments")
    parts = parse_confined(reading.__name__, data, where=where, what="the XML file")
    if parts.height == 1:
        raise InputError(f"{where}: has no payments (CdtTrfTxInf); give a file with payments")
    return message_of(parts)


def message_of(parts: pl.DataFrame) -> Message:
    """What the parts that `reading.parse` yields are about, joined."""
    whole, rows = parts.tail(1), parts.head(-1)
    levels = whole["levels"].explode().struct.unnest()
    facts = {fact["name"]: fact["fact"] for fact in whole["facts"].item()}
    found = totals(rows.select("batch", "amount"), levels.height)
    return Message(
        payments=rows.select(FIELDS),
        defects=_defects(rows, levels),
        places=_places(rows),
        ids=rows.select(IDS),
        levels=levels,
        controls=controls(levels, found),
        facts=facts,
    )


def _defects(rows: pl.DataFrame, levels: pl.DataFrame) -> pl.Series:
    is_cheque = levels["method"].eq_missing(CHEQUES).gather(rows["batch"])
    return rows.select(
        pl.when(is_cheque).then(pl.lit(CHEQUE)).otherwise("defect").alias("defect")
    ).to_series()


def _places(rows: pl.DataFrame) -> pl.DataFrame:
    places = rows.select(pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).alias("row"), *reading.PLACES)
    nth = pl.col("row") - pl.col("row").min().over("batch") + 1
    return places.with_columns(path=pl.format("PmtInf[{}]/CdtTrfTxInf[{}]", "batch", nth))
