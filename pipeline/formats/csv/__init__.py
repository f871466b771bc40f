"""CSV and similar formats: lines of cells with a delimiter between them (RFC 4180).

polars reads regular files quickly; the standard library's csv module reads all others, finds rows that are
too long or too short, and loses no cell. The table must agree with an independent count (`tally`).
"""

import codecs
import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import IO, NamedTuple

import polars as pl
from polars.exceptions import PanicException, PolarsError

from pipeline.errors import InputError
from pipeline.files.expansion import RECORD_BYTES_MAX
from pipeline.formats.csv.dialect import Layout, find_layout, to_utf_8
from pipeline.formats.csv.tally import (
    Body,
    CsvTally,
    line_ends,
    long_line_at,
    long_row,
    tally,
    text_bytes,
    too_long,
    whole_rows,
)
from pipeline.formats.csv.writing import SUFFIX as SUFFIX
from pipeline.formats.csv.writing import rewrite as rewrite
from pipeline.formats.csv.writing import write as write
from pipeline.formats.encodings import BYTE_ORDER_MARKS, codec_of, keeps_ascii, marked_encoding
from pipeline.formats.table import Ragged, ReadingOptions, Table, no_defects
from pipeline.headers.heading import COLUMNS_MAX
from pipeline.rules.row_positions import lines_of
from pipeline.rules.unasked import ROW_TOO_LONG
from pipeline.wording import Sentence
from schemas.row_positions import RowPositions

NAME = "csv"
TITLE = Sentence("formats.title_csv")
KNOWN_BY = Sentence("formats.known_csv")
SUFFIXES = (".csv", ".tsv", ".txt")
MEMORY_PER_BYTE = 20  # measured from reading to writing: 7 for ten columns, 15 for three short ones
BUCKET_BYTES = 40 * 1024**2
OPTIONS = ("encoding",)
HAS_TYPES = False

_TAIL_BYTES = 4096
_CTRL_Z = b"\x1a"  # DOS programs write it after the last line
_ROWS_READ_AT_ONCE = 100_000
_PIECE_BYTES = 256 * 1024  # small, so that the memory of one piece is reused for the next
_HEAD_BYTES = 2 * RECORD_BYTES_MAX  # enough for the lines that `find_layout` searches for the header line


def sniff(head: bytes) -> bool:  # noqa: ARG001 - every text could be one
    """Always False: a delimited text has no typical start."""
    return False


def load(file: IO[bytes], options: ReadingOptions, *, where: str) -> bytes:
    """Return the bytes of a delimited text, read in pieces: an oversized row is found before it is in memory.

    Raises UsageError: the encoding is not supported; InputError: a line, or a row of several lines, is longer
    than `RECORD_BYTES_MAX`, or a quoted cell is not closed.
    """
    encoding = options.encoding or marked_encoding(file.read(4))
    file.seek(0)
    kept = io.BytesIO()
    rest, done_bytes = b"", 0
    head: bytes | None = None
    body: tuple[str, int] | None = None
    for piece, lines in _pieces(file, encoding):
        text = rest + lines

        def line_at(start: int, before: int = done_bytes) -> int:
            file.seek(0)
            return _line_ends_before(before + start, _pieces(file, encoding)) + 1

        if (start := long_line_at(text)) is not None:
            raise too_long("csv.line_too_long", where, line=line_at(start))
        head = lines[:_HEAD_BYTES] if head is None else head
        end = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        if len(text) > RECORD_BYTES_MAX and b'"' in text:
            body = body or _body_of(head, encoding, options.mapping, where)
            delimiter, body_at = body
            end = whole_rows(text, max(0, body_at - done_bytes), delimiter=delimiter) if delimiter else end
            if len(text) - end > RECORD_BYTES_MAX:
                raise too_long("csv.quoted_cell_unclosed_or_long", where, line=line_at(end))
        # The rest after the last row is searched again, together with the next piece.
        done_bytes, rest = done_bytes + end, text[end:]
        kept.write(piece)
    return kept.getvalue()  # without a copy


