"""Find the header line of a handmade table, which may have titles, headers in several rows or repeated ones.

It is the first line with a known account and a known payee. Lines above it are not payments. If one of them
contains an account, the header line was guessed wrongly, and the file is refused.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from pipeline.errors import InputError
from pipeline.headers.account_patterns import holds_account, is_ruled
from pipeline.headers.choice import quoted
from pipeline.headers.columns import ColumnsError, by_position, insists, is_sufficient, recognised
from pipeline.headers.guesses import by_place, guesses_of, pairs_of
from pipeline.headers.meaning import HeaderMeaning, Side, meaning
from pipeline.headers.not_payments import insist, names_debits, titles_debits
from pipeline.headers.readings import readings_by_look
from pipeline.wording import PLACE, ColumnPair, Sentence

COLUMNS_MAX = 1_000
LINES_BEFORE_HEADER_MAX = 20
HEADER_LINES_MAX = 3  # maximum number of lines that headers span, including the header line
LINES_LOOKED_AT = LINES_BEFORE_HEADER_MAX + HEADER_LINES_MAX

_MEANINGS_MIN = 3  # minimum number of headers with a meaning that make a later line the header line
_LABELS_MIN = 2  # minimum number of cells in a header row; a single cell is a title
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9 ]{10,}")
_OF_A_PAYMENT = re.compile(
    r"[0-9]{2}[- ]?[0-9]{2}[- ]?[0-9]{2}"  # a sort code, or a date
    r"|[0-9]{7,14}"  # an account number
    rf"|{_IBAN.pattern}"
    r"|-?[0-9]+[.,][0-9]{2}"  # an amount
)
_DATA = re.compile(r"^(?=[^0-9]*[0-9])[^A-Za-z]*$|[0-9]{3}")
"""A number, a date, or a text with more digits than `ADDRESS_2`."""
_LABEL = re.compile(r"[^:=0-9]*?(?=[:=0-9]|[A-Z]{2}[0-9]{2}|$)")


class Heading(NamedTuple):
    """The headers of a table and their position."""

    start: int  # first header line, counted from 0
    cells: tuple[str, ...]  # the headers; labels over two or three rows are joined
    end: int  # the first line below all headers; equal to `start` without headers
    repeated: tuple[int, ...]  # header lines repeated below, and separators, which are not payments

    def stated(self, names: Sequence[str]) -> tuple[bool, tuple[str, ...]]:
        """Return `header_line` and `header_cells` of a `Dialect` whose columns have these names."""
        has_line = self.end > self.start
        return has_line, self.cells if has_line and self.cells != names else ()


def heading_of(lines: Sequence[Sequence[str]], mapping: Mapping[str, str] | None) -> Heading:
    """Find the header line among the first lines.

    It is the first line with a known account and payee, or the next if that has more known headers; else the
    first with several cells. If that looks like a payment and `--map` gives positions, the file has no
    headers.

    Of one to `LINES_LOOKED_AT` lines. Headers in `mapping` count as known; it is None for a file that this
    program wrote, whose header line is the first.
    """
    if mapping is None:
        return Heading(0, tuple(lines[0]), 1, ())
    able = lines[: LINES_BEFORE_HEADER_MAX + 1]
    sufficient = (
        index
        for index, cells in enumerate(able)
        if len(cells) > 1
        and is_sufficient(recognised(cells, mapping))
        and not any(_IBAN.fullmatch(cell.strip()) for cell in cells)
    )
    index = next(sufficient, None)
    if index is None:
        first = max(range(len(able)), key=lambda row: _rank(able[row]))
        if by_position(mapping) and _looks_like_payment(lines[first]):
            return Heading(first, ("",) * len(lines[first]), first, ())
        return _over_two_rows(lines, mapping) or _heading(lines, first, mapping)
    known_count = len(recognised(lines[index], mapping))
    above, below = (lines[row] if 0 <= row < len(lines) else () for row in (index - 1, index + 1))
    if not _has_data(below) and (
        any(map(names_debits, below))
        or (is_sufficient(known := recognised(below, mapping)) and len(known) > known_count)
    ):
        # A line of group labels, such as Payee and Account, may precede the headers.
        return _heading(lines, index + 1, mapping)
    for start, upper, lower in ((index - 1, above, lines[index]), (index, lines[index], below)):
        if _say_more_together(upper, lower, mapping):
            return _joined(lines, start, mapping)
    return _heading(lines, index, mapping)


def column_names(  # noqa: PLR0913
    heading: Heading,
    lines: Sequence[Sequence[str]],
    numbers: Sequence[int],
    mapping: Mapping[str, str] | None,
    *,
    where: str,
    unit: str,
    title: str = "",
) -> tuple[str, ...]:
    """Name the columns by their headers, or by their positions if these are blank or repeated.

    The first lines show accounts above the headers, and columns without headers. For people, they have
    `numbers` and are called `unit`; `where` is the file and `title` the name of a sheet.

    Raises:
        InputError: an account above the header line, a title of direct debits, or no or too many headers.
        ColumnsError: the headers look like a payment.
    """
    above, number = lines[: heading.start], numbers[heading.start] if numbers else 1
    cells, sufficient = heading.cells, is_sufficient(recognised(heading.cells, mapping or {}))
    if sufficient:
        _refuse_accounts_above(above, numbers, number, where=where, unit=unit)
    if mapping is not None:
        _refuse_debit_titles([[title], *above], cells, mapping, where=where)
    if len(cells) > COLUMNS_MAX:
        raise InputError(
            Sentence("headers.too_many_columns", where=where, cells_count=len(cells), columns_max=COLUMNS_MAX)
        )
    if not sufficient and _looks_like_payment(cells):
        raise _without_headers(lines[heading.start :], f"{where} {unit} {number}")
    if not cells:
        raise InputError(Sentence("headers.no_header_line", where=where))
    named = [header if header.strip() else f"column_{number}" for number, header in enumerate(cells, start=1)]
    headers = tuple(
        f"{header} (column {number})" if named.count(header) > 1 else header
        for number, header in enumerate(named, start=1)
    )
    is_clear = len(set(headers)) == len(headers)
    return headers if is_clear else tuple(f"column_{number + 1}" for number in range(len(headers)))


def _without_headers(lines: Sequence[Sequence[str]], position: str) -> ColumnsError:
    """Return the refusal of a file that starts with a payment, with guesses about its columns."""
    cells = by_place(lines)
    looks = guesses_of(cells)
    pairs = pairs_of(looks, cells.headers) or Sentence(
        "headers.each_of_pairs", pairs=[ColumnPair("name", f"{PLACE}1"), ColumnPair("iban", f"{PLACE}2")]
    )
    return ColumnsError(
        Sentence("headers.looks_like_payment", at=position),
        readings_by_look(looks, cells),
        advice=(
            Sentence("headers.add_first_line"),
            Sentence("headers.name_columns_by_position", pairs=pairs),
        ),
    )


def _looks_like_payment(cells: Sequence[str]) -> bool:
    """True if a cell looks like an account, a date or an amount; headers do not."""
    return any(_OF_A_PAYMENT.fullmatch(cell.strip()) for cell in cells)


def _over_two_rows(lines: Sequence[Sequence[str]], mapping: Mapping[str, str]) -> Heading | None:
    """Return headers that span two rows; None if one row is enough."""
    for index in range(min(LINES_BEFORE_HEADER_MAX + 1, len(lines) - 1)):
        if _say_more_together(lines[index], lines[index + 1], mapping):
            return _joined(lines, index, mapping)
    return None


def _say_more_together(upper: Sequence[str], lower: Sequence[str], mapping: Mapping[str, str]) -> bool:
    """True if two rows of labels together name the columns better than either alone."""
    if any(_has_data(cells) or len(_filled(cells)) < _LABELS_MIN for cells in (upper, lower)):
        return False
    known = recognised(_pairs(upper, lower), mapping)
    alone = max(len(recognised(cells, mapping)) for cells in (upper, lower))
    return is_sufficient(known) and len(known) > alone


def _rank(cells: Sequence[str]) -> tuple[int, bool]:
    """Rank a line as a header line; among equals, `max` takes the first."""
    if len(filled := _filled(cells)) < _LABELS_MIN or _has_data(filled):
        return 0, len(filled) > 1
    meant_count = len({meaning(cell).what for cell in filled} - {None})
    return meant_count if meant_count >= _MEANINGS_MIN else 0, True


def _pairs(upper: Sequence[str], lower: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{over} {under}".strip() for over, under in zip_longest(upper, lower, fillvalue=""))


def _filled(cells: Sequence[str]) -> list[str]:
    return [cell for cell in cells if cell.strip()]


def _joined(lines: Sequence[Sequence[str]], start: int, mapping: Mapping[str, str]) -> Heading:
    cells, last = _pairs(lines[start], lines[start + 1]), start + 1
    below, after = (lines[row] if row < len(lines) else () for row in (last + 1, last + 2))
    if _goes_on(cells, below, after, mapping):
        cells, last = _pairs(cells, below), last + 1
    return _heading(lines, last, mapping)._replace(start=start, cells=cells)


def _goes_on(
    cells: Sequence[str], below: Sequence[str], after: Sequence[str], mapping: Mapping[str, str]
) -> bool:
    """True if a third row continues the labels of two, above the first payment."""
    if _has_data(below) or len(_filled(below)) < _LABELS_MIN or not _has_data(after):
        return False
    known = recognised(_pairs(cells, below), mapping)
    return (
        not _names_columns(below, mapping)
        and is_sufficient(known)
        and len(known) >= len(recognised(cells, mapping))
    )


def _heading(lines: Sequence[Sequence[str]], start: int, mapping: Mapping[str, str]) -> Heading:
    end = start + 1
    while end < min(len(lines), start + HEADER_LINES_MAX) and (
        is_ruled(lines[end]) or _names_columns(lines[end], mapping)
    ):
        end += 1
    return Heading(start, tuple(lines[start]), end, tuple(range(start + 1, end)))


def _names_columns(cells: Sequence[str], mapping: Mapping[str, str]) -> bool:
    """True if a line below the headers repeats headers, such as technical names."""
    filled = _filled(cells)
    if _has_data(filled):
        return False
    known_count = sum(1 for cell in filled if recognised([cell], mapping))
    return known_count >= max(_LABELS_MIN, len(filled) / 2)


def _has_data(cells: Sequence[str]) -> bool:
    return any(_DATA.search(cell) for cell in cells)


def _refuse_accounts_above(
    lines: Sequence[Sequence[str]], numbers: Sequence[int], header: int, *, where: str, unit: str
) -> None:
    """Refuse a file with an account above its header line that is not labelled as your own (InputError)."""
    is_ours_above = False
    for above, cells, number in zip(((), *lines), lines, numbers, strict=False):
        is_ours_above |= any(label.side is Side.OURS and label.what == "name" for label in _labels_in(cells))
        if holds_account(" ".join(cells)) and not _is_of_ours(cells, above, is_ours_above=is_ours_above):
            raise InputError(
                Sentence("headers.account_above_header", where=where, unit=unit, number=number, header=header)
            )


def _refuse_debit_titles(
    titles: Iterable[Sequence[str]], headers: Sequence[str], mapping: Mapping[str, str], *, where: str
) -> None:
    """Refuse a file whose title announces direct debits, unless the user insists (InputError)."""
    cells = (cell for line in titles if not holds_account(" ".join(line)) for cell in line)
    title = next(filter(titles_debits, cells), None)
    if title is not None and not insists(mapping):
        why = Sentence("headers.direct_debits", columns=[quoted(title)])
        raise InputError(Sentence("files.refused_because", where=where, why=why), advice=insist(headers))


def _labels_in(cells: Sequence[str]) -> list[HeaderMeaning]:
    return [meaning(found[0].strip()) for cell in cells if (found := _LABEL.match(cell)) is not None]


def _is_of_ours(cells: Sequence[str], above: Sequence[str], *, is_ours_above: bool) -> bool:
    """True if the account in a line is your own: `Debit account: 12-34-56 12345678`, or below a label.

    Below a line such as `Paying company: Harrow Ltd`, the label may be `IBAN` alone.
    """
    under = [meaning(label) for label, cell in zip(above, cells, strict=False) if holds_account(cell)]
    if under and all(label.side is Side.OURS for label in under):
        return True
    of_accounts = ("iban", "account_number", "sort_code")
    accounts = [label.side for label in _labels_in(cells) if label.what in of_accounts]
    ours = (Side.OURS, Side.UNSAID) if is_ours_above else (Side.OURS,)
    return bool(accounts) and all(side in ours for side in accounts)
