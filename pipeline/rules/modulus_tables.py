"""Read the tables of the UK modulus check, which Pay.UK publishes and the user stores next to the profile.

`valacdos.txt` has a line for each check of a range of sort codes, one or two for each: start, end, method,
fourteen weights, and the number of an exception, if any. `scsubtab.txt` has pairs: a sort code, and its
substitute in exception 5. Unknown content is refused: a misread check would reject valid payments.

Source: Vocalink, "Validating account numbers: UK modulus checking", the sections on the two data files.
"""

from collections.abc import Iterable
from datetime import date, timedelta
from enum import StrEnum
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import ConfigurationError
from pipeline.wording import Sentence

BYTES_MAX = 4_000_000  # forty times the size of the larger table; a bigger file was named by mistake
WEIGHT_MAX = 999  # the largest weight that fits the columns of the file
VALID_MAX_DAYS = 365  # an older table cannot reject an account, because sort codes change
_LATEST = Sentence("rules.take_latest_tables")


class Method(StrEnum):
    """How weighted digits are added up."""

    MOD10 = "MOD10"  # their sum must be a multiple of 10
    MOD11 = "MOD11"  # their sum must be a multiple of 11
    DBLAL = "DBLAL"  # the sum of the digits of each product must be a multiple of 10


class WeightedSum(NamedTuple):
    """One line of the weights table: a sum over fourteen digits that fits valid accounts."""

    method: Method
    weights: tuple[int, ...]  # weights of the six sort code and eight account number digits
    exception: int | None = None


class Range(NamedTuple):
    """The sort codes from start to end, both included, and their one or two checks, in order."""

    start: int
    end: int
    checks: tuple[WeightedSum, ...]


class ModulusTables(NamedTuple):
    """Both tables."""

    ranges: tuple[Range, ...]  # in order of start, without overlaps
    substitutions: dict[int, int]  # sort code -> its substitute in exception 5
    valid_from: date  # date of the tables, from the user
    weights_sha256: str
    substitutions_sha256: str


def age_days(valid_from: date, today: date) -> int:
    """Return the age of tables in days (ConfigurationError: not valid yet, in no time zone)."""
    if valid_from > today + timedelta(days=1):
        raise ConfigurationError(Sentence("rules.modulus_date_in_future", valid_from=valid_from))
    return max((today - valid_from).days, 0)


_EXCEPTIONS: dict[tuple[int | None, ...], tuple[tuple[Method, ...], ...]] = {
    **dict.fromkeys(((None,), (6,), (7,), (8,)), (tuple(Method),)),
    (1,): ((Method.DBLAL,),),
    **dict.fromkeys(((4,), (14,)), ((Method.MOD11,),)),
    **dict.fromkeys(((None, None), (6, 6), (12, 13)), (tuple(Method), tuple(Method))),
    (None, 3): (tuple(Method), (Method.DBLAL,)),
    **dict.fromkeys(((2, 9), (10, 11)), ((Method.MOD11,), (Method.MOD11,))),
    (5, 5): ((Method.MOD11,), (Method.DBLAL,)),
}
"""Exceptions that may occur together in a range's checks -> the methods of each check."""


def read_tables(weights: Path, substitutions: Path, valid_from: date) -> ModulusTables:
    """Read both tables (ConfigurationError, with file and line: one is unreadable or invalid)."""
    ranges, weights_sha256 = read_weights(weights)
    pairs, substitutions_sha256 = read_substitutions(substitutions)
    return ModulusTables(ranges, pairs, valid_from, weights_sha256, substitutions_sha256)


def read_weights(path: Path) -> tuple[tuple[Range, ...], str]:
    """Read the ranges and the SHA-256 of one table; same errors as `read_tables`."""
    data = _bytes_of(path)
    return _ranges(_lines(path, data)), sha256(data).hexdigest()


def read_substitutions(path: Path) -> tuple[dict[int, int], str]:
    """Read the pairs and the SHA-256 of the other table; same errors as `read_tables`."""
    data = _bytes_of(path)
    return _substitutions(_lines(path, data)), sha256(data).hexdigest()


