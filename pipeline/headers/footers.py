"""Find the rows below the payments, such as totals or counts, and compare totals with the payments.

Only the last rows are examined, except for subtotals, and a row with an account is always a payment.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cache, cached_property
from itertools import accumulate
from typing import NamedTuple

import polars as pl

from pipeline.headers.account_patterns import holds_account, is_ruled
from pipeline.headers.words import COUNTED, COUNTS, NOTES, NOTES_ALONE, SUBTOTALS, TOTALS
from pipeline.rules.amounts import read_amounts
from pipeline.rules.currencies import read_currencies
from pipeline.rules.totals import MONEY_FIELDS, plain, with_money
from pipeline.rules.unasked import ROW_BLANK
from pipeline.wording import Sentence
from schemas.row_positions import RowPositions
from schemas.summary import NotPayment

FOOTERS_MAX = 20  # number of last rows that are examined
_CHARS_MAX, _CELLS_BESIDE_SUM = 200, 1
_RULE_CHARS_SHOWN = 10


class LabelKind(StrEnum):
    """What a row that is not a payment holds."""

    TOTAL = "total"
    SUBTOTAL = "subtotal"
    COUNT = "count"
    NOTE = "note"


class Label(NamedTuple):
    """A label, found in a cell."""

    kind: LabelKind
    words: str  # as in `words.toml`
    figure: str | None  # a number next to the label, in the same cell
    currency: str | None  # ISO 4217 code, if the cell names one


_ACCOUNT = ("iban", "sort_code", "account_number")
_PAYEE = ("name", "lei", "organisation_bic", "organisation_id")
_COUNT = re.compile(r"[0-9]{1,5}")
"""Too short for an account number, even without the leading zeros that spreadsheets remove."""
_WHOLE = re.compile(r"[0-9]{1,18}")
_MONEY = re.compile(r"[^0-9]{0,4}-?[0-9][0-9.,' ]*[.,][0-9]{2}[^0-9]{0,4}")
_WHO_OR_WHEN = re.compile(
    r"[^0-9]*"
    r"|(?:[0-9]{4}[-./][0-9]{1,2}[-./][0-9]{1,2}|[0-9]{1,2}[-./][0-9]{1,2}[-./][0-9]{4})(?:[T ][0-9:]+)?"
)
"""A name, or a date with a four-digit year, which no sort code contains."""
_COUNT_OR_MONEY = re.compile(rf"{_COUNT.pattern}|{_MONEY.pattern}")
_BESIDE = {LabelKind.COUNT: _COUNT_OR_MONEY, LabelKind.NOTE: _WHO_OR_WHEN}
"""Values that may appear next to a label, in any column."""
_CODED = re.compile(r"(?i:[a-z]{1,3}|9{1,2})( [0-9]+)?( [0-9]+[.,][0-9]{2})?")
"""The cells of a trailer: a code such as T or 99, and a count, a sum or both, which must be the payments'."""


@dataclass(frozen=True)
class _Row:
    """One of the last rows."""

    row_index: int  # its index in the table, from 0
    fields: Mapping[str, str | None]
    cells: tuple[str, ...]  # its filled cells

    @cached_property
    def label(self) -> Label | None:
        """The first label in the row, or the line that rules it off; few rows are asked for it."""
        if is_ruled(self.cells):
            return Label(LabelKind.NOTE, self.cells[0][:_RULE_CHARS_SHOWN], None, None)
        return next(filter(None, map(label_of, self.cells)), self._code)

    @cached_property
    def is_coded(self) -> bool:
        """True if the row has no label but may be a trailer, by its code."""
        return self.label is not None and self.label is self._code

    @cached_property
    def _code(self) -> Label | None:
        coded = len(self.cells) > 1 and _CODED.fullmatch(" ".join(self.cells))
        return Label(LabelKind.COUNT, self.cells[0], None, None) if coded else None

    @property
    def has_account(self) -> bool:
        """True if the row contains an account, or a possible one."""
        values = [self.fields[field] for field in _ACCOUNT]
        return holds_account(" ".join(self.cells)) or any(
            value and not self._is_figure(value) for value in values
        )

    @property
    def has_payee(self) -> bool:
        """True if the row names a possible payee; after a note stands its author, if there is no amount."""
        values = [value for field in _PAYEE if (value := self.fields[field]) is not None]
        if self.label is not None and self.label.kind is LabelKind.NOTE:
            is_note = is_ruled(self.cells) or (label_of(self.cells[0]) and _figure(self)[0] is None)
            return not is_note and any(label_of(value) is None for value in values)
        return any(not self._is_figure(value) for value in values)

    def _is_figure(self, value: str) -> bool:
        """True if a value is the row's label or belongs to one."""
        if self.label is None:
            return False
        figure = _BESIDE.get(self.label.kind, _MONEY)
        return self.is_coded or figure.fullmatch(value) is not None or label_of(value) is not None


