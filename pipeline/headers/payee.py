"""Which column says who is paid: the most explicit one, and a refusal where two of one rank differ.

The ranks, from the most explicit: who owns the account, the payee's role, whom the list is about, a plain
name, a name in parts, a company. An employer beside an employee, a contact person, a bank and everything of
our side are never the payee.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from pipeline.headers.cells import Cells, comparable
from pipeline.headers.choice import Choice, Refusal, either, plus, quoted
from pipeline.headers.meaning import (
    CANONICAL,
    COMPANY,
    FAMILY,
    GIVEN,
    MIDDLE,
    PARENT,
    SECOND,
    Meaning,
    Rank,
    Side,
    meaning,
)
from pipeline.headers.spelling import fold
from pipeline.headers.words import Cue

_PARTS = (GIVEN, MIDDLE, FAMILY)
_FAMILY_FIRST = frozenset(map(fold, ("vezetéknév", "családnév", "vezeték név", "családi név")))
"""Headers of languages in which the family name goes first."""
_LIKE_A_NAME = r"^\p{Lu}[\p{L}'.-]*(?: \p{L}[\p{L}'.&-]*){1,4}$"
_LONG_WORD = r"[\p{L}]{3,}"
_NO_NAME = (
    r"@.*\.|^(?i:y|n|x|yes|no|true|false|ja|nein|oui|non|s[ií]|tak|nie|[01]"
    r"|personal|business|individual|private|company|person)$"
)
_IS_INSTEAD = re.compile(r"^(?:altern|abw|deviating|different|permitted)")
"""How the header of a payee begins who is paid instead of somebody, in the rows in which one is named."""
_BANK = (
    r"(?i)^(?:.*[\s(])?(?:\p{L}*bank(?:en|a)?|banc[ao]|banque|\p{L}*sparkasse|caixa|pankki|τράπεζα|spořitelna"
    r"|takarékszövetkezet|building society)(?:[\s,.)].*)?$"
)
_CODE = r"^[^\p{L}]*$|^[\p{L}._/-]*[0-9][\p{L}0-9._/-]*$"


class _Candidate(NamedTuple):
    """A name, whole or in parts."""

    headers: tuple[str, ...]
    rank: Rank
    meant: Meaning


class _Found(NamedTuple):
    """What the headers of a file name, without empty columns and those of our side."""

    whole: list[_Candidate]
    companies: list[_Candidate]
    parents: list[_Candidate]
    codes: list[str]
    """Columns headed as names that hold none."""
    seconds: list[str]
    has_person: bool
    """Whether the list is about people: employees, staff."""


def choose(cells: Cells) -> list[Choice]:
    """Where the payee's name is read from; nothing where no column names one.

    Raises:
        Refusal: two columns could be the payee and differ in a row.
    """
    found = _found(cells)
    names = _without_ledger_account(_without_payer(found.whole, cells), cells)
    _refuse_plain_account_name(names, found.companies, cells)
    _refuse_parent(found, names, cells)
    names.sort(key=lambda name: name.rank)
    if names and names[0].rank is Rank.PLAIN:
        _refuse_other_parts(names, cells)
    chosen = _of_the_first_rank(names, cells)
    if chosen and _answers_in_some_rows(chosen[0]) and _is_empty_in_a_row(chosen, cells):
        chosen += _of_the_first_rank([name for name in names if name.rank > chosen[0].rank], cells)
    chosen = _with_company(chosen, found, cells)
    if not chosen:
        return _empty(cells)
    _refuse_same_name(chosen, cells)
    _refuse_banks(chosen, cells)
    if any(candidate.rank is not Rank.HOLDER for candidate in chosen):
        _refuse_second_line(chosen, found.seconds, cells)
    others = tuple(
        header
        for candidate in (*found.whole, *found.companies, *found.parents)
        for header in candidate.headers
    )
    return [
        Choice(
            "name",
            tuple(candidate.headers for candidate in chosen),
            chosen[0].meant.rule,
            others,
            rules={header: candidate.meant.rule for candidate in chosen for header in candidate.headers},
            why_not=_why_not(found, names, chosen, cells),
        )
    ]


def _why_not(
    found: _Found, names: Sequence[_Candidate], chosen: Sequence[_Candidate], cells: Cells
) -> dict[str, str]:
    """Header -> why it is not the payee, of columns that are no candidates though they name somebody."""
    companies = [company for company in found.companies if company not in chosen]
    employers = companies if found.has_person else []
    ours = [name for name in found.whole if name not in names]
    ours += [company for company in companies if cells.is_constant(company.headers)]
    return {
        **dict.fromkeys(found.codes, "no name in its cells"),
        **{header: _OURS for name in ours for header in name.headers},
        **{header: "the employer, never the payee" for name in employers for header in name.headers},
    }


_OURS = "the same in every row where the payee differs, so taken for your own"


def _found(cells: Cells) -> _Found:
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
        _Candidate((header,), _rank(meant[header]), meant[header])
        for header in of("name")
        if header not in codes
    ]
    parts = [header for header in usable if meant[header].what in _PARTS]
    return _Found(
        whole=_with_parts(whole, parts, cells),
        companies=[_Candidate((header,), Rank.COMPANY, meant[header]) for header in of(COMPANY)],
        parents=[_Candidate((header,), Rank.SUBJECT, meant[header]) for header in of(PARENT)],
        codes=codes,
        seconds=of(SECOND),
        has_person=any(meant[header].subject is Cue.PERSON for header in usable)
        or any(_is_about_people(header) and cells.is_filled(header) for header in cells.headers),
    )


def _holds_codes(header: str, cells: Cells, *, says_name: bool) -> bool:
    """Whether no cell could be a name: each is an address of e-mail, a yes or no, or a kind of account.

    Where the header does not say that it is a name, numbers and codes such as `V10023` are none either.
    """
    sample = cells.sample(header)
    return bool(sample.str.contains(_NO_NAME if says_name else f"{_NO_NAME}|{_CODE}").all())


def _rank(meant: Meaning) -> Rank:
    assert meant.rank is not None
    return meant.rank


def _is_about_people(header: str) -> bool:
    """Whether a header such as `Employee No` says that the list is about people."""
    meant = meaning(header)
    return meant.what == "payment_id" and meant.subject is Cue.PERSON


# Names in parts.


def _with_parts(whole: list[_Candidate], parts: Sequence[str], cells: Cells) -> list[_Candidate]:
    """The names, with those in parts joined: of the payee, of a subject, or of nobody in particular."""
    if not parts:
        return whole
    kinds = {(meaning(header).side, meaning(header).subject) for header in parts}
    for side, subject in sorted(kinds, key=str):
        of_kind = [
            header for header in parts if (meaning(header).side, meaning(header).subject) == (side, subject)
        ]
        whole = _joined(whole, of_kind, cells)
    return whole


def _joined(whole: list[_Candidate], parts: Sequence[str], cells: Cells) -> list[_Candidate]:
    by_part = {part: [header for header in parts if meaning(header).what == part] for part in _PARTS}
    for headers in by_part.values():
        for other in headers[1:]:
            if cells.differ([headers[0]], [other]):
                raise either(
                    "name",
                    [(headers[0],), (other,)],
                    cells,
                    what="a part of the payee's name",
                    maps=_MAP_PARTS,
                )
    given, middle, family = (tuple(by_part[part][:1]) for part in _PARTS)
    plain = [candidate for candidate in whole if candidate.rank is Rank.PLAIN]
    if plain and not (given and family):
        [rest, *_] = plain
        if not _completes(rest, (*given, *family), cells):
            return whole
        whole = [candidate for candidate in whole if candidate is not rest]
        if given:
            family = rest.headers
        else:
            given = rest.headers
    if not (given and family):
        return whole
    family_first = fold(family[0]) in _FAMILY_FIRST
    joined = (*family, *given, *middle) if family_first else (*given, *middle, *family)
    meant = meaning(parts[0])
    rank = Rank.PAYEE if meant.side is Side.PAYEE else Rank.SUBJECT if meant.subject else Rank.PART
    return [*whole, _Candidate(joined, rank, meant)]


_MAP_PARTS = '--map "name=FIRST+LAST" with both headers'


def _completes(plain: _Candidate, part: Sequence[str], cells: Cells) -> bool:
    """Whether a plain `Name` is the rest of a name of which one part has a column, and not the whole.

    Raises:
        Refusal: it is the whole in some rows and the rest in others.
    """
    if not part:
        return False
    name, piece = (comparable(cells.joined(headers)) for headers in (plain.headers, part))
    holds = pl.select(pl.lit(name).str.contains(pl.lit(piece), literal=True)).to_series().drop_nulls()
    if holds.any() and not holds.all():
        raise either(
            "name",
            [plain.headers, tuple(part)],
            cells,
            what="a part of the payee's name",
            maps=f'--map "name={plain.headers[0]}" or {_MAP_PARTS}',
        )
    return not holds.any()


# What is never the payee, and what nobody can tell.


def _without_payer(names: Sequence[_Candidate], cells: Cells) -> list[_Candidate]:
    """Without unmarked names that are the same in every row where a marked one differs: they are ours."""
    marked = [
        name for name in names if name.rank in (Rank.PAYEE, Rank.SUBJECT) and cells.varies(name.headers)
    ]
    if not marked:
        return list(names)
    return [
        name
        for name in names
        if name in marked
        or name.meant.side is Side.PAYEE
        or not cells.is_constant(name.headers)
        or name.rank not in (Rank.HOLDER, Rank.PLAIN, Rank.SUBJECT)
    ]


def _without_ledger_account(names: Sequence[_Candidate], cells: Cells) -> list[_Candidate]:
    """Without the plain account names of a ledger, where every row has the name of a bank account."""
    of_banks = [
        name
        for name in names
        if name.rank is Rank.HOLDER
        and not name.meant.plain
        and not cells.is_constant(name.headers)
        and not _is_empty_in_a_row([name], cells)
    ]
    if not of_banks:
        return list(names)
    return [name for name in names if name.rank is not Rank.HOLDER or not name.meant.plain]


def _answers_in_some_rows(name: _Candidate) -> bool:
    """Whether an empty cell of this name leaves the answer to the next rank."""
    return name.rank is Rank.HOLDER or bool(_IS_INSTEAD.match(fold(name.headers[0])))


def _refuse_plain_account_name(
    names: Sequence[_Candidate], companies: Sequence[_Candidate], cells: Cells
) -> None:
    """An account name that differs from the payee's may be that of an account in the books, or our own."""
    for holder in (name for name in names if name.rank is Rank.HOLDER):
        for other in (*names, *companies):
            if _are_two(holder, other, cells):
                raise either("name", [holder.headers, other.headers], cells, what="the payee")


