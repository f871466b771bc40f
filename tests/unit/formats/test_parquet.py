"""Parquet files."""

import errno
import io
import os
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from refusals import refused

from pipeline.errors import InputError
from pipeline.files.expansion import table_bytes_max
from pipeline.files.parquet_rows import parse
from pipeline.formats import parquet
from pipeline.formats.table import Dialect, ReadingOptions
from pipeline.headers.heading import COLUMNS_MAX
from pipeline.wording import Sentence

TABLE = pl.DataFrame(
    {"name": ["Quillon", None], "sort_code": ["001122", ""], "check_outcome": ["match", "no_match"]}
)


def bytes_of(table):
    file = io.BytesIO()
    table.write_parquet(file)
    return file.getvalue()


def cells_of(data):
    """The cells that `read` gives, without its child process, which costs most of a test."""
    return pl.concat(parse(data, bytes_max=table_bytes_max(len(data)), columns_max=COLUMNS_MAX))


def read(data):
    return parquet.read(data, ReadingOptions({}), where="payroll.parquet")


def test_cells_keep_their_types_and_tell_empty_from_absent():
    table = TABLE.with_columns(amount=pl.Series(["1.50", "2"]).cast(pl.Decimal(10, 2)))
    found = read(bytes_of(table))
    assert found.cells.equals(table)
    assert found.dialect == Dialect()


def test_a_file_of_the_other_library_is_read():
    file = io.BytesIO()
    TABLE.write_parquet(file, use_pyarrow=True)
    assert cells_of(file.getvalue()).equals(TABLE)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "formats.file_empty"),
        (b"name,iban\na,b\n", "formats.not_a_parquet_file"),
        (b"PAR1 and then no more", "formats.parquet_ends_early"),
        (bytes_of(TABLE)[:-1], "formats.parquet_ends_early"),
        (b"PARE" + bytes_of(TABLE)[4:-4] + b"PARE", "formats.parquet_encrypted"),
        (bytes_of(TABLE)[:-4] + b"PARE", "formats.parquet_encrypted"),
        (b"PAR1PAR1", "files.is_damaged"),
        (b"PAR1" + b"\0" * 40 + b"PAR1", "files.is_damaged"),
        (bytes_of(TABLE)[:-60] + bytes_of(TABLE)[-30:], "files.is_damaged"),
        (bytes_of(TABLE.clear()), "formats.no_payment_rows"),
        (
            bytes_of(pl.DataFrame({f"c{i}": [1] for i in range(1001)})),
            Sentence("formats.too_many_columns", width=1001),
        ),
    ],
)
def test_what_is_no_readable_parquet_file_is_refused(data, sentence):
    with refused(InputError, sentence, where="payroll.parquet") as error:
        read(data)
    assert error.value.__suppress_context__ or error.value.__context__ is None


def test_a_table_is_written_as_it_is():
    file = io.BytesIO()
    parquet.write(TABLE, file, column="check_outcome", dialect=Dialect())
    assert cells_of(file.getvalue()).equals(TABLE)


class OtherFile(io.BytesIO):
    """A file that gives back another table than was written to it."""

    def __init__(self, other):
        super().__init__()
        self.other = other

    def read(self, _size=-1):
        return bytes_of(self.other)


@pytest.mark.parametrize(
    "other",
    [TABLE.head(1), TABLE.drop("name"), TABLE.reverse(), TABLE.with_columns(check_outcome=pl.lit("match"))],
)
def test_a_file_that_does_not_hold_what_was_written_is_noticed(other):
    with pytest.raises(AssertionError, match="the written file"):
        parquet.write(TABLE, OtherFile(other), column="check_outcome", dialect=Dialect())


def test_closed_sets_of_ours_are_text_in_the_file_and_those_of_the_input_keep_their_type():
    table = TABLE.cast({"check_outcome": pl.Enum(["match", "no_match"]), "name": pl.Enum(["Quillon"])})
    file = io.BytesIO()
    parquet.write(table, file, column="check_outcome", dialect=Dialect())
    assert cells_of(file.getvalue()).equals(TABLE.cast({"name": pl.Enum(["Quillon"])}))


class FullDisk(io.BytesIO):
    """A file that takes some bytes and no more."""

    def write(self, data):
        if self.tell() + len(data) > 50:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


def test_what_the_disk_says_is_passed_on():
    with pytest.raises(OSError, match="No space left") as error:
        parquet.write(TABLE, FullDisk(), column="check_outcome", dialect=Dialect())
    assert error.value.errno == errno.ENOSPC


@pytest.mark.parametrize("use_pyarrow", [False, True])
def test_row_groups_come_back_one_after_the_other(use_pyarrow):
    table = pl.DataFrame({"name": [f"Payee {n}" for n in range(2500)], "n": range(2500)})
    file = io.BytesIO()
    table.write_parquet(file, row_group_size=1000, use_pyarrow=use_pyarrow)
    assert cells_of(file.getvalue()).equals(table)


def test_a_row_group_of_another_length_than_the_file_says_is_noticed():
    file = io.BytesIO()
    pl.DataFrame({"name": [f"Payee {n}" for n in range(300)]}).write_parquet(file, row_group_size=100)
    pages = file.getvalue()
    damaged = pages.replace(b"\xd8\x04", b"\xd6\x04")
    assert damaged != pages  # 300 rows in all, as the footer writes it, are now 299
    with refused(InputError, "files.is_damaged"):
        read(damaged)


