"""Payment files that are written the way another one was: same format, delimiter, encoding and line ends.

What is kept is every cell. Quotes are written where a cell needs them, whatever the other file did; lines
before its header line are not kept, as nothing is known of what they say.
"""

import codecs
import io
from pathlib import Path
from typing import IO, NamedTuple

import polars as pl

from pipeline.errors import OutputError
from pipeline.formats import csv as delimited
from pipeline.formats import parquet
from pipeline.formats.csv import DELIMITER
from schemas.summary import InputFile


class Style(NamedTuple):
    """How a payment file is written."""

    format: str
    """csv or parquet."""
    suffix: str
    delimiter: str
    line_end: str
    encoding: str
    byte_order_mark: bool
    header_line: bool = True
    """Whether the file names its columns."""


def style_of(file: InputFile) -> Style:
    """The style of an input file; of one in a format that this program only reads, plain CSV."""
    if file.format == parquet.NAME:
        return Style(parquet.NAME, Path(file.name).suffix, DELIMITER, "\n", "utf-8", byte_order_mark=False)
    if file.format != delimited.NAME:
        return Style(
            delimited.NAME,
            delimited.SUFFIX,
            DELIMITER,
            "\r\n",
            "utf-8",
            byte_order_mark=False,
            header_line=file.header_line,
        )
    return Style(
        delimited.NAME,
        Path(file.name).suffix,
        file.delimiter or DELIMITER,
        file.line_end or "\n",
        file.encoding,
        file.byte_order_mark,
        file.header_line,
    )


def write_in_style(table: pl.DataFrame, file: IO[bytes], style: Style, *, where: str) -> None:
    """Write a payment file. Whether it holds what it was given is for the caller to find out.

    Args:
        table: the columns of the file; all text, where the style is CSV.
        file: open for writing.
        style: how to write it.
        where: the file, for messages.

    Raises:
        OSError: the file cannot take it.
        OutputError: a cell has a character that the encoding does not have.
    """
    buffer = io.BytesIO()
    if style.format == parquet.NAME:
        table.write_parquet(buffer)
    else:
        assert all(kind == pl.String for kind in table.dtypes)
        table.write_csv(
            buffer,
            separator=style.delimiter,
            line_terminator=style.line_end,
            include_header=style.header_line,
        )
    # Through memory, so that it is this file that fails when the disk is full.
    file.write(buffer.getbuffer() if style.format == parquet.NAME else _encoded(buffer, style, where))


def _encoded(text: io.BytesIO, style: Style, where: str) -> bytes | memoryview:
    codec = codecs.lookup(style.encoding).name
    if codec in {"utf-8", "utf-8-sig"}:
        return (codecs.BOM_UTF8 if style.byte_order_mark else b"") + text.getvalue()
    try:
        encoded = text.getvalue().decode().encode("utf-16-le" if codec == "utf-16" else codec)
    except UnicodeEncodeError:
        raise OutputError(
            f"{where}: a name has a character that {style.encoding} does not have; "
            "export the payment file as UTF-8 and check it again"
        ) from None
    marks = {
        "utf-16": codecs.BOM_UTF16_LE,
        "utf-16-le": codecs.BOM_UTF16_LE,
        "utf-16-be": codecs.BOM_UTF16_BE,
    }
    # Without its mark nobody could tell in which order UTF-16 has its bytes.
    return (marks[codec] if codec == "utf-16" or style.byte_order_mark else b"") + encoded