def _are_two(holder: _Candidate, other: _Candidate, cells: Cells) -> bool:
    """Whether a holder and another name may be two, of whom nobody can say who is paid."""
    if other.rank is Rank.HOLDER or (other.rank is Rank.COMPANY and _is_the_payers(other, holder, cells)):
        return False
    if holder.meant.plain and other.rank in (Rank.PAYEE, Rank.SUBJECT, Rank.COMPANY):
        return cells.differ(holder.headers, other.headers)
    if other.rank in (Rank.PLAIN, Rank.PART):
        is_same = cells.is_constant(holder.headers) and cells.varies(other.headers)
        return is_same or (holder.meant.plain and not _share_words(holder, other, cells))
    return False


def _refuse_other_parts(names: Sequence[_Candidate], cells: Cells) -> None:
    """A whole name and one in parts that have nothing in common are two people."""
    for plain in (name for name in names if name.rank is Rank.PLAIN):
        for parts in (name for name in names if name.rank is Rank.PART):
            if not _share_words(plain, parts, cells):
                raise either("name", [plain.headers, parts.headers], cells, what="the payee")


def _is_the_payers(company: _Candidate, name: _Candidate, cells: Cells) -> bool:
    """Whether a company is the same in every row, where a name is not: it pays."""
    return cells.is_constant(company.headers) and cells.varies(name.headers)


