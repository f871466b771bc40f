"""The documentation says what the program does: commands, exit statuses, files, configuration."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from pipeline import config as settings
from pipeline.cli.main import main as command
from pipeline.errors import PrecheckError
from pipeline.reports.explanations import explanations
from pipeline.stages.ask import DRAIN_MAX_S, RUNS_MAX
from pipeline.stages.ask.admission import ALIKE_MAX, TURNED_AWAY_IN_A_ROW_MAX
from pipeline.stages.ask.clock_skew import SKEW_MAX_S
from pipeline.stages.ask.concurrency import GROWTH
from pipeline.stages.ask.gate import PAUSE_MAX_S, PAUSES_MAX, RETRIES_FREE
from pipeline.stages.ask.judge import (
    BREACHES_MIN,
    BREACHES_SHARE,
    BREACHES_WINDOW,
    REFUSALS_IN_A_ROW_LATER_MAX,
    REFUSALS_IN_A_ROW_MAX,
)
from pipeline.transport.breaker import OUTAGES_MAX, RESPONDER, SERVER

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FENCED = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def check(root, **environment):
    return subprocess.run(
        [sys.executable, str(root / "docs" / "generate.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.fixture
def copy(tmp_path):
    """The documentation and what it links to, to be spoiled."""
    root = tmp_path / "copy"
    shutil.copytree(DOCS, root / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "sample_data", root / "sample_data")
    for page in (*ROOT.glob("*.md"), ROOT / "LICENSE", ROOT / "Dockerfile", ROOT / "pyproject.toml"):
        shutil.copy(page, root)
    (root / "pipeline").symlink_to(ROOT / "pipeline")  # of which the picture of the house is drawn
    return root


def blocks(page, language):
    return [
        found["text"] for found in FENCED.finditer(page.read_text("utf-8")) if found["language"] == language
    ]


def tutorial_commands():
    lines = "".join(blocks(DOCS / "tutorial.md", "console")).splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def exit_codes():
    """Every exit status that the program has."""
    found, kinds = {0, 1, 130, 143}, [PrecheckError]
    while kinds:
        kind = kinds.pop()
        kinds.extend(kind.__subclasses__())
        found.add(vars(kind).get("exit_code", 0))
    return found


def exit_codes_in_table(page):
    section = page.read_text("utf-8").partition("## Exit status\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| ([0-9, ]+) \|", section, re.MULTILINE)
    return {int(code) for cell in cells for code in cell.split(",")}


@pytest.mark.nightly
def test_generated_parts_are_up_to_date_whatever_the_width_of_the_terminal_and_links_lead_somewhere():
    result = check(ROOT, COLUMNS="30")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.nightly
def test_a_stale_page_and_links_and_names_that_lead_nowhere_are_reported(copy):
    for name, old, new in (
        ("cli.md", "--fail-on", "--fall-on"),
        ("outcomes.md", "`AC01`", "`AC02`"),
    ):
        page = copy / "docs" / name
        page.write_text(page.read_text("utf-8").replace(old, new), "utf-8")
    with (copy / "README.md").open("a", encoding="utf-8") as readme:
        readme.write("[gone](docs/gone.md) and [nowhere](docs/cli.md#nowhere)\n")
        readme.write("`rules/gone.py` and `rules.gone`\n")
    result = check(copy)
    assert result.returncode == 1
    assert result.stderr.splitlines() == [
        "README.md: the link docs/gone.md leads to no file; correct it",
        "README.md: the link docs/cli.md#nowhere leads to no heading; correct it",
        "README.md: rules/gone.py does not exist; name the module that it has become",
        "README.md: rules.gone does not exist; name what it has become",
        "docs/cli.md: stale; run `python docs/generate.py`",
        "docs/outcomes.md: stale; run `python docs/generate.py`",
    ]


def test_every_command_is_documented_and_hidden_ones_are_not():
    page = (DOCS / "cli.md").read_text("utf-8")
    commands = {
        f"{name} {part}".strip(): single
        for name, found in command.commands.items()
        for part, single in (found.commands.items() if isinstance(found, click.Group) else [("", found)])
    }
    assert set(re.findall(r"^## (.+)$", page, re.MULTILINE)) == {
        name for name, found in commands.items() if not found.hidden
    }
    for name, found in commands.items():
        section = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
        for option in found.params:
            if isinstance(option, click.Option):
                assert (option.opts[0] in section) is not option.hidden, f"{name} {option.opts[0]}"


def test_every_code_has_a_section_and_no_other_word_has_one():
    page = (DOCS / "codes.md").read_text("utf-8")
    assert re.findall(r"^### (.+)$", page, re.MULTILINE) == list(explanations())


def test_readme_names_both_commands():
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "make demo" in readme
    assert "make test" in readme


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "operations.md"], ids=lambda page: page.name)
def test_every_exit_status_is_explained_and_no_other(page):
    assert exit_codes_in_table(page) == exit_codes()


def test_tutorial_commands_exist_and_name_files_that_exist():
    found = tutorial_commands()
    assert any(line.startswith("precheck run ") for line in found)
    for line in found:
        words = [*shlex.shlex(line, posix=True, punctuation_chars=True)]
        for word in words:
            if word.startswith("sample_data/"):
                assert (ROOT / word).is_file(), line
        if words[0] == "precheck":
            options = {name for option in command.commands[words[1]].params for name in option.opts}
            said = {word for word in words if word.startswith("--")}
            assert said <= options, line


def test_figures_of_the_operations_page_are_those_of_the_code():
    page = " ".join((DOCS / "operations.md").read_text("utf-8").split())
    waits_s = [
        min(SERVER.probe_wait_s * 2**probe, SERVER.probe_wait_max_s) for probe in range(SERVER.probes_max)
    ]
    words, share = {3: "three", 5: "five"}, {0.75: "three quarters"}[BREACHES_SHARE]
    for figure in (
        f"at least {BREACHES_MIN} of its latest {BREACHES_WINDOW} replies, and {share} of them",
        f"where {words[ALIKE_MAX]} questions in a row, or all there are",
        f"it takes {TURNED_AWAY_IN_A_ROW_MAX} in a row",
        f"After {words[RUNS_MAX]} such runs",
        f"grows by one in {1 / GROWTH:g} answers",
        f"After {words[PAUSES_MAX]} pauses without another reply",
        f"waits up to {DRAIN_MAX_S:.0f} s for requests in flight",
        f"`Retry-After` of more than {PAUSE_MAX_S:.0f} s",
        f"at most {RETRIES_FREE} requests again",
        f"it refused {REFUSALS_IN_A_ROW_MAX + 1} questions in a row",
        f"{REFUSALS_IN_A_ROW_MAX} in a row that are refused",
        f"or {REFUSALS_IN_A_ROW_LATER_MAX + 1} after that",
        f"Of one that has, it takes {REFUSALS_IN_A_ROW_LATER_MAX}",
        f"comes and goes more than {OUTAGES_MAX} times in a run",
        f"differs by more than {SKEW_MAX_S:.0f} s",
        f"After {SERVER.failures_max} failures in a row",
        f"After {SERVER.probes_max} such failures, {sum(waits_s) / 60:g} minutes",
        f"After {RESPONDER.failures_max} replies of 502 or 504 in a row",
        f"After {RESPONDER.probes_max} such failures its questions",
    ):
        assert figure in page


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "configuration.md"], ids=lambda page: page.name)
def test_every_configuration_shown_can_be_read(page, tmp_path):
    found = blocks(page, "toml")
    assert found
    for text in found:
        path = tmp_path / "precheck.toml"
        path.write_text(text, "utf-8")
        configuration = settings.read(path)
        assert configuration.profiles or configuration.layouts


def test_pages_name_no_folder_of_the_machine_they_were_written_on():
    for page in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "sample_data").glob("*.md")):
        text = page.read_text("utf-8")
        assert str(ROOT) not in text, page.name
        assert "/tmp/" not in text, page.name
        assert "/home/" not in text, page.name
