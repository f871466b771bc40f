"""Assign the columns of a file to fields, by the meaning of headers, the look of cells, and `--map`.

Each column has a side (ours is never checked), and the payee's columns are ranked from the most explicit to
the least. If two of one rank differ in any row, the file is refused. `payee` and `account` hold these rules.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import polars as pl

from pipeline.errors import InputError
from pipeline.headers import account, payee, side_fields, unread_names
from pipeline.headers.account_signs import is_code_elsewhere
from pipeline.headers.cells import ColumnCells
from pipeline.headers.choice import ColumnChoice, ColumnsRefused, quoted
from pipeline.headers.guesses import Guess, guesses_of, pairs_of
from pipeline.headers.meaning import IN_HUNDREDTHS, Side, What, meaning
from pipeline.headers.not_payments import insist, why_not_payments
from pipeline.headers.readings import ColumnReading, readings_of, with_looks
from pipeline.headers.spelling import cues_of, fold, is_ours, tokens_of
from pipeline.headers.words import Cue
from pipeline.rules.identifiers import HYPHENS
from pipeline.wording import ANY_COLUMN, PLACE, ColumnPair, Sentence, Value
from schemas.payments import FIELDS, IGNORE, ConfiguredHeader

ACCOUNT_FIELDS = ("iban", "account_number")  # a file needs one of these...
PAYEE_FIELDS = ("name", "lei", "organisation_bic", "organisation_id")  # ...and one of these
HEADERS_QUOTED_MAX = 20
_OF_A_HEADER_LINE = frozenset({*FIELDS, What.GIVEN, What.PREFERRED, What.INITIALS, What.FAMILY, What.COMPANY})
_EIGHT = r"^[0-9]{8}$"
_SIX = rf"^[0-9]{{2}}[\s{HYPHENS}]?[0-9]{{2}}[\s{HYPHENS}]?[0-9]{{2}}$"
_KEYS = frozenset("lifnr kunnr pernr partner gpart belnr ebeln zuonr xblnr".split())  # noqa: SIM905
"""SAP's names for suppliers, customers and documents, whose numbers may have six digits."""
_OF_KEYS = (Cue.SUPPLIER, Cue.CUSTOMER, Cue.PERSON, Cue.ID, Cue.DATE, Cue.REFERENCE)


class ColumnsError(InputError):
    """The headers of a file do not show which column is which field; `readings` show what is known."""

    def __init__(
        self, reason: Sentence, readings: tuple[ColumnReading, ...] = (), *, advice: Sequence[Sentence] = ()
    ) -> None:
        super().__init__(reason, advice=advice)
        self.readings = readings


class Columns(NamedTuple):
    """The interpretation of a file's columns."""

    readings: tuple[ColumnReading, ...]  # one per header, in file order
    sources: Mapping[str, tuple[tuple[str, ...], ...]]
    """Field -> its sources; in each row, the first that is filled is read. A source is a header, or the
    headers of a name in parts, to be joined with blanks in this order.
    """
    currency: str | None  # in the header of the amounts, for rows without a currency
    notes: tuple[Sentence, ...]  # for people, on how columns were chosen
    is_in_hundredths: bool = False  # true if the header of the amount says pence, cents or the like

    @property
    def decision(self) -> dict[str, str]:
        """These choices as a `--map` by position, so that a second reading makes the same ones."""
        number_of = {reading.header: number for number, reading in enumerate(self.readings, start=1)}
        return {
            field: "|".join(
                "+".join(f"{PLACE}{number_of[header]}" for header in parts) for parts in alternatives
            )
            for field, alternatives in self.sources.items()
        }


def read_columns(
    cells: pl.DataFrame, mapping: Mapping[str, str], *, where: str, decided: Mapping[str, str] | None = None
) -> Columns:
    """Assign the canonical fields to the columns of a file.

    A field of `mapping` is read only from its header, which may be given by its position (`#3`), a name in
    two columns as `Forename+Surname`, and alternatives as `Holder|Supplier`: the first filled one counts.
    `ignore` lists columns not to read. `decided` is the `decision` of an earlier reading, to repeat.

    Raises ColumnsError: two columns that could be the payee or the account differ, the mapping names an
    unknown field or header, the account or payee has no column, or the file holds no payments to others.
    """
    headers = cells.columns
    seen = ColumnCells(cells)
    try:
        mapped = _mapped(mapping if decided is None else decided, headers)
        choices = [] if decided is not None else _choices(seen, mapped, insisted=insists(mapping))
        ignored = mapped.get(IGNORE, ())
        found = {choice.field: choice for choice in _by_mapping(mapped)}
        found |= {choice.field: choice for choice in choices if choice.sources and choice.field not in found}
        _require(found, seen)
    except ColumnsRefused as refusal:
        raise ColumnsError(
            Sentence("files.refused_because", where=where, why=refusal.reason),
            _as_far_as_known(seen, mapping),
            advice=refusal.advice,
        ) from None
    notes = [note for choice in choices for note in choice.notes]
    unread = [choice for choice in choices if not choice.sources]
    readings = readings_of(seen, [*found.values(), *unread], ignored=_headers(ignored))
    currency, in_hundredths = _unit_of_amounts(found)
    if currency is not None:
        notes.append(Sentence("headers.currency_from_header", currency=currency))
    if in_hundredths is not None:
        notes.append(Sentence("headers.amount_in_hundredths", column=quoted(in_hundredths)))
    sources = {field: choice.sources for field, choice in found.items()}
    return Columns(readings, sources, currency, tuple(notes), in_hundredths is not None)