@pytest.mark.parametrize("use_pyarrow", [False, True])
def test_a_changed_name_of_a_column_is_noticed_wherever_the_footer_has_it(use_pyarrow):
    file = io.BytesIO()
    TABLE.write_parquet(file, use_pyarrow=use_pyarrow)
    data = file.getvalue()
    footer_at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    name = b"sort_code"
    assert data.count(name, footer_at) == 2
    first, second = data.index(name, footer_at), data.rindex(name)
    for at in (first, second):
        with refused(InputError, "files.is_damaged"):
            read(data[:at] + b"sort_cofe" + data[at + len(name) :])


ROWS = 1_000_000


def shared(value, row_count=ROWS, **changes):
    """A small file whose rows share one value."""
    number = pl.zeros(row_count, dtype=pl.Int32, eager=True).to_arrow()
    columns = {"name": "Ada Quillon", "sort_code": "010203", "account_number": "10000001"} | changes
    columns["note"] = value
    return arrow_bytes(
        {name: pa.DictionaryArray.from_arrays(number, pa.array([text])) for name, text in columns.items()}
    )


def arrow_bytes(columns, **options):
    file = io.BytesIO()
    table = pa.table(columns).replace_schema_metadata(None)
    said = {"compression": "zstd", "store_schema": False} | options
    pyarrow.parquet.write_table(table, file, **said)
    return file.getvalue()


def many_lists(count):
    """A row of a list with so many small numbers in it, all alike."""
    offsets = pa.array([0, count, count], pa.int32())
    return pa.ListArray.from_arrays(offsets, pl.zeros(count, dtype=pl.Int8, eager=True).to_arrow())


LONG, TOO_LONG = "x" * 65_536, "x" * 65_537
HUGE = "files.values_too_large"
TOO_LARGE = "files.cells_expand_too_large"


def too_long(row):
    return Sentence("files.row_too_long", where=f"row {row}", record_bytes_max=65536)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (lambda: shared("x" * 5_000_000), HUGE),
        (lambda: shared("x" * 60_000, 3 * ROWS), {TOO_LARGE, HUGE}),
        (lambda: arrow_bytes({"note": ["", TOO_LONG]}), too_long(2)),
        (lambda: arrow_bytes({"note": [TOO_LONG.encode()]}), too_long(1)),
        (lambda: arrow_bytes({"a": ["x", "x" * 40_000], "b": ["y", "y" * 40_000]}), too_long(2)),
        (lambda: arrow_bytes({"note": pa.array([b"x" * 70_000], pa.binary(70_000))}), too_long(1)),
        (lambda: arrow_bytes({"note": pa.array([["x" * 40_000] * 2])}), too_long(1)),
        (lambda: arrow_bytes({"note": many_lists(70_000)}), too_long(1)),
        pytest.param(lambda: arrow_bytes({"note": many_lists(50_000_000)}), HUGE, marks=pytest.mark.nightly),
        (
            lambda: arrow_bytes(
                {"note": pa.array(["x" * 100_000] * 3_000)},
                use_dictionary=False,
                column_encoding={"note": "DELTA_BYTE_ARRAY"},
            ),
            {"files.row_too_long", HUGE},
        ),
        (
            lambda: arrow_bytes({"x" * 70_000: ["Ada"]}),
            Sentence("files.column_names_too_long", record_bytes_max=65536),
        ),
    ],
)
def test_what_unfolds_to_more_than_a_payment_is_refused_before_it_unfolds(data, sentence):
    with refused(InputError, sentence, where="payroll.parquet"):
        read(data())


def test_the_longest_cell_that_a_payment_may_have_is_read():
    assert cells_of(arrow_bytes({"note": ["", LONG]}))["note"].to_list() == ["", LONG]


def test_a_row_too_long_is_told_by_its_number_in_the_whole_file():
    rows = ["short"] * 3000 + [TOO_LONG]
    with refused(InputError, too_long(3001)):
        cells_of(arrow_bytes({"note": rows}, row_group_size=1000))


@pytest.mark.nightly
def test_a_million_short_rows_all_alike_are_read():
    assert read(shared("a note")).cells.height == ROWS


def test_columns_without_a_name_are_named_by_their_positions_and_given_back_without():
    names = ["name", "", " ", "\t"]
    found = read(arrow_bytes({name: ["x"] for name in names}))
    assert found.cells.columns == ["name", "column_2", "column_3", "column_4"]
    again = parquet.rewrite(found.cells, io.BytesIO(), found.dialect, where="release.parquet")
    assert pl.read_parquet(again).columns == names


@pytest.mark.parametrize(
    "names", [["name", "note", "note"], ["name", "", "column_2"], ["name", "column_3", ""], ["name", "", ""]]
)
def test_a_column_whose_name_stands_twice_is_told_by_its_position(names):
    file = io.BytesIO()
    table = pa.Table.from_arrays([pa.array(["x"])] * 3, names=names)
    pyarrow.parquet.write_table(table, file)
    with refused(InputError, "files.columns_same_header", first=2, position=3):
        cells_of(file.getvalue())


def of_arrow(**columns):
    file = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def test_text_that_is_stored_as_bytes_is_text_and_other_bytes_are_kept():
    data = of_arrow(
        name=pa.array(["Zoë".encode(), None], pa.binary()),
        iban=pa.array([b"DE62370400440532013001"] * 2, pa.binary(22)),
        picture=pa.array([b"\xff\xd8", b"x"], pa.binary()),
        note=pa.array(["{}", None], pa.json_()),
    )
    cells = read(data).cells
    assert cells.dtypes == [pl.String, pl.String, pl.Binary, pl.String]
    assert cells["name"].to_list() == ["Zoë", None]


def test_decimals_beyond_those_that_are_read_are_named():
    amounts = pa.array([Decimal("1.50")], pa.decimal256(76, 2))
    with refused(InputError, "files.decimals_too_long", column="amount"):
        cells_of(of_arrow(name=pa.array(["Ada"]), amount=amounts))
