"""The recipes of docs/operations.md: their words are the command's, and systemd takes their units."""

import ast
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import click
import pytest

from pipeline.cli.main import main as command
from pipeline.errors import PrecheckError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
FENCED = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(found["language"], found["text"]) for found in FENCED.finditer(PAGE.read_text("utf-8"))]
SERVICE, TIMER, DAG, SCRIPT = (
    (PAGE.parent / "deployment" / name).read_text("utf-8")
    for name in ("payee-precheck.service", "payee-precheck.timer", "airflow_dag.py", "nightly.sh")
)


def known(words):
    """Parse the words of `precheck run`, and run nothing."""
    return command.commands["run"].make_context("run", list(words)).params


def exit_statuses():
    """Every status that an error of the program ends with."""
    kinds, found = [PrecheckError], set()
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        found.add(getattr(kind, "exit_code", None))
    return found - {None}


def test_script_without_a_file_says_how_to_call_it(tmp_path):
    script = tmp_path / "nightly.sh"
    script.write_text(SCRIPT)
    called = subprocess.run(["sh", script], capture_output=True, text=True, check=False)
    assert called.returncode == 2
    assert called.stderr == "nightly.sh: no payment file; usage: nightly.sh FILE [OPTION...]\n"


def script_words(*options):
    """What the script has the command do, with these options after the file."""
    [line] = re.findall(r"^precheck run .*$", SCRIPT.replace("\\\n", " "), re.MULTILINE)
    words = shlex.split(line)[2:]
    assert words.pop() == "$@"
    return [*words, *options]


def test_the_command_of_the_script_names_every_outcome_that_a_person_must_see():
    said = known(script_words())
    assert set(said["fail_on"]) == {"no_match", "close_match", "not_possible", "rejected"}


def test_the_script_passes_its_options_on_and_ends_with_the_status_of_the_command(tmp_path):
    (tmp_path / "nightly.sh").write_text(SCRIPT)
    fake = tmp_path / "bin" / "precheck"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho "$@" >words\nexit 75\n')
    fake.chmod(0o700)
    (tmp_path / "payroll.csv").write_text("name\n")
    done = subprocess.run(
        ["/bin/sh", tmp_path / "nightly.sh", "payroll.csv", "--log", "json"],
        env={"PATH": f"{fake.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    [line] = re.findall(r'^ +75 .*echo "\$file: (.*)" ;;$', SCRIPT, re.MULTILINE)
    assert (done.returncode, done.stdout) == (75, f"payroll.csv: {line}\n")
    assert (tmp_path / "words").read_text().endswith("--log json\n")


def test_the_options_of_the_service_are_understood():
    [line] = re.findall(r"^ExecStart=(.*)$", SERVICE, re.MULTILINE)
    program, file, *options = shlex.split(line)
    assert (program, file) == ("/srv/payments/nightly.sh", "payroll.csv")
    assert known(script_words(*options))["log_form"] == "json"


def test_the_service_does_not_repeat_what_no_repetition_mends():
    [prevented] = re.findall(r"^RestartPreventExitStatus=(.*)$", SERVICE, re.MULTILINE)
    assert {int(status) for status in prevented.split()} == exit_statuses() - {75}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_takes_the_units(tmp_path):
    program = tmp_path / "precheck"
    program.symlink_to(sys.executable)
    units = {"payee-precheck.service": SERVICE, "payee-precheck.timer": TIMER}
    for name, text in units.items():
        (tmp_path / name).write_text(text.replace("/srv/payments/nightly.sh", str(program)))
    done = subprocess.run(
        ["systemd-analyze", "verify", *(str(tmp_path / name) for name in units)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_of_the_airflow_task_is_understood():
    [words] = (
        ast.literal_eval(line.value)
        for line in ast.parse(DAG).body
        if isinstance(line, ast.Assign) and line.targets[0].id == "COMMAND"
    )
    assert words[0] == "/srv/payments/nightly.sh"
    assert known(script_words(*words[2:]))["log_form"] == "json"


def test_the_command_of_the_container_is_understood():
    [block] = (text for language, text in BLOCKS if language == "sh" and "docker run" in text)
    words = shlex.split(block.replace("\\\n", " "))
    at = len(words) - 1 - words[::-1].index("payee-precheck")
    assert words[at + 1] == "run"
    assert known(words[at + 2 :])["files"] == (Path("payroll-2026-11-20.csv"),)


def test_a_word_that_the_command_lost_would_be_noticed():
    with pytest.raises(click.UsageError):
        known(["payroll.csv", "--no-such-option"])


def test_the_wheel_of_which_the_image_is_made_has_the_start_and_the_image_calls_it():
    root = PAGE.parents[1]
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    assert "payee_precheck.py" in settings["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    [start] = re.findall(r"^ENTRYPOINT (.*)$", (root / "Dockerfile").read_text(), re.MULTILINE)
    assert ast.literal_eval(start)[1:] == ["-IB", "-m", "payee_precheck"]


def lets_through(ignored, path):
    """Whether a path is in the context: the last pattern that fits decides, as for Docker."""
    answer = True
    for line in filter(None, map(str.strip, ignored.splitlines())):
        pattern = line.removeprefix("!")
        if fnmatchcase(path, pattern) or any(fnmatchcase(str(up), pattern) for up in Path(path).parents):
            answer = line.startswith("!")
    return answer


def test_the_context_of_the_image_has_what_its_file_and_the_pages_name():
    root = PAGE.parents[1]
    image, ignored = ((root / name).read_text() for name in ("Dockerfile", ".dockerignore"))
    pages = "".join(page.read_text("utf-8") for page in (root / "docs").rglob("*.md"))
    named = {*re.findall(r"CONSTRAINTS=(\S+\.txt)", image + pages)}
    assert {"constraints.txt", "constraints-many.txt"} <= named
    [copied] = re.findall(r"^COPY (\$\{CONSTRAINTS\}) (\S+) /source/$", image, re.MULTILINE)
    for name in [*named, copied[1].replace("*", "payee_precheck-0.1.0-py3-none-any")]:
        assert lets_through(ignored, name), name
    assert not lets_through(ignored, "sample_data/precheck.toml")


def test_no_page_and_no_sentence_names_a_package_of_an_index_that_has_none():
    root = PAGE.parents[1]
    files = [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "pipeline").rglob("*.po")]
    trap = re.compile(r"payee-precheck\[|(pip|pipx|uv tool) install '?payee-precheck")
    assert [str(file) for file in files if trap.search(file.read_text("utf-8"))] == []


def test_on_windows_the_command_says_what_to_use(tmp_path):
    program = "import sys; sys.platform = 'win32'; import payee_precheck; payee_precheck.main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr == "precheck: it needs Linux or macOS; on Windows use WSL, or the desk of your team\n"
