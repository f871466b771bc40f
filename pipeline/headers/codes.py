"""Names that may be logins or short codes: `qmarrow` and `ACMELTD` under `Supplier`."""

from collections.abc import Sequence

from pipeline.headers.cells import ColumnCells
from pipeline.headers.choice import THE_PAYEE, either, quoted
from pipeline.headers.meaning import CANONICAL
from pipeline.headers.names import Candidate, NameColumns
from pipeline.headers.parties import party_of
from pipeline.headers.spelling import fold
from pipeline.wording import Sentence

_SMALL = r"^[\p{Ll}\p{N}._-]*\p{Ll}[\p{Ll}\p{N}._-]*$"
_CAPITALS = r"^[\p{Lu}\p{N}._-]*\p{Lu}[\p{Lu}\p{N}._-]*$"


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
    first = chosen[0]
    if may_be_codes(first, cells):
        for other in names:
            if (
                other not in chosen
                and cells.varies(other.headers)
                and cells.differ(first.headers, other.headers)
            ):
                raise either("name", [first.headers, other.headers], cells, what=THE_PAYEE)


def doubts(chosen: Sequence[Candidate], cells: ColumnCells) -> tuple[Sentence, ...]:
    """Return a note if the chosen names may be codes; they are read because no other column has names."""
    return tuple(
        Sentence("headers.may_be_codes", column=quoted(name.headers[0]))
        for name in chosen
        if may_be_codes(name, cells)
    )
