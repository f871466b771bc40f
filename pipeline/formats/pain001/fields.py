"""Convert payments from the elements of a pain.001 to canonical fields, a block at a time."""

from collections.abc import Mapping

import polars as pl

from pipeline.formats.pain001.elements import TEXTS
from pipeline.rules.amounts import exact_text
from pipeline.rules.selected_values import noted, replaced
from pipeline.rules.unasked import AMOUNT_MALFORMED, ELEMENT_TWICE, PROXY, SORT_CODES_DIFFER
from schemas.payments import FIELDS

ORIGINS: Mapping[str, str] = {
    "payment_id": "PmtId/EndToEndId",
    "name": "Cdtr/Nm",
    "sort_code": "CdtrAgt/FinInstnId/ClrSysMmbId",
    "account_number": "CdtrAcct/Id/Othr/Id",
    "iban": "CdtrAcct/Id/IBAN",
    "bic": "CdtrAgt/FinInstnId/BIC, BICFI",
    "lei": "Cdtr/Id/OrgId/LEI",
    "organisation_bic": "Cdtr/Id/OrgId/AnyBIC",
    "organisation_id": "Cdtr/Id/OrgId/Othr/Id",
    "organisation_id_scheme": "Cdtr/Id/OrgId/Othr/SchmeNm",
    "organisation_id_issuer": "Cdtr/Id/OrgId/Othr/Issr",
    "amount": "Amt/InstdAmt",
    "currency": "Amt/InstdAmt/@Ccy",
    "reference": "RmtInf",
}
"""Field -> its usual path below CdtTrfTxInf; all paths are in `elements.FIELDS_BY_PATH`."""
IDS = ("end_to_end_id", "instruction_id", "uetr")
ADDRESS = ("address_lines", "town", "country")
SIGNS = {"bank_country": pl.String(), "says_sort_code": pl.Boolean()}
"""More signs of an account's country, as in `account_country.AccountSigns`."""

ABSENT = "NOTPROVIDED"  # placeholders that files use for missing values
BLANKS = " \t\r\n"
UK_CLEARING = "GBDSC"
_CLEARING_COUNTRY = r"^([A-Z]{2})[A-Z]{3}$"  # ISO 20022 code of a clearing system -> country
_IBAN = r"^[A-Za-z]{2}[0-9]{2} ?[A-Za-z0-9 ]{11,42}$"
_OF_UK_IBAN = r"(?i)^GB[0-9]{2}[A-Z]{4}([0-9]{6})"
_USUAL = r"^[0-9]{1,18}(\.[0-9]{1,2})?$"  # the usual form of amounts, which needs no further parsing
_DECIMAL = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$"
"""A decimal of XML Schema: at most one point, no thousands separators."""
_SORT_CODE_AND_ACCOUNT = r"^([0-9]{6})[0-9]{8}$"