def _body_of(
    head: bytes, encoding: str | None, mapping: Mapping[str, str] | None, where: str
) -> tuple[str, int]:
    """Return delimiter and offset of the first row; no delimiter without headers, reported later."""
    codec = "utf-8" if encoding is None or not keeps_ascii(codec_of(encoding)) else codec_of(encoding)
    mark = codecs.BOM_UTF8 if head.startswith(codecs.BOM_UTF8) else b""
    text = head.removeprefix(mark).decode(codec, errors="ignore").encode()
    try:
        layout = find_layout(text, mapping, where=where)
    except InputError:
        return "", 0
    above = text[: layout.body_at].decode(errors="ignore")
    return layout.delimiter, len(mark) + len(above.encode(codec, errors="ignore"))


def _line_ends_before(byte_count: int, pieces: Iterator[tuple[bytes, bytes]]) -> int:
    """Return the number of line ends in the first bytes; counting takes time, so only messages need it."""
    found, before = 0, b""
    for _, lines in pieces:
        text = lines[:byte_count]
        found += line_ends(text) - (before.endswith(b"\r") and text.startswith(b"\n"))
        byte_count, before = byte_count - len(text), text
        if not byte_count:
            break
    return found


def _pieces(file: IO[bytes], encoding: str | None) -> Iterator[tuple[bytes, bytes]]:
    """Yield the bytes of the file, and also UTF-8 if bytes of its encoding can look like line ends."""
    decoder = None
    if encoding is not None and not keeps_ascii(codec := codec_of(encoding)):
        marked = marked_encoding(file.read(4))
        file.seek(0)
        # Without a mark, the UTF-16 decoder reads nothing. Invalid characters are reported at the end.
        codec = f"{codec}-le" if codec in ("utf-16", "utf-32") and marked is None else codec
        decoder = codecs.getincrementaldecoder(codec)("replace")
    while piece := file.read(_PIECE_BYTES):
        yield piece, piece if decoder is None else decoder.decode(piece).encode(errors="replace")


def read(
    data: bytes,
    options: ReadingOptions,
    *,
    where: str,
    carefully: "Callable[[Body, Layout, str], _Rows] | None" = None,
) -> Table:
    """Read a delimited text; if polars cannot, `carefully` does, by default with the csv module.

    Raises UsageError: the encoding is not supported; InputError: the text is unreadable or ambiguous.
    """
    text, encoding = to_utf_8(data, encoding=options.encoding, where=where)
    text = _with_single_line_ends(text)
    # UTF-8 may take more bytes than the file.
    if (start := long_line_at(text)) is not None:
        raise too_long("csv.line_too_long", where, line=1 + line_ends(text, 0, start))
    layout = find_layout(text, options.mapping, where=where)
    if len(layout.headers) == 1:
        raise InputError(Sentence("csv.each_line_one_cell", where=where))
    body = Body(text, layout.body_at, _without_line_ends(text))
    if body.start >= body.stop:
        raise InputError(Sentence("csv.no_payment_rows", where=where))
    width, line_first = len(layout.headers), layout.line_first
    expected = tally(body, delimiter=layout.delimiter, column_count=width, where=where, line_first=line_first)
    rows = _read_fast(body, layout) if expected.regular else None
    if rows is None or not _agree(rows.cells, expected):
        rows = (carefully or _read_carefully)(body, layout, where)
        if not _agree(rows.cells, expected):
            raise InputError(Sentence("csv.row_counts_differ", where=where))
    positions: RowPositions | None = RowPositions(unit="line", stretches=[(1, line_first, 1)])
    if b'"' in text:
        if line_ends(text, body.start, body.stop) + 1 > rows.cells.height:
            ends = pl.all().str.count_matches(r"\r\n|\r|\n").fill_null(0)
            heights = rows.cells.select(1 + pl.sum_horizontal(ends)).to_series()
            positions = lines_of(heights, first=line_first)
        _refuse_long_rows(rows.cells, positions, where)
    return Table(
        rows.cells,
        rows.defects,
        layout.dialect._replace(encoding=encoding, byte_order_mark=data.startswith(BYTE_ORDER_MARKS)),
        extra_column_count=rows.cells.width - width,
        positions=positions,
        repeated_headers=layout.repeated_headers,
        ragged=rows.ragged,
    )


def _with_single_line_ends(text: bytes) -> bytes:
    """Undo what programs on Windows do when they write CR LF as text: CR CR LF, at every line end."""
    if text.find(b"\r\r\n", 0, RECORD_BYTES_MAX) < 0 or text.count(b"\r\r\n") < text.count(b"\n"):
        return text
    return text.replace(b"\r\r\n", b"\r\n")