class _Sums(NamedTuple):
    money: pl.DataFrame  # amount as `frames.MONEY`, and currency: one row per payment

    def by_currency(self) -> dict[str | None, Decimal]:
        """Currency, or None -> the sum of the payments in it."""
        sums = (
            self.money.drop_nulls("amount").group_by("currency").agg(pl.col("amount").sum()).sort("currency")
        )
        return {currency: plain(amount) for currency, amount in sums.iter_rows()}

    def are(self, amount: Decimal, currency: str | None) -> bool:
        """True if all payments, or those in this currency, add up to this amount."""
        sums = self.by_currency()
        if currency is not None and currency in sums:
            return sums[currency] == amount
        return amount in {*sums.values(), sum(sums.values(), Decimal())}

    def end_in(self, amount: Decimal, *, count_min: int) -> bool:
        """True if at least `count_min` of the last payments add up to this amount."""
        amounts = self.money["amount"].drop_nulls().reverse().to_list()
        return amount in list(accumulate(amounts))[count_min - 1 :]


class Footers(NamedTuple):
    """The rows at the end of a table that are not payments."""

    payment_count: int  # rows above the first footer, without blank rows at their end
    rows: list[NotPayment]


def footers_of(payments: pl.DataFrame, original: pl.DataFrame, positions: RowPositions | None) -> Footers:
    """Find the rows at the end of a table that are not payments.

    These are rows without account and payee whose amount is the sum of at least two rows above, rows with a
    cell that is a label, and single texts below such rows. `payments` is `frames.PAYMENTS` of every row, and
    `original` the columns of the file.
    """
    last = max(0, payments.height - FOOTERS_MAX)
    found: list[_Row] = []
    for row in _rows(payments, original, last):
        is_footer = not row.has_account and _is_footer(row, payments, after_footer=bool(found))
        if row.cells and not is_footer:
            found.clear()
        elif row.cells:
            found.append(row)
    end = found[0].row_index if found else payments.height
    above = payments["defect"].head(end).ne_missing(ROW_BLANK).arg_true()
    count = 0 if above.is_empty() else int(above[-1]) + 1
    if not found:
        return Footers(count, [])
    sums = _Sums(with_money(payments[above].select(MONEY_FIELDS)))
    return Footers(count, [_not_payment(row, sums, positions) for row in found])


