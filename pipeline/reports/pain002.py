"""Write a pain.002.001.10, the report that bank software reads, from a payment file and its outcomes.

It is what a bank would send after a verification of payees, in the codes of `formats.pain002`. Payments to UK
accounts have the same codes, a convention of ours that the report states. Values that the schema does not
allow are left out.
"""

from collections.abc import Iterator
from typing import NamedTuple
from xml.sax.saxutils import escape

import polars as pl

from pipeline.apis.registry import UK_APIS
from pipeline.formats.message import Message
from pipeline.formats.pain002 import LINE_CHARS_MAX, SIMULATED, STATUSES, WITH_MISMATCHES, Status
from pipeline.rules.selected_values import replaced
from schemas.outcomes import Outcome

NAMESPACE = "urn:iso:std:iso:20022:tech:xsd:pain.002.001.10"
ID_CHARS_MAX = 35
SAME_CODES = "UK accounts: outcomes of Confirmation of Payee, by the codes of the Verification of Payee."

_ROWS_AT_ONCE = 20_000
_NOT_PROVIDED = "NOTPROVIDED"
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_NO_XML = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\x{FFFE}\x{FFFF}]"
_ID = r"^(?s:.{1,35})$"
_UETR = r"^[a-f0-9]{8}-[a-f0-9]{4}-4[a-f0-9]{3}-[89ab][a-f0-9]{3}-[a-f0-9]{12}$"
_AMOUNT = r"^[0-9]{1,13}(\.[0-9]{1,5})?$"
_CURRENCY = r"^[A-Z]{3}$"
_NAME = r"^(?s:.{1,140})$"
_IBAN = r"^[A-Z]{2}[0-9]{2}[a-zA-Z0-9]{1,30}$"
_OTHER_ACCOUNT = r"^(?s:.{1,34})$"
_BIC = r"^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$"
_COUNT = r"^[0-9]{1,15}$"
_SUM = r"^[0-9]{1,13}(\.[0-9]{1,5})?$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?$"


class ReportHeading(NamedTuple):
    """The header data of the report."""

    message_id: str  # at most 35 characters, and unique to each report
    created: str  # time of writing in UTC, `2026-11-22T02:40:00Z`
    simulated: bool  # true if a sandbox answered


def report(message: Message, outcomes: pl.DataFrame, heading: ReportHeading) -> Iterator[bytes]:
    """Yield the pieces of a report on a payment file, in UTF-8.

    `outcomes` has one row per payment, in file order: `check_outcome`, `check_code`, `check_matched_name`,
    `check_api`.
    """
    assert outcomes.height == message.payments.height
    assert 0 < len(heading.message_id) <= ID_CHARS_MAX
    rows = _rows(message, outcomes)
    levels = _levels(message, rows, _notes(outcomes, heading))
    yield _opening(heading, levels["text"][0]).encode()
    for start in range(0, rows.height, _ROWS_AT_ONCE):
        part = rows.slice(start, _ROWS_AT_ONCE).with_columns(
            batch_text=levels["text"].gather(rows["batch"].slice(start, _ROWS_AT_ONCE))
        )
        yield part.select(pl.concat_str(_batch_opening(), _payment()).str.join("")).item().encode()
    yield b"</OrgnlPmtInfAndSts>\n</CstmrPmtStsRpt>\n</Document>\n"


def pieces(name: str) -> list[str]:
    """Split a name into short lines that lose nothing if a reader trims them.

    >>> [len(piece) for piece in pieces("x" * 104 + " " + "y" * 35)]
    [103, 37]
    """
    cut = []
    while len(name) > LINE_CHARS_MAX:
        ends = (end for end in range(LINE_CHARS_MAX, 0, -1) if " " not in name[end - 1 : end + 1])
        end = next(ends, LINE_CHARS_MAX)
        cut.append(name[:end])
        name = name[end:]
    return [*cut, name]


