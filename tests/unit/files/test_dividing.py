"""A large Parquet file becomes parts of so many rows, whatever its row groups are."""

import os

import polars as pl
import pytest
from refusals import refused

from pipeline.errors import DiskError, InputError
from pipeline.files.dividing import divide_parquet


@pytest.fixture
def table():
    return pl.DataFrame(
        {
            "name": [f"Invented Payee {number}" for number in range(100)],
            "amount": pl.int_range(100, eager=True),
        }
    )


@pytest.mark.parametrize(
    ("row_group_size", "rows_max", "heights"), [(7, 40, [40, 40, 20]), (100, 50, [50, 50])]
)
def test_the_parts_are_the_file(tmp_path, table, row_group_size, rows_max, heights):
    table.write_parquet(tmp_path / "all.parquet", row_group_size=row_group_size)
    folder = tmp_path / "parts"
    folder.mkdir()

    divide_parquet(tmp_path / "all.parquet", folder, rows_max=rows_max)

    parts = [pl.read_parquet(path) for path in sorted(folder.iterdir())]
    assert [part.height for part in parts] == heights
    assert pl.concat(parts).equals(table)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_a_damaged_file_and_a_folder_that_cannot_be_written_are_told_apart(tmp_path, table):
    path = tmp_path / "all.parquet"
    table.write_parquet(path)
    with refused(DiskError, "files.parts_not_writable"):
        divide_parquet(path, tmp_path / "none", rows_max=10)
    os.truncate(path, path.stat().st_size - 5)
    with refused(InputError, "files.parquet_damaged_or_too_large"):
        divide_parquet(path, tmp_path, rows_max=10)
