"""Find the columns of names: whole names, parts, companies, and codes that only look like names."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from pipeline.headers.cells import ColumnCells, comparable
from pipeline.headers.choice import PART_OF_THE_NAME, either, pair, quoted, refuse_differing
from pipeline.headers.meaning import CANONICAL, HeaderMeaning, Rank, Side, What, is_column_of, meaning
from pipeline.headers.parties import party_of
from pipeline.headers.spelling import cues_of, fold, tokens_of
from pipeline.headers.words import NO_NAME, Cue
from pipeline.wording import ColumnPair, Sentence

_PARTS = (What.GIVEN, What.PREFERRED, What.INITIALS, What.MIDDLE, What.FAMILY, What.SECOND_FAMILY)
_FAMILY_FIRST = frozenset(map(fold, ("vezetéknév", "családnév", "vezeték név", "családi név")))
"""Headers in languages that put the family name first."""
_CODE = r"^[^\p{L}]*$|^[\p{L}._/-]*[0-9][\p{L}0-9._/-]*$"
_NOBODYS = (Side.UNSAID, None)
_PAID = (Cue.PERSON, Cue.SUPPLIER, Cue.CUSTOMER)
_IS_INSTEAD = re.compile(r"^(?:altern|abw|deviating|different|permitted)")
"""Beginnings of a substitute payee's header."""
_IF = frozenset("if falls wenn si se indien als jeśli hvis om jos pokud ha dacă αν".split())  # noqa: SIM905, RUF001
"""First words of a condition in the header of a mostly empty column: `Payee (if not the pupil)`."""
_OR = frozenset("/ or oder ou of o lub nebo eller sau või ili ali vagy".split())  # noqa: SIM905
NAME_WITHOUT_DIGITS = r"^\p{Lu}[^0-9 ]+(?: [^0-9 ]+)+$"
_ONE_WORD = r"^[^\s]+$"
_SMALL = r"^[\p{Ll}\p{N}._-]*\p{Ll}[\p{Ll}\p{N}._-]*$"
_CAPITALS = r"^[\p{Lu}\p{N}._-]*\p{Lu}[\p{Lu}\p{N}._-]*$"
_SEVERAL_WORDS = r"^\p{Lu}[^ ]* "
_Owner = tuple[Side, str | None]
_PARTS_TOGETHER = Sentence("headers.parts_together", pair=ColumnPair("name", "FIRST+LAST"))


class Candidate(NamedTuple):
    """A name, whole or in parts."""

    headers: tuple[str, ...]
    rank: Rank
    meant: HeaderMeaning
    kind_of: str | None = None  # the party of the account, for `Lead tenant` beside `Tenant sort code`

    @property
    def says_role(self) -> bool:
        """True if the header names a paid role, not only `Name`, `Company` or `Tenant`."""
        if self.rank is Rank.HOLDER:
            return not self.meant.plain
        return self.rank is Rank.PAYEE or (self.rank is Rank.SUBJECT and self.meant.subject in _PAID)

    @property
    def is_instead(self) -> bool:
        """True if the column names a substitute payee in some rows."""
        [header, *_] = self.headers
        return bool(_IS_INSTEAD.match(fold(header))) or not _IF.isdisjoint(tokens_of(header))


class NameColumns(NamedTuple):
    """The name columns of a file, except empty ones and our own side's."""

    whole: list[Candidate]
    companies: list[Candidate]
    parents: list[Candidate]
    codes: list[str]  # columns of codes under a header for names
    seconds: list[str]
    has_person: bool  # true if the list is about people, such as employees


