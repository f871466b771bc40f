"""Warnings about valid payments that should be reviewed before payment; they do not stop a payment."""

import re
from collections.abc import Callable

import polars as pl

from pipeline.frames import ACCEPTED, IS_UK, WARNINGS, Payments, recurring
from pipeline.rules.enumeration import many_payees, same_name
from pipeline.rules.findings import finding_columns, row_finding_columns
from pipeline.rules.row_positions import position_texts
from pipeline.rules.selected_values import beyond_ascii
from pipeline.rules.totals import with_money
from pipeline.wording import Sentence
from schemas.outcomes import WarningCode
from schemas.row_positions import RowPositions
from schemas.summary import ROWS_NAMED_MAX, WarningCount

ReferencesOf = Callable[[pl.Series], pl.Series]
"""Returns the payment references of rows, which distinguish equal payments to one payee."""

ACROSS_ROWS = (WarningCode.MANY_NAMES, WarningCode.PAYMENT_REPEATED)
"""Warnings that depend on other payments to the account."""


def warnings_about(
    accepted: pl.DataFrame, references_of: ReferencesOf, positions: RowPositions | None = None
) -> pl.DataFrame:
    """Return the `Warnings` that need no check.

    Args:
        accepted: `Accepted`, with all payments to each of its accounts.
        references_of: the payment references of the file.
        positions: positions of the rows in their file, if any.
    """
    assert accepted.schema == ACCEPTED
    # Most accounts are paid once, so their payments need no comparison.
    paid_again = accepted.filter(recurring(accepted["account"].hash()))
    return pl.concat(
        [
            _many_payees(paid_again),
            _mixed_scripts(accepted),
            _repeated_payments(paid_again, references_of, positions),
        ]
    )


def in_order(own: pl.DataFrame, across: pl.DataFrame) -> pl.DataFrame:
    """Merge rows' own warnings with those of `ACROSS_ROWS`, in the order of `warnings_about`."""
    order = [WarningCode.MANY_NAMES, WarningCode.MIXED_SCRIPTS, WarningCode.PAYMENT_REPEATED]
    place = pl.col("code").replace_strict(
        {code.value: number for number, code in enumerate(order)}, default=len(order), return_dtype=pl.UInt8
    )
    return pl.concat([own, across.sort("row")]).sort(place, maintain_order=True)


def _many_payees(accepted: pl.DataFrame) -> pl.DataFrame:
    """Warn about every payment to an account with too many names."""
    warnings = many_payees(accepted).select(
        "row",
        field=pl.lit("name"),
        code=pl.lit(WarningCode.MANY_NAMES.value),
        **row_finding_columns("rule.many_names", payee_count=pl.col("payee_count")),
    )
    return warnings.cast(WARNINGS)  # type: ignore[arg-type]  # polars' stubs want an invariant mapping


_TWO_SCRIPTS = r"\p{Latin}\p{M}*[\p{Cyrillic}\p{Greek}]|[\p{Cyrillic}\p{Greek}]\p{M}*\p{Latin}"
"""A word that mixes two alphabets with similar letters."""


def _mixed_scripts(accepted: pl.DataFrame) -> pl.DataFrame:
    """Warn about every name with a letter from another alphabet within a word."""
    names = accepted.select("row", "name").filter(beyond_ascii(accepted["name"]))
    warnings = names.filter(pl.col("name").str.contains(_TWO_SCRIPTS)).select(
        "row",
        field=pl.lit("name"),
        code=pl.lit(WarningCode.MIXED_SCRIPTS.value),
        **finding_columns(Sentence("rule.mixed_scripts")),
    )
    return warnings.cast(WARNINGS)  # type: ignore[arg-type]  # polars' stubs want an invariant mapping


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


_EARLIER = re.compile(r"\bpayment as row (\d+)")


def earlier_row(message: str) -> int | None:
    """Return the row that a payment repeats, from the message of its warning.

    >>> earlier_row("the same payment as row 12; make sure that both are meant"), earlier_row("odd")
    (12, None)
    """
    found = _EARLIER.search(message)
    return None if found is None else int(found[1])


def _repeated_payments(
    accepted: pl.DataFrame, references_of: ReferencesOf, positions: RowPositions | None
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
    return repeats.select(
        "row",
        field=pl.lit("row"),
        code=pl.lit(WarningCode.PAYMENT_REPEATED.value),
        **row_finding_columns("rule.payment_repeated", in_english={"row": located}, row=pl.col("first")),
    ).cast(WARNINGS)  # type: ignore[arg-type]  # polars' stubs want an invariant mapping


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
    counts = (
        warnings.group_by("code")
        .agg(
            pl.col("row").n_unique().alias("row_count"),
            pl.col("row").unique().sort().alias("rows"),
        )
        .iter_rows()
    )
    order = list(WarningCode)
    return sorted(
        (
            WarningCount(code=WarningCode(code), row_count=count, rows=rows[:ROWS_NAMED_MAX], every_row=rows)
            for code, count, rows in counts
        ),
        key=lambda counted: order.index(counted.code),
    )
