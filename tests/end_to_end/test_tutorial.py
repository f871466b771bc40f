"""What the pages tell a reader to type does what they show: the tutorial, the demo, the nightly script."""

import csv
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import openpyxl
import pytest
from desk import WARM
from refusals import said

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = Path(sys.executable).parent
COMMAND_MAX_S = 60
ELIDED = "..."
"""Stands on a page for any number of lines, or for the rest of a line."""
FENCED = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    text = (ROOT / page).read_text("utf-8")
    return [found["text"] for found in FENCED.finditer(text) if found["language"] == language]


def typed(console):
    """The commands of a console block, each with the lines shown below it."""
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


PROGRESS = re.compile(r"[0-9,]+ of [0-9,]+ questions, [0-9.,]+/s")


def shows(page, printed):
    """True if a page shows what was printed, apart from what it elides and trailing blanks.

    A run prints its progress every ten seconds; on a busy machine a demo has such lines, which are ignored.
    """
    page_lines, lines = ([line.rstrip() for line in text.strip().splitlines()] for text in (page, printed))
    lines = [line for line in lines if not PROGRESS.search(line)]
    pattern = "".join(r"(?:.*\n)*?" if line == ELIDED else _line_pattern(line) + r"\n" for line in page_lines)
    return re.fullmatch(pattern, "".join(line + "\n" for line in lines)) is not None


def _line_pattern(line):
    return re.escape(line.removesuffix(ELIDED)) + ".*" if line.endswith(ELIDED) else re.escape(line)


def line_starting(text, start):
    return next(line for line in text.splitlines() if line.startswith(start))


def table_shown(*headers):
    """The cells of a table of the tutorial."""
    page = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    _, found, table = page.partition(f"| {' | '.join(headers)} |\n|{'---|' * len(headers)}\n")
    assert found, headers
    lines = table.partition("\n\n")[0].splitlines()
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]


def fill_in(path):
    """Write into a workbook what the tutorial shows, as its reader does by hand."""
    book = openpyxl.load_workbook(path)
    for sheet, row, *decided in table_shown("Sheet", "Row", "Decision", "Reason"):
        [headers, *lines] = book[sheet].iter_rows(min_row=3)
        at = {cell.value: cell.column - 1 for cell in headers}
        [line] = [line for line in lines if line[at["Row"]].value == int(row)]
        line[at["Decision"]].value, line[at["Reason"]].value = decided
    book.save(path)


def reasons_written(path):
    """The same of hold_reasons.csv, without the rule of the policy, which is the same for each outcome."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        (
            row["row"],
            row["code"],
            re.sub(r" The (policy holds|row breaks) .*", "", row["why_held"]),
            row["what_to_do"],
        )
        for row in rows
    ]


@pytest.fixture
def terminal(desk, tmp_path):
    """A terminal of 80 columns on which `precheck` is installed; it gives what is printed, and the status."""
    WARM.install(tmp_path)
    environment = desk.environment | {"PATH": f"{tmp_path}:{desk.environment['PATH']}", "COLUMNS": "80"}

    def run(line, **more):
        ended = subprocess.run(
            line,
            shell=True,
            cwd=desk.folder,
            env=environment | more,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_MAX_S,
            check=False,
        )
        return ended.stdout, ended.returncode

    return run


@pytest.fixture
def samples(desk):
    """The repository's sample data on the desk."""
    folder = desk.folder / "sample_data"
    folder.mkdir()
    for file in (ROOT / "sample_data").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())


@pytest.fixture
def nightly(desk):
    """The script that operators copy."""
    script = desk.folder / "nightly.sh"
    script.write_text((ROOT / "docs" / "deployment" / "nightly.sh").read_text())
    script.chmod(0o700)
    return script


@pytest.mark.parametrize(
    ("page", "printed", "is_shown"),
    [
        ("one\ntwo", "one  \ntwo\n", True),
        ("one\n...", "one\ntwo\nthree\n", True),
        ("...\nthree", "one\ntwo\nthree\n", True),
        ("on...\ntwo", "one\ntwo\n", True),
        ("one", "one\ntwo\n", False),
        ("one\ntwo", "two\none\n", False),
        ("one\n...\nfour", "one\ntwo\nthree\n", False),
        ("o.e", "one\n", False),
        ("", "one\n", False),
    ],
)
def test_a_page_shows_what_was_printed_or_it_does_not(page, printed, is_shown):
    assert shows(page, printed) is is_shown


@pytest.mark.docs
@pytest.mark.usefixtures("samples")
def test_tutorial_commands_succeed_in_order_and_print_what_the_page_shows(terminal, desk):
    commands = [pair for block in blocks("docs/tutorial.md", "console") for pair in typed(block)]
    assert len(commands) > 10
    for command, shown in commands:
        printed, status = terminal(command)
        assert status == 0, command
        assert shows(shown, printed), f"{command}\n{printed}"
        if command.endswith(" decided.xlsx"):
            fill_in(desk.folder / "decided.xlsx")
    held = table_shown("row", "code", "why it is held", "what to do")
    assert held == reasons_written(desk.folder / "corrected.precheck" / "hold_reasons.csv")
    approvals = json.loads((desk.folder / "payments_mixed.precheck" / "approvals.json").read_bytes())
    assert [approval["why"] for approval in approvals] == ["known to payroll", "agreed with payroll"]


