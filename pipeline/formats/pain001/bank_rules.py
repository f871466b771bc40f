"""Banks' rules for pain.001 files, each with a start date. They only warn; the bank decides.

All have a public source. Each yields one warning per file, at the first violation.
"""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple

import polars as pl

from pipeline.formats.message import Message
from pipeline.wording import Sentence
from schemas.summary import BankCode, BankWarning

_SEPA_FROM, _OTHERS_FROM = date(2026, 11, 15), date(2026, 11, 14)
_AHEAD_MAX = timedelta(days=360)
_LINES_MAX, _LINE_CHARS_MAX = 2, 70
_RETIRED = ("pain.001.001.02", "pain.001.001.03")
_BEYOND_SEPA = r"[^A-Za-z0-9/?:().,'+ \n-]"
_BEYOND_GERMAN = r"[^A-Za-z0-9/?:().,'+ \n&*$%ÄÖÜäöüß-]"
_CHARACTERS_SHOWN_MAX = 10
_IS_SEPA = (pl.col("currency") == "EUR") & pl.col("iban").is_not_null()
_NAME_CHARS_MAX, _REMITTANCE_CHARS_MAX, _AMOUNT_MAX = 70, 140, Decimal("999999999.99")


class BankRule(NamedTuple):
    """A rule of banks, with its start date and source."""

    code: BankCode
    since: date | None
    source: str
    find: Callable[[Message, date], pl.DataFrame]
    """Returns `path` and `value` of every violation, in file order."""


def bank_warnings(message: Message | None, today: date | None) -> Iterator[BankWarning]:
    """Yield warnings about a pain.001 submitted today; rules that reject a whole file come first.

    Other files have none, and there are none without a day, when a profile turns the rules off.
    """
    if message is None or message.levels.is_empty() or today is None:
        return
    for rule in BANK_RULES:
        found = rule.find(message, today)
        for path, value in found.select("path", "value").head(1).iter_rows():
            since = None if rule.since is None else rule.since.isoformat()
            why = Sentence(f"bank.{rule.code.lower()}")
            source = rule.source if since is None else f"{rule.source}, {since}"
            facts = {"code": rule.code, "path": path, "value": value}
            sentence = Sentence("bank.warning", count=found.height, why=why, source=source, **facts)
            yield BankWarning(
                **facts,
                place_count=found.height,
                since=since,
                source=rule.source,
                sentence=sentence.recorded(),
            )


def _version(message: Message, today: date) -> pl.DataFrame:
    version = message.facts["version"]
    is_retired = version in _RETIRED and today >= _SEPA_FROM - timedelta(days=365)
    return pl.DataFrame({"path": ["Document"], "value": [version]}).head(is_retired)


def _ids(message: Message, _: date) -> pl.DataFrame:
    batches = _batches(message).select(path=pl.format("{}/PmtInfId", "path"), value="id")
    payments = message.locations.select(path=pl.format("{}/PmtId/InstrId", "path")).with_columns(
        value=message.ids["instruction_id"]
    )
    again = (each.drop_nulls().filter(~pl.col("value").is_first_distinct()) for each in (batches, payments))
    return pl.concat(again)


def _dates(message: Message, today: date) -> pl.DataFrame:
    batches = _batches(message)
    is_odd = (batches["date"] < today) | (batches["date"] > today + _AHEAD_MAX)
    return batches.filter(is_odd).select(path=pl.format("{}/ReqdExctnDt", "path"), value="executed")


def _addresses(message: Message, today: date) -> pl.DataFrame:
    batches = _batches(message)
    day = batches["date"].fill_null(today).gather(message.locations["level"] - 1)
    payees = pl.concat([message.payments.select(is_sepa=_IS_SEPA), message.addresses], how="horizontal")
    payees = payees.with_columns(day=day, path=pl.format("{}/Cdtr", message.locations["path"])).filter(
        message.payments["iban"].is_not_null()
    )
    payers = batches.filter(pl.col("payer_iban").is_not_null()).select(
        address_lines="payer_address_lines", town="payer_town", country="payer_country", day="date",
        path=pl.format("{}/Dbtr", "path"), is_sepa=pl.lit(value=True),
    ).with_columns(pl.col("day").fill_null(today))  # fmt: skip
    both = pl.concat([payers, payees], how="diagonal").drop_nulls("address_lines")
    since = pl.when("is_sepa").then(_SEPA_FROM).otherwise(_OTHERS_FROM)
    lines = pl.col("address_lines").str.split("\n")
    chars_max = lines.list.eval(pl.element().str.len_chars()).list.max()
    is_long = (lines.list.len() > _LINES_MAX) | (chars_max > _LINE_CHARS_MAX)
    is_odd = pl.any_horizontal(pl.col("town", "country").is_null()) | is_long
    return both.filter(pl.col("day") >= since, is_odd).select(
        path=pl.format("{}/PstlAdr", "path"),
        value=pl.format(
            "AdrLine: {}, TwnNm: {}, Ctry: {}",
            lines.list.len(),
            pl.when(pl.col("town").is_null()).then(pl.lit("-")).otherwise(pl.lit("+")),
            pl.col("country").fill_null("-"),
        ),
    )


