"""Warnings about the values of one payment: they stop nothing, and are given before anything is asked.

A warning is a row of a table, as a rule is (rules.py); those about several payments are in warnings.py.
"""

from typing import NamedTuple

import polars as pl

from pipeline.frames import WARNINGS
from pipeline.rules.identifiers import other_countries
from pipeline.rules.payee_names import NOT_LATIN, UNMARKED, UNWRAPPED
from pipeline.rules.selected_values import beyond_ascii, noted
from schemas.outcomes import VOP, WarningCode

_TO_VOP = pl.col("to").is_in(VOP).fill_null(value=False)


class WarningRule(NamedTuple):
    """One thing that may be odd."""

    field: str
    code: WarningCode
    is_odd: pl.Expr
    sentence: str


WARNING_RULES = (
    WarningRule(
        "name",
        WarningCode.NAME_NOT_LATIN,
        _TO_VOP & ~pl.col("by_identification") & pl.col("is_foreign"),
        "the name has letters that VoP need not carry between banks; give it in Latin letters where the "
        "payee has such a name",
    ),
    WarningRule(
        "name",
        WarningCode.NAME_CLEANED,
        pl.col("name_done").str.contains(UNWRAPPED, literal=True),
        'the name was written as ="...", by which a program keeps text as text; asked about without that',
    ),
    WarningRule(
        "name",
        WarningCode.NAME_CLEANED,
        pl.col("name_done").str.contains(UNMARKED, literal=True),
        "the name held marks that are not seen and carry nothing, such as soft hyphens; asked about without "
        "them",
    ),
    WarningRule(
        "account_type",
        WarningCode.ACCOUNT_TYPE_DEFAULT,
        pl.col("takes_account_type") & pl.col("is_product"),
        "the account type names a product, not who holds the account; the default_account_type of the "
        "profile was asked about",
    ),
    WarningRule(
        "bic",
        WarningCode.BIC_OTHER_COUNTRY,
        pl.col("is_abroad"),
        "the BIC is of another country than the IBAN; make sure that both are the payee's",
    ),
)
"""In the order of their codes."""


def value_warnings(routed: pl.DataFrame, is_fit: pl.Expr) -> pl.DataFrame:
    """`Warnings` about values of the accepted ones among routed payments; broken rules report the others."""
    names = routed["name"]
    is_foreign = noted(names, where=beyond_ascii(names), by=_are_foreign, kind=pl.Boolean)
    is_abroad = other_countries(routed["bic"], routed["iban"])
    seen = routed.with_columns(is_foreign.alias("is_foreign"), is_abroad.alias("is_abroad"))
    candidates = seen.filter(
        pl.any_horizontal("is_foreign", "is_abroad", "is_product", pl.col("name_done").is_not_null())
    ).filter(is_fit)
    found = [
        candidates.filter(rule.is_odd).select(
            "row",
            field=pl.lit(rule.field),
            code=pl.lit(rule.code.value),
            message=pl.lit(rule.sentence),
        )
        for rule in WARNING_RULES
    ]
    return pl.concat(found).sort("row", maintain_order=True).cast(WARNINGS)  # type: ignore[arg-type]  # polars' stubs want an invariant mapping


def _are_foreign(names: pl.Series) -> pl.Series:
    return names.str.contains(NOT_LATIN)
