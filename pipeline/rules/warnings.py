"""Warnings about valid payments that should be reviewed before payment; they do not stop a payment."""

from collections.abc import Callable
from typing import NamedTuple

import polars as pl

from pipeline.frames import ACCEPTED, IS_UK, Payments, RouteReason, recurring
from pipeline.rules.enumeration import many_payees, same_name
from pipeline.rules.findings import coded_warnings, row_finding_columns
from pipeline.rules.identifiers import other_countries
from pipeline.rules.payee_names import DAMAGED, NOT_LATIN, UNMARKED, UNWRAPPED
from pipeline.rules.row_positions import position_texts
from pipeline.rules.selected_values import beyond_ascii, noted
from pipeline.rules.totals import with_money
from pipeline.wording import Sentence
from schemas.outcomes import VOP, WarningCode
from schemas.row_positions import RowPositions
from schemas.summary import ROWS_NAMED_MAX, WarningCount

ACROSS_ROWS = (WarningCode.MANY_NAMES, WarningCode.PAYMENT_REPEATED)  # depend on other payments


class WarningRule(NamedTuple):
    """A condition on a payment's values that leads to a warning."""

    field: str
    code: WarningCode
    is_odd: pl.Expr
    sentence: Sentence


_NAME_DONE = pl.col("name_done").str
_IS_FOREIGN = (
    pl.col("to").is_in(VOP).fill_null(value=False) & ~pl.col("by_identification") & pl.col("is_foreign")
)
_IS_PRODUCT = pl.col("takes_account_type") & pl.col("is_product")
_Code = WarningCode
WARNING_RULES = (
    WarningRule("name", _Code.NAME_NOT_LATIN, _IS_FOREIGN, Sentence("rule.name_not_latin")),
    WarningRule("name", _Code.NAME_CLEANED, _NAME_DONE.contains(UNWRAPPED), Sentence("rule.name_cleaned")),
    WarningRule("name", _Code.NAME_CLEANED, _NAME_DONE.contains(UNMARKED), Sentence("rule.name_marks")),
    WarningRule("name", _Code.NAME_DAMAGED, pl.col("is_damaged"), Sentence("rule.name_damaged")),
    WarningRule(
        "account_type", _Code.ACCOUNT_TYPE_DEFAULT, _IS_PRODUCT, Sentence("rule.account_type_default")
    ),
    WarningRule("bic", _Code.BIC_OTHER_COUNTRY, pl.col("is_abroad"), Sentence("rule.bic_other_country")),
    WarningRule(
        "currency", _Code.UK_ACCOUNT_CURRENCY, pl.col("is_no_pounds"), Sentence("rule.uk_account_currency")
    ),
)
"""In the order of their codes."""


def value_warnings(routed: pl.DataFrame, is_fit: pl.Expr) -> pl.DataFrame:
    """Return `Warnings` about values of accepted payments; rejected ones have broken rules instead."""
    names = routed["name"]
    is_beyond_ascii = beyond_ascii(names)
    is_foreign = noted(
        names, where=is_beyond_ascii, by=lambda some: some.str.contains(NOT_LATIN), kind=pl.Boolean
    )
    is_odd = is_beyond_ascii | names.str.contains(r"[?&<\\%=+]")
    is_damaged = noted(names, where=is_odd, by=lambda some: some.str.contains(DAMAGED), kind=pl.Boolean)
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
        coded_warnings(candidates.filter(rule.is_odd), rule.field, rule.code, rule.sentence)
        for rule in WARNING_RULES
    ]
    return pl.concat(found).sort("row", maintain_order=True)


def warnings_about(
    accepted: pl.DataFrame,
    references_of: Callable[[pl.Series], pl.Series],
    positions: RowPositions | None = None,
) -> pl.DataFrame:
    """Return the `Warnings` that need no check, from all payments to each account and rows' references."""
    assert accepted.schema == ACCEPTED
    # Most accounts are paid once, so their payments need no comparison.
    paid_again = accepted.filter(recurring(accepted["account"].hash()))
    text = row_finding_columns("rule.many_names", payee_count=pl.col("payee_count"))
    many_names = coded_warnings(many_payees(paid_again), "name", WarningCode.MANY_NAMES, text)
    names = accepted.select("row", "name").filter(beyond_ascii(accepted["name"]))
    mixed = names.filter(pl.col("name").str.contains(_TWO_SCRIPTS))
    mixed = coded_warnings(mixed, "name", WarningCode.MIXED_SCRIPTS, Sentence("rule.mixed_scripts"))
    return pl.concat([many_names, mixed, _repeated_payments(paid_again, references_of, positions)])


