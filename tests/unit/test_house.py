"""The rules of the house: `make imports` sees that they are kept; here each is broken, and that is seen."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
BREACHES = {
    "layers": ("pipeline/rules/amounts.py", "import pipeline.stages.read"),
    "documents": ("schemas/cop.py", "import pipeline.errors"),
    "stages": ("pipeline/stages/plan.py", "import pipeline.stages.write"),
    "apis": ("pipeline/apis/cop.py", "import pipeline.apis.vop"),
    "formats": ("pipeline/formats/parquet.py", "import pipeline.formats.excel.grid"),
    "sandbox": ("pipeline/sandbox/clock.py", "import pipeline.frames"),
    "httpx": ("pipeline/reports/page.py", "import httpx"),
    "aiohttp": ("pipeline/transport/client.py", "import aiohttp"),
    "sqlite": ("pipeline/runs/manifest.py", "import sqlite3"),
    "polars": ("pipeline/transport/pool.py", "import polars"),
}
"""Contract -> a module and a line that it must not have."""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """What import-linter says of a copy of the tree in which every contract is broken, by name."""
    copy = tmp_path_factory.mktemp("house")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for package in ("pipeline", "schemas"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    for module, line in BREACHES.values():
        with (copy / module).open("a") as file:
            file.write(f"\n{line}\n")
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    said = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False).stdout
    return " ".join(said.split())


def test_every_contract_is_broken_by_somebody():
    assert {contract["id"] for contract in CONTRACTS} == set(BREACHES)


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract["id"])
def test_a_contract_that_is_broken_is_seen_to_be(contract, verdicts):
    assert re.search(rf"{re.escape(contract['name'])} ?BROKEN", verdicts)


def test_two_frames_that_are_swapped_do_not_pass_the_type_checker(tmp_path):
    swapped = tmp_path / "swapped.py"
    swapped.write_text(
        "from pipeline.frames import Accepted, Checks\n"
        "from pipeline.stages.plan import bases, plan\n"
        "def right(accepted: Accepted) -> object:\n    return bases(plan(accepted).checks)\n"
        "def wrong(accepted: Accepted, checks: Checks) -> object:\n    return plan(checks), bases(accepted)\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", swapped]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert said.count('incompatible type "Checks"; expected "Accepted"') == 1
    assert said.count('incompatible type "Accepted"; expected "Checks"') == 1
    assert "swapped.py:4" not in said
