"""Read a table into payments: assign columns to fields, drop rows that are not payments and clean cells."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import polars as pl

from pipeline.errors import InputError
from pipeline.formats.protocols import TabularFormat
from pipeline.formats.registry import entry_named
from pipeline.formats.table import Ragged, Table
from pipeline.frames import PAYMENTS, Original, Payments, slim
from pipeline.headers.account_patterns import by_cell, holds_account
from pipeline.headers.account_signs import account_signs, may_hold_sort_codes
from pipeline.headers.choice import quoted, rule_of
from pipeline.headers.columns import Columns, ColumnsError, is_sufficient, read_columns, recognised
from pipeline.headers.footers import Footers, footers_of, likely_payment_count, place_of, subtotals_of
from pipeline.headers.meaning import IN_HUNDREDTHS, meaning
from pipeline.headers.not_payments import are_direct_debits, transaction_code
from pipeline.headers.parties import is_list_of_payees
from pipeline.headers.readings import none_in_cells
from pipeline.headers.spread import defects_of_rows
from pipeline.rules.account_country import located
from pipeline.rules.account_types import by_legend
from pipeline.rules.amounts import exact_text
from pipeline.rules.currencies import of_hundredths, with_three_decimals
from pipeline.rules.identifiers import bic_column_is_none
from pipeline.rules.placeholders import FIELDS_WITH_PLACEHOLDERS, without_placeholders
from pipeline.rules.row_positions import lines_at
from pipeline.rules.unasked import DIRECT_DEBIT, ROW_BLANK
from pipeline.stages.read.opening import PaymentSource, ReadingArguments, identity_of
from pipeline.wording import Sentence
from schemas.folder import OTHER_NAMES
from schemas.outcomes import COLUMNS, PLACE_COLUMNS, Outcome
from schemas.payments import FIELDS
from schemas.summary import NotPayment

_HEADERS_MAX, _LINES_MAX = 20, 1_000
_WITHOUT_ZEROS = ("payment_id", "reference", "currency", "account_type")  # whole numbers or dates will do
_IDENTIFIERS = ("sort_code", "account_number", "iban")
_GUARD = r"""^(?:=?"([^"]*)"|'([^']*)'?)$"""
"""Notations that keep an identifier as text, `="00123456"` or a leading apostrophe; quotes around a cell."""


