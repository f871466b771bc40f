"""Read a payment file into payments, and keep its own columns as they are.

file -read-> Payments
"""

import hashlib
import stat
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.errors import InputError, UsageError
from pipeline.files.memory import refuse_too_large
from pipeline.formats import HEAD_BYTES, entry_named, entry_of
from pipeline.formats.table import ROW_BLANK, Dialect, ReadingOptions, Table
from pipeline.formats.tabular import TabularFormat
from pipeline.frames import PAYMENTS, Original, Payments, slim
from pipeline.headers.account_patterns import by_cell
from pipeline.headers.columns import Columns, ColumnsError, read_columns
from pipeline.headers.footers import Footers, footers_of, likely_payment_count
from pipeline.headers.readings import ColumnReading
from pipeline.rules.account_types import by_legend
from pipeline.rules.bic_columns import bic_column_is_none
from schemas.outcomes import COLUMNS, PLACE_COLUMNS
from schemas.payments import FIELDS
from schemas.places import Places
from schemas.summary import NotPayment

FILE_BYTES_MAX = 8 * 1024**3

_IDENTIFIERS = ("sort_code", "account_number", "iban")
_GUARD = r"""^(?:="([^"]*)"|'(.*))$"""
"""How spreadsheets are made to keep an identifier as text: `="00123456"`, or an apostrophe first."""


class Said(NamedTuple):
    """What is said about how to read a file, beside the file."""

    mapping: Mapping[str, str]
    """From `--map FIELD=HEADER`."""
    encoding: str | None = None
    sheet: str | None = None
    decided: Mapping[str, str] | None = None
    """The `decision` of an earlier reading of the same columns: fewer rows must not decide anew."""
    is_ours: bool = False
    """The file is one of this program: every row below its header line is a payment."""

    @property
    def options(self) -> ReadingOptions:
        """As far as it concerns the format of the file."""
        return ReadingOptions(None if self.is_ours else self.mapping, self.encoding, self.sheet)


class Source(NamedTuple):
    """A payment file, read."""

    payments: Payments
    """`frames.PAYMENTS`: one row per payment of the file, in order, numbered from 1."""
    original: Original
    """The columns of the file, untouched and in order, without the outcome columns of an earlier
    run; the same height."""
    columns: tuple[ColumnReading, ...]
    """How each header was read, in file order."""
    decision: Mapping[str, str]
    """Which column is which field, as `--map` would say it, by position: what `read` takes as `decided`."""
    notes: tuple[str, ...]
    """What was decided about the columns that a person may want to know, as sentences."""
    format: str
    """The name of the format."""
    outcome_format: str
    """In which the outcomes are written unless it is said: the same, where that can be written."""
    dialect: Dialect
    """How the file is written."""
    sha256: str
    """Of the bytes of the file, as hexadecimal digits."""
    byte_count: int
    extra_column_count: int
    """How many columns of the original, the last ones, hold cells of rows that were too long."""
    earlier: pl.DataFrame
    """The outcome columns of an earlier run that the file has; the same height, or nothing at all."""
    places: Places | None
    """Where the payments stand in the file; None where the format has no lines."""
    not_payments: list[NotPayment]
    """Rows of the table that are no payments: headers again, totals, who prepared it."""

    @property
    def read_as(self) -> dict[str, str]:
        """Header -> the field that it was read as, of the headers that were."""
        return {reading.header: reading.field for reading in self.columns if reading.field is not None}


def read(
    path: Path,
    *,
    mapping: Mapping[str, str],
    encoding: str | None = None,
    sheet: str | None = None,
    decided: Mapping[str, str] | None = None,
) -> Source:
    """Read a payment file.

    A row that is too long, too short or blank is data: it is in the payments, with its defect. Headers again
    below the header line, and totals and the like below the payments, are not.

    Args:
        path: The file; the suffix of its name says the format, or its start where formats share one.
        mapping: From `--map FIELD=HEADER`.
        encoding: The encoding of a CSV file; None means UTF-8.
        sheet: The sheet of a workbook; None means the only one that has data.
        decided: The `decision` of an earlier reading of the same columns: fewer rows must not decide anew.

    Raises:
        InputError: the file cannot be read as payments.
        UsageError: the encoding is not supported, or a file that is no workbook has no sheets.
    """
    _refuse_what_is_no_file(path)
    file_format = entry_of(path, partial(_head, path)).format
    if sheet is not None and "sheet" not in file_format.OPTIONS:
        raise UsageError(f"{path.name}: --sheet is for workbooks, and this file has no sheets; leave it out")
    said = Said(mapping, encoding, sheet, decided, is_ours=decided is not None)
    data = _bytes(path, file_format, said)
    table, identity = _parsed(data, file_format, path.name, said)
    return _source(table, identity, file_format, path.name, said)


def read_written(data: bytes, file_format: TabularFormat, said: Said, *, where: str) -> Source:
    """Read a file that is being written, before it has a name of its own; else as `read`."""
    ours = said._replace(is_ours=True)
    table, identity = _parsed(data, file_format, where, ours)
    return _source(table, identity, file_format, where, ours)


