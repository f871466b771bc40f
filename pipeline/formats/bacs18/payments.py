"""Turn the records of a Standard 18 file into payments, and write copies with new names or fewer payments."""

from collections.abc import Iterator, Mapping

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
    NOTHING,
    PAYMENT,
    PENCE,
    PENCE_MAX,
    REFERENCE,
    SORT_CODE,
    Field,
    records_of,
)
from pipeline.formats.edits import Edit, removals
from pipeline.formats.message import Message, Role, split_obstacle
from pipeline.formats.table import ReadingOptions
from pipeline.formats.text_lines import in_bacs_characters
from pipeline.rules.unasked import AMOUNT_MALFORMED, CODE_UNKNOWN, DAY_MALFORMED
from pipeline.wording import Sentence

_CURRENCY = "GBP"
_READ_BEFORE = "a file that was read before"


def read(data: bytes, options: ReadingOptions, *, where: str) -> Message:  # noqa: ARG001 - the file needs no options
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
    return Message(
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


def fitted(name: str) -> str | None:
    """Return a name in Bacs characters, cut to the field's length; None if no character remains.

    >>> fitted("Quillon & Marrow Engineering Ltd")
    'QUILLON & MARROW E'
    """
    text = in_bacs_characters(name)
    return None if text is None else text[:NAME_LENGTH_MAX].rstrip()


def obstacle(message: Message) -> Sentence | None:
    """Return why a file must not be changed; None if it may."""
    return message.difference


def name_obstacle(message: Message, row: int, name: str) -> Sentence | None:  # noqa: ARG001 - other formats need the row
    """Return why a payee cannot get a name; None if it can."""
    return Sentence("bacs18.letters_not_of_bacs") if fitted(name) is None else None


def renamed(data: bytes, message: Message, names: Mapping[int, str]) -> list[Edit]:
    """Return edits that give payees new names; a name that fitting leaves unchanged needs no edit."""
    assert obstacle(message) is None
    starts = message.locations["start"]
    edits = []
    for row, name in names.items():
        text = fitted(name)
        assert text is not None
        start, end = NAME.within(starts[row - 1])
        field = text.ljust(NAME_LENGTH_MAX).encode("ascii")
        if data[start:end] != field:
            edits.append(Edit(start, end, field))
    return edits


def kept(data: bytes, message: Message, keep: pl.Series, role: Role) -> list[Edit]:  # noqa: ARG001 - both files keep the labels
    """Return the edits that keep only these payments, at least one, with matching contras and totals."""
    assert keep.len() == message.payments.height
    assert keep.any()
    assert obstacle(message) is None
    assert split_obstacle(message) is None
    records = records_of(data, where=_READ_BEFORE)
    is_payment = records["kind"] == PAYMENT
    stays = (~is_payment).scatter(is_payment.arg_true(), keep)
    after = _with_new_contras(records.filter(stays), records)
    labels = totals.labels_of(records, where=_READ_BEFORE)
    gone = records.join(after.select("line"), on="line", how="anti", maintain_order="left")
    return [*removals(gone), *_amounts(records, after), *_labels(labels, records, after)]


def _with_new_contras(records: pl.DataFrame, original: pl.DataFrame) -> pl.DataFrame:
    """Replace the contras with ones that balance the payments; unneeded contras are removed.

    If an account's sum exceeds one contra, several are used in their original places, the first ones full.
    """
    is_contra, is_payment = (pl.col("kind") == kind for kind in (CONTRA, PAYMENT))
    if original.filter(is_contra).is_empty():
        return records
    owed = pl.col("pence").filter(is_payment).sum().over(totals.BOOKING)
    is_right = owed == pl.col("pence").filter(is_contra).sum().over(totals.BOOKING)
    in_full = PENCE_MAX * (is_contra.cum_sum().over(totals.BOOKING) - 1)
    due = pl.when(is_right).then("pence").otherwise((owed - in_full).clip(0, PENCE_MAX))
    is_needed = is_payment.any().over(totals.BOOKING) & (is_right | (due > 0))
    is_money = is_contra | is_payment
    money = (
        records.filter(is_money)
        .filter(is_payment | is_needed)
        .with_columns(pence=pl.when(is_contra).then(due).otherwise("pence"))
    )
    assert money.filter(is_contra)["pence"].sum() == money.filter(is_payment)["pence"].sum()
    return pl.concat([records.filter(~is_money), money]).sort("line")


def _amounts(before: pl.DataFrame, after: pl.DataFrame) -> Iterator[Edit]:
    """Yield edits for the contras whose amount changed."""
    contras = after.filter(kind=CONTRA).join(before.select("line", was="pence"), on="line")
    for start, pence in contras.filter(pl.col("pence") != pl.col("was")).select("start", "pence").iter_rows():
        yield Edit(*PENCE.within(start), PENCE.digits(pence))


def _labels(
    labels: Mapping[str, totals.FileLabel], before: pl.DataFrame, after: pl.DataFrame
) -> Iterator[Edit]:
    """Yield edits for the totals, and for the number of blocks if it was correct before."""
    if "UTL1" in labels:
        yield Edit(
            *totals.TOTALS_FIELD.within(labels["UTL1"].start), totals.totals_text(totals.totals_of(after))
        )
    if "EOF1" not in labels:
        return
    is_record = ~pl.col("kind").is_in([*labels, NOTHING])
    was, now = (totals.block_count(labels, records.filter(is_record).height) for records in (before, after))
    count_before = labels["EOF1"].field(totals.BLOCK_COUNT)
    if now is not None and count_before.isdecimal() and int(count_before) == was:
        yield Edit(*totals.BLOCK_COUNT.within(labels["EOF1"].start), totals.BLOCK_COUNT.digits(now))