def read_table(
    data: bytes, file_format: TabularFormat, arguments: ReadingArguments, *, where: str
) -> PaymentSource:
    """Read the bytes of a file in a table format; same errors as `read`."""
    identity = identity_of(data)
    table = file_format.read(data, arguments.options, where=where)
    _refuse_patterns(table.cells.columns, where)
    cells = slim(table.cells)
    ours = [header for header in cells.columns if header in {*COLUMNS, *PLACE_COLUMNS}]
    if ours and not arguments.is_ours and not _has_outcomes(cells):
        raise InputError(Sentence("stages.columns_named_as_ours", where=where, columns=ours))
    original = cells.drop(ours)
    own = original.columns[: original.width - table.extra_column_count]
    # Totals among the payments could distort the choice of the payee's column.
    likely = original.height if arguments.is_ours else likely_payment_count(original)
    bare, whole = _without_placeholders(original.select(own).head(likely))
    try:
        columns = read_columns(bare, arguments.mapping, where=where, decided=arguments.decided)
    except ColumnsError:
        _refuse_other_headers(original, pl.int_range(min(_LINES_MAX, original.height), eager=True), where)
        raise
    if not arguments.is_ours:
        columns = _without_words_for_bics(columns, original, where)
    amounts = {header for parts in columns.sources.get("amount", ()) for header in parts}
    unread = [quoted(one) for one in own if one not in amounts and meaning(one).rule == IN_HUNDREDTHS]
    try:
        known = whole if likely == original.height else frozenset()
        payments, lacking, is_open, empty = _payments(original, table, columns, arguments, where, known)
    except InputError as error:  # a column's type cannot hold its field: the reading of columns is known
        raise ColumnsError(error.reason, columns.readings, advice=error.advice) from None
    if is_open and not arguments.is_ours:
        raise ColumnsError(
            Sentence("stages.account_country_unknown", where=where),
            columns.readings,
            advice=(Sentence("advice.say_accounts_are_uk"), Sentence("stages.give_ibans")),
        )
    between = () if arguments.is_ours else subtotals_of(payments, original, lacking, table.positions)
    payments, original, cells, table = _without(between, payments, original, cells, table)
    ended = (
        Footers(payments.height, []) if arguments.is_ours else footers_of(payments, original, table.positions)
    )
    if ended.payment_count == 0:
        raise InputError(Sentence("stages.no_payment_rows", where=where))
    blank_count = 0 if ended.rows else payments.height - ended.payment_count
    if ended.payment_count < payments.height:
        payments, cells = payments.head(ended.payment_count), cells.head(ended.payment_count)
        original = original.head(ended.payment_count)
        # Extra columns may have held only excess cells of rows below the payments.
        original = original.drop(name for name in original.columns[len(own) :] if not original[name].count())
    found = Payments(payments), Original(original)
    more = [Sentence("stages.list_of_payees", changes=OTHER_NAMES)] if is_list_of_payees(*found) else []
    if unread:
        more.append(Sentence("stages.hundredths_unread", columns=unread))
    if blank_count:
        more.append(Sentence("stages.rows_blank", count=blank_count))
    return PaymentSource(
        *found,
        columns=columns.readings,
        decision=columns.decision,
        notes=(*columns.notes, *empty, *_ragged(table, payments.height), *_zeros(table, columns), *more),
        format=file_format.NAME,
        layout=None,
        outcome_format=entry_named(file_format.NAME).outcomes.NAME,
        dialect=table.dialect._replace(numbers=tuple(one for one in table.dialect.numbers if one in amounts)),
        sha256=identity.sha256,
        byte_count=identity.byte_count,
        extra_column_count=original.width - len(own),
        positions=table.positions,
        not_payments=[*_headers_again(table), *between, *ended.rows],
        earlier=cells.select(column for column in COLUMNS if column in cells.columns),
    )


def _without(
    listed: Sequence[NotPayment],
    payments: pl.DataFrame,
    original: pl.DataFrame,
    cells: pl.DataFrame,
    table: Table,
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, Table]:
    """Return the tables without some rows: payments are numbered again, and keep their positions."""
    if not listed or table.positions is None:
        return payments, original, cells, table
    left = payments["row"].filter(~payments["row"].is_in([row.row for row in listed]))
    new = {row - 1: number for number, row in enumerate(left)}
    hidden, short, long = ([new[row] for row in some if row in new] for some in (table.hidden, *table.ragged))
    places = lines_at(pl.Series(map(table.positions.of, left)))
    if places is not None:
        places = places.model_copy(update={"unit": table.positions.unit})
    payments, original, cells = (frame[left - 1] for frame in (payments, original, cells))
    rows = pl.int_range(1, left.len() + 1, dtype=pl.UInt32)
    table = table._replace(positions=places, hidden=hidden, ragged=Ragged(short, long))
    return payments.with_columns(row=rows), original, cells, table


def _headers_again(table: Table) -> list[NotPayment]:
    unit = "line" if table.positions is None else table.positions.unit
    again = Sentence("footer.headers_again")
    return [
        NotPayment(place=place, row=None, kind="headers", label=None, sentence=said.recorded())
        for place in table.repeated_headers
        for said in [
            Sentence("footer.not_a_payment_because", place=place_of(unit, place), label="", why=again)
        ]
    ]


