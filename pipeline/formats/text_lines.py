"""The lines of a text, and where each stands in the bytes of its file."""

import polars as pl

from pipeline.formats.edits import Edit

END_OF_FILE = "\x1a"
"""What programs of the days of DOS write after the last line."""

IS_BLANK = pl.col("text").str.strip_chars(f" {END_OF_FILE}") == ""


def text_lines(text: str, *, start: int = 0, one_byte_each: bool = False) -> pl.DataFrame:
    """The lines of a text that ends them with LF or CR LF.

    Args:
        text: Of the whole file.
        start: The byte at which it starts.
        one_byte_each: Of the encoding: a byte for every character; UTF-8 otherwise.

    Returns:
        `line` (from 1), `start` and `end` (bytes of the file, the line end included) and `text` (without it).
    """
    texts = pl.Series("text", [text]).str.split("\n").explode()
    length = pl.col("text").str.len_chars() if one_byte_each else pl.col("text").str.len_bytes()
    end = start + (length.cast(pl.Int64) + 1).cum_sum()
    lines = pl.DataFrame({"text": texts}).select(
        pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).alias("line"),
        end.shift(1, fill_value=start).alias("start"),
        # The last line has no line end; or there is none after the last line end.
        (end - (pl.int_range(pl.len()) == pl.len() - 1).cast(pl.Int64)).alias("end"),
        pl.col("text").str.strip_suffix("\r"),
    )
    return lines.filter(pl.col("start") < pl.col("end"))


def removals(lines: pl.DataFrame) -> list[Edit]:
    """Edits that take these lines out; neighbours go together.

    Args:
        lines: `start` and `end`, in file order.
    """
    begins = (pl.col("start") != pl.col("end").shift(1)).fill_null(value=True)
    runs = lines.group_by(begins.cum_sum().alias("run"), maintain_order=True).agg(
        pl.col("start").first(), pl.col("end").last()
    )
    return [Edit(start, end, b"") for start, end in runs.select("start", "end").iter_rows()]