def subtotals_of(
    payments: pl.DataFrame, original: pl.DataFrame, lacking: pl.Series, positions: RowPositions | None
) -> list[NotPayment]:
    """Find the rows without account and payee that add up payments above, wherever they are.

    One that no word calls a total adds up two payments or more, since a subtotal or from the first. The total
    of all payments is left to `footers_of`. Takes the same tables, and the indexes of the rows `lacking` an
    account, in order; finds nothing without positions.
    """
    candidates = lacking.filter(payments["amount"].gather(lacking).is_not_null())
    if candidates.is_empty() or positions is None:
        return []
    amounts = with_money(payments.select(MONEY_FIELDS))["amount"]
    counts, sums = ([0, *accumulate(some)] for some in (amounts.is_not_null(), amounts.fill_null(0)))
    has_account = pl.repeat(True, payments.height, eager=True).scatter(lacking, False)
    last = has_account.arg_true().max() or 0
    starts, found, in_subtotals = {Decimal(): 0}, list[NotPayment](), Decimal()
    for index in candidates:
        amount, above, count = amounts[index], sums[index] - in_subtotals, counts[index] - len(found)
        start = None if amount is None else starts.get(above - amount)
        if start is None or start == count:
            continue
        [row] = _rows(payments[index : index + 1], original[index : index + 1], 0)
        words = _words_of_subtotal(row, several=count - start > 1)
        if words is None or (index > last and start == 0 and not row.has_payee):
            continue
        why = Sentence("footer.total_agrees", money=_money(plain(amount), None))
        listed = _listed(index + 1, positions, LabelKind.SUBTOTAL, words or None, why)
        found.append(listed.model_copy(update={"amount": plain(amount), "agrees": True}))
        in_subtotals += amount
        starts[above] = count
    return found


def _words_of_subtotal(row: _Row, *, several: bool) -> str | None:
    """Return the words of a total in a row, perhaps none beside one other cell; None if it is not a total."""
    payees = [value for field in _PAYEE if (value := row.fields[field]) is not None]
    is_payee = not several and any(map(_begins_like_a_total, payees))
    if is_payee or holds_account(" ".join(row.cells)) or not all(map(_words_of_total, payees)):
        return None
    words = next(filter(None, map(_words_of_total, row.cells)), None)
    return words or ("" if several and len(row.cells) <= _CELLS_BESIDE_SUM + 1 else None)


def _words_of_total(cell: str) -> str | None:
    """Return the words of a total at the start or end of a cell, as in `Sales Total` and `Summe IT`."""
    found = _total_of_group().fullmatch(fold(cell)) if len(cell) <= _CHARS_MAX else None
    return None if found is None else _spelling()[found["first"] or found["last"]]


def _begins_like_a_total(cell: str) -> bool:
    """True for words after those of a total: `Total Fuels Ltd` may be a firm whose account is missing."""
    found = _total_of_group().fullmatch(fold(cell))
    return found is not None and found["first"] not in (None, fold(cell).rstrip(" :"))


def likely_payment_count(original: pl.DataFrame) -> int:
    """Count the rows before a likely footer: a label without an account, and no account below."""
    first = max(0, original.height - FOOTERS_MAX)
    end = original.height
    for index, row in enumerate(original.slice(first).iter_rows(), start=first):
        cells = [str(cell) for cell in row if cell is not None]
        if holds_account(" ".join(cells)):
            end = original.height
        elif end == original.height and (is_ruled(cells) or any(label_of(cell) for cell in cells)):
            end = index
    return end or original.height


def _rows(payments: pl.DataFrame, original: pl.DataFrame, first: int) -> Iterator[_Row]:
    fields = payments.slice(first).iter_rows(named=True)
    texts = original.slice(first).iter_rows()
    for index, (values, row) in enumerate(zip(fields, texts, strict=True), start=first):
        cells = tuple(text for cell in row if cell is not None and (text := str(cell).strip()))
        yield _Row(index, values, cells)


def _is_footer(row: _Row, payments: pl.DataFrame, *, after_footer: bool) -> bool:
    if row.has_payee:
        return after_footer and len(row.cells) == 1
    if row.label is not None and not row.is_coded:
        return True
    amount, currency = _figure(row)
    above = payments.head(row.row_index)
    sums = _Sums(with_money(above.select(MONEY_FIELDS)))
    if row.is_coded:
        is_count = _count(row) in (None, above["defect"].ne_missing(ROW_BLANK).sum())
        return is_count and (amount is None or sums.are(amount, None))
    if amount is None:
        return after_footer and len(row.cells) == 1
    several = sums.money["amount"].count() > 1
    return several and (sums.are(amount, currency) or sums.end_in(amount, count_min=2))


