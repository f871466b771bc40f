"""Search payments in all files at the desk; accents do not count: `strasse` finds Straße."""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.desk.folders import FileFolder
from pipeline.desk.states import FileStatus, status_of
from pipeline.errors import PrecheckError
from pipeline.runs.ended import ended_run

HITS_MAX = 100
TEXT_CHARS_MIN = 3
_SEPARATORS = "[ -]*"
_BLOCK_CHARS = 1 << 20
_OVERLAP_CHARS = 4096  # longer than any search text, for example an account number in groups


class Hit(NamedTuple):
    """A payment that contains the search text."""

    status: FileStatus
    row: int
    outcome: str
    name: str


def has_text(text: str, columns: Iterable[str], accounts: Iterable[str]) -> pl.Expr:
    """Match rows with the text in any column, ignoring case, accents and spaces in account numbers."""
    needle = without_accents(text.strip())
    found = [pl.col(name).str.contains(pattern_of(needle)) for name in columns]
    if any(map(str.isdigit, needle)):
        grouped = pattern_of(needle.replace(" ", "").replace("-", ""), _SEPARATORS)
        found += [pl.col(name).str.contains(grouped) for name in accounts]
    return pl.any_horizontal(hit.fill_null(value=False) for hit in found)


def find(folders: Iterable[FileFolder], text: str) -> list[Hit]:
    """Find payments with the text (at least `TEXT_CHARS_MIN` characters) in a cell, newest files first."""
    hits: list[Hit] = []
    for folder in folders:
        try:
            if folder.read().purged_at is None:
                hits += _in_run(folder, text.strip(), HITS_MAX - len(hits))
        except (PrecheckError, pl.exceptions.PolarsError):
            continue  # the list of files shows which are unreadable
        if len(hits) >= HITS_MAX:
            break
    return hits


def _in_run(folder: FileFolder, text: str, at_most: int) -> list[Hit]:
    run = ended_run(folder.run)
    if not _may_have(run.outcome_file, text):
        return []
    described = run.manifest.input
    cells = _scan(run.outcome_file, described.delimiter, has_headers=described.header_line)
    columns = cells.collect_schema().names()
    found = (
        cells.cast(pl.String)
        .with_row_index("row_at_desk", offset=1)
        .filter(has_text(text, columns, columns))
        .head(at_most)
        .collect()
    )
    status = status_of(folder)
    named = [header for header, field in described.columns.items() if field == "name" and header in columns]
    names = named or [header for header in ("name",) if header in columns]  # in a format without headers
    return [
        Hit(status, line["row_at_desk"], str(line.get("check_outcome") or ""), " ".join(filter(None, named)))
        for line in found.iter_rows(named=True)
        for named in ([line[header] for header in names],)
    ]


def _may_have(path: Path, text: str) -> bool:
    """True if an outcome file may contain the text; most do not, and need not be parsed."""
    if path.suffix == ".parquet" or '"' in text:  # CSV doubles quotation marks
        return True
    with path.open(encoding="utf-8", errors="replace") as file:
        end = ""
        while block := file.read(_BLOCK_CHARS):
            looked_at = pl.DataFrame({"block": [end + block]})
            if looked_at.select(has_text(text, ["block"], ["block"])).item():
                return True
            end = block[-_OVERLAP_CHARS:]
    return False


def _scan(path: Path, delimiter: str | None, *, has_headers: bool) -> pl.LazyFrame:
    if path.suffix == ".parquet":
        return pl.scan_parquet(path)
    return pl.scan_csv(
        path,
        separator=delimiter or ",",
        has_header=has_headers,
        infer_schema=False,
        encoding="utf8-lossy",
        truncate_ragged_lines=True,
    )


_MARKS = "".join(map(chr, (*range(0x300, 0x305), *range(0x306, 0x30D), 0x323, 0x326, 0x327, 0x328, 0x331)))
"""Combining marks used with Latin letters."""
_ACCENTED = (*range(0xDF, 0x250), *range(0x1E00, 0x1F00))
_STROKED = {"ø": "o", "đ": "d", "ð": "d", "ħ": "h", "\u0131": "i", "ł": "l", "ŧ": "t"}
"""Letters without a Unicode decomposition -> the letters that people type instead."""
_TWO = {"ß": "ss", "æ": "ae", "œ": "oe"}  # single letters that people type as two


def without_accents(text: str) -> str:
    """A text in lower case, without accents on Latin letters, in any Unicode form."""
    letters = unicodedata.normalize("NFC", text.lower())
    return "".join(_TWO.get(one) or _plain(one) for one in letters if one not in _MARKS)


def _plain(letter: str) -> str:
    first = unicodedata.normalize("NFD", letter)[0]
    first = _STROKED.get(first, first)
    return first if first.isascii() else letter


def pattern_of(plain: str, between: str = "") -> str:
    """Return a regular expression for a text, ignoring case and accents; `between` joins its characters."""
    pieces = [_with_any_accent(one) if one.isalpha() else re.escape(one) for one in plain]
    whole = between.join(pieces)
    for letter, letters in _TWO.items():
        two = between.join(map(_with_any_accent, letters))
        whole = whole.replace(two, f"(?:{two}|{letter}[{_MARKS}]*)")
    return f"(?i){whole}"


def _with_any_accent(letter: str) -> str:
    accented = _accented().get(letter, "")
    return f"[{letter}{accented}][{_MARKS}]*" if accented else re.escape(letter)


@cache
def _accented() -> dict[str, str]:
    found: dict[str, str] = {}
    for code in _ACCENTED:
        one = chr(code)
        plain = without_accents(one)
        if one.islower() and len(plain) == 1 and plain.isascii() and plain != one:
            found[plain] = found.get(plain, "") + one
    return found
