"""Detect signs of abuse: trying names until one fits an account, or account numbers until one exists.

The thresholds are our own; none are published.
"""

from typing import NamedTuple

import polars as pl

from pipeline import frames
from pipeline.rules.findings import coded_warnings
from pipeline.wording import Sentence
from pipeline.wording.rows import rows_named
from schemas.cop import ReasonCode
from schemas.outcomes import WarningCode
from schemas.row_positions import RowPositions

PAYEES_MAX = 3  # names or identifications of an account; one person's name has fewer spellings
UNKNOWN_SHARE_MAX = 0.01  # largest share of checked UK accounts that may be unknown with numbers in sequence
UNKNOWN_MIN = 5  # fewer unknown accounts are chance, however small the file
ROWS_NAMED_MAX = 10

_PAYEE = ("name", "lei", "organisation_bic", "organisation_id")
_ACCOUNT = ("api", "account", "secondary_reference")
"""The columns that identify an account; the secondary reference tells shared UK accounts apart."""


def same_name(name: pl.Expr) -> pl.Expr:
    """Normalise case and white space of a name."""
    return name.str.to_lowercase().str.replace_all(r"\s+", " ")


def many_payees(accepted: pl.DataFrame) -> pl.DataFrame:
    """Return `row` and its account's `payee_count` for payments to accounts with too many payees.

    Names that differ only in case or white space count as one. `accepted` may omit accounts paid once.
    """
    assert accepted.schema == frames.ACCEPTED
    name = same_name(pl.col("name"))
    # Only accounts paid often enough can have too many names.
    often = accepted.filter(pl.len().over("account") > PAYEES_MAX)
    return (
        often.select("row", *_ACCOUNT, payee=pl.struct(name, *_PAYEE[1:]))
        .with_columns(payee_count=pl.col("payee").n_unique().over(_ACCOUNT))
        .filter(pl.col("payee_count") > PAYEES_MAX)
        .select("row", "payee_count")
    )


class ManyNames(NamedTuple):
    """The payments of a file, or part of one, that try many names on an account."""

    rows: list[int]  # only the first ten
    row_count: int
    account_count: int


def many_names(accepted: frames.Accepted, warnings: pl.DataFrame) -> ManyNames:
    """Find the payments to accounts with too many names, by warnings that include `many_payees`."""
    rows = warnings.filter(pl.col("code") == WarningCode.MANY_NAMES)["row"]
    if rows.is_empty():
        return ManyNames([], 0, 0)
    suspects = accepted.filter(frames.is_row_in(rows))
    return ManyNames(rows.head(ROWS_NAMED_MAX).to_list(), rows.len(), suspects.select(_ACCOUNT).n_unique())


def why_refused(found: ManyNames, *, where: str, positions: RowPositions | None = None) -> Sentence | None:
    """Return why a file with many names per account is refused, naming only rows; else None."""
    if not found.rows:
        return None
    return Sentence(
        "rules.many_names",
        where=where,
        rows=rows_named(found.rows, positions, row_count=found.row_count),
        names_max=PAYEES_MAX,
        account_count=found.account_count,
    )


def unknown_in_sequence(
    asked: pl.DataFrame, assignments: frames.Assignments, answers: frames.Answers
) -> frames.Warnings:
    """Warn about payments to unknown UK accounts in sequence, if many; `asked` has `check` and `account`."""
    assert (assignments.schema, answers.schema) == (frames.ASSIGNMENTS, frames.ANSWERS)
    unknown = unknown_accounts(asked, answers)
    suspects = in_sequence(unknown["account"], asked["account"].n_unique())
    checks_in_sequence = unknown.filter(pl.col("account").is_in(suspects.implode()))
    return sequence_warnings(assignments.join(checks_in_sequence, on="check", how="semi")["row"])


def unknown_accounts(asked: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Return `check` and `account` of the questions about UK accounts, `asked`, that no bank knows."""
    is_unknown = (pl.col("code") == ReasonCode.AC01) & (pl.col("state") == frames.AnswerState.ANSWERED)
    return asked.join(answers.filter(is_unknown), on="check", how="semi").select("check", "account")


def in_sequence(unknown: pl.Series, asked_count: int) -> pl.Series:
    """Return the unknown accounts with consecutive numbers; none if they are few."""
    # Fourteen digits: neighbours share the sort code, except at its ends.
    accounts = unknown.unique().sort()
    step = accounts.cast(pl.Int64).diff()
    found = accounts.filter((step == 1).fill_null(value=False) | (step.shift(-1) == 1).fill_null(value=False))
    is_few = found.len() < UNKNOWN_MIN or found.len() < UNKNOWN_SHARE_MAX * asked_count
    return accounts.clear() if is_few else found


def sequence_warnings(rows: pl.Series) -> frames.Warnings:
    """Return `Warnings` about payments to such accounts, from their rows in any order."""
    return coded_warnings(
        rows.sort().to_frame(), "account_number", WarningCode.ENUMERATION, Sentence("rule.enumeration")
    )
