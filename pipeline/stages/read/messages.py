"""A message -> payments: the format knows the place of each field and the totals that its file states."""

import polars as pl

from pipeline.formats import entry_named
from pipeline.formats.message import Message
from pipeline.formats.protocols import MessageFormat
from pipeline.formats.table import Dialect
from pipeline.frames import PAYMENTS, Original, Payments, Warnings, slim
from pipeline.headers.guesses import PLACE
from pipeline.headers.readings import ColumnReading
from pipeline.rules.places import batches_of, lines_at
from pipeline.stages.read.opening import identity_of
from pipeline.stages.read.source import PaymentSource, ReadingArguments
from schemas.payments import FIELDS
from schemas.places import Places

BATCH, LINE, LOCATION = "batch", "line", "location"
"""The columns that follow the fields in the outcome file: what the file calls the batch of a payment, its
line, and its path within a document."""


def read_message(
    data: bytes, file_format: MessageFormat, said: ReadingArguments, *, where: str
) -> PaymentSource:
    """Read the bytes of a file whose format is one of messages.

    Args:
        data: the bytes.
        file_format: of the file.
        said: about how to read it.
        where: the file, for messages.

    Raises:
        InputError: the file cannot be read as payments.
        UsageError: the encoding is not supported.
    """
    identity = identity_of(data)
    message = file_format.read(data, said.options, where=where)
    payments = message.payments.with_columns(message.places["row"], message.defects.alias("defect"))
    return PaymentSource(
        payments=Payments(payments.select(*PAYMENTS)),
        original=Original(slim(_original(message))),
        columns=tuple(_readings(message, file_format)),
        decision={field: f"{PLACE}{at}" for at, field in enumerate(FIELDS, start=1)},
        notes=(),
        format=file_format.NAME,
        outcome_format=entry_named(file_format.NAME).outcomes.NAME,
        dialect=Dialect(),
        sha256=identity.sha256,
        byte_count=identity.byte_count,
        extra_column_count=0,
        earlier=pl.DataFrame(),
        places=_places(message),
        not_payments=[],
        message=message,
        warnings=Warnings(message.warnings),
    )


def _original(message: Message) -> pl.DataFrame:
    """What stands in the outcome file before the outcome: the canonical fields, and where the payment is."""
    return message.payments.select(FIELDS).with_columns(
        message.places["batch"].alias(BATCH),
        message.places["line"].cast(pl.String).alias(LINE),
        message.places["path"].alias(LOCATION),
    )


def _readings(message: Message, file_format: MessageFormat) -> list[ColumnReading]:
    """How each field that the file has was read."""
    return [
        ColumnReading(
            header=file_format.ORIGINS.get(field, ""),
            field=field,
            how=file_format.TITLE,
            values=tuple(message.payments[field].drop_nulls().head(3)),
        )
        for field in FIELDS
        if message.payments[field].count()
    ]


def _places(message: Message) -> Places | None:
    """By batch and payment in a document, by line in all other files."""
    if message.levels.is_empty():
        return lines_at(message.places["line"])
    return batches_of(message.places["level"])
