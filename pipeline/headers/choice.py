"""Choose among columns that could be one field, or refuse an ambiguous choice."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pipeline.headers.cells import ColumnCells
from pipeline.wording import ColumnPair, Sentence, Value

HEADER_QUOTED_LENGTH_MAX = 40
THE_PAYEE = Sentence("headers.the_payee")
THE_PAYEES_ACCOUNT = Sentence("headers.the_payees_account")
PART_OF_THE_NAME = Sentence("headers.part_of_the_payees_name")


class ColumnChoice(NamedTuple):
    """The columns that a field is read from."""

    field: str
    sources: tuple[tuple[str, ...], ...]
    """Each is a header, or the headers of a name in parts; the first filled one in a row is read."""
    rule: str
    others: tuple[str, ...] = ()  # headers of other candidates that were not chosen
    notes: tuple[Sentence, ...] = ()  # on the choice, for people
    rules: Mapping[str, str] = {}  # header -> its rule, if the sources have different rules
    why_not: Mapping[str, Sentence] = {}  # header -> why this column is never read as this field


class ColumnsRefused(Exception):  # noqa: N818 (no error of the program: it becomes a ColumnsError, with the file's name)
    """The columns of a file cannot be read; `candidates` could be the undecided `field`, if there is one."""

    def __init__(
        self, reason: Sentence, *advice: Sentence, field: str = "", candidates: Sequence[str] = ()
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice
        self.field = field
        self.candidates = tuple(candidates)


def either(
    field: str,
    candidates: Sequence[tuple[str, ...]],
    cells: ColumnCells,
    *,
    what: Sentence = THE_PAYEE,
    pairs: Sequence[Value] | None = None,
) -> ColumnsRefused:
    """Return the error for differing candidates, with sample values and the remedy.

    Values are shortened: the sentence may be logged. `precheck columns` shows them in full. `pairs` are the
    choices, if they are not the candidates; `what` is the field in words.
    """
    shown = [_with_values(headers, cells) for headers in candidates]
    choices = pairs or [pair(field, headers) for headers in candidates]
    return ColumnsRefused(
        Sentence("headers.either_could_be", columns=shown, what=what),
        Sentence("headers.choose_one", pairs=choices),
        field=field,
        candidates=[header for headers in candidates for header in headers],
    )


def refuse_differing(
    field: str,
    first: tuple[str, ...],
    others: Iterable[tuple[str, ...]],
    cells: ColumnCells,
    *,
    what: Sentence = THE_PAYEE,
) -> None:
    """Refuse candidates of one field that differ from the first in a row (`ColumnsRefused`)."""
    for other in others:
        if cells.differ(first, other):
            raise either(field, [first, other], cells, what=what)


def _with_values(headers: Sequence[str], cells: ColumnCells) -> Sentence:
    values = list(map(shortened, cells.joined_values(headers)))
    return Sentence("headers.column_and_values", column="+".join(map(quoted, headers)), values=values)


def rule_of(text: str) -> Sentence:
    """Return the sentence of a rule; its key is made from the English words.

    >>> rule_of("the header says IBAN").key
    'column.the_header_says_iban'
    """
    words = re.findall("[a-z]+", text.lower().replace("'", ""))
    return Sentence("column." + "_".join(words))


def pair(field: str, headers: Sequence[str]) -> ColumnPair:
    """Return a field and its headers, safe to show; the parts of one name are joined."""
    return ColumnPair(field, quoted("+".join(headers), length_max=3 * HEADER_QUOTED_LENGTH_MAX)[1:-1])


def quoted(header: str, *, length_max: int = HEADER_QUOTED_LENGTH_MAX) -> str:
    """Return a header that is safe to show: shortened, without control characters and long numbers."""
    printable = "".join(character if character.isprintable() else "?" for character in header)
    return f'"{re.sub("(?:[0-9][ -]?){5,}", "#####", printable)[:length_max]}"'


def shortened(value: str) -> str:
    """Shorten a cell: an account to its last four characters, a name to its initials.

    >>> shortened("12345678"), shortened("Quillon Marrow Ltd")
    ('**5678', 'Q… M… L…')
    """
    compact = "".join(filter(str.isalnum, value))
    if sum(map(str.isdecimal, compact)) * 2 > len(compact):
        return f"**{compact[-4:]}" if len(compact) >= 7 else f"{len(compact)} characters"
    return " ".join(f"{word[0]}…" for word in value.split()[:4] if word[0].isprintable())