def found(cells: ColumnCells) -> NameColumns:
    """Find the columns of a file that hold names.

    Raises ColumnsRefused: two columns could be the same part of a name and differ in a row.
    """
    meant = {header: meaning(header) for header in cells.headers}
    usable = [
        header
        for header in cells.headers
        if meant[header].side is not Side.OURS and meant[header].what is not None and cells.is_filled(header)
    ]

    def of(what: str) -> list[str]:
        return [header for header in usable if meant[header].what == what]

    codes = [
        header
        for header in of("name")
        if meant[header].rule != CANONICAL and _holds_codes(header, cells, says_name=meant[header].says_name)
    ]
    whole = [
        Candidate((header,), meant[header].rank or Rank.PLAIN, meant[header])
        for header in of("name")
        if header not in codes
    ]
    whole += [  # `Titular IBAN` above names
        Candidate((header,), Rank.HOLDER, meant[header])
        for header in of("iban")
        if cells.are(header, NAME_WITHOUT_DIGITS)
    ]
    parts = [header for header in usable if meant[header].what in _PARTS]
    of_parents = [header for header in parts if meant[header].subject in (Cue.PARENT, Cue.RELATIVE)]
    kinds = {meant[header].what for header in parts if header not in of_parents}
    unread = {What.PREFERRED} & kinds if What.GIVEN in kinds else set()  # the legal given name counts
    parts = [header for header in parts if header not in of_parents and meant[header].what not in unread]
    parents = [Candidate((header,), Rank.SUBJECT, meant[header]) for header in of(What.PARENT)]
    companies = [
        Candidate((header,), Rank.COMPANY, meant[header])
        for header in of(What.COMPANY)
        if not _holds_codes(header, cells, says_name=False)
    ]
    # A part may be in `Name/Company` or, next to `Nome`, in `Cognome/Ditta`.
    eithers = [name for name in companies if _is_either(name.headers[0])]
    if (What.FAMILY in kinds) != bool(kinds & {What.GIVEN, What.PREFERRED, What.INITIALS}):
        whole += [name._replace(rank=Rank.PLAIN) for name in eithers]
    elif What.FAMILY not in kinds and any(name.rank is Rank.PLAIN for name in whole):
        parts += [name.headers[0] for name in eithers if Cue.FAMILY in cues_of(name.headers[0])]
    whole = _with_parts(whole, parts, cells)
    read = {header for name in whole for header in name.headers}
    subjects = {meant[header].subject for header in usable if meant[header].what != What.PARENT}
    return NameColumns(
        whole=whole,
        companies=[name for name in companies if read.isdisjoint(name.headers)],
        parents=_joined(parents, of_parents, cells),
        codes=codes,
        seconds=of(What.SECOND),
        has_person=Cue.PERSON in subjects
        or (Cue.EMPLOYER in subjects and any(name.rank in (Rank.PLAIN, Rank.PART) for name in whole)),
    )


def _is_either(header: str) -> bool:
    """True if a header is for names of people or companies, such as `Nom ou raison sociale`."""
    says_or = not _OR.isdisjoint([*header, *tokens_of(header)])
    return Cue.FAMILY in cues_of(header) or (meaning(header).says_name and says_or)


def _holds_codes(header: str, cells: ColumnCells, *, says_name: bool) -> bool:
    """True if no cell could be a name: e-mail addresses, yes or no, account types, numbers, codes."""
    sample = cells.sample(header)
    return bool(sample.str.contains(NO_NAME if says_name else f"{NO_NAME}|{_CODE}").all())


# Names in parts.


def _with_parts(whole: list[Candidate], parts: Sequence[str], cells: ColumnCells) -> list[Candidate]:
    """Join names in parts: the payee's, a subject's or those of an unstated party."""
    if not parts:
        return whole
    kinds = [(meaning(header).side, party_of(header)) for header in parts]
    is_one_of_each = len(parts) == len({meaning(header).what for header in parts})
    if is_one_of_each and _NOBODYS in kinds and len(set(kinds)) == 2:
        # `Payee first name` and `Last name` name one person, as below a header that spans both.
        kinds = [next((kind for kind in kinds if kind != _NOBODYS), _NOBODYS)] * len(parts)
    for kind in sorted(set(kinds), key=str):
        of_kind = [header for header, its in zip(parts, kinds, strict=True) if its == kind]
        whole = _joined(whole, of_kind, cells, kind)
    return whole


def _joined(
    whole: list[Candidate], parts: Sequence[str], cells: ColumnCells, owner: _Owner = _NOBODYS
) -> list[Candidate]:
    # A company in a part is `Cognome/Ragione sociale`.
    whats = {
        header: What.FAMILY if meaning(header).what == What.COMPANY else meaning(header).what
        for header in parts
    }
    by_part = {part: [header for header in parts if whats[header] == part] for part in _PARTS}
    is_named = any(_is_sure(name, cells) for name in whole)
    for headers in by_part.values():
        for other in () if is_named else headers[1:]:
            if cells.differ([headers[0]], [other]):
                parts_of_one = [(headers[0],), (other,)]
                raise either("name", parts_of_one, cells, what=PART_OF_THE_NAME, pairs=[_PARTS_TOGETHER])
    first = {part: tuple(headers[:1]) for part, headers in by_part.items()}
    middle, family, second_family = first[What.MIDDLE], first[What.FAMILY], first[What.SECOND_FAMILY]
    # `Volunteer name` next to `Volunteer first name` is the rest of the name, like `Name`.
    of_holder = [header for header in parts if is_column_of(Cue.HOLDER, header)]
    plain = [
        candidate
        for candidate in whole
        if candidate.rank is Rank.PLAIN
        or (candidate.meant.says_name and _owner(candidate) == owner)
        or (candidate.rank is Rank.HOLDER and of_holder == list(parts))
    ]
    preferred = () if plain and family else first[What.PREFERRED]  # `Nombre` is then the legal given name
    given = first[What.GIVEN] or preferred or first[What.INITIALS]
    if plain and not (given and family):
        [rest, *_] = plain
        if not _completes(rest, (*given, *family), cells):
            return whole
        whole = [candidate for candidate in whole if candidate is not rest]
        if given:
            family = rest.headers
        else:
            given = rest.headers
    if given and not family:
        _refuse_single_words(whole, given, cells)
    if not (given and family):
        return whole
    family_first = fold(family[0]) in _FAMILY_FIRST
    joined = (*family, *given, *middle) if family_first else (*given, *middle, *family, *second_family)
    meant = next((its for part in parts if (its := meaning(part)).side is Side.PAYEE), meaning(parts[0]))
    rank = Rank.PAYEE if meant.side is Side.PAYEE else Rank.SUBJECT if meant.subject else Rank.PART
    return [*whole, Candidate(joined, rank, meant)]