def _source(
    table: Table, identity: "_Identity", file_format: TabularFormat, where: str, said: Said
) -> Source:
    _refuse_patterns(table.cells.columns, where)
    cells = slim(table.cells)
    original = cells.drop(*COLUMNS, *PLACE_COLUMNS, strict=False)
    own = original.columns[: original.width - table.extra_column_count]
    # Totals among the payments would be an answer to which column is the payee.
    likely = original.height if said.is_ours else likely_payment_count(original)
    columns = read_columns(original.select(own).head(likely), said.mapping, where=where, decided=said.decided)
    if not said.is_ours:
        columns = _without_words_for_bics(columns, original, where)
    try:
        payments = _payments(original, table, columns, where)
    except InputError as error:  # a type that cannot hold its field: how the columns were read is known
        raise ColumnsError(str(error), columns.readings) from None
    ended = Footers(payments.height, []) if said.is_ours else footers_of(payments, original, table.places)
    if ended.payment_count == 0:
        raise InputError(f"{where}: no payment rows above the totals; give a file with payments")
    if ended.rows:
        payments, cells = payments.head(ended.payment_count), cells.head(ended.payment_count)
        original = _without_empty_extras(original.head(ended.payment_count), len(own))
    return Source(
        payments=Payments(payments),
        original=Original(original),
        columns=columns.readings,
        decision=columns.decision,
        notes=columns.notes,
        format=file_format.NAME,
        outcome_format=entry_named(file_format.NAME).outcomes.NAME,
        dialect=table.dialect,
        sha256=identity.sha256,
        byte_count=identity.byte_count,
        extra_column_count=original.width - len(own),
        places=table.places,
        not_payments=[*_headers_again(table), *ended.rows],
        earlier=cells.select(column for column in COLUMNS if column in cells.columns),
    )


class _Identity(NamedTuple):
    sha256: str
    byte_count: int


def _parsed(data: bytes, file_format: TabularFormat, where: str, said: Said) -> tuple[Table, _Identity]:
    """The one place where bytes of strangers are parsed."""
    identity = _Identity(hashlib.sha256(data).hexdigest(), len(data))
    return file_format.read(data, said.options, where=where), identity


def _headers_again(table: Table) -> list[NotPayment]:
    unit = None if table.places is None else table.places.unit
    return [
        NotPayment(
            place=place,
            row=None,
            kind="headers",
            label=None,
            said=f"{str(unit).capitalize()} {place} is no payment: it repeats the headers.",
        )
        for place in table.repeated_headers
    ]


def _without_empty_extras(original: pl.DataFrame, header_count: int) -> pl.DataFrame:
    """Without the columns that held only what rows below the payments had too many."""
    extra = original.columns[header_count:]
    return original.drop(name for name in extra if original[name].null_count() == original.height)


def _refuse_patterns(headers: Sequence[str], where: str) -> None:
    """Refuse a header that the library of frames would take for a pattern of headers.

    Raises:
        InputError: there is one.
    """
    for position, header in enumerate(headers, start=1):
        if header.startswith("^") and header.endswith("$"):
            raise InputError(
                f"{where}: the header of column {position} starts with ^ and ends with $; rename the column"
            )


