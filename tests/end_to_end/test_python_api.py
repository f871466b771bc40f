"""The Python API, called by programs that have modules, loops, threads and signals of their own."""

import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner
from desk import WARM
from refusals import said

from payee_precheck import CheckOptions, PlanOptions, PrecheckError, check, explain, plan
from pipeline.cli.main import main

PAGE = Path(__file__).parents[2] / "docs/python.md"
SAMPLES = Path(__file__).parents[2] / "sample_data"
CODE_IN_PAGE = re.compile(r"```python\n(.*?)```", re.DOTALL)
NOT_FOR_PYTHON = {"out", "json", "quiet", "log", "lang", "help"}
"""Options that say what is printed, and the one that is a parameter."""
NIGHTS = {"metrics", "metrics-listen", "traces", "ping", "ping-ca"} | {
    "work",
    "engine",
    "scheduler",
    "no-ask",
}
"""Options of night jobs and of data sets, which are commands."""


@pytest.fixture
def payments():
    return pl.DataFrame(
        {
            "name": ["Avery Thornwood", "Rowan Blackmere"],
            "sort_code": ["001122", "001122"],
            "account_number": ["12345678", "00000002"],
            "amount": ["1250.00", "80.50"],
        }
    )


@pytest.fixture
def warm(tmp_path_factory):
    """Calls are answered by forks. Tests with a program of another start interpreters."""
    with WARM.in_place_of_interpreters(tmp_path_factory.mktemp("warm")):
        yield


@pytest.mark.usefixtures("warm")
def test_a_file_is_checked_once(tmp_path):
    first = check(SAMPLES / "payments_mixed.csv", out=tmp_path / "run")
    assert first.exit_code == 0
    assert first.summary.simulated
    assert first.summary.calls
    assert first.outcomes.height == 24
    assert first.outcomes.schema["sort_code"] == pl.String
    again = check(SAMPLES / "payments_mixed.csv", out=tmp_path / "run")
    assert again.outcomes.equals(first.outcomes)
    assert again.summary.finished == first.summary.finished


@pytest.mark.usefixtures("warm")
def test_a_frame_is_checked_and_leaves_no_copy(tmp_path, payments, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "private"))
    (tmp_path / "private").mkdir()
    result = check(payments, out=tmp_path / "run", fail_on=["not_possible"])
    assert result.exit_code == 1
    assert result.outcomes.select(payments.columns).equals(payments)
    assert not any(api.call_count for api in plan(payments, out=tmp_path / "run").apis)
    assert check(payments, out=tmp_path / "run").outcomes.equals(result.outcomes)


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ("sort_code", [1122, 1122]),
        pytest.param("amount", [1250.0, 80.5], marks=pytest.mark.nightly),
        pytest.param("account_number", [1, 2], marks=pytest.mark.nightly),
    ],
)
def test_numbers_that_lost_something_are_refused(tmp_path, payments, column, cells):
    with pytest.raises(PrecheckError, match=column) as refusal:
        check(payments.with_columns(pl.Series(column, cells)), out=tmp_path / "run")
    assert refusal.value.exit_code == 65


@pytest.mark.usefixtures("warm")
def test_a_refusal_says_what_to_do(tmp_path, payments):
    with pytest.raises(PrecheckError) as missing:
        check(tmp_path / "none.csv")
    assert (missing.value.exit_code, missing.value.result) == (65, None)
    assert missing.value.reason
    with pytest.raises(PrecheckError, match="--limit"):
        check(SAMPLES / "payments_mixed.csv", limt=3)
    with pytest.raises(PrecheckError, match="out="):
        check(payments)


@pytest.mark.usefixtures("warm")
def test_a_mistaken_option_is_refused_in_english_whatever_the_locale(tmp_path, monkeypatch):
    monkeypatch.setenv("PRECHECK_LANG", "de")
    with pytest.raises(PrecheckError, match="Invalid value for '--country': 'UKX' is not a country"):
        plan(tmp_path / "none.csv", country="UKX")


@pytest.mark.usefixtures("warm")
def test_a_code_is_explained_in_english_whatever_the_locale(monkeypatch):
    monkeypatch.setenv("PRECHECK_LANG", "de")
    assert said("answer.close_name") in explain("mbam")
    near = said("reports.unknown_code_near_match", wanted="'MBAN'", near="MBAM")
    with pytest.raises(PrecheckError, match=re.escape(near)) as refusal:
        explain("MBAN")
    assert refusal.value.exit_code == 2


@pytest.mark.usefixtures("warm")
def test_a_check_that_is_not_complete_never_looks_complete(tmp_path):
    with pytest.raises(PrecheckError) as incomplete:
        check(SAMPLES / "payments_mixed.csv", out=tmp_path / "run", limit=1)
    assert (incomplete.value.exit_code, incomplete.value.result.exit_code) == (75, 75)
    assert incomplete.value.reason.startswith("payments_mixed.csv: ")
    assert "deferred" in incomplete.value.result.outcomes["check_outcome"].to_list()


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    "name", ["-", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("--help", "--json"))]
)
def test_a_name_is_never_an_option_and_never_standard_input(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PrecheckError, match=re.escape(name)) as refusal:
        check(name, out="run")
    assert refusal.value.exit_code == 65


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    "delimiter", [";", *(pytest.param(delimiter, marks=pytest.mark.nightly) for delimiter in "\t,")]
)
def test_outcomes_are_read_back_whatever_the_delimiter(tmp_path, payments, delimiter):
    payments.write_csv(tmp_path / "pay.csv", separator=delimiter, quote_style="always")
    outcomes = check(tmp_path / "pay.csv", out=tmp_path / "run", format="csv").outcomes
    assert outcomes.select(payments.columns).equals(payments)
    assert outcomes.columns[-1] == "check_attempts"