@pytest.mark.docs
@pytest.mark.usefixtures("samples")
def test_evidence_is_shown_as_verify_prints_it(terminal):
    terminal("cp sample_data/payments_mixed.csv payroll.csv; precheck run payroll.csv --quiet")
    [[(command, shown)]] = [[*typed(block)] for block in blocks("docs/evidence.md", "console")]
    printed, status = terminal(command)
    assert status == 0
    assert shows(shown, printed), printed


@pytest.mark.docs
@pytest.mark.usefixtures("samples")
def test_readme_shows_what_the_demo_prints(terminal, desk):
    shown = next(text for text in blocks("README.md", "text") if "SIMULATED" in text)
    recipe = line_starting((ROOT / "Makefile").read_text("utf-8"), "\t$(BIN)/precheck run ")
    command = recipe.strip().removeprefix("$(BIN)/").replace("$(DEMO)", "demo")
    installed = {"PATH": f"{COMMANDS}:{desk.environment['PATH']}", "LC_ALL": "C"}
    printed, status = terminal(command, **installed)
    assert status == 0
    assert shows(shown, printed), printed


@pytest.mark.nightly
def test_nightly_script_lets_a_file_of_matches_pass_and_none_with_another_decided_outcome(
    terminal, nightly, desk, sandbox
):
    configured = {"PRECHECK_CONFIG": str(sandbox.config)}
    terminal("precheck sandbox --write-payments all.csv --rows 400")
    terminal("precheck run all.csv --profile production --quiet", **configured)
    rows = desk.outcomes("all.precheck")
    header = [column for column in rows[0] if not column.startswith("check_")]
    matches = [row for row in rows if row["check_outcome"] == "match"]
    for outcome in ("match", "close_match", "no_match", "not_possible", "rejected"):
        other = next(row for row in rows if row["check_outcome"] == outcome)
        desk.payments([*matches[:3], other], f"{outcome}.csv", header, extrasaction="ignore")
        printed, status = terminal(f"./{nightly.name} {outcome}.csv 2>>precheck.log", **configured)
        if outcome == "match":
            assert (status, printed) == (0, "match.csv: every row is a match\n")
        else:
            assert (status, "review the rows of checked/" in printed) == (1, True), printed


@pytest.mark.docs
def test_nightly_script_leaves_the_log_that_the_page_shows(terminal, nightly, desk, sandbox):
    configured = {"PRECHECK_CONFIG": str(sandbox.config)}
    terminal("precheck sandbox --write-payments payroll.csv --rows 40")
    terminal("precheck run payroll.csv --profile production --quiet", **configured)
    rows = desk.outcomes("payroll.precheck")
    header = [column for column in rows[0] if not column.startswith("check_")]
    matches = [row for row in rows if row["check_outcome"] == "match"]
    desk.payments(matches, "good.csv", header, extrasaction="ignore")
    written = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
    os.utime(desk.folder / "payroll.csv", (written, written))
    [console] = [
        block for block in blocks("docs/operations.md", "console") if block.startswith(f"$ ./{nightly.name}")
    ]
    for command, shown in typed(console):
        printed, _ = terminal(command, **configured)
        assert shows(shown, printed), f"{command}\n{printed}"


def test_nightly_script_gives_the_second_file_of_a_day_a_folder_of_its_own(
    terminal, nightly, desk, sandbox, network_payments
):
    for count in (1, 2):
        desk.payments(network_payments(count), name="payroll.csv")
        _, status = terminal(f"./{nightly.name} payroll.csv", PRECHECK_CONFIG=str(sandbox.config))
        assert status == 1
    assert len(list((desk.folder / "checked").iterdir())) == 2


def test_nightly_script_goes_on_with_the_same_file_in_the_same_folder(
    terminal, nightly, desk, sandbox, network_payments
):
    desk.payments(network_payments(3), name="payroll.csv")
    before = sandbox.call_count
    for _ in range(2):
        terminal(f"./{nightly.name} payroll.csv", PRECHECK_CONFIG=str(sandbox.config))
    assert len(list((desk.folder / "checked").iterdir())) == 1
    assert len(sandbox.questions(before)) == 3


def test_nightly_script_passes_on_why_a_file_cannot_be_used(terminal, nightly, desk, sandbox):
    printed, status = terminal(
        f"./{nightly.name} gone.csv 2>>precheck.log", PRECHECK_CONFIG=str(sandbox.config)
    )
    assert (status, "stopped with 65" in printed) == (65, True)
    assert said("stages.file_unreadable", path="gone.csv") in (desk.folder / "precheck.log").read_text(
        "utf-8"
    )