def _figure(row: _Row) -> tuple[Decimal | None, str | None]:
    """Return the amount in a row, and its currency."""
    label = row.label
    beside = [] if label is None else [label.figure, *(cell for cell in row.cells if _MONEY.fullmatch(cell))]
    candidates = pl.Series("amount", [row.fields["amount"], *beside], dtype=pl.String)
    amounts = read_amounts(candidates).money.drop_nulls()
    codes = read_currencies(pl.Series([row.fields["currency"]], dtype=pl.String))
    currency = (None if label is None else label.currency) or codes[0]
    return (None if amounts.is_empty() else plain(amounts[0])), currency


def _count(row: _Row) -> int | None:
    """Return the number of payments in a row."""
    label = row.label
    stated = [] if label is None or label.figure is None else [label.figure.strip()]
    cells = row.cells[1:] if row.is_coded else row.cells
    numbers = [text for text in (*stated, *cells) if _WHOLE.fullmatch(text)]
    return int(numbers[0]) if numbers else None


def _listed(
    number: int, positions: RowPositions | None, kind: LabelKind, words: str | None, why: Sentence | None
) -> NotPayment:
    where = Sentence("footer.row", number=number)
    if positions is not None:
        where = place_of(positions.unit, positions.of(number))
    label = "" if words is None else Sentence("footer.label", label=words)
    said = Sentence("footer.not_a_payment", place=where, label=label)
    if why is not None:
        said = Sentence("footer.not_a_payment_because", place=where, label=label, why=why)
    place = None if positions is None else positions.of(number)
    return NotPayment(place=place, row=number, kind=kind.value, label=words, sentence=said.recorded())


def _not_payment(row: _Row, sums: _Sums, positions: RowPositions | None) -> NotPayment:
    kind, words = (LabelKind.TOTAL, None) if row.label is None else row.label[:2]

    def listed(why: Sentence | None, **found: object) -> NotPayment:
        return _listed(row.row_index + 1, positions, kind, words, why).model_copy(update=found)

    amount, currency = _figure(row)
    if kind is LabelKind.COUNT and (count := _count(row)) is not None:
        agrees = count == sums.money.height or (amount is not None and sums.are(amount, None))
        why = (
            Sentence("footer.count_agrees", number=count)
            if agrees
            else Sentence("footer.count_differs", number=count, found=sums.money.height)
        )
        return listed(why, payment_count=count, agrees=agrees)
    if row.label is None and amount is None:
        return listed(Sentence("footer.text_below"), kind=LabelKind.NOTE.value)
    if kind is LabelKind.NOTE or amount is None:
        return listed(None)
    agrees = sums.are(amount, currency) or (kind is LabelKind.SUBTOTAL and sums.end_in(amount, count_min=1))
    if agrees:
        why = Sentence("footer.total_agrees", money=_money(amount, currency))
    else:
        found = [_money(total, code) for code, total in sums.by_currency().items()]
        why = Sentence(
            "footer.total_differs",
            money=_money(amount, currency),
            found=Sentence("footer.several_totals", sums=found) if found else Sentence("footer.nothing"),
        )
    return listed(why, amount=amount, currency=currency, agrees=agrees)


def place_of(unit: str, number: int) -> Sentence:
    """Return the position of a line or sheet row, to begin a sentence."""
    return Sentence("footer.line" if unit == "line" else "footer.sheet_row", number=number)


def _money(amount: Decimal, currency: str | None) -> Sentence:
    bare = Sentence("footer.amount", amount=amount)
    return (
        bare
        if currency is None
        else Sentence("footer.amount_with_currency", amount=amount, currency=currency)
    )


# Labels: the whole cell must be one, alone or with a figure; a payee such as Total Energies starts like one.