def _rows(message: Message, outcomes: pl.DataFrame) -> pl.DataFrame:
    batch = message.locations["level"].alias("batch")
    status = pl.col("check_outcome").cast(pl.String).replace_strict(STATUSES, return_dtype=pl.String)
    found = outcomes.select(
        status=status, code=pl.col("check_code").cast(pl.String), lines=_matched_names(outcomes)
    )
    payments = message.payments.select(
        "name", "sort_code", "account_number", "iban", "bic", "amount", "currency"
    )
    return pl.concat([payments, message.ids, found], how="horizontal").with_columns(
        batch, is_first=batch.ne_missing(batch.shift(1)), is_very_first=pl.int_range(pl.len()) == 0
    )


def _matched_names(outcomes: pl.DataFrame) -> pl.Series:
    """Return the account holder's name for close matches, as lines of additional information."""
    is_close = pl.col("check_outcome").cast(pl.String) == Outcome.CLOSE_MATCH.value
    name = pl.col("check_matched_name").str.replace_all(_NO_XML, "\ufffd")
    names = outcomes.select(pl.when(is_close & (name != "")).then(name)).to_series()
    is_long = names.str.len_chars() > LINE_CHARS_MAX
    return replaced(
        pl.select(lines=_element("AddtlInf", pl.lit(names)))["lines"],
        where=is_long,
        by=lambda _: names.filter(is_long).map_elements(_lines, pl.String),
    )


def _lines(text: str) -> str:
    return "".join(f"<AddtlInf>{escape(piece)}</AddtlInf>" for piece in pieces(text))


def _levels(message: Message, rows: pl.DataFrame, notes: str) -> pl.DataFrame:
    """Return the opening `text` and the statuses of the message (first row) and each batch."""
    is_status = [(pl.col("status") == status.value).sum().alias(status) for status in Status]
    whole = rows.select(pl.lit(0, pl.Int64).alias("batch"), *is_status)
    counted = pl.concat([whole, rows.group_by("batch", maintain_order=True).agg(is_status)])
    levels = message.levels.with_columns(batch=pl.int_range(pl.len()))
    return levels.join(counted, on="batch", how="left", maintain_order="left").select(
        text=_level(message, notes)
    )


def _level(message: Message, notes: str) -> pl.Expr:
    """Return the status of the message or a batch, which precedes its payments."""
    is_message = pl.col("batch") == 0
    every = pl.sum_horizontal(*Status)
    status = (
        pl.when(pl.col(Status.NOT_COMPLETED) > 0)
        .then(pl.lit(Status.NOT_COMPLETED.value))
        .when(pl.col(Status.MATCH) == every)
        .then(pl.lit(Status.MATCH.value))
        .otherwise(pl.lit(WITH_MISMATCHES))
    )
    said_id = _fitting("id", _ID).fill_null(_NOT_PROVIDED)
    of_message = pl.concat_str(
        _element("OrgnlMsgId", said_id),
        pl.lit(f"<OrgnlMsgNmId>{escape(message.facts['version'])}</OrgnlMsgNmId>"),
        _element("OrgnlCreDtTm", _fitting("created", _TIME)),
    )
    return pl.concat_str(
        pl.when(is_message).then(of_message).otherwise(_element("OrgnlPmtInfId", said_id)),
        _element("OrgnlNbOfTxs", _fitting("count", _COUNT)),
        _element("OrgnlCtrlSum", _fitting("sum", _SUM)),
        pl.when(is_message).then(_element("GrpSts", status)).otherwise(_element("PmtInfSts", status)),
        pl.when(is_message).then(pl.lit(notes)).otherwise(pl.lit("")),
        *(_counted(status) for status in Status),
    )


def _counted(status: Status) -> pl.Expr:
    """Return the number of payments with a status, even 0, except for unfinished payments."""
    count = pl.col(status)
    if status is Status.NOT_COMPLETED:
        count = pl.when(count > 0).then(count)
    text = pl.format(
        "<NbOfTxsPerSts><DtldNbOfTxs>{}</DtldNbOfTxs><DtldSts>" + status + "</DtldSts></NbOfTxsPerSts>", count
    )
    return text.fill_null("")