def test_options_are_those_of_the_command():
    for name, options in (("run", CheckOptions), ("plan", PlanOptions)):
        flags = re.findall(
            r"^  --([a-z0-9-]+)", CliRunner().invoke(main, [name, "--help"]).output, re.MULTILINE
        )
        assert {option.replace("_", "-") for option in options.__annotations__} == (
            set(flags) - NOT_FOR_PYTHON - NIGHTS
        )


def ran(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a program of another did."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, check=False, capture_output=True, text=True, timeout=120
    )


CALLER = """
import asyncio, json, pipeline, schemas, signal, sys
from payee_precheck import check
handler = signal.signal(signal.SIGTERM, lambda *_: None)
before = signal.getsignal(signal.SIGTERM)
async def main():
    return await asyncio.gather(*(asyncio.to_thread(check, sys.argv[1], out=sys.argv[2] + n) for n in "ab"))
results = asyncio.run(main())
assert all(result.summary.complete for result in results)
import schemas as again, schemas.mine
assert (pipeline.MINE, again.MINE, schemas.mine.MINE) == (1, 2, 3)
assert signal.getsignal(signal.SIGTERM) is before
print([result.outcomes.height for result in results])
"""


def test_the_callers_modules_loop_threads_and_signals_do_not_matter(tmp_path):
    (tmp_path / "pipeline.py").write_text("MINE = 1")
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/__init__.py").write_text("MINE = 2")
    (tmp_path / "schemas/mine.py").write_text("MINE = 3")
    (tmp_path / "caller.py").write_text(CALLER)
    ended = ran(tmp_path, "caller.py", str(SAMPLES / "payments_mixed.csv"), str(tmp_path / "out"))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[24, 24]\n", "")


@pytest.mark.usefixtures("warm")
def test_two_calls_for_one_folder_do_not_mix(tmp_path):
    def called(_number: int) -> int:
        try:
            return check(SAMPLES / "payments_mixed.csv", out=tmp_path / "run").exit_code
        except PrecheckError as refusal:
            return refusal.exit_code

    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(called, range(2))) <= {0, 75}
    assert called(0) == 0


def test_an_interrupted_call_ends_its_run(tmp_path, sandbox):
    """Once a question was sent: before, there is no outcome file."""
    program = "import sys; from payee_precheck import check; "
    program += "check(sys.argv[1], out=sys.argv[2], config=sys.argv[3], profile='sandbox')"
    before = sandbox.call_count
    file = tmp_path / "many.csv"
    rows = (f"Payee {number},001122,{number:08d},1.00" for number in range(20_000))
    file.write_text("\n".join(("name,sort_code,account_number,amount", *rows)))
    caller = subprocess.Popen(
        [sys.executable, "-c", program, str(file), str(tmp_path / "run"), str(sandbox.config)],
        stderr=subprocess.PIPE,
    )
    sandbox.wait_for_calls(1, since=before)
    caller.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in caller.communicate(timeout=60)[1]
    assert (tmp_path / "run/outcomes.parquet").exists()


AS_IT_IS = """
def as_it_is(*functions, **_settings):
    return functions[0] if functions else lambda function: function
"""
STAND_INS = {
    "airflow/__init__.py": "",
    "airflow/decorators.py": f"{AS_IT_IS}task = as_it_is",
    "airflow/exceptions.py": "class AirflowFailException(Exception): pass",
    "dagster.py": f"""{AS_IT_IS}op = as_it_is
class RetryRequested(Exception): pass
class Failure(Exception):
    def __init__(self, what, *, allow_retries):
        super().__init__(what)
        assert not allow_retries
""",
    "prefect.py": f"{AS_IT_IS}task = as_it_is",
}
"""Schedulers whose decorators leave a task as it is."""
CALLS = """
assert review.height == 2
for task, ends_with in (
    (check_payments, AirflowFailException), (check_payments_op, Failure), (check_payments_task, PrecheckError)
):
    assert task("payments_mixed.csv", None) == "payments_mixed.csv.precheck"
    try:
        task("none.csv", None)
    except ends_with as refusal:
        assert "none.csv" in str(refusal)
    else:
        raise AssertionError(task)
class State:
    def result(self, raise_on_failure):
        return PrecheckError(75, "the cap is spent")
assert is_incomplete(None, None, State())
"""


@pytest.mark.docs
def test_the_page_runs_as_it_is_printed(tmp_path):
    blocks = CODE_IN_PAGE.findall(PAGE.read_text(encoding="utf-8"))
    assert max(len(block.splitlines()) for block in blocks) <= 20
    (tmp_path / "airflow").mkdir()
    for name, text in {**STAND_INS, "page.py": "\n".join((*blocks, CALLS))}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "payments_mixed.csv").write_bytes((SAMPLES / "payments_mixed.csv").read_bytes())
    ended = ran(tmp_path, "page.py")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("65 no_such_file.csv")
