"""Which column of a file is which field: known headers, and what `--map` says.

A header is compared after folding: Unicode NFKC, lower case, letters and digits only, so that
`Sort Code`, `sort_code` and `SORT-CODE` are one. The known headers are in `synonyms`.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pipeline.errors import InputError
from pipeline.headers.synonyms import (
    COMBINED,
    COMPANY_NAME,
    FAMILY_NAME,
    GIVEN_NAME,
    SECOND_CHOICE,
    SYNONYMS,
)
from schemas.payments import FIELDS

ACCOUNT_FIELDS = ("iban", "account_number")
"""A file needs one of these..."""
PAYEE_FIELDS = ("name", "lei", "organisation_bic", "organisation_id")
"""...and one of these."""

HEADERS_QUOTED_MAX = 20
HEADER_QUOTED_LENGTH_MAX = 40


class ColumnReading(NamedTuple):
    """How one header was read."""

    header: str
    field: str | None
    how: str
    """canonical, synonym, map, combined, first/last name part, or unknown (kept); where the headers
    mean two things, ambiguous."""


class ColumnsError(InputError):
    """The headers of a file do not say which column is which field.

    Attributes:
        readings: how each header would be read, as far as that can be said; empty where it cannot.
    """

    def __init__(self, message: str, readings: tuple[ColumnReading, ...] = ()) -> None:
        super().__init__(message)
        self.readings = readings


class Columns(NamedTuple):
    """How a whole header line was read."""

    readings: tuple[ColumnReading, ...]
    """One per header, in file order."""
    headers: Mapping[str, tuple[str, ...]]
    """Per field, the header it is read from; for a name in parts, the headers to join, in order."""
    company: str | None
    """The header whose cell, in rows where it is filled, replaces a name in parts."""


def fold(header: str) -> str:
    """The form in which headers are compared.

    >>> fold("Account-Number (UK)") == fold("account_number uk")
    True
    """
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", header).casefold()))


def recognised(headers: Iterable[str], mapping: Mapping[str, str]) -> frozenset[str]:
    """The fields and parts of a name that are known among these cells, if this is the header line."""
    mapped = {fold(part): field for field, target in mapping.items() for part in (target, *target.split("+"))}
    folded = [fold(header) for header in headers]
    return frozenset(
        mapped.get(header) or _KNOWN[header][0] for header in folded if header in mapped or header in _KNOWN
    )


def is_sufficient(fields: Collection[str]) -> bool:
    """Whether these fields hold an account and a payee."""
    payee = any(field in fields for field in (*PAYEE_FIELDS, "company name"))
    return any(field in fields for field in ACCOUNT_FIELDS) and (payee or _IN_PARTS.issubset(fields))


def read_columns(headers: Sequence[str], mapping: Mapping[str, str], *, where: str) -> Columns:
    """Assign the canonical fields to the headers of a file.

    Args:
        headers: The header line, in order.
        mapping: From `--map FIELD=HEADER`. A mapped field is read from its header and from nothing
            else; a name may be mapped to two headers, as `name=Forename+Surname`.
        where: The file, for messages.

    Raises:
        ColumnsError: a header stands twice, two headers mean one field, the mapping names something
            that does not exist, or there is no column for the account or for the payee.
    """
    try:
        return _columns(headers, mapping, where)
    except InputError as error:
        raise ColumnsError(str(error), _as_far_as_known(headers, mapping)) from None


def _columns(headers: Sequence[str], mapping: Mapping[str, str], where: str) -> Columns:
    refuse_repeats(headers, where=where)
    mapped = {field: _mapped_headers(field, mapping[field], headers, where) for field in mapping}
    taken = {header for targets in mapped.values() for header in targets}
    if len(taken) < sum(map(len, mapped.values())):
        raise InputError(f"{where}: --map reads one header as two fields; give each field its own header")

    claims: dict[str, list[str]] = {}
    for header, (field, _) in zip(headers, _meanings(headers), strict=True):
        if field is not None and field not in mapped and header not in taken:
            claims.setdefault(field, []).append(header)
    parts = {part: claims.pop(part, []) for part in _PARTS}

    found, company = dict(mapped), None
    if "name" not in mapped:
        names, company = _name_headers(claims.pop("name", []), parts, where)
        if names:
            found["name"] = names
    for field, candidates in claims.items():
        found[field] = (_only(candidates, field, where),)

    _require(found, headers, where)
    return Columns(_readings(headers, found, company, mapped), found, company)


def refuse_repeats(headers: Sequence[str], *, where: str) -> None:
    """Refuse a header line in which one header stands twice.

    Raises:
        InputError: it does; the message has the positions, never the text.
    """
    first_at: dict[str, int] = {}
    for position, header in enumerate(headers, start=1):
        if header in first_at:
            raise InputError(
                f"{where}: columns {first_at[header]} and {position} have the same header; rename one of them"
            )
        first_at[header] = position


def _meanings(headers: Sequence[str]) -> list[tuple[str | None, str]]:
    """The field or part of a name that each header means in this file, and how it is known."""
    meant = [_KNOWN.get(fold(header), (None, "")) for header in headers]
    first = {
        field for header, (field, _) in zip(headers, meant, strict=True) if fold(header) not in _SECOND_CHOICE
    }
    if "company name" in first or first >= _IN_PARTS:
        first.add("name")
    return [
        (None, "") if field in first and fold(header) in _SECOND_CHOICE else (field, how)
        for header, (field, how) in zip(headers, meant, strict=True)
    ]


def _known() -> dict[str, tuple[str, str]]:
    """Folded header -> the field or part of a name it means, and how it is known."""
    known = {fold(synonym): (part, _PART) for part, group in _PARTS.items() for synonym in group}
    known |= {fold(synonym): (field, "synonym") for field, group in SYNONYMS.items() for synonym in group}
    known |= {
        fold(synonym): (field, "synonym") for field, group in SECOND_CHOICE.items() for synonym in group
    }
    known |= {fold(synonym): ("account_number", "combined") for synonym in COMBINED}
    return known | {fold(field): (field, "canonical") for field in FIELDS}


_PART = "first/last name part"
_PARTS = {"given name": GIVEN_NAME, "family name": FAMILY_NAME, "company name": COMPANY_NAME}
_IN_PARTS = frozenset({"given name", "family name"})
_SECOND_CHOICE = frozenset(fold(synonym) for group in SECOND_CHOICE.values() for synonym in group)
_KNOWN = _known()
_WHOLE_OR_FAMILY = ("name", "nom")
"""Headers of a whole name that beside a part of one may be the rest of it."""


def _mapped_headers(field: str, target: str, headers: Sequence[str], where: str) -> tuple[str, ...]:
    if field not in FIELDS:
        raise InputError(f"{where}: --map {field}: no such field; the fields are {', '.join(FIELDS)}")
    whole = _matching(target, headers)
    if whole is None and field == "name" and "+" in target:
        parts = [_matching(part, headers) for part in target.split("+")]
        if None not in parts:
            return tuple(part for part in parts if part is not None)
    if whole is None:
        raise InputError(
            f"{where}: --map {field}={target}: the file has no such header{_listed(headers)}; "
            "write it as the file does"
        )
    return (whole,)


def _matching(target: str, headers: Sequence[str]) -> str | None:
    """The one header that is meant: the same text, or else the only one that folds alike."""
    if target in headers:
        return target
    alike = [header for header in headers if fold(header) == fold(target)]
    return alike[0] if len(alike) == 1 else None


def _name_headers(
    whole: list[str], parts: Mapping[str, list[str]], where: str
) -> tuple[tuple[str, ...], str | None]:
    """Where the payee's name is read from: the headers to join, and the company that goes first."""
    given, family, company = parts.values()
    if given and family:
        if whole:
            _only([*whole, *given, *family], "name", where)
        company_header = _only(company, "name", where) if company else None
        return (_only(given, "name", where), _only(family, "name", where)), company_header
    if any(fold(header) in _WHOLE_OR_FAMILY for header in whole) and (given or family):
        beside = (given or family)[0]
        raise InputError(
            f"{where}: the header {_quoted(whole[0])} beside {_quoted(beside)} may be a whole name or a part "
            f"of it; say --map name={whole[0]}, or --map name=FIRST+LAST with both headers"
        )
    candidates = [*whole, *company]
    return ((_only(candidates, "name", where),) if candidates else ()), None