_CURRENCIES = ("gbp", "eur", "usd", "chf", "sek", "nok", "dkk", "pln", "czk", "huf", "ron", "bgn", "isk")
_SIGNS = {"£": "GBP", "€": "EUR"}
_COUNTED = re.compile(r"\(?[0-9]+ ")
_DONE = r"(?:selected|affected|returned|retrieved|exported|fetched|found|in set)(?: \([0-9.]+ sec\))?"
"""What database programs write after a number of rows."""


def fold(text: str) -> str:
    """Normalise a label for comparison: lower case, no accents, single spaces, no ornaments.

    >>> fold(" *** Total général: ")
    'total general:'
    """
    plain = unicodedata.normalize("NFKD", text.casefold().replace("ı", "i"))  # noqa: RUF001 (Turkish)
    without_marks = "".join(character for character in plain if not unicodedata.combining(character))
    return " ".join(without_marks.split()).strip("*=_#~- ")


def label_of(cell: str) -> Label | None:
    """Return the label if the whole cell is one; else None.

    >>> label_of("Totals:"), label_of("Total Energies")
    (Label(kind=<LabelKind.TOTAL: 'total'>, words='totals', figure=None, currency=None), None)
    """
    if len(cell) > _CHARS_MAX:
        return None
    folded = fold(cell)
    # Building the patterns takes time, and few cells need them.
    if not folded.startswith(tuple(_spelling())) and not _COUNTED.match(folded):
        return None
    for kind, pattern in _patterns().items():
        found = pattern.fullmatch(folded)
        if found is None:
            continue
        parts = found.groupdict()
        sign = next((parts[name] for name in ("code", "before", "after") if parts.get(name)), None)
        currency = None if sign is None else _SIGNS.get(sign, sign.upper())
        words = parts["words"] or parts.get("free") or parts["things"]
        figure = parts.get("figure") or parts.get("number")
        return Label(kind, _spelling().get(words, words), figure, currency)
    return None


@cache
def _patterns() -> dict[LabelKind, re.Pattern[str]]:
    code = "|".join(_CURRENCIES)
    sign = rf"{code}|[£€$]"
    figure = r"(?P<figure>-?[0-9][0-9.,' ]*)"
    amount = rf"(?: ?\(?(?P<code>{code})\)?)? ?[:=]? ?(?:(?P<before>{sign})? ?{figure} ?(?P<after>{sign})?)?"
    counted = _any([word for _, words in COUNTED.values() for word in words])
    freely = [note for note in NOTES if note not in NOTES_ALONE]
    note = rf"(?P<words>{_any(NOTES)})(?: ?[:=].*)?|(?P<free>{_any(freely)}) .*"
    return {
        LabelKind.COUNT: re.compile(
            rf"(?P<words>{_any(COUNTS)}) ?[:=]? ?{figure}?"
            rf"|\(?(?P<number>[0-9]+) (?P<things>{counted})(?: {_DONE})?\.?\)?"
        ),
        LabelKind.SUBTOTAL: re.compile(rf"(?P<words>{_any(SUBTOTALS)}){amount}"),
        LabelKind.TOTAL: re.compile(rf"(?P<words>{_any(TOTALS)})(?: ?\([0-9]+ (?:{counted})\))?{amount}"),
        LabelKind.NOTE: re.compile(note),
    }


@cache
def _total_of_group() -> re.Pattern[str]:
    words = _any([*SUBTOTALS, *TOTALS])
    return re.compile(rf"(?P<first>{words})(?:\b.*)?|.*\b(?P<last>{words}) ?:?")


def _any(labels: tuple[str, ...] | list[str]) -> str:
    return "|".join(re.escape(fold(label)) for label in sorted(set(labels), key=len, reverse=True))


@cache
def _spelling() -> dict[str, str]:
    """Folded label -> its spelling in `words.toml`."""
    return {fold(label): label for label in (*NOTES, *COUNTS, *SUBTOTALS, *TOTALS)}