def _characters(message: Message, _: date) -> pl.DataFrame:
    rows = pl.concat(
        [message.payments.select("name", "reference", is_sepa=_IS_SEPA), message.locations], how="horizontal"
    )
    either = pl.any_horizontal(pl.col("name", "reference").str.contains(_BEYOND_SEPA))
    beyond = rows.filter(either, "is_sepa")
    is_german = _batches(message)["payer_iban"].str.starts_with("DE").gather(beyond["level"] - 1)
    odd = beyond.with_columns(
        pattern=pl.when(is_german).then(pl.lit(_BEYOND_GERMAN)).otherwise(pl.lit(_BEYOND_SEPA))
    )
    found = [
        odd.filter(pl.col(column).str.contains(pl.col("pattern"))).select(
            path=pl.format("{}/{}", "path", pl.lit(element)),
            value=pl.col(column).str.extract_all(pl.col("pattern")).list.unique(maintain_order=True)
            .list.head(_CHARACTERS_SHOWN_MAX).list.join(" "),
        )
        for column, element in (("name", "Cdtr/Nm"), ("reference", "RmtInf"))
    ]  # fmt: skip
    return pl.concat(found)


def _too_long(message: Message, _: date) -> pl.DataFrame:
    rows = pl.concat([message.payments, message.locations.drop("row")], how="horizontal").filter(_IS_SEPA)
    amount = pl.col("amount").cast(pl.Decimal(38, 5), strict=False)
    found = [
        rows.filter(is_odd).select(path=pl.format("{}/{}", "path", pl.lit(element)), value=value)
        for element, is_odd, value in (
            ("Cdtr/Nm", _chars("name") > _NAME_CHARS_MAX, _chars("name").cast(pl.String)),
            ("RmtInf", _chars("reference") > _REMITTANCE_CHARS_MAX, _chars("reference").cast(pl.String)),
            ("Amt", amount > _AMOUNT_MAX, pl.col("amount")),
        )
    ]
    return pl.concat(found)


def _chars(column: str) -> pl.Expr:
    return pl.col(column).str.strip_chars().str.len_chars()


def _only_one(message: Message, _: date) -> pl.DataFrame:
    one = message.locations.select("path", value=pl.lit("1")).filter(message.payments["currency"] == "EUR")
    return one.head(message.payments.height == 1)


def _batches(message: Message) -> pl.DataFrame:
    """Return each batch with its path and its execution `date`, null if that is not a date."""
    return message.levels.tail(-1).with_columns(
        path=pl.format("PmtInf[{}]", pl.int_range(1, pl.len() + 1)),
        date=pl.col("executed").str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False),
    )


BANK_RULES = (
    BankRule(
        BankCode.VERSION_RETIRED,
        _SEPA_FROM,
        "SEB, Discontinuation of pain.001.001.03; DK format lifecycle",
        _version,
    ),
    BankRule(BankCode.ID_REPEATED, None, "ISO 20022, PaymentInformationIdentification", _ids),
    BankRule(BankCode.EXECUTION_DATE, None, "Bankline help, SEPA file import", _dates),
    BankRule(
        BankCode.ADDRESS_UNSTRUCTURED,
        _SEPA_FROM,
        "EPC, Provision of addresses under the EPC payment schemes, 2.1; Betaalvereniging",
        _addresses,
    ),
    BankRule(BankCode.CHARACTERS, None, "EPC217-08; DFÜ-Abkommen, Anlage 3", _characters),
    BankRule(BankCode.TOO_LONG, None, "EPC115-06", _too_long),
    BankRule(BankCode.ONE_PAYMENT, date(2025, 10, 9), "Regulation (EU) 2024/886, Art. 5c(6)", _only_one),
)
