"""The rules of the house: `make imports` sees that they are kept; here each is broken, and that is seen."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from trees import statements

ROOT = Path(__file__).resolve().parents[2]
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
CONTRACTS = TOOLS["importlinter"]["contracts"]
BANNED = TOOLS["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
BREACHES = {
    "layers": ("pipeline/rules/amounts.py", "import pipeline.stages.read"),
    "documents": ("schemas/cop.py", "import pipeline.errors"),
    "stages": ("pipeline/stages/plan.py", "import pipeline.stages.write"),
    "apis": ("pipeline/apis/cop.py", "import pipeline.apis.vop"),
    "formats": ("pipeline/formats/parquet.py", "import pipeline.formats.excel.grid"),
    "sandbox": ("pipeline/sandbox/settings.py", "import pipeline.frames"),
    "httpx": ("pipeline/reports/page.py", "import httpx"),
    "aiohttp": ("pipeline/transport/client.py", "import aiohttp"),
    "babel": ("pipeline/reports/page.py", "import babel"),
    "sqlite": ("pipeline/runs/manifest.py", "import sqlite3"),
    "prometheus": ("pipeline/cli/monitoring.py", "import prometheus_client"),
    "opentelemetry": ("pipeline/executors/asking.py", "import opentelemetry"),
    "postgres": ("pipeline/executors/shared.py", "import pipeline.stores.postgres.shared_run"),
    "psycopg": ("pipeline/jobs/quota.py", "import psycopg"),
    "distributed": ("pipeline/jobs/data_set.py", "import distributed"),
    "click": ("pipeline/jobs/check.py", "import click"),
    "signals": ("pipeline/executors/asking.py", "import signal"),
    "polars": ("pipeline/transport/pool.py", "import polars"),
}
"""Contract -> a module and a line that it must not have."""

USES = {
    "datetime.datetime.now": "from datetime import UTC, datetime\n\nprint(datetime.now(UTC))\n",
    "datetime.datetime.today": "import datetime\n\nprint(datetime.datetime.today())\n",
    "datetime.datetime.utcnow": "import datetime as dt\n\nprint(dt.datetime.utcnow())\n",
    "datetime.date.today": "from datetime import date\n\nprint(date.today())\n",
    "random": "from random import random\n\nprint(random())\n",
    "time": "from time import monotonic\n\nprint(monotonic())\n",
    "uuid.uuid4": "from uuid import uuid4\n\nprint(uuid4())\n",
    "sys.argv": "import sys\n\nprint(sys.argv)\n",
    "sys.exit": "import sys\n\nsys.exit()\n",
}
"""What only some rooms may use -> lines that use it."""


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


@pytest.mark.nightly
@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract["id"])
def test_a_contract_that_is_broken_is_seen_to_be(contract, verdicts):
    assert re.search(rf"{re.escape(contract['name'])} ?BROKEN", verdicts)


@pytest.mark.nightly
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


@pytest.fixture(scope="module")
def uses_seen(tmp_path_factory):
    """What ruff says of a module of a room for each of the uses: `uses_seen(room)`."""
    copy = tmp_path_factory.mktemp("uses")
    shutil.copy(ROOT / "pyproject.toml", copy)

    def look(room):
        folder = copy / "pipeline" / room
        folder.mkdir(parents=True)
        for name, lines in USES.items():
            (folder / f"{name.replace('.', '_')}.py").write_text(lines)
        command = [
            Path(sys.executable).with_name("ruff"),
            "check",
            "--select",
            "TID251",
            "--no-cache",
            folder,
        ]
        return subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False).stdout

    return look


def test_every_ban_is_broken_by_somebody():
    assert set(BANNED) == set(USES)


@pytest.mark.parametrize("room", ["jobs", "runs", "stages", "stores", "reports", "config"])
def test_time_chance_and_the_process_are_for_some_rooms_only(room, uses_seen):
    said = uses_seen(room)
    assert [name for name in USES if f"`{name}` is banned" not in said] == []


@pytest.mark.parametrize("room", ["cli", "executors", "transport", "sandbox"])
def test_the_rooms_that_give_them_may_have_them(room, uses_seen):
    assert "TID251" not in uses_seen(room)


def test_no_reason_speaks_of_the_command_line():
    """What an error of a job says first is for every surface; `option` and `advice` are for one."""
    rooms = ("jobs", "runs", "review", "executors", "headers", "stages/read", "formats", "formats/*")
    spoken = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for room in rooms
        for path in (ROOT / "pipeline").glob(f"{room}/*.py")
        if "--" in (text := path.read_text("utf-8"))
        for node in statements(ast.parse(text))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        for reason in node.exc.args[:1]
        if re.search(r"--[a-z]", ast.unparse(reason))
    ]
    assert spoken == []


PUBLIC_CLASS = re.compile(r"^class ([^\W_]\w*)", re.MULTILINE)


def test_no_two_public_classes_have_one_name():
    homes = defaultdict(list)
    for package in ("pipeline", "schemas"):
        for path in (ROOT / package).rglob("*.py"):
            for name in PUBLIC_CLASS.findall(path.read_text("utf-8")):
                homes[name].append(path.relative_to(ROOT).as_posix())
    # What a store is, and what keeps it, have two names; so have the two sides of the wire.
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


WAIT_IN_REAL_TIME = {
    "contract/stores/test_divided_accounts.py",
    "contract/stores/test_lost_connections.py",
    "contract/stores/test_shared_runs.py",
    "demo_many.py",
    "desk.py",
    "end_to_end/at_the_desk/test_behind_nginx.py",
    "end_to_end/test_workers.py",
    "firefox.py",
    "postgres.py",
    "sharers.py",
    "unit/test_channels.py",
    "unit/test_division_file.py",
    "unit/transport/test_pace_in_real_time.py",
    "unit/transport/test_unasked_bytes.py",
}
"""Files with real processes, threads, files and databases, which no virtual clock moves."""
OTHER_ROOMS = ("bench/", "faults/", "simulation/")
WAIT = re.compile(r"(time|asyncio|anyio)\.sleep|threading\.Event\(\)\.wait")
MAY_HAVE = re.compile(r"\.sleep\b|\(\)\.wait\b|monkeypatch\.(set|del)|\bpatch\b")
PATCH = re.compile(r"monkeypatch\.(set|del)(attr|item)|(mock\.)?patch(\..*)?")


@pytest.fixture(scope="module")
def calls():
    """Each call in files that may wait or patch: file, function as it is written, first argument."""
    return [
        (
            path.relative_to(ROOT / "tests").as_posix(),
            ast.unparse(node.func),
            *map(ast.unparse, node.args[:1]),
        )
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if MAY_HAVE.search(text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name)
    ]


PATCHES = {
    "short_lease.py",
    "simulation/breakers.py",
    "simulation/payments.py",
    "unit/desk/test_sequences_of_acts.py",
}
"""Processes whose leases end in seconds; histories, which watch breakers and count the money of a file once;
and thousands of sequences of acts at the desk, in which nothing is read from or written into runs.
"""


def parts_of_the_program(tree):
    """The names that a test imports from the program."""
    return {
        alias.asname or alias.name
        for node in statements(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("pipeline", "schemas")
        for alias in node.names
    }


def assigned(tree):
    """The name at the root of each attribute or item that is assigned, as `a` of `a.b["c"] = d`."""
    for node in statements(tree):
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else []
        targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
        for target in targets:
            root = target
            while isinstance(root, ast.Attribute | ast.Subscript):
                root = root.value
            if root is not target and isinstance(root, ast.Name):
                yield root.id


MAY_ASSIGN = re.compile(r"(\]|\.\w+)\s*(:[^=\n]*)?([-+*/|&^%@]|//|\*\*|<<|>>)?=(?!=)|\bdel\b")
"""In each text that assigns to an attribute or an item, or deletes one: how such a target ends."""


def patches_by_assignment(text):
    if not MAY_ASSIGN.search(text):
        return False
    tree = ast.parse(text)
    return not parts_of_the_program(tree).isdisjoint(assigned(tree))


def test_a_patch_is_seen_however_it_is_made():
    assert patches_by_assignment("from pipeline.stages.ask import gate\ngate.Breaker = None\n")
    assert patches_by_assignment("from pipeline.config.file import Section\nSection.keys['a'] = 1\n")
    assert not patches_by_assignment("from pipeline.stages.ask import gate\nmade = gate.Gate()\nmade.a = 1\n")


def test_no_other_test_patches_the_program(calls):
    found = {call[0] for call in calls if PATCH.fullmatch(call[1])}
    for path in (ROOT / "tests").rglob("*.py"):
        name = path.relative_to(ROOT / "tests").as_posix()
        if not name.startswith("mutants/") and patches_by_assignment(path.read_text("utf-8")):
            found.add(name)
    assert found == PATCHES


def test_these_files_alone_wait_in_real_time(calls):
    found = [
        name for name, function, *wait_s in calls if WAIT.fullmatch(function) and wait_s not in ([], ["0"])
    ]
    in_virtual_time = {"contract/stores/test_shares.py", "senders.py"}  # by the loops that others give them
    for path in (ROOT / "tests").rglob("test_*.py"):
        if "virtual_time" in path.read_text("utf-8"):
            in_virtual_time.add(path.relative_to(ROOT / "tests").as_posix())
    waiting = {name for name in found if not name.startswith(OTHER_ROOMS)}
    assert waiting - in_virtual_time == WAIT_IN_REAL_TIME


def imports_in(folder):
    """Module -> the modules of the folder that it imports, even within a function or for types alone."""
    files = {
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__"): path
        for package in ("pipeline", "schemas")
        for path in (folder / package).rglob("*.py")
    }
    found = {}
    for module, path in files.items():
        for node in statements(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{one.name}" for one in node.names]
                used = {name if name in files else node.module for name in names}
            elif isinstance(node, ast.Import):
                used = {one.name for one in node.names}
            else:
                continue
            found.setdefault(module, set()).update(used & files.keys() - {module})
    return found


def test_no_modules_import_each_other_in_a_circle():
    TopologicalSorter(imports_in(ROOT)).prepare()


def test_a_circle_of_modules_is_seen(tmp_path):
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "first.py").write_text("import pipeline.second\n")
    (tmp_path / "pipeline" / "second.py").write_text("def f():\n    from pipeline import first\n")
    with pytest.raises(CycleError):
        TopologicalSorter(imports_in(tmp_path)).prepare()


def test_every_statement_of_a_ledger_in_postgresql_is_one_that_a_module_names():
    folder = ROOT / "pipeline" / "stores" / "postgres"
    there = re.findall(r"^-- name: (.+)$", (folder / "queries.sql").read_text(), flags=re.MULTILINE)
    named = [
        (path.stem, name)
        for path in sorted(folder.glob("*.py"))
        for name in re.findall(r'STATEMENTS\["(.+?)"\]', path.read_text())
    ]
    assert sorted(there) == sorted(name for _, name in named)
    assert all(name.startswith(f"{module}.") for module, name in named)
