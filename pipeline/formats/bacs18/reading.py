"""Turn the records of a Standard 18 file into payments."""

import polars as pl

from pipeline.errors import InputError
from pipeline.formats import message
from pipeline.formats.bacs18 import totals
from pipeline.formats.bacs18.records import (
    ACCOUNT_NUMBER,
    CONTRA,
    CREDIT,
    DIRECT_DEBIT,
    INSTRUCTION,
    NAME,
    NAME_LENGTH_MAX,
    PAYMENT,
    PENCE,
    REFERENCE,
    SORT_CODE,
    Field,
    records_of,
)
from pipeline.formats.table import ReadingOptions
from pipeline.rules.unasked import AMOUNT_MALFORMED, CODE_UNKNOWN, DAY_MALFORMED
from pipeline.wording import Sentence

_CURRENCY = "GBP"


def read(data: bytes, options: ReadingOptions, *, where: str) -> message.Message:  # noqa: ARG001 - the file needs no options
    """Read a Standard 18 file: its credits, even malformed, are payments; direct debits are set aside.

    Raises InputError: it is not Standard 18, is truncated, or has no credits.
    """
    records = records_of(data, where=where)
    labels = totals.labels_of(records, where=where)
    credits_ = records.filter(kind=PAYMENT)
    set_aside = records.filter(pl.col("kind").is_in([DIRECT_DEBIT, INSTRUCTION]))
    if credits_.is_empty():
        kinds = [message.in_words(kind) for kind in set_aside["kind"].unique(maintain_order=True)]
        has = Sentence("bacs18.only_lines_of_kinds", kinds=kinds) if kinds else Sentence("bacs18.no_payments")
        raise InputError(Sentence("bacs18.only_credits_checked", where=where, has=has))
    payments = _payments(credits_)
    has_days = credits_["day"].str.strip_chars().str.len_bytes().sum() > 0
    return message.Message(
        payments=payments,
        defects=_defects(credits_),
        locations=_locations(credits_, labels),
        controls=totals.controls_of(records, labels, where=where),
        facts={
            "days": "several" if has_days else "one",
            "contras": str(records.filter(kind=CONTRA).height),
            "currency": _CURRENCY,
            **totals.facts_of(labels),
        },
        set_aside=set_aside.select(list(message.SET_ASIDE)).match_to_schema(message.SET_ASIDE),
        warnings=message.truncated_names(payments["name"], length_max=NAME_LENGTH_MAX),
    )


def _payments(credits_: pl.DataFrame) -> pl.DataFrame:
    pounds = PENCE.of_line.str.replace(r"^0{0,8}(\d+)(\d\d)$", "$1.$2")
    fields = credits_.select(
        sort_code=_filled(SORT_CODE),
        account_number=_filled(ACCOUNT_NUMBER),
        name=_filled(NAME),
        amount=pl.when(pl.col("pence").is_not_null()).then(pounds),
        currency=pl.lit(_CURRENCY),
        reference=_filled(REFERENCE),
    )
    return message.with_absent_fields(fields)


def _filled(field: Field) -> pl.Expr:
    """Return a field without surrounding blanks; null if it is blank."""
    text = field.of_line.str.strip_chars(" ")
    return pl.when(text != "").then(text)


def _defects(credits_: pl.DataFrame) -> pl.Series:
    days = credits_["day"].unique()
    wrong_days = [day for day in days if day.strip() and totals.in_calendar(day) is None]
    return credits_.select(
        pl.when(pl.col("code") != CREDIT)
        .then(pl.lit(CODE_UNKNOWN))
        .when(pl.col("pence").is_null())
        .then(pl.lit(AMOUNT_MALFORMED))
        .when(pl.col("day").is_in(wrong_days))
        .then(pl.lit(DAY_MALFORMED))
        .alias("defect")
    ).to_series()


def _locations(credits_: pl.DataFrame, labels: dict[str, totals.FileLabel]) -> pl.DataFrame:
    of_file = totals.processing_day(labels) or ""
    days = {
        day: f"{shown} " if (shown := totals.in_calendar(day if day.strip() else of_file)) else ""
        for day in credits_["day"].unique()
    }
    originator = pl.col("originator")
    batch = pl.concat_str(
        pl.col("day").replace_strict(days, return_dtype=pl.String),
        originator.str.slice(0, 6),
        pl.lit(" "),
        originator.str.slice(6),
    )
    return message.line_locations(credits_, batch)
