"""Write CSV for people who open it in a spreadsheet: no cell is run.

A spreadsheet runs a cell that starts like a formula, and the names in a payment file are untrusted: such
cells get a leading apostrophe, so the file is for people, not for programs.
"""

import codecs
import io
from typing import IO

import polars as pl

from pipeline.formats.csv.writing import write_lines
from pipeline.formats.table import Dialect, as_text

# Spreadsheets also obey a sign after white space or invisible characters, and full-width signs.
_RUNS = r"^(?:[\t\r\n\x00]|[\s\p{Cc}\p{Cf}]*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}])"


def write(table: pl.DataFrame, file: IO[bytes], *, delimiter: str | None) -> None:
    """Write a table as UTF-8 with a mark, every cell quoted and escaped; None means a comma (OSError)."""
    headers = pl.DataFrame({"header": table.columns}, schema={"header": pl.String()})
    escaped = as_text(table).with_columns(_escaped(pl.col(pl.String)))
    escaped.columns = headers.select(_escaped(pl.col("header"))).to_series().to_list()
    buffer = io.BytesIO()
    write_lines(escaped, buffer, Dialect(delimiter), quotes_all=True)
    # Without the mark, spreadsheets assume the local encoding.
    file.write(codecs.BOM_UTF8)
    file.write(buffer.getbuffer())


def _escaped(cell: pl.Expr) -> pl.Expr:
    return pl.when(~cell.str.contains(_RUNS)).then(cell).otherwise(pl.lit("'") + cell)