def _share_words(one: _Candidate, other: _Candidate, cells: Cells) -> bool:
    """Whether in every row the two have a word in common, as two forms of one name have."""
    words = [
        cells.joined(name.headers).str.to_lowercase().str.extract_all(_LONG_WORD).alias(side)
        for side, name in (("one", one), ("other", other))
    ]
    common = pl.col("one").list.set_intersection("other").list.len()
    return bool(pl.DataFrame(words).drop_nulls().select((common > 0).all()).item())


def _refuse_parent(found: _Found, names: Sequence[_Candidate], cells: Cells) -> None:
    """A parent beside a pupil may own the account; beside an employee it is whom to call."""
    if found.has_person or any(name.rank is Rank.HOLDER for name in names):
        return
    for parent in found.parents:
        for name in names:
            if cells.differ(parent.headers, name.headers):
                raise either("name", [name.headers, parent.headers], cells, what="the payee")


def _refuse_same_name(chosen: Sequence[_Candidate], cells: Cells) -> None:
    """One name in every row, beside names that nobody knows the header of, may be the payer's."""
    [first, *_] = chosen
    if not cells.is_constant(first.headers):
        return
    for header in cells.headers:
        sample = cells.sample(header)
        is_unread = meaning(header).what is None and len(sample) > 0
        if is_unread and sample.str.contains(_LIKE_A_NAME).all() and cells.varies([header]):
            raise either("name", [first.headers, (header,)], cells, what="the payee")


