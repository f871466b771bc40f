"""Read a pain.001 into frames, in one pass of the standard library's parser, in blocks of payments.

The frames hold texts and byte offsets of elements, so that a file can be changed by byte edits.
"""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from pipeline.errors import InputError
from pipeline.formats.edits import Bytes
from pipeline.formats.pain001.elements import INDEX, TEXTS
from pipeline.formats.pain001.fields import ADDRESS, IDS, SIGNS, fields
from pipeline.formats.pain001.levels import FACTS, LEVELS
from pipeline.formats.pain001.walking import Found, walk
from pipeline.formats.xml_stream import XmlStream
from pipeline.wording import Sentence
from schemas.payments import FIELDS

LOCATIONS = {
    "start": pl.Int64(),  # end of the preceding element; comments before the payment belong to it
    "end": pl.Int64(),
    "element": pl.Int64(),  # start of the payment's element
    "line": pl.Int64(),
    "batch": pl.Int64(),  # counted from 1; 0 outside of batches
    "name_start": pl.Int64(),  # offset of the text between the tags; null without a name
    "name_end": pl.Int64(),
}
PARTS = {
    **dict.fromkeys(FIELDS, pl.String()),
    **SIGNS,
    **dict.fromkeys(("defect", *IDS, *ADDRESS), pl.String()),
    **LOCATIONS,
    "levels": pl.List(pl.Struct(LEVELS)),
    "facts": pl.List(pl.Struct(FACTS)),
}
"""Columns of the parts that `parse` yields. The last row has levels and facts instead of a payment."""

_BLOCK_HEIGHT = 4096
"""Small enough for the processor's cache; a sixth faster than blocks sixteen times as large."""


def parse(data: Bytes) -> Iterator[pl.DataFrame]:
    """Read a message in parts of `PARTS`, in the child process of `files.confined`.

    Raises InputError: it is not a credit transfer message, or is unsafe or ambiguous.
    """
    stream = XmlStream(data)
    found = Found(stream)
    walk(found, stream)
    for _ in stream.steps():
        if len(found.rows) >= _BLOCK_HEIGHT:
            yield _part(found)
    if not found.levels.facts:
        raise InputError(Sentence("pain001.no_credit_transfers"))
    yield _part(found)
    yield _last(found, stream)


def _part(found: Found) -> pl.DataFrame:
    """Return the payments since the last part."""
    texts = _columns(found.rows, dict.fromkeys(INDEX, pl.String()))
    locations = _columns(found.spans, LOCATIONS)
    found.rows.clear()
    found.spans.clear()
    nothing = (pl.lit(None, PARTS[column]).alias(column) for column in ("levels", "facts"))
    return pl.concat([fields(texts.select(TEXTS)), locations], how="horizontal").with_columns(*nothing)


def _last(found: Found, stream: XmlStream) -> pl.DataFrame:
    """Return the row with levels and facts."""
    facts = found.levels.facts | {
        "encoding": stream.encoding,
        "data_payments": str(found.data_payment_count),
        "sha256": stream.identity.sha256,
        "byte_count": str(stream.identity.byte_count),
    }
    if found.is_sealed:
        facts["sealed"] = "yes"
    whole = {
        "levels": [found.levels.whole(*found.message).to_struct()],
        "facts": [[{"name": name, "fact": fact} for name, fact in facts.items()]],
    }
    return pl.DataFrame({column: whole.get(column, [None]) for column in PARTS}, schema=PARTS)


def _columns(rows: Sequence[Sequence[object]], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Turn rows into a frame by columns, which is faster; columns without values are constants."""
    columns = dict(zip(schema, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(schema, ())
    absent = [name for name, values in columns.items() if values.count(None) == len(values)]
    present = [pl.Series(name, columns[name], schema[name]) for name in columns if name not in absent]
    frame = pl.DataFrame(present) if present else pl.DataFrame(height=len(rows))
    return frame.with_columns(pl.lit(None, schema[name]).alias(name) for name in absent).select(list(schema))
