"""Read a message into payments; its format gives the position of each field and the totals."""

import polars as pl

from pipeline.errors import InputError
from pipeline.formats.layouts import LayoutFormat
from pipeline.formats.message import Message
from pipeline.formats.protocols import MessageFormat
from pipeline.formats.registry import MessageEntry
from pipeline.formats.table import Dialect
from pipeline.frames import PAYMENTS, Original, Payments, Warnings, slim
from pipeline.headers.readings import ColumnReading
from pipeline.rules.account_country import located
from pipeline.rules.row_positions import batches_of, lines_at
from pipeline.stages.read.opening import PaymentSource, ReadingArguments, identity_of
from pipeline.wording import PLACE, Sentence
from schemas.payments import FIELDS

BATCH, LINE, LOCATION = "batch", "line", "location"
"""The columns after the fields in the outcome file: batch, line, and path within a document."""


def read_message(
    content: bytes | Message, entry: MessageEntry, arguments: ReadingArguments, *, where: str
) -> PaymentSource:
    """Read a message format: a file's bytes, or the message that a child has read; same errors as `read`."""
    file_format = entry.format
    if not content:
        raise InputError(Sentence("formats.file_empty", where=where))
    if isinstance(content, bytes):
        message, identity = file_format.read(content, arguments.options, where=where), identity_of(content)
    else:
        assert content.identity is not None, "who reads a file knows what it has read"
        message, identity = content, content.identity
    payments = _located(message, arguments, where)
    is_own = file_format.NAME in arguments.format_choice.layouts
    is_encoding_stated = "encoding" in file_format.OPTIONS
    places = message.locations
    line = places["line"].cast(pl.String).alias(LINE)
    own = places["batch"].alias(BATCH), line, places["path"].alias(LOCATION)
    return PaymentSource(
        payments=Payments(payments.with_columns(message.locations["row"]).select(*PAYMENTS)),
        original=Original(slim(payments.select(FIELDS).with_columns(own))),
        columns=tuple(_readings(message, file_format)),
        decision={field: f"{PLACE}{index}" for index, field in enumerate(FIELDS, start=1)},
        notes=message.notes,
        format=file_format.NAME,
        # Recorded, so that later commands do not depend on the configuration.
        layout=file_format.layout if is_own and isinstance(file_format, LayoutFormat) else None,
        outcome_format=entry.outcomes.NAME,
        dialect=Dialect(encoding=message.facts["encoding"]) if is_encoding_stated else Dialect(),
        sha256=identity.sha256,
        byte_count=identity.byte_count,
        extra_column_count=0,
        earlier=pl.DataFrame(),
        positions=lines_at(places["line"]) if message.levels.is_empty() else batches_of(places["level"]),
        not_payments=[],
        message=message,
        warnings=Warnings(message.warnings),
    )


def _located(message: Message, arguments: ReadingArguments, where: str) -> pl.DataFrame:
    """Add the `defect` of accounts that are not British (InputError: no sign shows any account's country)."""
    if message.signs is None:
        return message.payments.with_columns(message.defects.alias("defect"))
    found = located(message.payments, message.signs._replace(country=arguments.country))
    if found.is_open:
        advice = (Sentence("advice.say_accounts_are_uk"), Sentence("stages.give_ibans"))
        raise InputError(Sentence("stages.account_country_unknown", where=where), advice=advice)
    defects = pl.select(pl.coalesce(message.defects, found.defects)).to_series()
    return found.payments.with_columns(defects.alias("defect"))


def batches_in(original: pl.DataFrame) -> pl.Series | None:
    """Return the batch of each payment in a message, from its outcome file; None for other files."""
    is_of_a_message = original.columns == [*FIELDS, BATCH, LINE, LOCATION]
    return original[BATCH] if is_of_a_message else None


def _readings(message: Message, file_format: MessageFormat) -> list[ColumnReading]:
    return [
        ColumnReading(
            header=origin.recorded() if isinstance(origin, Sentence) else origin,
            field=field,
            how=Sentence("column.of_format", title=file_format.TITLE),
            values=tuple(message.payments[field].drop_nulls().head(3)),
        )
        for field in FIELDS
        for origin in [file_format.ORIGINS.get(field, "")]
        if message.payments[field].count()
    ]