def _notes(outcomes: pl.DataFrame, heading: ReportHeading) -> str:
    """Return notes for the reader on the whole report."""
    is_uk = outcomes["check_api"].cast(pl.String).is_in(UK_APIS).any()
    notes = [note for note, holds in ((SIMULATED, heading.simulated), (SAME_CODES, is_uk)) if holds]
    return f"<StsRsnInf>{''.join(map(_lines, notes))}</StsRsnInf>" if notes else ""


def _opening(heading: ReportHeading, level: str) -> str:
    """Return everything before the first batch."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Document xmlns="{NAMESPACE}">\n<CstmrPmtStsRpt>\n'
        f"<GrpHdr><MsgId>{escape(heading.message_id)}</MsgId><CreDtTm>{heading.created}</CreDtTm></GrpHdr>\n"
        f"<OrgnlGrpInfAndSts>{level}</OrgnlGrpInfAndSts>\n"
    )


def _batch_opening() -> pl.Expr:
    """Return the text before a batch's first payment: the previous batch's end and this one's start."""
    closing = pl.when("is_very_first").then(pl.lit("")).otherwise(pl.lit("</OrgnlPmtInfAndSts>\n"))
    return (
        pl.when("is_first")
        .then(pl.concat_str(closing, pl.lit("<OrgnlPmtInfAndSts>"), "batch_text", pl.lit("\n")))
        .otherwise(pl.lit(""))
    )


def _payment() -> pl.Expr:
    code = _around("Rsn", _element("Prtry", _fitting("code", _ID)))
    is_match = pl.col("status") == Status.MATCH.value
    creditor = _around("Cdtr", _around("Pty", _element("Nm", _fitting("name", _NAME))))
    return pl.concat_str(
        pl.lit("<TxInfAndSts>"),
        _element("OrgnlInstrId", _fitting("instruction_id", _ID)),
        _element("OrgnlEndToEndId", _fitting("end_to_end_id", _ID)),
        _element("OrgnlUETR", _fitting("uetr", _UETR)),
        _element("TxSts", pl.col("status")),
        pl.when(is_match).then(pl.lit("")).otherwise(_around("StsRsnInf", pl.concat_str(code, "lines"))),
        _around("OrgnlTxRef", pl.concat_str(_amount(), _agent(), creditor, _account())),
        pl.lit("</TxInfAndSts>\n"),
    )


def _amount() -> pl.Expr:
    money = _fitting("currency", _CURRENCY), _fitting("amount", _AMOUNT)
    return pl.format('<Amt><InstdAmt Ccy="{}">{}</InstdAmt></Amt>', *money).fill_null("")


def _agent() -> pl.Expr:
    member = "<ClrSysId><Cd>GBDSC</Cd></ClrSysId><MmbId>{}</MmbId>"
    sort_code = pl.format(member, _fitting("sort_code", r"^[0-9]{6}$")).fill_null("")
    sort_code = _around("ClrSysMmbId", sort_code)
    bank = pl.concat_str(_element("BICFI", _fitting("bic", _BIC)), sort_code)
    return _around("CdtrAgt", _around("FinInstnId", bank))


def _account() -> pl.Expr:
    number = _around("Othr", _element("Id", _fitting("account_number", _OTHER_ACCOUNT)))
    iban = _element("IBAN", _fitting("iban", _IBAN))
    return _around("CdtrAcct", _around("Id", pl.when(iban != "").then(iban).otherwise(number)))


def _fitting(column: str, pattern: str) -> pl.Expr:
    """Return the texts that the schema allows; null for others."""
    text = pl.col(column)
    return pl.when(text.str.contains(pattern) & ~text.str.contains(_NO_XML)).then(text)


def _element(tag: str, text: pl.Expr) -> pl.Expr:
    """Wrap a text in an element; an empty string for null."""
    return pl.format(f"<{tag}>{{}}</{tag}>", text.str.replace_many(_MARKUP)).fill_null("")


def _around(tag: str, inside: pl.Expr) -> pl.Expr:
    """Return an element around others; nothing if it would be empty."""
    return pl.when(inside != "").then(pl.format(f"<{tag}>{{}}</{tag}>", inside)).otherwise(pl.lit(""))