def _refuse_banks(chosen: Sequence[_Candidate], cells: Cells) -> None:
    """A `Name` in a list of bank accounts may be the bank's, and nobody is asked about a bank by mistake."""
    [first, *_] = chosen
    if first.rank not in (Rank.PLAIN, Rank.HOLDER) or first.meant.side is Side.PAYEE or cells.row_count == 1:
        return
    [header] = first.headers
    sample = cells.sample(header)
    if 2 * sample.str.contains(_BANK).sum() > len(sample):
        raise Refusal(
            f"{quoted(header)} has names of banks, rarely who is paid; say which column has the payee "
            f'with --map name=HEADER, or that the banks are paid with --map "name={plus(first.headers)}"',
            "name",
            first.headers,
        )


def _refuse_second_line(chosen: Sequence[_Candidate], seconds: Sequence[str], cells: Cells) -> None:
    for second in seconds:
        first = chosen[0].headers
        raise either(
            "name",
            [first, (second,)],
            cells,
            what="a part of the payee's name",
            maps=f'--map "name={first[0]}" or --map "name={first[0]}+{second}"',
        )


def _of_the_first_rank(names: Sequence[_Candidate], cells: Cells) -> list[_Candidate]:
    """The candidates of the most explicit rank: one, or several that agree in every row that has both."""
    if not names:
        return []
    first, *rest = [name for name in names if name.rank is names[0].rank]
    marked = [name for name in (first, *rest) if name.meant.side is Side.PAYEE]
    if marked and len(marked) < len(rest) + 1:
        first, *rest = marked
    for other in rest:
        if cells.differ(first.headers, other.headers):
            raise either("name", [first.headers, other.headers], cells, what="the payee")
    return [first, *rest]


def _with_company(chosen: list[_Candidate], found: _Found, cells: Cells) -> list[_Candidate]:
    """The names, and a company where the row has one instead of a name."""
    is_said = bool(chosen) and chosen[0].rank in (Rank.HOLDER, Rank.PAYEE)
    if found.has_person or (is_said and not _is_empty_in_a_row(chosen, cells)):
        return chosen
    companies = _of_the_first_rank(found.companies, cells)
    if not companies:
        return chosen
    if not chosen:
        return companies
    if all(any(_is_the_payers(company, name, cells) for name in chosen) for company in companies):
        return chosen
    if not is_said:
        for company in companies:
            for name in chosen:
                if cells.differ(name.headers, company.headers):
                    raise either("name", [name.headers, company.headers], cells, what="the payee")
    return [*chosen, *companies]


def _is_empty_in_a_row(chosen: Sequence[_Candidate], cells: Cells) -> bool:
    return cells.first_filled([candidate.headers for candidate in chosen]).has_nulls()


def _empty(cells: Cells) -> list[Choice]:
    """A column of names without any, where there is no other: each row is told that its name is missing."""
    for header in cells.headers:
        meant = meaning(header)
        if meant.what == "name" and meant.side is not Side.OURS and not cells.is_filled(header):
            return [Choice("name", ((header,),), meant.rule)]
    return []
