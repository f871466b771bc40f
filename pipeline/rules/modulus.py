"""The UK modulus check: do the digits of an account number fit its sort code?

An account that fails cannot exist; one that passes may. Exceptions are numbered and columns of digits named
as in the specification: u to z are the sort code, a to h the account number.

Source: Vocalink, "Validating account numbers: UK modulus checking".
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import NamedTuple

import polars as pl

from pipeline.frames import ACCEPTED, IS_UK, RouteReason
from pipeline.rules.findings import coded_warnings
from pipeline.rules.modulus_tables import Method, ModulusTables, WeightedSum
from pipeline.wording import Sentence
from schemas.outcomes import WarningCode
from schemas.summary import ModulusUsed

_SORT_CODE = tuple("uvwxyz")
_ACCOUNT_NUMBER = tuple("abcdefgh")
_DIGITS = tuple(pl.col(name) for name in (*_SORT_CODE, *_ACCOUNT_NUMBER))
_A, _B, _C, _G, _H = (pl.col(name) for name in "abcgh")
_DIVISORS = {Method.MOD10: 10, Method.MOD11: 11, Method.DBLAL: 10}
_ONE_WILL_DO = {(2, 9), (10, 11), (12, 13)}  # exceptions of which an account must pass only one


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
    """Return `modulus`, the `ModulusState` of each account, given as 14 digits or null; null for null."""
    given = pl.DataFrame({"account": accounts}).with_row_index("position").drop_nulls()
    numbers = pl.col("account").cast(pl.Int64)
    given = given.select("position", (numbers // 10**8).alias("code"), (numbers % 10**8).alias("number"))
    given = given.with_columns(pl.col("code", "number").cast(pl.Int32))
    given = given.with_columns(_kinds(given["code"], tables))
    kinds, states = _distinct_checks(tables), pl.Series("modulus", [None] * accounts.len(), MODULUS)
    for (kind,), rows in given.partition_by("kind", as_dict=True).items():
        judged = ModulusState.NOT_COVERED if kind is None else _judged(rows, kinds[kind], tables)
        states = states.scatter(rows["position"], judged)
    return states


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
    is_gb_iban = pl.col("route_reason") == RouteReason.GB_IBAN
    field = pl.when(is_gb_iban).then(pl.lit("iban")).otherwise(pl.lit("account_number"))
    return coded_warnings(failed, field, WarningCode.MODULUS_OLD_TABLES, Sentence("rule.modulus_old_tables"))


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


def _judged(rows: pl.DataFrame, checks: tuple[WeightedSum, ...], tables: ModulusTables) -> pl.Series:

    if _exceptions_of(checks) == (5, 5) and tables.substitutions:
        rows = rows.with_columns(pl.col("code").replace(tables.substitutions))
    digits = rows.select(*_digits("code", _SORT_CODE), *_digits("number", _ACCOUNT_NUMBER))
    state = pl.when(_passes(checks)).then(pl.lit(ModulusState.PASSES, MODULUS))
    return digits.select(state.otherwise(pl.lit(ModulusState.FAILS, MODULUS))).to_series()


def _digits(column: str, names: Sequence[str]) -> list[pl.Expr]:
    return [
        (pl.col(column) // 10**place % 10).alias(name)
        for name, place in zip(names, reversed(range(len(names))), strict=True)
    ]


def _exceptions_of(checks: Sequence[WeightedSum]) -> tuple[int | None, ...]:
    return tuple(check.exception for check in checks)


def _passes(checks: Sequence[WeightedSum]) -> pl.Expr:
    """True if an account passes the checks of its range."""
    together = pl.any_horizontal if _exceptions_of(checks) in _ONE_WILL_DO else pl.all_horizontal
    return together([_BY_EXCEPTION[check.exception](check) for check in checks])


def _fits(check: WeightedSum) -> pl.Expr:
    return _remainder(check) == 0


def _other_weights(check: WeightedSum) -> pl.Expr:
    usual = _fits(check._replace(weights=(0, 0, 1, 2, 5, 3, 6, 4, 8, 7, 10, 9, 3, 1)))
    with_nine = _fits(check._replace(weights=(0, 0, 0, 0, 0, 0, 0, 0, 8, 7, 10, 9, 3, 1)))
    return pl.when(_A == 0).then(_fits(check)).when(_G == 9).then(with_nine).otherwise(usual)


def _check_digit(check: WeightedSum) -> pl.Expr:
    """True if the check digit completes the sum to a multiple of the modulus; two digits never fit."""
    divisor = _DIVISORS[check.method]
    return (divisor - _remainder(check)) % divisor == (_G if check.method is Method.MOD11 else _H)


def _foreign_currency(check: WeightedSum) -> pl.Expr:
    """True for an account in a foreign currency, whose number cannot be checked, or one that passes."""
    return (_A.is_between(4, 8) & (_G == _H)) | _fits(check)


def _unweighted(check: WeightedSum, *, where: pl.Expr) -> pl.Expr:
    """Check numbers issued before their sort code and first two digits counted without those weights."""
    number_alone = check._replace(weights=(0,) * 8 + check.weights[8:])
    return pl.when(where).then(_fits(number_alone)).otherwise(_fits(check))


def _with_sort_code(sort_code: str, check: WeightedSum) -> pl.Expr:

    return _remainder(check, (*(pl.lit(int(digit), pl.Int32) for digit in sort_code), *_DIGITS[6:])) == 0


def _seven_digits(check: WeightedSum) -> pl.Expr:
    """Check a number, also without its eighth digit if that may have been added later."""
    without = (*_DIGITS[:6], pl.lit(0, pl.Int32), *_DIGITS[6:-1])
    return _fits(check) | (_H.is_in([0, 1, 9]) & (_remainder(check, without) == 0))


_BY_EXCEPTION: Mapping[int | None, Callable[[WeightedSum], pl.Expr]] = {
    None: _fits,
    1: lambda check: (_total(check) + 27) % _DIVISORS[check.method] == 0,
    2: _other_weights,
    3: lambda check: _C.is_in([6, 9]) | _fits(check),
    4: lambda check: _remainder(check) == 10 * _G + _H,
    5: _check_digit,
    6: _foreign_currency,
    7: partial(_unweighted, where=_G == 9),
    8: partial(_with_sort_code, "090126"),
    9: partial(_with_sort_code, "309634"),
    10: partial(_unweighted, where=_A.is_in([0, 9]) & (_B == 9) & (_G == 9)),
    11: _fits,
    12: _fits,
    13: _fits,
    14: _seven_digits,
}


def _remainder(check: WeightedSum, digits: Sequence[pl.Expr] = _DIGITS) -> pl.Expr:
    return _total(check, digits) % _DIVISORS[check.method]


def _total(check: WeightedSum, digits: Sequence[pl.Expr] = _DIGITS) -> pl.Expr:
    """Return the sum of the weighted digits, or of the digits of the products."""
    total = pl.lit(0, pl.Int32)
    for digit, weight in zip(digits, check.weights, strict=True):
        if weight == 0:
            continue
        product = digit * weight
        if check.method is Method.DBLAL:
            for place in range(len(str(9 * weight))):
                total += product // 10**place % 10
        else:
            total += product
    return total