def fields(texts: pl.DataFrame) -> pl.DataFrame:
    """Find the canonical fields, the IDs for reports, `SIGNS` and `defect`, from `elements.TEXTS`."""
    said_id = _cleaned("end_to_end_id").alias("said_end_to_end_id")
    cleaned = texts.select(*(_cleaned(column, ABSENT) for column in TEXTS), said_id)
    # The clearing system may start a member ID, as in GBDSC400001.
    in_member = pl.when(pl.col("clearing_member").str.starts_with(UK_CLEARING)).then(pl.lit(UK_CLEARING))
    clearing = pl.coalesce("clearing_code", "clearing_text", in_member)
    accounts = cleaned.with_columns(
        clearing_country=clearing.str.extract(_CLEARING_COUNTRY),
        member=_digits("clearing_member").str.strip_prefix(UK_CLEARING),
        digits=_digits("account"),
        amount_currency=pl.when(pl.col("amount").is_not_null())
        .then("amount_currency")
        .otherwise("equivalent_currency"),
        other_iban=pl.when(_is_iban()).then("account"),
        paid=pl.coalesce("amount", "equivalent"),
    ).with_columns(
        has_iban=pl.coalesce("iban", "other_iban").is_not_null(),
        says_sort_code=(pl.col("clearing_country") == "GB").fill_null(value=False),
    )
    accounts = accounts.with_columns(*_of_amounts(accounts["paid"]), _uk_iban_sort_codes(accounts))
    return accounts.with_columns(
        payment_id=pl.coalesce("end_to_end_id", "instruction_id"),
        account_type=pl.lit(None, pl.String),
        sort_code=pl.when(
            ~pl.col("has_iban") & (pl.col("clearing_country").is_null() | pl.col("says_sort_code"))
        ).then("member"),
        account_number=pl.when("has_iban")
        .then(None)
        .when(_code_in_account() == pl.col("member"))
        .then(pl.col("digits").str.slice(6))  # without its sort code in front
        .otherwise("account"),
        iban=pl.coalesce("iban", "other_iban"),
        secondary_reference=pl.lit(None, pl.String),
        amount="paid",
        currency="amount_currency",
        reference=pl.coalesce("remittance", "creditor_reference"),
        bank_country=pl.coalesce(pl.col("agent_country").str.to_uppercase(), "clearing_country"),
        defect=pl.coalesce(_defect(), "not_decimal"),
        end_to_end_id="said_end_to_end_id",
    ).select(*FIELDS, *SIGNS, "defect", *IDS, *ADDRESS)


def _cleaned(column: str, absent: str = "") -> pl.Expr:
    text = pl.col(column).str.strip_chars(BLANKS)
    return pl.when((text != "") & (text != absent)).then(text).alias(column)


def _digits(column: str) -> pl.Expr:
    """Remove the hyphens and spaces that people write into sort codes."""
    return pl.col(column).str.replace_all(r"[ -]", "")


def _is_iban() -> pl.Expr:
    """True if an account outside the IBAN element is an IBAN by its scheme or form."""
    is_stated = pl.col("account_scheme") == "IBAN"
    return is_stated.fill_null(value=False) | pl.col("account").str.contains(_IBAN).fill_null(value=False)


def _of_amounts(written: pl.Series) -> list[pl.Series]:
    """Return XML Schema decimals as unambiguous text, and the defect of other texts."""
    is_odd = ~written.str.contains(_USUAL)
    not_decimal = noted(written, where=is_odd, by=_not_decimal)
    amounts = replaced(
        written,
        where=is_odd & not_decimal.is_null(),
        by=lambda some: exact_text(
            some.str.strip_prefix("+").str.strip_suffix(".").str.replace(r"^(-?)\.", "${1}0.")
        ),
    )
    return [amounts, not_decimal.alias("not_decimal")]


def _not_decimal(texts: pl.Series) -> pl.Series:
    return pl.select(pl.when(~texts.str.contains(_DECIMAL)).then(pl.lit(AMOUNT_MALFORMED))).to_series()


def _uk_iban_sort_codes(accounts: pl.DataFrame) -> pl.Series:
    """Return sort codes in GB IBANs that differ from the stated sort code of the bank."""
    ibans = accounts.select(pl.coalesce("iban", "other_iban")).to_series()
    is_stated = accounts["says_sort_code"] & ibans.is_not_null()
    codes = noted(
        ibans, where=is_stated, by=lambda some: some.str.replace_all(" ", "").str.extract(_OF_UK_IBAN)
    )
    return codes.alias("iban_sort_code")


def _code_in_account() -> pl.Expr:
    return pl.col("digits").str.extract(_SORT_CODE_AND_ACCOUNT)


def _defect() -> pl.Expr:
    has_account = pl.col("account").is_not_null()
    of_account = pl.when(~pl.col("has_iban")).then(_code_in_account())
    return (
        pl.when(pl.col("twice").is_not_null() | (pl.col("iban").is_not_null() & has_account))
        .then(pl.lit(ELEMENT_TWICE))
        .when(~pl.col("has_iban") & ~has_account & pl.col("proxy").is_not_null())
        .then(pl.lit(PROXY))
        .when(pl.col("says_sort_code") & (pl.col("member") != pl.coalesce(of_account, "iban_sort_code")))
        .then(pl.lit(SORT_CODES_DIFFER))
    )
