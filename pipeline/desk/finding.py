"""Searching the payments of every file at the desk."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.desk.folders import FileFolder
from pipeline.desk.states import Standing, State, standing
from pipeline.errors import PrecheckError
from pipeline.runs.ended import ended_run

HITS_MAX = 100
TEXT_CHARS_MIN = 3


class Hit(NamedTuple):
    """A payment that has the text in one of its cells."""

    at: Standing
    row: int
    outcome: str
    name: str


def find(folders: Iterable[FileFolder], text: str) -> list[Hit]:
    """The payments with a text in one of their cells, in capitals or not, newest files first.

    The outcome files are read as they lie there: files that nobody opens are not kept in memory.

    Args:
        folders: of the files to look in.
        text: at least `TEXT_CHARS_MIN` characters of a name, an id, an account or a reference.
    """
    hits: list[Hit] = []
    for folder in folders:
        try:
            at = standing(folder)
            if at.summary is not None and at.state is not State.PURGED:
                hits += _in_run(at, text.strip().casefold(), HITS_MAX - len(hits))
        except (PrecheckError, pl.exceptions.PolarsError):
            continue  # the list of files shows what cannot be read
        if len(hits) >= HITS_MAX:
            break
    return hits


def _in_run(at: Standing, needle: str, at_most: int) -> list[Hit]:
    run = ended_run(at.folder.run)
    cells = _scan(run.outcome_file, run.manifest.input.delimiter, has_headers=run.manifest.input.header_line)
    bare = needle.replace(" ", "").replace("-", "")
    texts = pl.all().cast(pl.String).str.to_lowercase()
    has_text = texts.str.contains(needle, literal=True)
    has_account = texts.str.replace_all("[ -]", "").str.contains(bare or needle, literal=True)
    numbered = cells.with_row_index("row_at_desk", offset=1)
    found = (
        numbered.filter(pl.any_horizontal((has_text | has_account).fill_null(value=False)))
        .head(at_most)
        .collect()
    )
    columns = run.manifest.input.columns
    names = [header for header, field in columns.items() if field == "name" and header in found.columns]
    return [
        Hit(
            at,
            line["row_at_desk"],
            str(line.get("check_outcome") or ""),
            " ".join(str(line[header]) for header in names if line[header]),
        )
        for line in found.iter_rows(named=True)
    ]


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
