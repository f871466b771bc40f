"""The recipe "A new format" of CONTRIBUTING.md, followed in a copy of the tree."""

import csv
import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toys import counted

ROOT = Path(__file__).resolve().parents[2]
IGNORED = shutil.ignore_patterns("__pycache__")
HEADERS = ["payment_id", "name", "account_type", "sort_code", "account_number", "amount", "currency"]
PAYMENTS = [
    ["P1", "Imogen Farraday", "Personal", "200415", "31926819", "2610.75", "GBP"],
    ["P2", "Averi Thornwood", "Personal", "001122", "00012345", "120.50", "GBP"],
    ["P3", "Avery Thornwood", "Personal", "001122", "99999999", "310.00", "GBP"],
]
FOLDER = "payroll.precheck"


def counted_text(rows):
    lines = [f"PAYMENTS|{len(rows)}", *("|".join(row) for row in (HEADERS, *rows))]
    return "".join(f"{line}\n" for line in lines)


def steps_of_the_recipe():
    """The files that each step of the recipe begins with."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    recipe = text.partition("### A new format\n")[2].partition("\n#")[0]
    return re.findall(r"^[0-9]\. `([^`]+)`", recipe, re.MULTILINE)


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of the program with one more format, made by the first two steps of the recipe."""
    copy = tmp_path_factory.mktemp("house")
    shutil.copy(ROOT / "payee_precheck.py", copy)
    for package in ("pipeline", "schemas"):
        shutil.copytree(ROOT / package, copy / package, ignore=IGNORED)
    module, table, _ = steps_of_the_recipe()
    shutil.copy(counted.__file__, copy / module.replace("NAME", counted.NAME))
    text = (copy / table).read_text()
    text = text.replace("import bacs18, excel,", "import bacs18, counted, excel,")
    line = "    FormatEntry(counted, outcomes=delimited, payments=counted),\n"
    formats = re.search(r"^FORMATS: .* = \(\n(?: .*\n)+", text, re.MULTILINE)
    text = text[: formats.end()] + line + text[formats.end() :]
    (copy / table).write_text(text)
    return copy


@pytest.fixture
def precheck(house, tmp_path):
    """The command of that house, in a folder with a file of the new format."""
    (tmp_path / "payroll.txt").write_text(counted_text(PAYMENTS))

    def run(*words, status=0):
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(house)}
        command = [sys.executable, "-P", "-m", "payee_precheck", *words]
        ended = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert ended.returncode == status, ended.stderr
        return ended.stdout

    return run


def touched(compared, folder=Path()):
    """The files that only the copy has, or has in other words."""
    yield from (folder / name for name in (*compared.right_only, *compared.diff_files))
    for name, below in compared.subdirs.items():
        yield from touched(below, folder / name)


def test_the_recipe_touches_three_files_at_most(house):
    steps = steps_of_the_recipe()
    assert len(steps) == 3
    assert (ROOT / steps[2]).exists()
    found = {
        (package / path).as_posix()
        for package in (Path("pipeline"), Path("schemas"))
        for path in touched(filecmp.dircmp(ROOT / package, house / package))
        if "__pycache__" not in path.parts
    }
    assert found == {step.replace("NAME", counted.NAME) for step in steps[:2]}


@pytest.mark.nightly
def test_a_file_of_the_new_format_is_shown_checked_corrected_and_split(precheck, tmp_path):
    shown = json.loads(precheck("columns", "payroll.txt", "--json"))
    assert [column["header"] for column in shown["columns"]] == HEADERS
    assert [column["field"] for column in shown["columns"]] == HEADERS

    precheck("run", "payroll.txt", "--quiet")
    summary = json.loads((tmp_path / FOLDER / "summary.json").read_text())
    assert (summary["input"]["format"], summary["input"]["row_count"]) == ("counted", len(PAYMENTS))
    with (tmp_path / FOLDER / "outcomes.csv").open(newline="") as file:
        outcomes = [row["check_outcome"] for row in csv.DictReader(file, delimiter="|")]
    assert outcomes == ["match", "close_match", "not_possible"]

    reason = ("--reason", "agreed", "--by", "Mara Ellery", "--allow-simulated")
    precheck("fix", FOLDER, "--accept", "close_match", *reason)
    corrected = [row.copy() for row in PAYMENTS]
    corrected[1][1] = "Avery Thornwood"
    written = (tmp_path / FOLDER / "corrected.simulated.txt").read_text()
    assert written == counted_text(corrected)

    precheck("split", FOLDER, "--allow-simulated")
    release, hold = (tmp_path / FOLDER / f"{part}.simulated.txt" for part in ("release", "hold"))
    assert release.read_text() == counted_text(PAYMENTS[:1])
    assert hold.read_text() == counted_text(PAYMENTS[1:])


@pytest.mark.nightly
def test_a_format_of_outcomes_is_one_of_format_and_of_data_sets(house, precheck, tmp_path):
    in_table = house / "pipeline" / "formats" / "__init__.py"
    text = in_table.read_text()
    in_table.write_text(text.replace("counted, outcomes=delimited", "counted, outcomes=counted"))
    try:
        assert "[csv|parquet|counted|xlsx]" in precheck("run", "--help")
        precheck("run", "payroll.txt", "--quiet", "--format", "counted")
        assert (tmp_path / FOLDER / "outcomes.counted").read_text().startswith("PAYMENTS|3\n")
        (tmp_path / "set").mkdir()
        (tmp_path / "set" / "a.counted").write_text(counted_text(PAYMENTS))
        precheck("run", "set", "--work", "work", "--quiet")
        assert len(list((tmp_path / "set.precheck" / "outcomes").glob("*.counted"))) == 1
    finally:
        in_table.write_text(text)


@pytest.mark.nightly
def test_a_suffix_that_two_formats_share_is_told_by_the_start_of_the_file(precheck, tmp_path):
    text = counted_text(PAYMENTS).partition("\n")[2]
    (tmp_path / "plain.txt").write_text(text)
    shown = json.loads(precheck("columns", "plain.txt", "--json"))
    assert [column["field"] for column in shown["columns"]] == HEADERS
    (tmp_path / "cut.txt").write_text(counted_text(PAYMENTS).replace("PAYMENTS|3", "PAYMENTS|4"))
    assert "PAYMENTS is damaged" in precheck("columns", "cut.txt", "--json", status=65)
