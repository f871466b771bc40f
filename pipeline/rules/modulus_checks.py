"""The arithmetic of the UK modulus check, with exceptions numbered as in the specification.

The digits are columns named as in the specification: u to z are the sort code, a to h the account number.

Source: Vocalink, "Validating account numbers: UK modulus checking", the sections on the exceptions.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import polars as pl

from pipeline.rules.modulus_tables import Method, WeightedSum

SORT_CODE = tuple("uvwxyz")
ACCOUNT_NUMBER = tuple("abcdefgh")
_DIGITS = tuple(pl.col(name) for name in (*SORT_CODE, *ACCOUNT_NUMBER))
_A, _B, _C, _G, _H = (pl.col(name) for name in "abcgh")
_DIVISORS = {Method.MOD10: 10, Method.MOD11: 11, Method.DBLAL: 10}
_ONE_WILL_DO = {(2, 9), (10, 11), (12, 13)}
"""Exceptions that require an account to pass only one of two checks."""


def exceptions_of(checks: Sequence[WeightedSum]) -> tuple[int | None, ...]:
    """Return the exceptions of a range's checks, in order."""
    return tuple(check.exception for check in checks)


def passes(checks: Sequence[WeightedSum]) -> pl.Expr:
    """True if an account passes the checks of its range."""
    together = pl.any_horizontal if exceptions_of(checks) in _ONE_WILL_DO else pl.all_horizontal
    return together([_BY_EXCEPTION[check.exception](check) for check in checks])


def _fits(check: WeightedSum) -> pl.Expr:
    return _remainder(check) == 0


def _plus_27(check: WeightedSum) -> pl.Expr:
    return (_total(check) + 27) % _DIVISORS[check.method] == 0


def _other_weights(check: WeightedSum) -> pl.Expr:
    usual = _fits(check._replace(weights=(0, 0, 1, 2, 5, 3, 6, 4, 8, 7, 10, 9, 3, 1)))
    with_nine = _fits(check._replace(weights=(0, 0, 0, 0, 0, 0, 0, 0, 8, 7, 10, 9, 3, 1)))
    return pl.when(_A == 0).then(_fits(check)).when(_G == 9).then(with_nine).otherwise(usual)


def _not_needed(check: WeightedSum) -> pl.Expr:
    return (_C == 6) | (_C == 9) | _fits(check)


def _remainder_is_gh(check: WeightedSum) -> pl.Expr:
    return _remainder(check) == 10 * _G + _H


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
    """Apply the check with the digits of another sort code."""
    return _remainder(check, (*(pl.lit(int(digit), pl.Int32) for digit in sort_code), *_DIGITS[6:])) == 0


def _seven_digits(check: WeightedSum) -> pl.Expr:
    """Check a number, also without its eighth digit if that may have been added later."""
    without = (*_DIGITS[:6], pl.lit(0, pl.Int32), *_DIGITS[6:-1])
    return _fits(check) | (_H.is_in([0, 1, 9]) & (_remainder(check, without) == 0))


_BY_EXCEPTION: Mapping[int | None, Callable[[WeightedSum], pl.Expr]] = {
    None: _fits,
    1: _plus_27,
    2: _other_weights,
    3: _not_needed,
    4: _remainder_is_gh,
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
