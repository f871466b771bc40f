"""Warnings about the values of one payment, before any check; they do not stop the payment.

Each warning is a row of a table, like a rule (rules.py); warnings about several payments are in warnings.py.
"""

from typing import NamedTuple

import polars as pl

from pipeline.frames import WARNINGS, RouteReason
from pipeline.rules.findings import finding_columns
from pipeline.rules.identifiers import other_countries
from pipeline.rules.payee_names import DAMAGED, NOT_LATIN, UNMARKED, UNWRAPPED
from pipeline.rules.selected_values import beyond_ascii, noted
from pipeline.wording import Sentence
from schemas.outcomes import VOP, WarningCode

_TO_VOP = pl.col("to").is_in(VOP).fill_null(value=False)


class WarningRule(NamedTuple):
    """A condition on a payment's values that leads to a warning."""

    field: str
    code: WarningCode
    is_odd: pl.Expr
    sentence: Sentence


WARNING_RULES = (
    WarningRule(
        "name",
        WarningCode.NAME_NOT_LATIN,
        _TO_VOP & ~pl.col("by_identification") & pl.col("is_foreign"),
        Sentence("rule.name_not_latin"),
    ),
    WarningRule(
        "name",
        WarningCode.NAME_CLEANED,
        pl.col("name_done").str.contains(UNWRAPPED, literal=True),
        Sentence("rule.name_cleaned"),
    ),
    WarningRule(
        "name",
        WarningCode.NAME_CLEANED,
        pl.col("name_done").str.contains(UNMARKED, literal=True),
        Sentence("rule.name_marks"),
    ),
    WarningRule(
        "name",
        WarningCode.NAME_DAMAGED,
        pl.col("is_damaged"),
        Sentence("rule.name_damaged"),
    ),
    WarningRule(
        "account_type",
        WarningCode.ACCOUNT_TYPE_DEFAULT,
        pl.col("takes_account_type") & pl.col("is_product"),
        Sentence("rule.account_type_default"),
    ),
    WarningRule(
        "bic",
        WarningCode.BIC_OTHER_COUNTRY,
        pl.col("is_abroad"),
        Sentence("rule.bic_other_country"),
    ),
    WarningRule(
        "currency",
        WarningCode.UK_ACCOUNT_CURRENCY,
        pl.col("is_no_pounds"),
        Sentence("rule.uk_account_currency"),
    ),
)
"""In the order of their codes."""


def value_warnings(routed: pl.DataFrame, is_fit: pl.Expr) -> pl.DataFrame:
    """Return `Warnings` about values of accepted payments; rejected ones have broken rules instead."""
    names = routed["name"]
    is_beyond_ascii = beyond_ascii(names)
    is_foreign = noted(names, where=is_beyond_ascii, by=_are_foreign, kind=pl.Boolean)
    is_odd = is_beyond_ascii | names.str.contains(r"[?&<\\]")
    is_damaged = noted(names, where=is_odd, by=_are_damaged, kind=pl.Boolean)
    by_sort_code = pl.col("route_reason") == RouteReason.SORT_CODE
    country_of_account = routed.select(pl.when(by_sort_code).then(pl.lit("GB")).otherwise("iban")).to_series()
    is_abroad = other_countries(routed["bic"], country_of_account)
    seen = routed.with_columns(
        is_foreign.alias("is_foreign"),
        is_damaged.alias("is_damaged"),
        is_abroad.alias("is_abroad"),
        is_no_pounds=(by_sort_code & (pl.col("currency") != "GBP")).fill_null(value=False),
    )
    candidates = seen.filter(
        pl.any_horizontal(
            *("is_foreign", "is_damaged", "is_abroad", "is_product", "is_no_pounds"),
            pl.col("name_done").is_not_null(),
        )
    ).filter(is_fit)
    found = [
        candidates.filter(rule.is_odd).select(
            "row",
            field=pl.lit(rule.field),
            code=pl.lit(rule.code.value),
            **finding_columns(rule.sentence),
        )
        for rule in WARNING_RULES
    ]
    return pl.concat(found).sort("row", maintain_order=True).cast(WARNINGS)  # type: ignore[arg-type]  # polars' stubs want an invariant mapping


def _are_foreign(names: pl.Series) -> pl.Series:
    return names.str.contains(NOT_LATIN)


def _are_damaged(names: pl.Series) -> pl.Series:
    return names.str.contains(DAMAGED)
