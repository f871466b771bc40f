"""What is wrong with no payment by itself and should be looked at before it is paid: it stops nothing."""

import re

import polars as pl

from pipeline.frames import ACCEPTED, WARNINGS, recurring
from pipeline.rules.enumeration import many_payees, same_name
from pipeline.rules.places import place_texts
from pipeline.rules.selected_values import beyond_ascii
from schemas.outcomes import ApiName, WarningCode
from schemas.places import Places
from schemas.summary import ROWS_NAMED_MAX, WarningCount


def warnings_about(
    accepted: pl.DataFrame, references: pl.Series, places: Places | None = None
) -> pl.DataFrame:
    """`Warnings` that can be given before anything is asked.

    Args:
        accepted: `Accepted`.
        references: the payment reference of every row of the file, by which payments of the same amount to
            the same payee are told apart.
        places: of the rows in their file; None where they have none.
    """
    assert accepted.schema == ACCEPTED
    # Most accounts are paid once; no other text of their payments need be compared.
    paid_again = accepted.filter(recurring(accepted["account"].hash()))
    return pl.concat(
        [
            _many_payees(paid_again),
            _mixed_scripts(accepted),
            _repeated_payments(paid_again, references, places),
        ]
    )


def _many_payees(accepted: pl.DataFrame) -> pl.DataFrame:
    """Warn of every payment to an account that is asked about by too many names."""
    warnings = many_payees(accepted).select(
        "row",
        field=pl.lit("name"),
        code=pl.lit(WarningCode.MANY_NAMES.value),
        message=pl.format(
            "one of {} different names or identifications for this account; make sure that each is meant",
            "payee_count",
        ),
    )
    return warnings.cast(WARNINGS)  # type: ignore[arg-type]  # polars' stubs want an invariant mapping


_TWO_SCRIPTS = r"\p{Latin}\p{M}*[\p{Cyrillic}\p{Greek}]|[\p{Cyrillic}\p{Greek}]\p{M}*\p{Latin}"
"""One word in two alphabets, whose letters look alike."""


def _mixed_scripts(accepted: pl.DataFrame) -> pl.DataFrame:
    """Warn of every name with a letter from another alphabet within a word."""
    names = accepted.select("row", "name").filter(beyond_ascii(accepted["name"]))
    warnings = names.filter(pl.col("name").str.contains(_TWO_SCRIPTS)).select(
        "row",
        field=pl.lit("name"),
        code=pl.lit(WarningCode.MIXED_SCRIPTS.value),
        message=pl.lit("letters of two alphabets in one word; make sure that none only looks like another"),
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
"""What makes two payments one that was entered twice."""


_EARLIER = re.compile(r"\bpayment as row (\d+)")


def earlier_row(message: str) -> int | None:
    """Tell which payment one repeats, by the message of its warning.

    >>> earlier_row("the same payment as row 12; make sure that both are meant"), earlier_row("odd")
    (12, None)
    """
    found = _EARLIER.search(message)
    return None if found is None else int(found[1])


def _repeated_payments(accepted: pl.DataFrame, references: pl.Series, places: Places | None) -> pl.DataFrame:
    """Warn of every payment that repeats an earlier one: payee, account, amount, reference."""
    # Few accounts are paid the same amount again.
    paid = accepted.filter(pl.col("amount").is_not_null())
    alike = paid.filter(recurring(paid.select(pl.struct("account", "amount").hash()).to_series()))
    # A GB IBAN need not give the currency of the UK account in it.
    pounds = pl.when(pl.col("api") == ApiName.COP).then(pl.lit("GBP"))
    alike = alike.with_columns(
        same_name(pl.col("name")),
        references.gather(alike["row"] - 1).alias("reference"),
        currency=pl.coalesce("currency", pounds),
    )
    repeats = alike.with_columns(first=pl.col("row").min().over(_PAYMENT)).filter(
        pl.col("row") != pl.col("first")
    )
    place = pl.format(" ({})", place_texts(repeats["first"], places)).fill_null("")
    return repeats.select(
        "row",
        field=pl.lit("row"),
        code=pl.lit(WarningCode.PAYMENT_REPEATED.value),
        message=pl.format("the same payment as row {}{}; make sure that both are meant", "first", place),
    ).cast(WARNINGS)  # type: ignore[arg-type]  # polars' stubs want an invariant mapping


def warning_counts(warnings: pl.DataFrame) -> list[WarningCount]:
    """`Warnings` by code, in the order of the codes, with the rows of each."""
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