def in_order(own: pl.DataFrame, across: pl.DataFrame) -> pl.DataFrame:
    """Merge rows' own warnings with those of `ACROSS_ROWS`, in the order of `warnings_about`."""
    order = [WarningCode.MANY_NAMES, WarningCode.MIXED_SCRIPTS, WarningCode.PAYMENT_REPEATED]
    place = pl.col("code").replace_strict(
        {code.value: number for number, code in enumerate(order)}, default=len(order), return_dtype=pl.UInt8
    )
    return pl.concat([own, across.sort("row")]).sort(place, maintain_order=True)


_TWO_SCRIPTS = r"\p{Latin}\p{M}*[\p{Cyrillic}\p{Greek}]|[\p{Cyrillic}\p{Greek}]\p{M}*\p{Latin}"
"""A word that mixes two alphabets with similar letters."""


_PAYMENT = (
    "account",
    "name",
    "secondary_reference",
    "lei",
    "organisation_bic",
    "organisation_id",
    "organisation_id_scheme",
    "organisation_id_issuer",
    "amount",
    "currency",
    "reference",
)
"""Columns that are equal if a payment was entered twice."""


def _repeated_payments(
    accepted: pl.DataFrame, references_of: Callable[[pl.Series], pl.Series], positions: RowPositions | None
) -> pl.DataFrame:
    """Warn about every payment that repeats an earlier one: payee, account, amount, reference."""
    # Few accounts are paid the same amount again.
    paid = accepted.filter(pl.col("amount").is_not_null())
    alike = paid.filter(recurring(paid.select(pl.struct("account", "amount").hash()).to_series()))
    # A GB IBAN needs no stated currency, like the UK account in it.
    pounds = pl.when(IS_UK).then(pl.lit("GBP"))
    alike = alike.with_columns(
        same_name(pl.col("name")),
        references_of(alike["row"]).alias("reference"),
        currency=pl.coalesce("currency", pounds),
    )
    repeats = alike.with_columns(first=pl.col("row").min().over(_PAYMENT)).filter(
        pl.col("row") != pl.col("first")
    )
    place = pl.format(" ({})", position_texts(repeats["first"], positions)).fill_null("")
    located = pl.format("row {}{}", "first", place)
    text = row_finding_columns("rule.payment_repeated", in_english={"row": located}, row=pl.col("first"))
    return coded_warnings(repeats, "row", WarningCode.PAYMENT_REPEATED, text)


_SAME = ("account", "amount", "currency", "name", "reference", "secondary_reference")


def repeated_in(payments: Payments, others: pl.DataFrame) -> dict[int, int]:
    """Return row -> first row of `others` with the same payee, account, amount and references."""
    mine, theirs = (
        with_money(some)
        .filter(pl.col("amount").is_not_null())
        .select(
            "row",
            "amount",
            same_name(pl.col("name")),
            pl.coalesce("iban", pl.concat_str("sort_code", "account_number"))
            .str.replace_all("[^0-9A-Za-z]", "")
            .str.to_uppercase()
            .alias("account"),
            pl.col("currency", "reference", "secondary_reference").fill_null(""),
        )
        .drop_nulls("account")
        for some in (payments, others)
    )
    firsts = theirs.group_by(_SAME).agg(first=pl.col("row").min())
    return dict(mine.join(firsts, on=_SAME).select("row", "first").sort("row").iter_rows())


def warning_counts(warnings: pl.DataFrame) -> list[WarningCount]:
    """Count `Warnings` by code, in the order of the codes, with the rows of each."""
    by_code = dict(warnings.group_by("code").agg(pl.col("row").unique().sort()).iter_rows())
    return [
        WarningCount(code=code, row_count=len(rows), rows=rows[:ROWS_NAMED_MAX], every_row=rows)
        for code in WarningCode
        if (rows := by_code.get(code.value))
    ]
