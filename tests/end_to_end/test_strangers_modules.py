"""Modules of others with the names of ours: a sentence, or no notice taken of them, and never a traceback."""

import subprocess
import sys

import pytest

COLUMNS = ("columns", "payments.csv")
PAYEE = {"name": "Avery Thornwood", "sort_code": "001122", "account_number": "00012345"}


@pytest.fixture
def strangers(desk):
    """`strangers(path, text)`: a folder that is on PYTHONPATH, with this module in it."""

    def build(path, text=""):
        module = desk.folder / "strangers" / path
        module.parent.mkdir(parents=True)
        module.write_text(text)
        return module

    return build


@pytest.mark.parametrize("path", ["pipeline.py", "pipeline/__init__.py", "schemas.py", "schemas/__init__.py"])
def test_a_module_of_our_name_is_refused_in_a_sentence(desk, strangers, path):
    stranger = strangers(path, "raise SystemExit('ran')\n")
    desk.payments([PAYEE])

    finished = desk(*COLUMNS, PYTHONPATH=str(desk.folder / "strangers"))

    assert (finished.status, finished.out) == (78, "")
    [sentence] = finished.sentences
    assert finished.err.count("\n") == 1
    assert f"{stranger} has the name of a module of this program" in sentence
    assert "unset PYTHONPATH" in sentence


@pytest.mark.parametrize("text", ["", "raise RuntimeError('strange')\n", "no Python\n"])
def test_a_module_of_a_librarys_name_is_refused_in_a_sentence(desk, strangers, text):
    stranger = strangers("click.py", text)
    desk.payments([PAYEE])

    finished = desk(*COLUMNS, PYTHONPATH=str(desk.folder / "strangers"))

    assert finished.status == 78
    assert len(finished.sentences) == 1
    assert finished.err.count("\n") == 1
    assert "unset PYTHONPATH" in finished.err
    assert not text.startswith("raise") or str(stranger) in finished.err


@pytest.mark.nightly
def test_as_the_recipes_start_it_no_such_module_matters_nor_to_its_children(desk, strangers):
    """The embedded sandbox and the reader of Parquet files are children of the command."""
    strangers("pipeline.py", "raise SystemExit('ran')\n")
    desk.payments([PAYEE])
    (desk.folder / "schemas.py").write_text("raise SystemExit('ran')\n")
    environment = desk.environment | {"PYTHONPATH": str(desk.folder / "strangers")}
    start = (sys.executable, "-I", "-m", "payee_precheck", "run", "--format", "parquet", "--quiet")

    def run(file):
        words = (*start, file, "--out", f"of-{file}")
        return subprocess.run(
            words, cwd=desk.folder, env=environment, capture_output=True, text=True, check=False
        )

    first = run("payments.csv")
    (desk.folder / "again.parquet").write_bytes(
        (desk.folder / "of-payments.csv/outcomes.parquet").read_bytes()
    )
    again = run("again.parquet")

    for done in (first, again):
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("\n") == 1
        assert "SIMULATED" in done.stderr


def test_a_module_in_the_working_folder_is_refused_too(desk):
    desk.payments([PAYEE])
    (desk.folder / "pipeline.py").write_text("raise SystemExit('ran')\n")
    done = subprocess.run(
        [sys.executable, "-m", "payee_precheck", *COLUMNS],
        cwd=desk.folder,
        env=desk.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 78
    assert done.stderr.startswith(f"precheck: {desk.folder / 'pipeline.py'} has the name of a module")