def _refuse_single_words(whole: Sequence[Candidate], given: tuple[str, ...], cells: ColumnCells) -> None:
    """Refuse holders of one word each beside given names: they may be family names."""
    for holder in (name.headers for name in whole if name.rank is Rank.HOLDER):
        if cells.are(holder[0], _ONE_WORD):
            raise either("name", [holder, (*given, *holder)], cells, what=PART_OF_THE_NAME)


def _owner(name: Candidate) -> _Owner | None:
    """Return the owner of a whole name if its header states one."""
    kind = (name.meant.side, party_of(name.headers[0]))
    return None if kind == _NOBODYS or name.rank is Rank.HOLDER else kind


def _is_sure(name: Candidate, cells: ColumnCells) -> bool:
    """True if a name of a holder or payee is filled in every row: parts of other names do not matter."""
    is_explicit = name.says_role and name.rank is not Rank.SUBJECT
    return is_explicit and not cells.joined(name.headers).has_nulls()


def _completes(plain: Candidate, part: Sequence[str], cells: ColumnCells) -> bool:
    """True if a plain `Name` holds only part of a name, and another column the rest.

    Raises ColumnsRefused: it holds the whole name in some rows and part of it in others.
    """
    if not part:
        return False
    if meaning(part[0]).what in (What.INITIALS, What.PREFERRED):
        # Initials occur anywhere, nicknames nowhere: a whole name has several words, the first capitalised.
        filled = cells.joined(part).is_not_null()
        holds = cells.text(plain.headers[0]).filter(filled).drop_nulls().str.contains(_SEVERAL_WORDS)
    else:
        name, piece = (comparable(cells.joined(headers)) for headers in (plain.headers, part))
        holds = pl.select(pl.lit(name).str.contains(pl.lit(piece), literal=True)).to_series().drop_nulls()
    if holds.any() and not holds.all():
        pairs = (pair("name", plain.headers), _PARTS_TOGETHER)
        raise either("name", [plain.headers, tuple(part)], cells, what=PART_OF_THE_NAME, pairs=pairs)
    return not holds.any()


# Names that may be logins or short codes: `qmarrow` and `ACMELTD` under `Supplier`.


def may_be_codes(name: Candidate, cells: ColumnCells) -> bool:
    """True if each cell is one word in one case, like a login, and the header does not name a person."""
    if name.meant.says_name or name.meant.rule == CANONICAL or len(name.headers) > 1:
        return False
    words = cells.sample(name.headers[0]).unique()
    return len(words) > 1 and any(bool(words.str.contains(look).all()) for look in (_SMALL, _CAPITALS))


def _is_small(name: Candidate, cells: ColumnCells) -> bool:
    return not cells.joined(name.headers).str.contains(r"\p{Lu}").any()


def without_codes(names: list[Candidate], cells: ColumnCells, *, seen: NameColumns) -> list[Candidate]:
    """Drop logins and short codes if another column has the names: `qmarrow` next to `Quinn Marrow`."""
    doubtful = [name for name in names if may_be_codes(name, cells)]
    if not doubtful:
        return names
    others = [name for name in names if name not in doubtful]
    companies = [] if seen.has_person else seen.companies
    return [
        name
        for name in names
        if name not in doubtful
        or not any(_names_the_same(name, other, cells) for other in (*others, *companies))
    ]


def _names_the_same(code: Candidate, other: Candidate, cells: ColumnCells) -> bool:
    """True if a column names the people behind the codes; for capitals, headers must differ by `name`."""
    [header] = code.headers
    if other.meant.says_name and fold(header) in fold(other.headers[0]):
        return True
    return (
        party_of(other.headers[0]) in (None, party_of(header))
        and cells.varies(other.headers)
        and _is_small(code, cells)
        and not _is_small(other, cells)
    )


def refuse_codes(chosen: Sequence[Candidate], names: Sequence[Candidate], cells: ColumnCells) -> None:
    """Refuse possible codes that are no more explicit than a name next to them."""
    if may_be_codes(chosen[0], cells):
        others = (name.headers for name in names if name not in chosen and cells.varies(name.headers))
        refuse_differing("name", chosen[0].headers, others, cells)


def doubts(chosen: Sequence[Candidate], cells: ColumnCells) -> tuple[Sentence, ...]:
    """Return a note if the chosen names may be codes; they are read because no other column has names."""
    return tuple(
        Sentence("headers.names_may_be_codes", column=quoted(name.headers[0]))
        for name in chosen
        if may_be_codes(name, cells)
    )
