"""The page and the workbook are in the language on record; every other file is English."""

import json
import shutil
from pathlib import Path

import fastexcel
import openpyxl
import polars as pl
import pytest
from babel.messages.pofile import read_po
from desk import VOLATILE

import pipeline.wording

SAMPLE = Path(__file__).parents[2] / "sample_data" / "payments_mixed.csv"
CATALOGUES = Path(pipeline.wording.__file__).parent / "catalogues"
OF_REPORTS = ("page", "sheet", "action", "outcome", "todo", "answer", "rule", "names")


def words_of(room, language):
    """Key -> its words where a page could show them: without values, and more than a word or two."""
    with (CATALOGUES / language / f"{room}.po").open("rb") as file:
        found = {message.id: message.string for message in read_po(file, locale=language) if message.id}
    return {key: said for key, said in found.items() if isinstance(said, str) and "{" not in said}


@pytest.fixture
def check(desk):
    """`check(*options)` checks the sample into one folder, with no language of the environment."""
    desk.environment |= dict.fromkeys(("PRECHECK_LANG", "LC_ALL", "LC_MESSAGES", "LANG"), "")

    def run(*options, out="run", **environment):
        desk.environment |= environment
        done = desk("run", SAMPLE, "--out", out, "--quiet", *options)
        assert done.status in {0, 75}, done.err
        return desk.folder / out

    return run


def language_of(folder):
    page = (folder / "report.html").read_text("utf-8")
    on_record = json.loads((folder / "manifest.json").read_bytes())["language"]
    assert f'<html lang="{on_record}">' in page
    title = {"en": "Summary", "de": "Übersicht", "fr": "Résumé"}[on_record]
    assert fastexcel.read_excel(folder / "report.xlsx").sheet_names[0] == title
    return on_record


def test_nothing_of_a_german_page_or_workbook_is_english(check):
    folder = check("--lang", "de")
    book = openpyxl.load_workbook(folder / "report.xlsx")
    cells = [str(cell.value) for sheet in book for row in sheet.iter_rows() for cell in row if cell.value]
    shown = [(folder / "report.html").read_text("utf-8"), *cells, *book.sheetnames]
    english = {
        said
        for room in OF_REPORTS
        for key, said in words_of(room, "en").items()
        if said != words_of(room, "de")[key] and len(said.split()) > 1
    }

    assert {said for said in english if any(said in text for text in shown)} == set()
    assert {f for f in ("Rows", "Amount", "Search", "Account") if f">{f}<" in shown[0]} == set()


def test_every_other_file_is_the_same_in_any_language(check):
    english, german = check(out="en"), check("--lang", "de", out="de")

    for name in ("outcomes.csv", "attention.csv"):
        one, other = (
            pl.read_csv(folder / name, infer_schema=False).drop(VOLATILE) for folder in (english, german)
        )
        assert one.equals(other)
    said = [json.loads((folder / "summary.json").read_bytes()) for folder in (english, german)]
    for summary in said:
        for changing in ("started", "finished", "run_id"):
            summary.pop(changing, None)
    assert said[0] == said[1]


def test_a_run_keeps_the_language_it_began_in(check):
    assert language_of(check("--limit", "3", LANG="fr_FR.UTF-8")) == "fr"
    assert language_of(check(LANG="de_DE.UTF-8")) == "fr"


@pytest.mark.nightly
def test_another_language_is_written_on_request_and_is_on_record(check, desk):
    folder = check()
    assert language_of(folder) == "en"
    before = (folder / "ledger.db").read_bytes()

    assert language_of(check("--lang", "fr")) == "fr"
    assert (folder / "ledger.db").read_bytes() != before
    assert desk("report", "run", "--lang", "de", "--json").status == 0
    assert language_of(folder) == "de"
    assert language_of(check()) == "de"
    assert desk("verify", "run").status == 0


def test_decisions_of_a_german_workbook_are_read(check, desk):
    folder = check("--lang", "de")
    copy = desk.folder / "decided.xlsx"
    shutil.copy(folder / "report.xlsx", copy)
    book = openpyxl.load_workbook(copy)
    sheet = book["Korrigieren"]
    headers = [cell.value for cell in sheet[3]]
    sheet.cell(4, headers.index("Entscheidung") + 1).value = "fix"
    sheet.cell(4, headers.index("Grund") + 1).value = "wie die Bank ihn schreibt"
    book.save(copy)

    done = desk("fix", "run", "--decisions", copy, "--allow-simulated", "--json", "--lang", "de")

    assert done.status == 0, done.err
    assert len(json.loads(done.out)["corrected_rows"]) == 1