def _refuse_other_headers(original: pl.DataFrame, rows: pl.Series, where: str) -> None:
    """Refuse a row of headers with other meanings than the first (InputError): names would be misread."""
    for index in rows:
        cells = [cell if isinstance(cell, str) else "" for cell in original.row(index)]
        differ = [meaning(cell).what for cell in cells] != [meaning(one).what for one in original.columns]
        if differ and is_sufficient(recognised(cells, {})) and not holds_account(" ".join(cells)):
            raise InputError(Sentence("stages.second_header_differs", where=where, row=index + 1))


def _refuse_patterns(headers: Sequence[str], where: str) -> None:
    """Refuse a header that polars would treat as a pattern of headers (InputError)."""
    for position, header in enumerate(headers, start=1):
        if header == "*" or (header.startswith("^") and header.endswith("$")):
            raise InputError(Sentence("stages.header_is_pattern", where=where, position=position))


def _has_outcomes(cells: pl.DataFrame) -> bool:
    """True if this program wrote the outcomes in these cells; others may use one of their names."""
    if {*COLUMNS} <= {*cells.columns}:
        return True
    outcomes = cells[COLUMNS[0]].drop_nulls() if COLUMNS[0] in cells.columns else pl.Series([])
    return not outcomes.is_empty() and set(outcomes.unique()) <= {*Outcome}


def _payments(  # noqa: PLR0913, PLR0917 (all facts about the file)
    original: pl.DataFrame,
    table: Table,
    columns: Columns,
    arguments: ReadingArguments,
    where: str,
    whole: Collection[str],
) -> tuple[pl.DataFrame, pl.Series, bool, tuple[Sentence, ...]]:
    """Return `PAYMENTS`, indexes of rows without an account, true if no account shows a country, and notes.

    Columns in `whole` have no placeholders.
    """

    def column(header: str, field: str) -> pl.Series:
        cells, rows = original[header], table.decimals.get(header) if field == "amount" else None
        return cells.scatter(rows, exact_text(cells.gather(rows))) if rows else cells

    lost = 0  # amounts in hundredths of currencies that have none
    fields = {
        field: _first_filled(
            [_joined([_text(column(header, field), field, where) for header in parts]) for parts in sources]
        )
        for field, sources in columns.sources.items()
    }
    if columns.currency is not None:
        fields["currency"] = _filled_up(fields.get("currency"), columns.currency, fields["amount"])
    if "amount" in fields:
        if columns.is_in_hundredths:
            whole = of_hundredths(fields["amount"], fields.get("currency"))
            lost, fields["amount"] = whole.null_count() - fields["amount"].null_count(), whole
        fields["amount"] = with_three_decimals(fields["amount"], fields.get("currency"))
    for field in (*_IDENTIFIERS, "bic", "amount", "currency"):
        if field in fields:
            fields[field] = _without_guard(fields[field])
    bare = {
        field: without_placeholders(fields[field])
        for field in FIELDS_WITH_PLACEHOLDERS
        if field in fields
        and not {header for parts in columns.sources[field] for header in parts} <= {*whole}
    }
    empty = {field: cells.null_count() - fields[field].null_count() for field, cells in bare.items()}
    fields |= bare
    if "account_type" in fields:
        fields["account_type"] = by_legend(fields["account_type"], columns.sources["account_type"][0][0])
    absent = pl.repeat(None, original.height, dtype=pl.String, eager=True)
    payments = pl.DataFrame({field: fields.get(field, absent) for field in FIELDS})
    codes = () if "sort_code" in arguments.mapping else columns.sources.get("sort_code", ())
    payments = by_cell(payments, of_any_country=any(may_hold_sort_codes(header) for [header] in codes))
    signs = account_signs(
        original, payments, columns.sources, mapping=arguments.mapping, country=arguments.country
    )
    payments, elsewhere, is_open = located(payments, signs)
    words = payments.select(pl.coalesce("iban", "account_number", "sort_code")).to_series()
    lacking = (~words.str.contains("[0-9]")).fill_null(value=True).arg_true()
    is_word = words.gather(lacking).is_not_null()
    _refuse_other_headers(original, lacking.filter(is_word).head(_HEADERS_MAX), where)
    stated = table.dialect.header_cells or original.columns
    defects = table.defects.scatter(lacking.filter(_hold_nothing(original[lacking], stated)), ROW_BLANK)
    rows = pl.int_range(1, original.height + 1, dtype=pl.UInt32, eager=True)
    debits = [] if arguments.mapping else _direct_debits(original)
    defects = pl.select(
        pl.coalesce(defects, defects_of_rows(payments, original, lacking), *debits, elsewhere)
    ).to_series()
    payments = payments.with_columns(rows.alias("row"), defects.alias("defect")).select(*PAYMENTS)
    notes = [Sentence("stages.hundredths_of_others", count=lost)] if lost else []
    return payments, lacking, is_open, (*_empty_cells(empty), *notes)


