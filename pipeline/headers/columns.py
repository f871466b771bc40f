"""Which column of a file is which field: what its headers mean, what its cells say, and what `--map` says.

Headers alone do not say who is paid: an employer stands beside an employee, our account beside the
payee's. So a file has sides (ours is never asked about), the payee's columns have an order from the most
explicit to the least, and where two of one rank differ in any row the file is refused. `payee` and `account`
hold these rules; this module joins them and says of every header how it was read.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from pipeline.errors import InputError
from pipeline.headers import account, payee, side_fields
from pipeline.headers.cells import Cells
from pipeline.headers.choice import Choice, Refusal, quoted
from pipeline.headers.meaning import COMPANY, FAMILY, GIVEN, INITIALS, NEVER, PARENT, SECOND, Side, meaning
from pipeline.headers.not_payments import why_not_payments
from pipeline.headers.spelling import fold
from schemas.payments import FIELDS

ACCOUNT_FIELDS = ("iban", "account_number")
"""A file needs one of these..."""
PAYEE_FIELDS = ("name", "lei", "organisation_bic", "organisation_id")
"""...and one of these."""

HEADERS_QUOTED_MAX = 20
POSITION = "#"
"""Before a number, in `--map`: the column at that place, from 1."""


class ColumnReading(NamedTuple):
    """How one header was read."""

    header: str
    field: str | None
    how: str
    """By which rule; of a column that is not read, why not."""
    others: tuple[str, ...] = ()
    """The headers of the other columns that could have been this field."""
    values: tuple[str, ...] = ()
    """The first three that the column has."""


class ColumnsError(InputError):
    """The headers of a file do not say which column is which field.

    Attributes:
        readings: how each header would be read, as far as that can be said; empty where it cannot.
    """

    def __init__(self, message: str, readings: tuple[ColumnReading, ...] = ()) -> None:
        super().__init__(message)
        self.readings = readings


class Columns(NamedTuple):
    """How the columns of a file are read."""

    readings: tuple[ColumnReading, ...]
    """One per header, in file order."""
    sources: Mapping[str, tuple[tuple[str, ...], ...]]
    """Field -> where it is read from: the first of these that is filled in the row. Each is a header, or the
    headers of a name in parts, to be joined with blanks in this order."""
    currency: str | None
    """What the header of the amount says, for rows that do not say it themselves."""
    notes: tuple[str, ...]
    """What was decided that a person may want to know, as sentences without a file name."""

    @property
    def decision(self) -> dict[str, str]:
        """The same as `--map` would say it, by position: read again by this, nothing is decided anew."""
        at = {reading.header: number for number, reading in enumerate(self.readings, start=1)}
        return {
            field: "|".join("+".join(f"{POSITION}{at[header]}" for header in parts) for parts in alternatives)
            for field, alternatives in self.sources.items()
        }


def read_columns(
    cells: pl.DataFrame, mapping: Mapping[str, str], *, where: str, decided: Mapping[str, str] | None = None
) -> Columns:
    """Assign the canonical fields to the columns of a file.

    Args:
        cells: The columns of the file and all of its rows.
        mapping: From `--map FIELD=HEADER`. A mapped field is read from its header and from nothing else. A
            header may be given by its place (`#3`), a name in two columns as `Forename+Surname`, and a field
            that stands in one of several columns as `Holder|Supplier`: the first that is filled.
        where: The file, for messages.
        decided: The `decision` of an earlier reading of these columns, which then stands.

    Raises:
        ColumnsError: a header stands twice, two columns could be the payee or the account and differ, the
            mapping names something that does not exist, there is no column for the account or for the payee,
            or the file holds no payments to others.
    """
    headers = cells.columns
    refuse_repeats(headers, where=where)
    seen = Cells(cells)
    try:
        said = _mapped(mapping if decided is None else decided, headers)
        choices = [] if decided is not None else _choices(seen, said)
        found = {field: Choice(field, sources, "map") for field, sources in said.items()}
        found |= {choice.field: choice for choice in choices if choice.sources and choice.field not in found}
        _require(found, headers)
    except Refusal as refusal:
        raise ColumnsError(f"{where}: {refusal}", _as_far_as_known(seen, mapping)) from None
    notes = [note for choice in choices for note in choice.notes]
    readings = _readings(seen, found)
    currency = _currency(found)
    if currency is not None:
        notes.append(
            f"a row without a currency of its own is in {currency}, as the header of the amount column says"
        )
    sources = {field: choice.sources for field, choice in found.items()}
    return Columns(readings, sources, currency, tuple(notes))


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


def recognised(headers: Iterable[str], mapping: Mapping[str, str]) -> frozenset[str]:
    """The fields and parts of a name that are known among these cells, if this is the header line."""
    mapped = {
        fold(part): field
        for field, target in mapping.items()
        for part in (target, *_parts_of(target))
        if not part.startswith(POSITION)
    }
    return frozenset(
        what
        for header in headers
        if (what := mapped.get(fold(header)) or meaning(header).what) in _OF_A_HEADER_LINE
    )


_OF_A_HEADER_LINE = frozenset({*FIELDS, GIVEN, INITIALS, FAMILY, COMPANY})


def is_sufficient(fields: Collection[str]) -> bool:
    """Whether these fields hold an account and a payee."""
    named = any(field in fields for field in (*PAYEE_FIELDS, COMPANY))
    return any(field in fields for field in ACCOUNT_FIELDS) and (
        named or (FAMILY in fields and (GIVEN in fields or INITIALS in fields))
    )


def by_position(mapping: Mapping[str, str]) -> bool:
    """Whether `--map` gives places of columns, as it must for a file without a header line."""
    return any(part.startswith(POSITION) for target in mapping.values() for part in _parts_of(target))


def _choices(cells: Cells, said: Mapping[str, tuple[tuple[str, ...], ...]]) -> list[Choice]:
    """What the headers and the cells say, of the fields that `--map` leaves to them."""
    taken = {header for sources in said.values() for parts in sources for header in parts}
    left = cells.without(taken)
    insisted = bool(said.keys() & {"name", *ACCOUNT_FIELDS})
    if not insisted and (why := why_not_payments(cells)) is not None:
        raise Refusal(why)
    choices = side_fields.choose(left, said)
    choices += account.choose(left, said)
    if "name" not in said:
        read = {**said, **{choice.field: choice.sources for choice in choices}}
        accounts = [
            header
            for field in (*ACCOUNT_FIELDS, "sort_code")
            for parts in read.get(field, ())
            for header in parts
        ]
        choices += payee.choose(left, accounts)
    return choices


def _mapped(mapping: Mapping[str, str], headers: Sequence[str]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Where `--map` says that each field is read from."""
    said = {field: _targets(field, target, headers) for field, target in mapping.items()}
    taken = [header for sources in said.values() for parts in sources for header in parts]
    if len(set(taken)) < len(taken):
        raise Refusal("--map reads one header as two fields; give each field its own header")
    return said


