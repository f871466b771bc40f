"""A payment as it stands in a pain.001 -> the canonical fields, a block of payments at a time."""

from collections.abc import Mapping

import polars as pl

from pipeline.formats.pain001.elements import TEXTS
from pipeline.rules.unasked import ACCOUNT_ELSEWHERE, ELEMENT_TWICE, PROXY, SORT_CODES_DIFFER
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
"""Field -> the path below CdtTrfTxInf where it usually stands; `elements.FIELDS_BY_PATH` has them all."""
IDS = ("end_to_end_id", "instruction_id", "uetr")

ABSENT = "NOTPROVIDED"
"""What files have where there is nothing."""
BLANKS = " \t\r\n"
_UK_CLEARING = "GBDSC"
_UK_COUNTRIES = ("GB", "JE", "GG", "IM")
_IBAN = r"^[A-Z]{2}[0-9]{2} ?[A-Z0-9 ]{11,42}$"
_SORT_CODE_AND_ACCOUNT = r"^[0-9]{14}$"


def fields(texts: pl.DataFrame) -> pl.DataFrame:
    """Find the canonical fields, the ids for reports, and `defect`.

    Args:
        texts: `elements.TEXTS`, as they stand in the file; null where the element is not there.
    """
    cleaned = texts.select(
        *(_cleaned(column) for column in TEXTS), _stated("end_to_end_id").alias("said_end_to_end_id")
    )
    accounts = cleaned.with_columns(
        clearing=pl.coalesce("clearing_code", "clearing_text"),
        member=_digits("clearing_member"),
        digits=_digits("account"),
        amount_currency=pl.when(pl.col("amount").is_not_null())
        .then("amount_currency")
        .otherwise("equivalent_currency"),
        other_iban=pl.when(_is_iban()).then("account"),
    ).with_columns(is_uk=_is_uk() & pl.col("iban").is_null() & pl.col("other_iban").is_null())
    return accounts.select(
        payment_id=pl.coalesce("end_to_end_id", "instruction_id"),
        name="name",
        account_type=_none(),
        sort_code=pl.when("is_uk").then(pl.coalesce("member", _of_14_digits(0, 6))),
        account_number=pl.when("is_uk").then(pl.coalesce(_of_14_digits(6, 8), "account")),
        iban=pl.coalesce("iban", "other_iban"),
        bic="bic",
        secondary_reference=_none(),
        lei="lei",
        organisation_bic="organisation_bic",
        organisation_id="organisation_id",
        organisation_id_scheme="organisation_id_scheme",
        organisation_id_issuer="organisation_id_issuer",
        amount=pl.coalesce("amount", "equivalent"),
        currency="amount_currency",
        reference=pl.coalesce("remittance", "creditor_reference"),
        defect=_defect(),
        end_to_end_id="said_end_to_end_id",
        instruction_id="instruction_id",
        uetr="uetr",
    ).select(*FIELDS, "defect", *IDS)


def _stated(column: str) -> pl.Expr:
    """A text as the file has it, also where it says that there is none."""
    text = pl.col(column).str.strip_chars(BLANKS)
    return pl.when(text != "").then(text)


def _cleaned(column: str) -> pl.Expr:
    text = pl.col(column).str.strip_chars(BLANKS)
    return pl.when((text != "") & (text != ABSENT)).then(text).alias(column)


def _none() -> pl.Expr:
    return pl.lit(None, pl.String)


def _digits(column: str) -> pl.Expr:
    """Without the hyphens and spaces that people write into sort codes."""
    return pl.col(column).str.replace_all(r"[ -]", "")


def _is_iban() -> pl.Expr:
    """Whether the account that is no IBAN by its element is one by its scheme or its looks."""
    is_said = pl.col("account_scheme") == "IBAN"
    return is_said.fill_null(value=False) | pl.col("account").str.contains(_IBAN).fill_null(value=False)


def _is_uk() -> pl.Expr:
    """Whether the payee's bank is known by a sort code: it says so, or nothing says otherwise."""
    of_bic = pl.col("bic").str.slice(4, 2).str.to_uppercase().is_in(_UK_COUNTRIES)
    is_pounds = pl.col("amount_currency") == "GBP"
    return (
        pl.when(pl.col("clearing").is_not_null())
        .then(pl.col("clearing") == _UK_CLEARING)
        .otherwise(pl.coalesce(of_bic, is_pounds, pl.lit(value=False)))
    )


def _of_14_digits(start: int, length: int) -> pl.Expr:
    is_both = pl.col("digits").str.contains(_SORT_CODE_AND_ACCOUNT)
    return pl.when(is_both).then(pl.col("digits").str.slice(start, length))


def _defect() -> pl.Expr:
    has_iban = pl.coalesce("iban", "other_iban").is_not_null()
    has_account = pl.col("account").is_not_null()
    return (
        pl.when(pl.col("twice").is_not_null() | (pl.col("iban").is_not_null() & has_account))
        .then(pl.lit(ELEMENT_TWICE))
        .when(~has_iban & ~has_account & pl.col("proxy").is_not_null())
        .then(pl.lit(PROXY))
        .when(has_account & ~has_iban & ~pl.col("is_uk"))
        .then(pl.lit(ACCOUNT_ELSEWHERE))
        .when(pl.col("is_uk") & (pl.col("member") != _of_14_digits(0, 6)))
        .then(pl.lit(SORT_CODES_DIFFER))
    )