def _refuse_what_is_no_file(path: Path) -> None:
    """Refuse a folder, a pipe or a device, whatever its name ends in; what is not there is told later."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return
    if stat.S_ISDIR(mode):
        raise InputError(f"{path}: a folder, not a file; give the name of a payment file in it")
    if not stat.S_ISREG(mode):
        raise InputError(
            f"{path}: a pipe or a device, not a file; save the payments in a file and give its name"
        )


def _head(path: Path) -> bytes:
    """How a file starts; what cannot be read is told when all of it is read."""
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except (OSError, ValueError):
        return b""


def _bytes(path: Path, file_format: TabularFormat, said: Said) -> bytes:
    """The file, read once: what is hashed is what is parsed."""
    try:
        status = path.stat()
        if status.st_size > FILE_BYTES_MAX:
            raise InputError(f"{path.name}: larger than {FILE_BYTES_MAX // 1024**3} GiB; split the file")
        refuse_too_large(status.st_size, per_byte=file_format.MEMORY_PER_BYTE, where=path.name)
        with path.open("rb") as file:
            return file_format.load(file, said.options, where=path.name)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a name that a file can have"
        raise InputError(
            f"{path.name}: cannot be read ({reason}); check the path and its permissions"
        ) from error


def _payments(original: pl.DataFrame, table: Table, columns: Columns, where: str) -> pl.DataFrame:
    fields = {
        field: _first_filled(
            [_joined([_text(original[header], field, where) for header in parts]) for parts in sources]
        )
        for field, sources in columns.sources.items()
    }
    if columns.currency is not None:
        fields["currency"] = _filled_up(fields.get("currency"), columns.currency, fields["amount"])
    for field in _IDENTIFIERS:
        if field in fields:
            fields[field] = _without_guard(fields[field])
    if "account_type" in fields:
        fields["account_type"] = by_legend(fields["account_type"], columns.sources["account_type"][0][0])
    absent = pl.Series([None], dtype=pl.String).new_from_index(0, original.height)
    payments = pl.DataFrame({field: fields.get(field, absent) for field in FIELDS})
    payments = by_cell(payments)
    defects = _with_blank_rows(table.defects, payments, original)
    rows = pl.int_range(1, original.height + 1, dtype=pl.UInt32, eager=True)
    return payments.with_columns(rows.alias("row"), defects.alias("defect")).select(*PAYMENTS)


def _without_words_for_bics(columns: Columns, original: pl.DataFrame, where: str) -> Columns:
    """The columns without one that is headed as BICs and holds none; unless the user says that it does."""
    is_said = any(reading.field == "bic" and reading.how == "map" for reading in columns.readings)
    if is_said or "bic" not in columns.sources:
        return columns
    [[header]] = columns.sources["bic"]
    if not bic_column_is_none(_text(original[header], "bic", where)):
        return columns
    readings = tuple(
        reading._replace(field=None, how="no BIC in its cells") if reading.header == header else reading
        for reading in columns.readings
    )
    sources = {field: named for field, named in columns.sources.items() if field != "bic"}
    note = "the bank column holds no BIC and is kept as it is; use --map bic=HEADER if it does hold BICs"
    return columns._replace(readings=readings, sources=sources, notes=(*columns.notes, note))


def _text(column: pl.Series, field: str, where: str) -> pl.Series:
    """A column as stripped text, null where blank.

    Raises:
        InputError: the type of the column cannot hold this field.
    """
    if _holds_money(column, field):
        column = _money_text(column)
    if column.dtype in (pl.Categorical, pl.Enum, pl.Null):
        column = column.cast(pl.String)
    if column.dtype != pl.String:
        raise InputError(f'{where}: column "{column.name}" ({field}): {_advice(column, field)}')
    stripped = column.str.strip_chars()
    lengths = stripped.str.len_bytes()
    # Where nothing changes, the payments share the memory of the original.
    is_stripped = lengths.equals(column.str.len_bytes()) and lengths.min() != 0
    return column if is_stripped else stripped.set(lengths == 0, None)


def _holds_money(column: pl.Series, field: str) -> bool:
    return field == "amount" and (column.dtype.is_integer() or column.dtype.is_decimal())


def _money_text(column: pl.Series) -> pl.Series:
    """Exact amounts as text. Three decimals become four, as 1.500 in text could be taken for thousands."""
    if isinstance(column.dtype, pl.Decimal) and column.dtype.scale == 3:
        return pl.select(pl.concat_str(column.cast(pl.String), pl.lit("0"))).to_series()
    return column.cast(pl.String)


def _advice(column: pl.Series, field: str) -> str:
    if field == "amount" and column.dtype.is_float():
        return "holds floating-point numbers, which are not exact; export it as decimals or text"
    if field in _IDENTIFIERS and column.dtype.is_numeric():
        return "holds numbers, which lose their leading zeros; export it as text from its source"
    return f"holds values of type {column.dtype.base_type().__name__}; export it as text"


def _joined(parts: Sequence[pl.Series]) -> pl.Series:
    """The parts of a name with blanks between them; null where all are absent."""
    if len(parts) == 1:
        return parts[0]
    names = pl.select(pl.concat_str(parts, separator=" ", ignore_nulls=True)).to_series().str.strip_chars()
    return names.set(names == "", None)


def _first_filled(alternatives: Sequence[pl.Series]) -> pl.Series:
    return alternatives[0] if len(alternatives) == 1 else pl.select(pl.coalesce(alternatives)).to_series()


def _filled_up(currency: pl.Series | None, said: str, amount: pl.Series) -> pl.Series:
    """The currency of every amount: its own, or what the header says."""
    of_header = pl.select(pl.when(amount.is_not_null()).then(pl.lit(said))).to_series()
    return of_header if currency is None else pl.select(pl.coalesce(currency, of_header)).to_series()


def _without_guard(column: pl.Series) -> pl.Series:
    guarded = column.str.starts_with("=") | column.str.starts_with("'")
    if not guarded.any():
        return column
    inside = column.str.replace(_GUARD, "$1$2").str.strip_chars()
    return inside.set(inside == "", None)


def _with_blank_rows(defects: pl.Series, payments: pl.DataFrame, original: pl.DataFrame) -> pl.Series:
    """The defects, with the rows in which no cell has any text told apart."""
    without_fields = payments.select(pl.all_horizontal(pl.all().is_null())).to_series()
    if not without_fields.any():
        return defects
    text = pl.col(pl.String).str.strip_chars()
    blank = pl.all_horizontal(pl.col(pl.String).is_null() | (text == ""), pl.exclude(pl.String).is_null())
    rows = without_fields.arg_true()
    return defects.scatter(rows.filter(original[rows].select(blank).to_series()), ROW_BLANK)