def _targets(field: str, target: str, headers: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    if field not in FIELDS:
        raise Refusal(f"--map {field}: no such field; the fields are {', '.join(FIELDS)}")
    if (whole := _matching(target, headers)) is not None:
        return ((whole,),)
    alternatives = []
    for alternative in target.split("|"):
        parts = [
            _matching(part, headers)
            for part in ([alternative] if field != "name" else alternative.split("+"))
        ]
        if None in parts:
            raise Refusal(
                f"--map {field}={target}: the file has no such header{_listed(headers)}; "
                f"write it as it is in the file, or give its position, as in {field}={POSITION}1"
            )
        alternatives.append(tuple(part for part in parts if part is not None))
    return tuple(alternatives)


def _parts_of(target: str) -> list[str]:
    return [part for alternative in target.split("|") for part in alternative.split("+")]


def _matching(target: str, headers: Sequence[str]) -> str | None:
    """The one header that is meant: the same text, its place, or else the only one that folds alike."""
    if target in headers:
        return target
    place = target.strip().removeprefix(POSITION)
    if target.strip().startswith(POSITION) and place.isdecimal() and 1 <= int(place) <= len(headers):
        return headers[int(place) - 1]
    alike = [header for header in headers if fold(header) == fold(target) != ""]
    return alike[0] if len(alike) == 1 else None


def _require(found: Collection[str], headers: Sequence[str]) -> None:
    needed = ((ACCOUNT_FIELDS, "account"), (PAYEE_FIELDS, "payee"))
    missing = [(fields, what) for fields, what in needed if not any(field in found for field in fields)]
    if missing:
        whats = " and none for ".join(f"the {what} ({' or '.join(fields)})" for fields, what in missing)
        maps = " and ".join(f"--map {fields[0]}=HEADER" for fields, _ in missing)
        raise Refusal(f"no column for {whats}{_listed(headers)}; name the right column with {maps}")


def _currency(found: Mapping[str, Choice]) -> str | None:
    if "amount" not in found:
        return None
    [(header,), *_] = found["amount"].sources
    return meaning(header).currency


def _readings(cells: Cells, found: Mapping[str, Choice]) -> tuple[ColumnReading, ...]:
    used = {header: choice for choice in found.values() for parts in choice.sources for header in parts}
    readings = []
    for header in cells.headers:
        choice = used.get(header)
        values = cells.first_values(header)
        if choice is not None:
            others = tuple(other for other in choice.others if used.get(other) is not choice)
            readings.append(ColumnReading(header, choice.field, choice.how_of(header), others, values))
        else:
            readings.append(ColumnReading(header, None, _why_kept(cells, header), (), values))
    return tuple(readings)


def _why_kept(cells: Cells, header: str) -> str:
    """Why a column is not read as anything."""
    meant = meaning(header)
    if meant.what is None:
        return "unknown (kept)"
    if not cells.is_filled(header):
        return "empty in every row (kept)"
    if meant.side is Side.OURS:
        return "our own side, never asked about (kept)"
    if meant.what in (NEVER, PARENT):
        return "never the payee (kept)"
    if meant.what == SECOND:
        return "second line of a name (kept)"
    is_payees = meant.what in FIELDS or meant.what == COMPANY
    return "another column is more explicit (kept)" if is_payees else f"{meant.what} (kept)"


def _as_far_as_known(cells: Cells, mapping: Mapping[str, str]) -> tuple[ColumnReading, ...]:
    """How each header would be read where the whole cannot be; nothing where no header is known.

    A line without any known header may be somebody's payment.
    """
    if not recognised(cells.headers, mapping):
        return ()
    mapped = {
        header: field
        for field, target in mapping.items()
        for part in (target, *_parts_of(target))
        if (header := _matching(part, cells.headers)) is not None
    }
    readings = []
    for header in cells.headers:
        meant = meaning(header)
        values = cells.first_values(header)
        if header in mapped:
            readings.append(ColumnReading(header, mapped[header], "map", (), values))
        elif meant.side is Side.OURS or meant.what not in _OF_A_HEADER_LINE or not cells.is_filled(header):
            readings.append(ColumnReading(header, None, _why_kept(cells, header), (), values))
        else:
            field = "name" if meant.what in (GIVEN, INITIALS, FAMILY, COMPANY) else meant.what
            readings.append(ColumnReading(header, field, f"candidate: {meant.rule}", (), values))
    return tuple(readings)


def _listed(headers: Sequence[str]) -> str:
    """The headers found, for a message; empty where they may be somebody's payment."""
    if not recognised(headers, {}):
        columns = "1 column" if len(headers) == 1 else f"{len(headers)} columns"
        return f" (the file has {columns}, and none of their headers is known)"
    shown = ", ".join(map(quoted, headers[:HEADERS_QUOTED_MAX]))
    more = f" and {len(headers) - HEADERS_QUOTED_MAX} more" if len(headers) > HEADERS_QUOTED_MAX else ""
    return f" (found: {shown}{more})"
