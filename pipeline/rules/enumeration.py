"""Signs that the check itself is abused: to find out who holds an account, or which accounts exist.

Whoever may ask about any name and any account can try names until one fits, or account numbers until
one exists. Neither looks like a payment file. The figures are judgements: none have been published.
"""

import polars as pl

from pipeline.frames import (
    ACCEPTED,
    ANSWERS,
    ASSIGNMENTS,
    CHECKS,
    WARNINGS,
    Accepted,
    Answers,
    AnswerState,
    Assignments,
    Checks,
    Warnings,
)
from schemas.cop import ReasonCode
from schemas.outcomes import ApiName, WarningCode
from schemas.places import Places, in_brackets

PAYEES_MAX = 3
"""Different names or identifications for one account in a run: a person is not spelled in more ways."""
UNKNOWN_SHARE_MAX = 0.01
"""Of the UK accounts asked about: unknown ones with numbers in sequence."""
UNKNOWN_MIN = 5
"""Fewer of them are chance, however small the file."""
ROWS_NAMED_MAX = 10

_PAYEE = ("name", "lei", "organisation_bic", "organisation_id")
_ACCOUNT = ("api", "account", "secondary_reference")
"""Behind some UK account numbers are many accounts, told apart by the secondary reference."""


def same_name(name: pl.Expr) -> pl.Expr:
    """What two names have in common that differ in case or white space only."""
    return name.str.to_lowercase().str.replace_all(r"\s+", " ")


def many_payees(accepted: pl.DataFrame) -> pl.DataFrame:
    """The payments to accounts that are asked about by too many names or identifications.

    Names that differ in case or white space only are one.

    Args:
        accepted: `Accepted`; payments to accounts that are paid once may be left out.

    Returns:
        row, and payee_count: how many there are for its account.
    """
    assert accepted.schema == ACCEPTED
    name = same_name(pl.col("name"))
    # Few accounts are paid often enough to have too many names at all.
    often = accepted.filter(pl.len().over("account") > PAYEES_MAX)
    return (
        often.select("row", *_ACCOUNT, payee=pl.struct(name, *_PAYEE[1:]))
        .with_columns(payee_count=pl.col("payee").n_unique().over(_ACCOUNT))
        .filter(pl.col("payee_count") > PAYEES_MAX)
        .select("row", "payee_count")
    )


def why_refused(
    accepted: Accepted, warnings: Warnings, *, where: str, places: Places | None = None
) -> str | None:
    """Why a file that tries names on accounts is refused; None for any other.

    Args:
        accepted: `Accepted`.
        warnings: `Warnings`, those of `many_payees` among them.
        where: the file, for the message, which names rows and no payee.
        places: of its rows; None where they have none.
    """
    rows = warnings.filter(pl.col("code") == WarningCode.MANY_NAMES)["row"]
    if rows.is_empty():
        return None
    account_count = accepted.filter(pl.col("row").is_in(rows.implode())).select(_ACCOUNT).n_unique()
    first = rows.head(ROWS_NAMED_MAX).to_list()
    named = ", ".join(map(str, first)) + in_brackets(first, places)
    more = f" and {rows.len() - ROWS_NAMED_MAX:,} more" if rows.len() > ROWS_NAMED_MAX else ""
    return (
        f"{where} rows {named}{more}: accounts with more than "
        f"{PAYEES_MAX} different names each: {account_count:,}; that is how names are tried out, so nothing "
        "was sent"
    )


def unknown_in_sequence(checks: Checks, assignments: Assignments, answers: Answers) -> Warnings:
    """Warn of payments to unknown UK accounts whose numbers follow one another.

    Args:
        checks: `Checks`.
        assignments: `Assignments`.
        answers: `Answers`, of a run or of all runs so far.

    Returns:
        `Warnings`: one for each payment to such an account; none where they are few.
    """
    assert (checks.schema, assignments.schema, answers.schema) == (CHECKS, ASSIGNMENTS, ANSWERS)
    asked = checks.select("check", "api", "account").filter(pl.col("api") == ApiName.COP)
    is_unknown = (pl.col("code") == ReasonCode.AC01) & (pl.col("state") == AnswerState.ANSWERED)
    unknown = asked.join(answers.filter(is_unknown), on="check", how="semi").select("check", "account")
    # Of fourteen digits: neighbours share the sort code, but for those at its ends.
    number = pl.col("account").cast(pl.Int64)
    accounts = unknown.select("account").unique().sort("account").with_columns(number=number)
    step = pl.col("number").diff()
    in_sequence = accounts.filter((step == 1).fill_null(value=False) | (step.shift(-1) == 1))
    if (
        in_sequence.height < UNKNOWN_MIN
        or in_sequence.height < UNKNOWN_SHARE_MAX * asked["account"].n_unique()
    ):
        return Warnings(pl.DataFrame(schema=WARNINGS))
    suspects = unknown.join(in_sequence, on="account", how="semi")
    return Warnings(
        assignments.join(suspects, on="check", how="semi")
        .sort("row")
        .select(
            "row",
            field=pl.lit("account_number"),
            code=pl.lit(WarningCode.ENUMERATION.value),
            message=pl.lit(
                "one of several unknown accounts with numbers in sequence, which looks like enumeration; "
                "make sure that the payment is meant"
            ),
        )
        .cast(WARNINGS)  # type: ignore[arg-type]  # polars' stubs want an invariant mapping
    )