def insists(mapping: Mapping[str, str]) -> bool:
    """True if the user's own `--map` names the payee or the account, so that any file is read."""
    own = (field for field, header in mapping.items() if not isinstance(header, ConfiguredHeader))
    return any(field in ("name", *ACCOUNT_FIELDS) for field in own)


def recognised(headers: Iterable[str], mapping: Mapping[str, str]) -> frozenset[str]:
    """Return the fields and parts of a name that these cells would name as a header line."""
    mapped = {
        fold(part): field
        for field, target in mapping.items()
        for part in (target, *_parts_of(target))
        if not part.startswith(PLACE)
    }
    return frozenset(
        what
        for header in headers
        if (what := mapped.get(fold(header)) or meaning(header).what) in _OF_A_HEADER_LINE
    )


def is_sufficient(fields: frozenset[str]) -> bool:
    """True if these fields hold an account and a payee."""
    named = any(field in fields for field in (*PAYEE_FIELDS, What.COMPANY))
    return any(field in fields for field in ACCOUNT_FIELDS) and (
        named
        or (What.FAMILY in fields and not fields.isdisjoint((What.GIVEN, What.PREFERRED, What.INITIALS)))
    )


def by_position(mapping: Mapping[str, str]) -> bool:
    """True if `--map` uses column positions, as it must for a file without a header line."""
    return any(part.startswith(PLACE) for target in mapping.values() for part in _parts_of(target))


def _choices(
    cells: ColumnCells, mapped: Mapping[str, tuple[tuple[str, ...], ...]], *, insisted: bool
) -> list[ColumnChoice]:
    """Choose columns for the fields that `--map` leaves open; `insisted` reads any file."""
    left = cells.without(_headers(source for sources in mapped.values() for source in sources))
    if not insisted and (why := why_not_payments(cells)) is not None:
        raise ColumnsRefused(why, insist(cells.headers))
    choices = side_fields.choose(left, mapped)
    choices += account.choose(left, mapped)
    found = {*mapped, *(choice.field for choice in choices if choice.sources)}
    if found.isdisjoint(ACCOUNT_FIELDS):
        choices += unread_names.bound_by_word(left, found, has_name="name" in mapped)
    if not insisted:
        _refuse_unread_sort_code(left, choices)
    if "name" not in mapped and all(choice.field != "name" for choice in choices):
        read = {**mapped, **{choice.field: choice.sources for choice in choices}}
        of_accounts = [read.get(field, ()) for field in (*ACCOUNT_FIELDS, "sort_code")]
        accounts = [header for sources in of_accounts for parts in sources for header in parts]
        names = payee.choose(left, accounts)
        only = [choice for choice in choices if choice.rule == unread_names.ONLY_ACCOUNT]
        if only and not (names and unread_names.may_own(names[0], only, left)):
            choices = [choice for choice in choices if choice not in only]
        choices += names
    return choices


def _refuse_unread_sort_code(cells: ColumnCells, choices: Sequence[ColumnChoice]) -> None:
    """Refuse account numbers without sort codes or IBANs if an unread column looks like sort codes."""
    found = {choice.field: choice.sources for choice in choices if choice.sources}
    numbers = found.get("account_number")
    if numbers is None or "sort_code" in found:
        return
    currencies = filter(len, map(cells.sample, _headers(found.get("currency", ()))))
    is_other = any(not some.str.to_uppercase().is_in(["GBP", "£"]).any() for some in currencies)
    if is_other or {meaning(header).currency for header in _headers(found.get("amount", ()))} - {None, "GBP"}:
        return
    if "iban" in found:
        cells = cells.where(cells.first_filled(found["iban"]).is_null())
    if not all(cells.are(header, _EIGHT) for header in _headers(numbers)):
        return
    likely = [header for header in cells.headers if _could_be_sort_codes(header, cells)]
    if likely:
        pairs = [ColumnPair("sort_code", header) for header in likely]
        raise ColumnsRefused(
            Sentence("headers.no_sort_code", columns=list(map(quoted, likely))),
            Sentence("headers.name_columns", count=1, pairs=[Sentence("headers.one_of_pairs", pairs=pairs)]),
            field="sort_code",
            candidates=likely,
        )


