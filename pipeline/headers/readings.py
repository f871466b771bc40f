"""Report on each column: its field and the rule that chose it, or why the column is not read."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pipeline.headers.cells import ColumnCells
from pipeline.headers.choice import ColumnChoice, quoted, rule_of
from pipeline.headers.guesses import Guess, kinds_in
from pipeline.headers.meaning import HeaderMeaning, Side, What, meaning
from pipeline.wording import PLACE, Sentence
from schemas.payments import FIELDS

_ACCOUNT_FIELDS = ("iban", "account_number")
_OWN_KIND = {"iban": ("IBANs",), "account_number": ("account numbers",)}
_KEPT: Mapping[str | None, Sentence] = {
    What.NEVER: rule_of("never the payee"),
    What.SECOND: rule_of("a second line of a name"),
}


class ColumnReading(NamedTuple):
    """The report on one header."""

    header: str
    field: str | None
    how: Sentence  # the rule that chose the field, or why the column is not read
    others: tuple[str, ...] = ()  # headers of other columns that could have been this field
    values: tuple[str, ...] = ()  # the first three of the column
    is_disputed: bool = False  # true if several columns compete for a field and none is read
    map: str | None = None  # the `--map` that would read the column, if its cells alone suggest the field


def readings_of(
    cells: ColumnCells,
    choices: Sequence[ColumnChoice],
    disputed: Mapping[str, tuple[str, tuple[str, ...]]] | None = None,
    *,
    ignored: Collection[str] = (),
) -> tuple[ColumnReading, ...]:
    """Report on each header, in file order; disputed headers are marked."""
    used = {header: choice for choice in choices for parts in choice.sources for header in parts}
    readings = []
    for header in cells.headers:
        values = cells.first_values(header)
        choice = used.get(header)
        if header in ignored:
            readings.append(ColumnReading(header, None, rule_of("ignored"), (), values))
        elif disputed is not None and header in disputed:
            field, others = disputed[header]
            meant = meaning(header)
            how = rule_of("by its cells") if meant.what is None else rule_of(meant.rule)
            readings.append(ColumnReading(header, field, how, others, values, is_disputed=True))
        elif choice is not None:
            others = tuple(
                other
                for other in choice.others
                if used.get(other) is not choice
                and other not in choice.why_not
                and meaning(other).side is not Side.OURS
            )
            is_part = any(len(parts) > 1 for parts in choice.sources)
            held = _of_accounts(choice.field, header, cells, is_part=is_part)
            how = _joined(rule_of(choice.rules.get(header, choice.rule)), held)
            readings.append(ColumnReading(header, choice.field, how, others, values))
        else:
            readings.append(ColumnReading(header, None, _why_kept(header, cells, choices), (), values))
    return tuple(readings)


def readings_by_look(looks: Mapping[str, Guess], cells: ColumnCells) -> tuple[ColumnReading, ...]:
    """Report on columns without headers, as `--map` could read them."""
    return tuple(
        ColumnReading(
            header,
            look.field,
            look.words,
            look.others,
            cells.first_values(header),
            bool(look.others),
            None if look.field is None else f"{look.field}={header}",
        )
        for header, look in looks.items()
    )


def with_looks(readings: Sequence[ColumnReading], looks: Mapping[str, Guess]) -> tuple[ColumnReading, ...]:
    """Add guesses for columns under unknown headers."""
    return tuple(
        reading._replace(
            how=_joined(reading.how, looks[reading.header].words),
            others=looks[reading.header].others,
            map=f"{looks[reading.header].field}={PLACE}{number}",
        )
        if reading.header in looks
        else reading
        for number, reading in enumerate(readings, start=1)
    )


def spoken(field: str) -> str:
    """Return a field in words: "account number", "BIC"."""
    return field.upper() if field in ("iban", "bic", "lei") else field.replace("_", " ")


def _joined(one: Sentence, other: Sentence | None) -> Sentence:
    return one if other is None else Sentence("column.both", one=one, other=other)


def _of_accounts(field: str, header: str, cells: ColumnCells, *, is_part: bool) -> Sentence | None:
    """Return the kinds of accounts in a column if they differ from its header."""
    sample = cells.sample(header).to_list()
    if field not in _ACCOUNT_FIELDS or not sample or is_part:
        return None
    held = kinds_in(sample)
    if not held:
        return none_in_cells(field)
    return None if held == _OWN_KIND[field] else Sentence("column.holds", kinds=list(map(rule_of, held)))


def none_in_cells(field: str) -> Sentence:
    """Report that no cell holds what the header promises."""
    return Sentence("column.none_in_cells", field=Sentence(f"field.{field}"))


def _why_kept(header: str, cells: ColumnCells, choices: Sequence[ColumnChoice]) -> Sentence:
    """Return why a column is not read."""
    meant = meaning(header)
    if meant.what is None:
        return rule_of("header not known")
    if not cells.is_filled(header):
        return rule_of("empty in every row")
    if meant.side is Side.OURS:
        return rule_of("your own side, never asked about")
    by_choosers = (choice.why_not[header] for choice in choices if header in choice.why_not)
    return next(by_choosers, None) or _KEPT.get(meant.what) or _instead_of(meant, choices)


def _instead_of(meant: HeaderMeaning, choices: Sequence[ColumnChoice]) -> Sentence:
    """Return why a possible column is not read: another one is, or its content does not fit."""
    of_name = (What.COMPANY, What.GIVEN, What.PREFERRED, What.MIDDLE, What.FAMILY)
    field = "name" if meant.what in of_name else str(meant.what)
    if field not in FIELDS:
        return rule_of(meant.rule)
    first = _read_first(field, choices)
    return none_in_cells(field) if first is None else Sentence("column.read_instead", header=quoted(first))


def _read_first(field: str, choices: Sequence[ColumnChoice]) -> str | None:
    """Return the column read as a field; for an account, as any of its fields."""
    fields = (field, *_ACCOUNT_FIELDS) if field in ("sort_code", *_ACCOUNT_FIELDS) else (field,)
    sources = [choice.sources for wanted in fields for choice in choices if choice.field == wanted]
    return next((source[0][0] for source in sources if source), None)
