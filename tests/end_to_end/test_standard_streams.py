"""A payment file by standard input, and readers of standard output that go away, as in a shell's pipes."""

import json
import subprocess

import pytest
from desk import COMMAND, WARM
from readers import SAMPLE

from schemas.manifest import Manifest


@pytest.fixture
def piped(desk):
    WARM.install(desk.folder)

    def run(line, command=COMMAND[0]):
        """What a line of a shell did, whose commands are precheck's."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line.replace("precheck ", f"{command} ")],
            cwd=desk.folder,
            env=desk.environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    (desk.folder / "sample.csv").write_bytes(SAMPLE.read_bytes())
    return run


@pytest.mark.parametrize(
    "words",
    [
        "explain",
        "formats",
        "plan sample.csv",
        pytest.param("plan sample.csv --json", marks=pytest.mark.nightly),
    ],
)
def test_a_reader_that_has_enough_ends_the_printing_and_not_the_command(piped, words):
    status, printed, errors = piped(f"precheck {words} | head -c 3")
    assert (status, len(printed), errors) == (0, 3, "")


@pytest.mark.parametrize(
    "words",
    [
        "run --help",
        *(
            pytest.param(words, marks=pytest.mark.nightly)
            for words in ("--help", "--version", "schema", "schema config")
        ),
    ],
)
def test_a_reader_that_is_gone_does_not_change_the_status_of_what_explains(piped, words):
    assert piped(f"precheck {words} | true") == (0, "", "")


@pytest.mark.parametrize("form", ["", pytest.param("--json", marks=pytest.mark.nightly)])
def test_a_reader_that_is_gone_does_not_change_how_a_run_ends(piped, desk, form):
    status, _, errors = piped(f"precheck run sample.csv --fail-on no_match {form} | true")
    assert status == 1, errors
    assert (desk.folder / "sample.precheck" / "outcomes.csv").exists()


def test_standard_input_is_a_file_like_any_other(piped, desk):
    def forked(line):
        return piped(line, "./precheck")

    assert forked("precheck plan - < sample.csv")[1].startswith("standard-input.csv: 24 payments")
    assert json.loads(forked("precheck columns - --json < sample.csv")[1])["columns"]
    status, printed, _ = piped("cat sample.csv | precheck run - --out checked")
    assert (status, "standard-input.csv: 24 payments" in printed) == (0, True)
    manifest = Manifest.model_validate_json((desk.folder / "checked" / "manifest.json").read_bytes())
    assert manifest.input.name == "standard-input.csv"
    # A resume compares what comes with what came.
    assert "Finished already" in forked("precheck run - --out checked < sample.csv")[1]
    status, _, errors = forked("head -5 sample.csv | precheck run - --out checked")
    assert (status, "--fresh" in errors) == (2, True)
    status, _, errors = forked("precheck run - < sample.csv")
    assert (status, "--out" in errors) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        "formats --all",
        *(
            pytest.param(words, marks=pytest.mark.nightly)
            for words in ("explain --all", "plan sample.csv", "columns sample.csv")
        ),
    ],
)
def test_no_line_of_a_pipe_ends_in_blanks(piped, words):
    status, printed, _ = piped(f"precheck {words} | cat")
    assert status == 0
    assert [line for line in printed.splitlines() if line != line.rstrip(" ")] == []
