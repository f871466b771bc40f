"""Another shared store: a kind of its own and a line in the table of kinds, in a copy of the tree."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import memory_stores
import pytest
from refusals import said

from tests.toys import remembered

ROOT = Path(__file__).resolve().parents[2]
IGNORED = shutil.ignore_patterns("__pycache__", "postgres")
COUNT = 12
CAP = 5


@pytest.fixture
def house(tmp_path):
    """A copy of the program with another store, and without PostgreSQL."""
    copy = tmp_path / "house"
    copy.mkdir()
    shutil.copy(ROOT / "payee_precheck.py", copy)
    for package in ("pipeline", "schemas"):
        shutil.copytree(ROOT / package, copy / package, ignore=IGNORED)
    stores = copy / "pipeline" / "stores"
    shutil.copy(memory_stores.__file__, stores)
    text = Path(remembered.__file__).read_text("utf-8")
    (stores / "remembered.py").write_text(
        text.replace("from memory_stores import", "from pipeline.stores.memory_stores import")
    )
    table = (stores / "kinds.py").read_text("utf-8")
    table = table.replace(
        '    "postgresql": postgres,\n    "postgres": postgres,\n', '    "remembered": remembered,\n'
    )
    table = table.replace("import postgres\n", "import remembered\n").replace(", postgres)", ", remembered)")
    assert "postgres" not in table.partition("STORES")[2].replace("PostgreSQL", "")
    (stores / "kinds.py").write_text(table)
    return copy


@pytest.fixture
def precheck(desk, sandbox, house):
    """The command of that house, under a profile whose ledger is of the new kind."""
    section = sandbox.section("production", "cop", daily_cap=CAP)
    config = desk.configuration("mine.toml", mine={"cop": section})
    shared = f'[profiles.mine]\nledger = "{remembered.SCHEME}://here"\nledger_key_env = "LEDGER_KEY"\n'
    config.write_text(shared + config.read_text())
    home = {"HOME": str(desk.folder), "PYTHONPATH": str(house), "LEDGER_KEY": "invented-ledger-key"}

    def run(*words):
        command = [
            sys.executable,
            "-P",
            "-m",
            "payee_precheck",
            *words,
            "--config",
            config,
            "--profile",
            "mine",
        ]
        environment = {**os.environ, **home}
        return subprocess.run(
            command, cwd=desk.folder, env=environment, capture_output=True, text=True, check=False, timeout=60
        )

    return run


def test_a_job_asks_within_the_cap_of_a_store_of_another_kind(precheck, desk, sandbox, network_payments):
    file, before = desk.payments(network_payments(COUNT)), sandbox.call_count

    ended = precheck("run", file, "--out", "out")

    assert ended.returncode == 75, ended.stderr
    assert len(sandbox.questions(before)) == CAP
    outcomes = [row["check_code"] for row in desk.outcomes("out")]
    assert outcomes.count("DAILY_CAP") == COUNT - CAP
    assert json.loads((desk.folder / "out" / "store.json").read_text())["ledger"] == "remembered://here"


def test_an_address_of_no_store_is_refused(precheck, desk, network_payments):
    config = desk.folder / "mine.toml"
    config.write_text(config.read_text().replace("remembered://here", "elsewhere://here"))

    ended = precheck("run", desk.payments(network_payments(1)))

    assert ended.returncode == 78, ended.stderr
    assert "profiles.mine.ledger: " + said("config.wrong_form") in ended.stderr
