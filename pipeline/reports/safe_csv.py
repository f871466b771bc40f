"""CSV for a person who opens it in a spreadsheet: nothing in it is run.

A spreadsheet takes a cell that starts like a formula for one, and the names in a payment file come
from strangers. Such cells get an apostrophe in front. This is for reading only: a program that
takes the file further would take the apostrophe with it.
"""

import codecs
import io
from typing import IO

import polars as pl

from pipeline.formats.csv.writing import write_lines
from pipeline.formats.table import Dialect, as_text

# White space and invisible characters before the sign do not stop a spreadsheet, nor does the
# full-width form of the sign.
_RUNS = r"^(?:[\t\r\n\x00]|[\s\p{Cc}\p{Cf}]*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}])"


def write(table: pl.DataFrame, file: IO[bytes], *, delimiter: str | None) -> None:
    """Write a table with every cell quoted, escaped and marked as UTF-8; no delimiter means a comma.

    Raises:
        OSError: the file cannot take it.
    """
    headers = pl.DataFrame({"header": table.columns}, schema={"header": pl.String()})
    escaped = as_text(table).with_columns(_escaped(pl.col(pl.String)))
    escaped.columns = headers.select(_escaped(pl.col("header"))).to_series().to_list()
    buffer = io.BytesIO()
    write_lines(escaped, buffer, Dialect(delimiter), quotes_all=True)
    # Without the mark, spreadsheets take the text for the encoding of the country.
    file.write(codecs.BOM_UTF8)
    file.write(buffer.getbuffer())


def _escaped(cell: pl.Expr) -> pl.Expr:
    return pl.when(~cell.str.contains(_RUNS)).then(cell).otherwise(pl.lit("'") + cell)