def _without_placeholders(cells: pl.DataFrame) -> tuple[pl.DataFrame, frozenset[str]]:
    """Empty the placeholder cells of accounts, BICs and LEIs; also return the headers without any."""
    some = [
        cells[header]
        for header in cells.columns
        if cells[header].dtype == pl.String and meaning(header).what in FIELDS_WITH_PLACEHOLDERS
    ]
    bare = [(column, without_placeholders(column)) for column in some]
    whole = frozenset(column.name for column, left in bare if left is column)
    return cells.with_columns(left for column, left in bare if left is not column), whole


def _empty_cells(counts: Mapping[str, int]) -> tuple[Sentence, ...]:
    """Return a note on cells that were read as empty, if there are any."""
    fields = [
        Sentence("stages.field_and_number", field=Sentence(f"field.{field}"), number=count)
        for field, count in counts.items()
        if count
    ]
    return (Sentence("stages.placeholders_read_as_empty", fields=fields),) if fields else ()


def _direct_debits(original: pl.DataFrame) -> list[pl.Expr]:
    """Return the defect of rows whose transaction code means direct debit, if there is such a column."""
    header = transaction_code(original.columns)
    if header is None or original[header].dtype != pl.String:
        return []
    return [pl.when(are_direct_debits(header, original[header])).then(pl.lit(DIRECT_DEBIT))]


def _ragged(table: Table, row_count: int) -> Iterator[Sentence]:
    """Yield notes on hidden payments, and on payments with missing or extra cells at the end."""
    keys = ("stages.rows_hidden", "stages.cells_missing", "stages.cells_too_many")
    for key, rows in zip(keys, (table.hidden, *table.ragged), strict=True):
        if count := sum(row < row_count for row in rows):
            yield Sentence(key, count=count)


def _zeros(table: Table, columns: Columns) -> Iterator[Sentence]:
    """Yield a note on identifiers with leading zeros by their number format."""
    fields = [
        Sentence(f"field.{field}")
        for field in _IDENTIFIERS
        if {*table.zeros} & {header for parts in columns.sources.get(field, ()) for header in parts}
    ]
    if fields:
        yield Sentence("stages.zeros_by_number_format", fields=fields)


def _without_words_for_bics(columns: Columns, original: pl.DataFrame, where: str) -> Columns:
    """Drop a column whose header says BIC but that holds none, unless the user mapped it."""
    is_stated = any(reading.field == "bic" and reading.how == rule_of("map") for reading in columns.readings)
    if is_stated or "bic" not in columns.sources:
        return columns
    [[header]] = columns.sources["bic"]
    if not bic_column_is_none(_text(original[header], "bic", where)):
        return columns
    readings = tuple(
        reading._replace(field=None, how=none_in_cells("bic")) if reading.header == header else reading
        for reading in columns.readings
    )
    sources = {field: named for field, named in columns.sources.items() if field != "bic"}
    notes = (*columns.notes, Sentence("stages.no_bic_in_column"))
    return columns._replace(readings=readings, sources=sources, notes=notes)