def _only(candidates: Sequence[str], field: str, where: str) -> str:
    if len(candidates) > 1:
        raise InputError(
            f"{where}: {' and '.join(map(_quoted, candidates))} all read as {field}; "
            f"say which one with --map {field}=HEADER"
        )
    return candidates[0]


def _require(found: Collection[str], headers: Sequence[str], where: str) -> None:
    needed = ((ACCOUNT_FIELDS, "account"), (PAYEE_FIELDS, "payee"))
    missing = [(fields, what) for fields, what in needed if not any(field in found for field in fields)]
    if missing:
        whats = " and none for ".join(f"the {what} ({' or '.join(fields)})" for fields, what in missing)
        maps = " and ".join(f"--map {fields[0]}=HEADER" for fields, _ in missing)
        raise InputError(
            f"{where}: no column for {whats}{_listed(headers)}; say which column it is with {maps}"
        )


def _readings(
    headers: Sequence[str],
    found: Mapping[str, tuple[str, ...]],
    company: str | None,
    mapped: Collection[str],
) -> tuple[ColumnReading, ...]:
    field_of = {header: field for field, sources in found.items() for header in sources}
    if company is not None:
        field_of[company] = "name"
    in_parts = len(found.get("name", ())) > 1
    readings = []
    for header in headers:
        field = field_of.get(header)
        if field is None:
            how = "unknown (kept)"
        elif field in mapped:
            how = "map"
        elif field == "name" and in_parts:
            how = _PART
        else:
            # A company alone in its file is simply the name.
            how = _KNOWN[fold(header)][1].replace(_PART, "synonym")
        readings.append(ColumnReading(header, field, how))
    return tuple(readings)


