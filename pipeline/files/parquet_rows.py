"""Parse a Parquet file in a child process (`files.confined`), without loading the package of the format."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from pipeline.errors import InputError
from pipeline.files.expansion import RECORD_BYTES_MAX, SizeBudget, little_memory, refuse_long_row
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

_ROWS_COUNTED_AT_ONCE = 1024  # 64 MiB if all rows have the longest permitted length


def parse(data: bytes, *, bytes_max: int, columns_max: int) -> Iterator[pl.DataFrame]:
    """Parse a Parquet file in the child process, one row group after the other (InputError; any error).

    A file names its columns twice, once for all and again in every row group, without checksums, so two
    libraries must agree on the number of rows in each row group. The cells may take `bytes_max` bytes, from
    `expansion.table_bytes_max`. With more than `columns_max` columns the caller refuses the file.
    """
    names, row_counts = _counted(data, bytes_max, columns_max)
    # Bytes, not a path: polars would treat * and [ in a path as a pattern.
    cells = pl.scan_parquet(data, use_statistics=False)
    start = 0
    for row_count in row_counts:
        part = cells.slice(start, row_count).collect()
        if part.height != row_count:
            raise ValueError("two ways to count the rows do not agree")
        part.columns = names
        yield part
        start += row_count
    rest = cells.slice(start).collect()
    if not rest.is_empty():
        raise ValueError("there are more rows than in the row groups")
    rest.columns = names
    yield rest


def headers_of(names: Sequence[str]) -> list[str]:
    """Return the column names, blank ones named by position as in CSV (InputError: repeated names)."""
    headers = [name if name.strip() else f"column_{position}" for position, name in enumerate(names, start=1)]
    for position, (name, header) in enumerate(zip(names, headers, strict=True), start=1):
        if (first := min(names.index(name), headers.index(header)) + 1) < position:
            raise InputError(Sentence("files.columns_same_header", first=first, position=position))
    return headers


def _counted(data: bytes, bytes_max: int, columns_max: int) -> tuple[list[str], Sequence[int]]:
    """Return the column names, and the number of rows of each row group as the second library counts them.

    It unpacks in small pieces, so a value that many rows share is never repeated in memory.
    """
    import pyarrow as pa  # only the child process needs it
    from pyarrow import parquet

    with little_memory(len(data)):
        file = parquet.ParquetFile(pa.BufferReader(data), page_checksum_verification=True, pre_buffer=False)
        columns = [file.schema.column(position).path for position in range(len(file.schema))]
        if sum(len(column.encode()) for column in columns) > RECORD_BYTES_MAX:
            raise InputError(Sentence("files.column_names_too_long", record_bytes_max=RECORD_BYTES_MAX))
        names = file.schema_arrow.names
        for field in file.schema_arrow:
            if pa.types.is_decimal256(field.type):
                raise InputError(Sentence("files.decimals_too_long", column=field.name))
        if len(columns) <= columns_max:
            headers_of(names)
        budget = SizeBudget(bytes_max)
        row_counts: list[int] = []
        for number in range(file.num_row_groups):
            row_group = file.metadata.row_group(number)
            if [row_group.column(position).path_in_schema for position in range(len(columns))] != columns:
                raise ValueError("the columns of a row group are not those of the file")
            row_counts.append(_row_count(file, number, budget, rows_before=sum(row_counts)))
            if row_counts[-1] != row_group.num_rows:
                raise ValueError("two ways to count the rows do not agree")
        if file.metadata.num_rows != sum(row_counts):
            raise ValueError("there are more rows than in the row groups")
    return names, row_counts


def _row_count(file: "ParquetFile", row_group: int, budget: SizeBudget, *, rows_before: int) -> int:
    from pyarrow import compute

    from pipeline.files.row_bytes import row_bytes

    row_count = 0
    for batch in file.iter_batches(_ROWS_COUNTED_AT_ONCE, row_groups=[row_group], use_threads=False):
        lengths = row_bytes(batch)
        longest = compute.max(lengths).as_py() or 0
        if longest > RECORD_BYTES_MAX:
            row = rows_before + row_count + compute.index(lengths, longest).as_py() + 1
            refuse_long_row(longest, f"row {row}")
        row_count += batch.num_rows
        budget.add(
            text_bytes=compute.sum(lengths).as_py() or 0, cell_count=batch.num_rows * (batch.num_columns + 1)
        )
    return row_count