def _without_line_ends(text: bytes) -> int:
    """Return the length of a text without its final line ends and Ctrl-Z; the text is not copied."""
    length = len(text)
    while (tail := text[max(0, length - _TAIL_BYTES) : length]).endswith((b"\r", b"\n", _CTRL_Z)):
        length -= len(tail) - len(tail.rstrip(b"\r\n" + _CTRL_Z))
    return length


class _Rows(NamedTuple):
    cells: pl.DataFrame
    defects: pl.Series
    ragged: Ragged = Ragged()


def _read_fast(body: Body, layout: Layout) -> _Rows | None:
    """Read the rows with polars; None if it cannot. Its own messages quote cells."""
    text, start, stop, _ = body
    if text[start - 1 : start] != b"\n":
        return None  # polars knows no other line ends
    if text[stop:] not in (b"", b"\n", b"\r\n"):
        text = text[:stop]  # polars would count extra line ends as rows
    try:
        # Bytes, not a path: polars would treat * and [ in a path as a pattern.
        cells = pl.read_csv(
            text,
            has_header=False,
            skip_lines=text.count(b"\n", 0, start),
            schema=dict.fromkeys(layout.headers, pl.String()),
            separator=layout.delimiter,
            infer_schema=False,
        )
    except (PolarsError, PanicException):
        return None
    if b'"' in text:
        cells = cells.with_columns(pl.when(pl.all() != "").then(pl.all()))
    return _Rows(cells, no_defects(cells.height))


def _read_carefully(body: Body, layout: Layout, where: str) -> _Rows:
    """Read the rows with the csv module: short ones are padded, long ones continue in extra columns."""
    text = io.TextIOWrapper(io.BytesIO(body.copy()), encoding="utf-8", newline="")
    reader = csv.reader(text, delimiter=layout.delimiter, strict=True)
    batches: list[pl.DataFrame] = []
    defects: list[str | None] = []
    rows: list[list[str]] = []
    short: list[int] = []
    long: list[int] = []
    width = len(layout.headers)
    try:
        for row in reader:
            if len(row) > COLUMNS_MAX:
                line = layout.line_first + reader.line_num - 1
                sentence = Sentence(
                    "csv.line_has_too_many_cells", where=where, line=line, columns_max=COLUMNS_MAX
                )
                raise InputError(sentence)
            has_more = len(row) > width
            while len(row) > width and not row[-1]:
                row.pop()
            if len(row) <= width and (has_more or 0 < len(row) < width):
                (long if has_more else short).append(len(defects))
            rows.append(row)
            defects.append(ROW_TOO_LONG if any(map(str.strip, row[width:])) else None)
            if len(rows) == _ROWS_READ_AT_ONCE:
                batches.append(_frame(rows, layout.headers))
                rows = []
    except csv.Error:
        line = layout.line_first + reader.line_num - 1
        raise InputError(Sentence("csv.line_malformed", where=where, line=line)) from None
    batches.append(_frame(rows, layout.headers))
    cells = pl.concat(batches, how="diagonal")
    return _Rows(cells, pl.Series("defect", defects, dtype=pl.String), Ragged(short, long))


def _frame(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> pl.DataFrame:
    """Turn rows of any length into columns: short rows end in nulls, long ones in extra columns."""
    width = max((len(row) for row in rows), default=0)
    extra = (name for number in count(1) if (name := f"extra_{number}") not in headers)
    names = [*headers, *islice(extra, max(0, width - len(headers)))]
    columns = {
        name: [(row[position] or None) if position < len(row) else None for row in rows]
        for position, name in enumerate(names)
    }
    return pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String()))


def _agree(cells: pl.DataFrame, expected: CsvTally) -> bool:
    return (cells.height, text_bytes(cells)) == (expected.row_count, expected.text_byte_count)


def _refuse_long_rows(cells: pl.DataFrame, positions: RowPositions | None, where: str) -> None:
    """Refuse an oversized row of several lines; single lines were measured before."""
    is_long = cells.select(pl.sum_horizontal(pl.all().str.len_bytes()) > RECORD_BYTES_MAX).to_series()
    if is_long.any():
        row = int(is_long.arg_max() or 0) + 1
        raise long_row(row, where, positions)