def _ranges(lines: Iterable[tuple[str, list[str]]]) -> tuple[Range, ...]:
    found: dict[tuple[int, int], list[tuple[str, WeightedSum]]] = {}
    for where, fields in lines:
        if len(fields) not in {17, 18}:
            raise _wrong(where, Sentence("rules.field_count_wrong", fields_count=len(fields)))
        start, end = _sort_code(where, fields[0]), _sort_code(where, fields[1])
        if end < start:
            raise _wrong(where, Sentence("rules.range_ends_before_start"))
        found.setdefault((start, end), []).append((where, _check(where, fields[2:])))
    ranges = sorted(Range(*span, _known_together(checks)) for span, checks in found.items())
    for one, next_one in pairwise(ranges):
        if next_one.start <= one.end:
            where = found[next_one.start, next_one.end][0][0]
            raise _wrong(where, Sentence("rules.ranges_overlap"))
    return tuple(ranges)


def _check(where: str, fields: list[str]) -> WeightedSum:
    method, *numbers = fields
    if method not in set(Method):
        raise _wrong(where, Sentence("rules.method_unknown", method=list(Method)))
    weights = tuple(_whole(where, number) for number in numbers[:14])
    if any(abs(weight) > WEIGHT_MAX for weight in weights):
        raise _wrong(where, Sentence("rules.weight_too_large", weight_max=WEIGHT_MAX))
    if method == Method.DBLAL and min(weights) < 0:
        raise _wrong(where, Sentence("rules.weight_negative"))
    return WeightedSum(Method(method), weights, _whole(where, numbers[14]) if len(numbers) > 14 else None)


def _known_together(lines: list[tuple[str, WeightedSum]]) -> tuple[WeightedSum, ...]:
    """Return the checks of one range if the specification defines their combination."""
    where, checks = lines[-1][0], tuple(check for _, check in lines)
    if len(checks) > 2:
        raise _wrong(where, Sentence("rules.third_check_for_range"))
    methods = _EXCEPTIONS.get(tuple(check.exception for check in checks))
    if methods is None:
        exceptions = [str(check.exception or "none") for check in checks]
        raise ConfigurationError(Sentence("rules.exceptions_unknown", where=where, told=exceptions))
    if not all(check.method in known for check, known in zip(checks, methods, strict=True)):
        raise _wrong(where, Sentence("rules.method_unfit_for_exception"))
    return checks


def _substitutions(lines: Iterable[tuple[str, list[str]]]) -> dict[int, int]:
    found: dict[int, int] = {}
    for where, fields in lines:
        if len(fields) != 2:
            raise _wrong(where, Sentence("rules.not_two_sort_codes", fields_count=len(fields)))
        original, substitute = (_sort_code(where, field) for field in fields)
        if found.setdefault(original, substitute) != substitute:
            raise _wrong(where, Sentence("rules.second_substitute"))
    return found


def _bytes_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise ConfigurationError(Sentence("runs.file_unreadable", path=path, why=error)) from None
    if len(data) > BYTES_MAX:
        raise _wrong(str(path), Sentence("rules.table_too_large", bytes_max=BYTES_MAX))
    return data


def _lines(path: Path, data: bytes) -> list[tuple[str, list[str]]]:
    if not data.isascii() or b"\0" in data:
        raise _wrong(str(path), Sentence("rules.not_plain_text"))
    lines = enumerate(map(str.split, data.decode().splitlines()), 1)
    filled = [(f"{path} line {number}", fields) for number, fields in lines if fields]
    if not filled:
        raise _wrong(str(path), Sentence("rules.table_without_lines"))
    return filled


def _sort_code(where: str, field: str) -> int:
    if len(field) != 6 or not field.isdigit():
        raise _wrong(where, Sentence("rules.sort_code_malformed"))
    return int(field)


def _whole(where: str, field: str) -> int:
    if not field.removeprefix("-").isdigit() or len(field) > 6:
        raise _wrong(where, Sentence("rules.number_not_whole"))
    return int(field)


def _wrong(where: str, reason: Sentence) -> ConfigurationError:
    return ConfigurationError(Sentence("rules.table_invalid", where=where, why=reason, latest=_LATEST))