def _as_far_as_known(headers: Sequence[str], mapping: Mapping[str, str]) -> tuple[ColumnReading, ...]:
    """How each header would be read where the whole cannot be; nothing where no header is known.

    A line without any known header may be somebody's payment.
    """
    if not recognised(headers, mapping):
        return ()
    mapped = {
        header: field
        for field, target in mapping.items()
        for part in (target, *target.split("+"))
        if (header := _matching(part, headers)) is not None
    }
    meant = _meanings(headers)
    fields = [None if part is None else "name" if part in _PARTS else part for part, _ in meant]
    readings = []
    for header, field, (_, how) in zip(headers, fields, meant, strict=True):
        if header in mapped:
            readings.append(ColumnReading(header, mapped[header], "map"))
        elif field is None or field in mapping:
            readings.append(ColumnReading(header, None, "unknown (kept)"))
        else:
            readings.append(ColumnReading(header, field, "ambiguous" if fields.count(field) > 1 else how))
    return tuple(readings)


def _listed(headers: Sequence[str]) -> str:
    """The headers found, for a message; empty where they may be somebody's payment."""
    if not recognised(headers, {}):
        columns = "1 column" if len(headers) == 1 else f"{len(headers)} columns"
        return f" (the file has {columns}, and no header of them is known)"
    shown = ", ".join(map(_quoted, headers[:HEADERS_QUOTED_MAX]))
    more = f" and {len(headers) - HEADERS_QUOTED_MAX} more" if len(headers) > HEADERS_QUOTED_MAX else ""
    return f" (found: {shown}{more})"


def _quoted(header: str) -> str:
    """A header, safe to show: no control character, no long number, not without end."""
    printable = "".join(character if character.isprintable() else "?" for character in header)
    return f'"{re.sub("[0-9]{5,}", "#####", printable)[:HEADER_QUOTED_LENGTH_MAX]}"'
