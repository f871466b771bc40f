"""The pictures of the README: of the report of the sample file, as the page is today."""

import csv
import hashlib
import shutil
from pathlib import Path

import polars as pl
import pytest

from pipeline.frames import PAYMENTS
from pipeline.reports.page import page
from schemas.outcomes import COLUMNS
from schemas.strict import parse
from schemas.summary import Summary

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
HASH_FILE = IMAGES / "report.sha256"
"""Of the page that the pictures show, as text."""
PICTURE_BYTES_MAX = 300_000
TO_RENEW = (
    "the report page is not the one of the pictures: "
    "run this file with -m docs --write-pictures, and look at them"
)


@pytest.fixture(scope="module")
def pictured(sample_run):
    """The page of the sample file, which is the same at any time and in any version."""
    summary = parse(Summary, (sample_run / "summary.json").read_bytes())
    with (sample_run / "outcomes.csv").open(newline="", encoding="utf-8") as lines:
        cells = [{name: cell or None for name, cell in row.items()} for row in csv.DictReader(lines)]
    absent = dict.fromkeys([*PAYMENTS, *COLUMNS])
    rows = [
        absent | {summary.input.columns.get(name, name): cell for name, cell in row.items()} | {"row": number}
        for number, row in enumerate(cells, start=1)
    ]
    always = {"finished": "2026-11-20T18:00:00.000Z", "tool_version": "0.1.0"}
    return page(summary.model_copy(update=always), pl.DataFrame(rows))


@pytest.mark.docs
def test_pictures_of_the_readme_are_small_and_of_the_sample_file(pictured, reading, tmp_path, pytestconfig):
    file = tmp_path / "report.html"
    file.write_text(pictured, encoding="utf-8")
    pictures = [tmp_path / "report.png", tmp_path / "report-names.png"]
    with reading(file, viewport={"width": 1280, "height": 780}) as reader:
        reader.page.screenshot(path=pictures[0])
        reader.page.locator("#do-fix_name").screenshot(path=pictures[1])
    assert sum(picture.stat().st_size for picture in pictures) < PICTURE_BYTES_MAX
    if pytestconfig.getoption("--write-pictures"):
        for picture in pictures:
            shutil.copyfile(picture, IMAGES / picture.name)
        HASH_FILE.write_text(f"{hash_of(pictured)}\n")


@pytest.mark.docs
def test_pictures_of_the_readme_show_the_page_as_it_is(pictured):
    assert HASH_FILE.read_text().strip() == hash_of(pictured), TO_RENEW


def hash_of(text):
    return hashlib.sha256(text.encode()).hexdigest()
