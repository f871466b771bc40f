"""The UK modulus check: do the digits of an account number fit its sort code?

An account that fails cannot exist; one that passes may.

Source: Vocalink, "Validating account numbers: UK modulus checking".
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import polars as pl

from pipeline.frames import ACCEPTED, IS_UK, WARNINGS, RouteReason
from pipeline.rules.findings import finding_columns
from pipeline.rules.modulus_checks import ACCOUNT_NUMBER, SORT_CODE, exceptions_of, passes
from pipeline.rules.modulus_tables import ModulusTables, WeightedSum
from pipeline.wording import Sentence
from schemas.outcomes import WarningCode
from schemas.summary import ModulusUsed


class ModulusState(StrEnum):
    """The result of the check for an account."""

    PASSES = "passes"
    FAILS = "fails"
    NOT_COVERED = "not_covered"  # no range of the tables has its sort code


MODULUS = pl.Enum(ModulusState)


class Modulus(NamedTuple):
    """The tables that a run uses."""

    tables: ModulusTables
    is_old: bool  # true if too old to reject a payment: a failure is only a warning


def states(accounts: pl.Series, tables: ModulusTables) -> pl.Series:
    """Check every account, given as 14 digits (sort code and account number) or null.

    Returns:
        `modulus`: the `ModulusState` of each account; null for null.
    """
    given = pl.DataFrame({"account": accounts}).with_row_index("position").drop_nulls()
    numbers = pl.col("account").cast(pl.Int64)
    given = given.select("position", (numbers // 10**8).alias("code"), (numbers % 10**8).alias("number"))
    given = given.with_columns(pl.col("code", "number").cast(pl.Int32))
    given = given.with_columns(_kinds(given["code"], tables))
    kinds = _distinct_checks(tables)
    found = [
        rows.select("position", state=pl.lit(ModulusState.NOT_COVERED, MODULUS))
        if kind is None
        else _judged(rows, kinds[kind], tables)
        for (kind,), rows in given.partition_by("kind", as_dict=True).items()
    ]
    judged = pl.concat([pl.DataFrame(schema={"position": given["position"].dtype, "state": MODULUS}), *found])
    states = pl.Series("modulus", [None], MODULUS).new_from_index(0, accounts.len())
    return states.scatter(judged["position"], judged["state"])


def used(modulus: Modulus, accepted: pl.DataFrame) -> ModulusUsed:
    """Report the tables that a run used, and the number of distinct UK accounts that they do not cover."""
    assert accepted.schema == ACCEPTED
    accounts = accepted.filter(IS_UK)["account"]
    codes = accounts.str.head(6).cast(pl.Int32)
    tables = modulus.tables
    return ModulusUsed(
        valid_from=tables.valid_from.isoformat(),
        weights_sha256=tables.weights_sha256,
        substitutions_sha256=tables.substitutions_sha256,
        is_old=modulus.is_old,
        uncovered_count=accounts.filter(_kinds(codes, tables).is_null()).n_unique(),
    )


def same_tables(before: ModulusUsed | None, modulus: Modulus | None) -> bool:
    """True if an earlier run used today's tables."""
    if before is None or modulus is None:
        return before is None and modulus is None
    return (before.valid_from, before.weights_sha256, before.substitutions_sha256) == (
        modulus.tables.valid_from.isoformat(),
        modulus.tables.weights_sha256,
        modulus.tables.substitutions_sha256,
    )


def old_failures(accepted: pl.DataFrame, tables: ModulusTables) -> pl.DataFrame:
    """Return `Warnings` of accepted payments whose account fails by tables too old to reject it."""
    assert accepted.schema == ACCEPTED
    rows = accepted.filter(IS_UK).select("row", "account", "route_reason")
    failed = rows.filter(states(rows["account"], tables) == ModulusState.FAILS)
    return failed.select(
        "row",
        field=pl.when(pl.col("route_reason") == RouteReason.GB_IBAN)
        .then(pl.lit("iban"))
        .otherwise(pl.lit("account_number")),
        code=pl.lit(WarningCode.MODULUS_OLD_TABLES.value),
        **finding_columns(Sentence("rule.modulus_old_tables")),
    ).cast(WARNINGS)  # type: ignore[arg-type]  # polars' stubs want an invariant mapping


def _distinct_checks(tables: ModulusTables) -> list[tuple[WeightedSum, ...]]:
    """Return the distinct checks of all ranges, because many ranges share their arithmetic."""
    return list(dict.fromkeys(found.checks for found in tables.ranges))


def _kinds(codes: pl.Series, tables: ModulusTables) -> pl.Series:
    """Return `kind`, each sort code's index in `_distinct_checks`; null if it has no check."""
    numbers = {checks: number for number, checks in enumerate(_distinct_checks(tables))}
    ranges = pl.DataFrame(
        [(found.start, found.end, numbers[found.checks]) for found in tables.ranges],
        schema={"start": pl.Int32, "end": pl.Int32, "kind": pl.Int32},
        orient="row",
    )
    # The last range that does not start after the sort code; none before the first.
    last = (ranges["start"].search_sorted(codes, side="right").cast(pl.Int32) - 1).clip(0)
    nearest = ranges.select(pl.all().gather(last)).with_columns(codes.alias("code"))
    is_inside = pl.col("code").is_between("start", "end")
    return nearest.select(pl.when(is_inside).then("kind").alias("kind")).to_series()


def _judged(rows: pl.DataFrame, checks: tuple[WeightedSum, ...], tables: ModulusTables) -> pl.DataFrame:
    """Return `position` and `state` of accounts with the same checks."""
    if exceptions_of(checks) == (5, 5) and tables.substitutions:
        rows = rows.with_columns(pl.col("code").replace(tables.substitutions))
    digits = rows.select("position", *_digits("code", SORT_CODE), *_digits("number", ACCOUNT_NUMBER))
    state = pl.when(passes(checks)).then(pl.lit(ModulusState.PASSES, MODULUS))
    return digits.select("position", state=state.otherwise(pl.lit(ModulusState.FAILS, MODULUS)))


def _digits(column: str, names: Sequence[str]) -> list[pl.Expr]:
    return [
        (pl.col(column) // 10**place % 10).alias(name)
        for name, place in zip(names, reversed(range(len(names))), strict=True)
    ]