def _could_be_sort_codes(header: str, cells: ColumnCells) -> bool:
    """True if a column with an unknown header looks like sort codes, not like keys or foreign codes."""
    sample, meant = cells.sample(header), meaning(header)
    is_other = meant.what is not None or meant.side is Side.OURS or is_ours(header)
    if is_other or is_code_elsewhere(header) or not cells.are(header, _SIX):
        return False
    return _is_written(sample) or not _is_key(header)


def _is_written(codes: pl.Series) -> bool:
    """True if each code has hyphens or blanks, like a sort code."""
    return bool(codes.str.contains("[^0-9]").all())


def _is_key(header: str) -> bool:
    """True if a header names a key, whose numbers may have six digits."""
    cues = cues_of(header)
    return not _KEYS.isdisjoint(tokens_of(header)) or (Cue.BANK not in cues and not cues.isdisjoint(_OF_KEYS))


def _by_mapping(mapped: Mapping[str, tuple[tuple[str, ...], ...]]) -> list[ColumnChoice]:
    return [ColumnChoice(field, sources, "map") for field, sources in mapped.items() if field != IGNORE]


def _headers(sources: Iterable[tuple[str, ...]]) -> frozenset[str]:
    return frozenset(header for parts in sources for header in parts)


def _mapped(mapping: Mapping[str, str], headers: Sequence[str]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return field -> its sources in `--map`."""
    mapped = {field: _targets(field, target, headers) for field, target in mapping.items()}
    taken = [header for sources in mapped.values() for parts in sources for header in parts]
    if len(set(taken)) < len(taken):
        raise ColumnsRefused(Sentence("headers.one_header_mapped"), Sentence("headers.give_each_field"))
    return mapped


def _targets(field: str, target: str, headers: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    if field not in (*FIELDS, IGNORE):
        raise ColumnsRefused(
            Sentence("headers.no_such_field", field=field),
            Sentence("headers.choose_from", fields=list(FIELDS)),
        )
    if (whole := _matching(target, headers)) is not None:
        return ((whole,),)
    alternatives = []
    for alternative in target.split("|"):
        parts = [
            _matching(part, headers)
            for part in (alternative.split("+") if field in ("name", "iban") else [alternative])
        ]
        if None in parts:
            raise ColumnsRefused(
                Sentence("headers.no_such_header", field=field, target=target, listed=_listed(headers)),
                Sentence("headers.write_as_in_file"),
                Sentence("headers.give_its_position", column=ColumnPair(field, f"{PLACE}1")),
            )
        alternatives.append(tuple(part for part in parts if part is not None))
    return tuple(alternatives)


def _parts_of(target: str) -> list[str]:
    return [part for alternative in target.split("|") for part in alternative.split("+")]


def _matching(target: str, headers: Sequence[str]) -> str | None:
    """Find a header by its text, its position, or else by its folded text if only one matches."""
    if target in headers:
        return target
    place = target.strip().removeprefix(PLACE).lstrip("0")
    if target.strip().startswith(PLACE) and place in map(str, range(1, len(headers) + 1)):
        return headers[int(place) - 1]
    alike = [header for header in headers if fold(header) == fold(target) != ""]
    return alike[0] if len(alike) == 1 else None


def _require(found: Collection[str], cells: ColumnCells) -> None:
    missing = _missing(found)
    if missing:
        looks = _guesses_for_unknown(cells, missing)
        pairs = [
            pairs_of(
                {header: look for header, look in looks.items() if look.field in need.fields}, cells.headers
            )
            or _pair_of_parts(need, cells)
            or need.pairs
            for need in missing
        ]
        key = missing[0].key if len(missing) == 1 else "headers.no_account_and_no_payee"
        raise ColumnsRefused(
            Sentence(key, listed=_listed(cells.headers)),
            Sentence("headers.name_columns", count=len(missing), pairs=pairs),
        )


def _pair_of_parts(need: "_Need", cells: ColumnCells) -> ColumnPair | None:
    parts = unread_names.name_in_parts(cells) if "name" in need.fields else None
    places = [f"{PLACE}{cells.headers.index(header) + 1}" for header in parts or ()]
    return ColumnPair("name", "+".join(places)) if places else None


class _Need(NamedTuple):
    """A field that a file must have."""

    key: str  # key of the sentence for a missing field
    any_of: tuple[str, ...]  # one of these fields is enough...
    fields: tuple[str, ...]  # ...and these fields together make it up
    pairs: Value  # suggested mapping if no column looks like this field


_NEEDS = (
    _Need(
        "headers.no_account",
        ACCOUNT_FIELDS,
        (*ACCOUNT_FIELDS, "sort_code"),
        Sentence("headers.iban_or_numbers", iban=ColumnPair("iban", ANY_COLUMN)),
    ),
    _Need("headers.no_payee", PAYEE_FIELDS, ("name",), ColumnPair("name", ANY_COLUMN)),
)


def _missing(found: Collection[str]) -> list[_Need]:
    return [need for need in _NEEDS if not any(field in found for field in need.any_of)]


def _guesses_for_unknown(cells: ColumnCells, missing: Sequence[_Need]) -> dict[str, Guess]:
    """Guess missing fields from the cells below unknown headers."""
    fields = {field for need in missing for field in need.fields}
    unread = (None, What.PARENT)
    known = [
        one
        for one in cells.headers
        if is_code_elsewhere(one) or (meaning(one).what not in unread and not _may_be_paid_back(one, cells))
    ]
    unknown = cells.without(known)
    looks = {
        header: look
        for header, look in guesses_of(unknown).items()
        if look.field in fields
        and (look.field != "sort_code" or _is_written(unknown.sample(header)) or not _is_key(header))
    }
    kinds = {look.field for look in looks.values()}
    if any(look.field == "iban" and not cells.text(header).has_nulls() for header, look in looks.items()):
        kinds -= {"account_number", "sort_code"}  # if each row has an IBAN, other numbers are not accounts
    elif "account_number" not in kinds:
        kinds -= {"sort_code"}
    return {header: look for header, look in looks.items() if look.field in kinds}


def _may_be_paid_back(header: str, cells: ColumnCells) -> bool:
    """True for payers who vary, beside accounts that are not marked as others': they may get refunds."""
    if meaning(header).what != "name" or meaning(header).side is not Side.OURS or not cells.varies([header]):
        return False
    accounts = [one for one in cells.headers if meaning(one).what in ACCOUNT_FIELDS and cells.is_filled(one)]
    return all(meaning(account).side is not Side.PAYEE for account in accounts)


def _unit_of_amounts(found: Mapping[str, ColumnChoice]) -> tuple[str | None, str | None]:
    """Return the currency in the header of the amount, and the header if it says hundredths."""
    if "amount" not in found:
        return None, None
    [(header,), *_] = found["amount"].sources
    meant = meaning(header)
    return meant.currency, header if meant.rule == IN_HUNDREDTHS else None


def _as_far_as_known(cells: ColumnCells, mapping: Mapping[str, str]) -> tuple[ColumnReading, ...]:
    """Return how each header would be read, disputed or not, when the file cannot be."""
    mapped: dict[str, tuple[tuple[str, ...], ...]] = {}
    for field, target in mapping.items():
        with suppress(ColumnsRefused):
            mapped[field] = _targets(field, target, cells.headers)
    disputed: dict[str, tuple[str, tuple[str, ...]]] = {}
    choices: list[ColumnChoice] | None = None
    while choices is None:
        try:
            choices = _choices(cells.without(disputed), mapped, insisted=True)
        except ColumnsRefused as refusal:
            assert refusal.candidates, "a choice that cannot be made names its columns"  # noqa: PT017
            mapped.setdefault(refusal.field, ())
            for header in refusal.candidates:
                others = tuple(other for other in refusal.candidates if other != header)
                disputed[header] = (refusal.field, others)
    ignored = _headers(mapped.get(IGNORE, ()))
    readings = readings_of(cells, [*_by_mapping(mapped), *choices], disputed, ignored=ignored)
    missing = _missing({*mapped, *(choice.field for choice in choices)})
    return with_looks(readings, _guesses_for_unknown(cells.without(disputed), missing))


def _listed(headers: Sequence[str]) -> Sentence:
    """List the headers found; if they may be a payment, only their number."""
    if not recognised(headers, {}):
        return Sentence("headers.none_known", count=len(headers))
    shown = list(map(quoted, headers[:HEADERS_QUOTED_MAX]))
    more = len(headers) - HEADERS_QUOTED_MAX
    if more > 0:
        return Sentence("headers.found_and_more", headers=shown, count=more)
    return Sentence("headers.found", headers=shown)