def _text(column: pl.Series, field: str, where: str) -> pl.Series:
    """Return a column as stripped text, null if blank (InputError: its type cannot hold this field)."""
    if field == "amount" and (column.dtype.is_integer() or column.dtype.is_decimal()):
        column = exact_text(column.cast(pl.String))
    if column.dtype == pl.Binary:  # not all of it is UTF-8: rows with other bytes are damaged
        texts = (None if cell is None else cell.decode(errors="replace") for cell in column)
        column = pl.Series(column.name, texts, dtype=pl.String)
    is_plain = field in _WITHOUT_ZEROS and (column.dtype.is_integer() or column.dtype == pl.Date)
    if is_plain or column.dtype in (pl.Categorical, pl.Enum, pl.Null):
        column = column.cast(pl.String)
    if column.dtype != pl.String:
        advice = _advice(column, field)
        raise InputError(
            Sentence("stages.column_type_unfit", where=where, column=column.name, field=field, advice=advice)
        )
    stripped = column.str.strip_chars()
    before, after = pl.nth(0).str.len_bytes(), pl.nth(1).str.len_bytes()
    both = pl.DataFrame([column.alias("before"), stripped.alias("after")])
    is_same, is_blank = both.select(same=(before == after).all(), blank=(after == 0).any()).row(0)
    # If nothing changes, the payments share the memory of the original.
    return stripped.set(stripped == "", None) if is_blank else column if is_same else stripped


def _advice(column: pl.Series, field: str) -> Sentence:
    if field == "amount" and column.dtype.is_float():
        return Sentence("stages.column_of_floats")
    if field in _IDENTIFIERS and column.dtype.is_numeric():
        return Sentence("stages.column_of_numbers")
    return Sentence("stages.column_of_type", type=column.dtype.base_type().__name__)


def _joined(parts: Sequence[pl.Series]) -> pl.Series:
    """Join the parts of a name with blanks; null if all are absent."""
    if len(parts) == 1:
        return parts[0]
    names = pl.select(pl.concat_str(parts, separator=" ", ignore_nulls=True)).to_series().str.strip_chars()
    return names.set(names == "", None)


def _first_filled(alternatives: Sequence[pl.Series]) -> pl.Series:
    return alternatives[0] if len(alternatives) == 1 else pl.select(pl.coalesce(alternatives)).to_series()


def _filled_up(currency: pl.Series | None, default: str, amount: pl.Series) -> pl.Series:
    """Return the currency of every amount: its own, or else the header's."""
    of_header = pl.select(pl.when(amount.is_not_null()).then(pl.lit(default))).to_series()
    return of_header if currency is None else pl.select(pl.coalesce(currency, of_header)).to_series()


def _without_guard(column: pl.Series) -> pl.Series:
    # Comparisons are faster than a pattern, and few columns have any of these signs.
    is_likely = (column < "(").any() or column.str.starts_with("=").any()
    if not (is_likely and column.str.contains("^[=\"']").any()):
        return column
    inside = column.str.replace(_GUARD, "$1$2").str.strip_chars()
    return inside.set(inside == "", None)


def _hold_nothing(rows: pl.DataFrame, headers: Sequence[str]) -> pl.Series:
    """True for rows that are empty, only separate others, or repeat the headers."""
    cells = [
        pl.col(name).is_null()
        if kind != pl.String
        else (~pl.col(name).str.contains(r"[\p{L}\p{N}]")).fill_null(value=True)
        | pl.col(name)
        .str.strip_chars()
        .str.strip_chars("\ufeff")
        .str.to_lowercase()
        .eq_missing(header.strip().lower())
        for (name, kind), header in zip(
            rows.schema.items(), [*headers, *rows.columns[len(headers) :]], strict=True
        )
    ]
    return rows.select(pl.all_horizontal(cells)).to_series()
