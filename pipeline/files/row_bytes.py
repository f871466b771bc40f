"""Measure the bytes of each row's cells in an Arrow batch: texts by length, nested values by content."""

import pyarrow as pa
from pyarrow import compute


def row_bytes(batch: pa.RecordBatch) -> pa.Array:
    """Return the bytes of each row of a batch, all cells together, as 64-bit integers."""
    return _sum([_cell_bytes(column) for column in batch.columns], batch.num_rows)


def _sum(columns: list[pa.Array], row_count: int) -> pa.Array:
    total = pa.repeat(pa.scalar(0, pa.int64()), row_count)
    for column in columns:
        total = compute.add(total, column)
    return total


def _cell_bytes(column: pa.Array) -> pa.Array:
    """Return the bytes of each cell of a column; 0 if null."""
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return _cell_bytes(column.storage)
    if isinstance(column, pa.DictionaryArray):
        return _cell_bytes(column.dictionary_decode())
    if pa.types.is_nested(kind):
        return _of_nested(column)
    if isinstance(column, pa.StringViewArray | pa.BinaryViewArray):
        return _cell_bytes(column.cast(pa.large_binary()))
    if (
        pa.types.is_null(kind)
        or pa.types.is_primitive(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_fixed_size_binary(kind)
    ):
        width = 0 if pa.types.is_null(kind) else (kind.bit_width + 7) // 8
        return pa.repeat(pa.scalar(width, pa.int64()), len(column))
    return compute.fill_null(compute.binary_length(column).cast(pa.int64()), 0)


def _of_nested(column: pa.Array) -> pa.Array:
    if isinstance(column, pa.StructArray):
        return _sum([_cell_bytes(field) for field in column.flatten()], len(column))
    if isinstance(column, pa.MapArray):
        pair = pa.struct([column.type.key_field, column.type.item_field])
        return _of_lists(column.cast(pa.list_(pair)))
    return _of_lists(column)


def _of_lists(column: pa.Array) -> pa.Array:
    """Return the bytes of each list: its items' bytes plus one per item, so that no item is free."""
    bytes_until = _running(compute.add(_cell_bytes(column.flatten()), 1))
    counts = compute.fill_null(compute.list_value_length(column).cast(pa.int64()), 0)
    return compute.pairwise_diff(bytes_until.take(_running(counts))).slice(1)


def _running(numbers: pa.Array) -> pa.Array:
    """Return the cumulative sums, starting with 0."""
    return pa.concat_arrays([pa.array([0], pa.int64()), compute.cumulative_sum(numbers)])
