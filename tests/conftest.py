"""Builders: what a test does not say, they fill in."""

import gc
import os
import shutil
import tempfile
from pathlib import Path

import polars as pl
import pytest
from examples import EXAMPLES_MAX, IS_SEARCH, examples
from hypothesis import settings

from pipeline.apis.cop import Cop
from pipeline.config import Profile
from pipeline.frames import ANSWERS, CHECKS, OUTCOMES, PAYMENTS, WARNINGS, Answer, AnswerState, Check
from pipeline.reports.documents import Rows, reports
from pipeline.runs.families import made_of
from pipeline.runs.folder import keep_document
from pipeline.runs.manifest import LedgerSummary, RunSettings, write_manifest
from pipeline.stages.read import read
from pipeline.stages.summarise import summarise
from pipeline.stages.write import write
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import RunIdentity
from schemas.folder import SUMMARY
from schemas.outcomes import ApiName, Environment
from schemas.summary import InputFile

for _variable in ("LC_ALL", "LC_MESSAGES", "PRECHECK_LANG"):
    os.environ.pop(_variable, None)
os.environ["LANG"] = "C.UTF-8"
"""The terminal of the tests is English, whatever that of who runs them is."""

pytest_plugins = ["desk", "postgres", "readers", "shared_ledgers", "shared_profiles", "visitors"]

settings.register_profile("tests", examples(EXAMPLES_MAX), derandomize=not IS_SEARCH, print_blob=IS_SEARCH)
settings.load_profile("tests")
"""The generated examples are the same in every run: what passed once for a commit passes again, and what is
new to be found is looked for on purpose (`make search`)."""

BYTES_IN_A_NAME_MAX = 60

MEMORY = Path("/dev/shm")  # the file system in memory that Linux has
MEMORY_FREE_MIN_BYTES = 4 * 1024**3
"""More than the folders of all tests take."""


def base_in_memory():
    """Make a base folder for the tests in memory, where `fsync` costs nothing; None if there is no room.

    Tests of durability do not need a disk: those of a power loss (tests/faults) let strace drop the writes.
    """
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < MEMORY_FREE_MIN_BYTES:
        return None
    for old in MEMORY.glob("precheck-tests-*"):
        if not Path("/proc", old.name.rpartition("-")[2]).exists():
            shutil.rmtree(old, ignore_errors=True)  # its run was killed
    base = MEMORY / f"precheck-tests-{os.getpid()}"
    base.mkdir(mode=0o755, exist_ok=True)  # the user that PostgreSQL runs as must pass through
    return base


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Keep the files of the tests in memory. Workers of xdist use a folder in that of the main process."""
    if hasattr(config, "workerinput") or config.option.basetemp is not None:
        return
    if (base := base_in_memory()) is not None:
        config.option.basetemp = base / "t"
        os.environ["TMPDIR"] = tempfile.tempdir = str(base)
        config.add_cleanup(lambda: shutil.rmtree(base, ignore_errors=True))


gc.disable()
"""While ten thousand tests are collected, which all stay: see `pytest_collection_finish`."""


def pytest_collection_finish():
    """What is there now stays to the end: no collection of garbage need look at it again."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_make_parametrize_id(val, argname):
    """Name no test by the bytes of an archive: the time is in them, and processes that share the tests must
    have the same names."""
    return argname if isinstance(val, bytes) and len(val) > BYTES_IN_A_NAME_MAX else None


@pytest.fixture(scope="session")
def payments_of():
    """Rows of fields -> a `Payments` frame, numbered from 1."""

    def build(*rows):
        absent = dict.fromkeys(PAYMENTS)
        numbered = [{**absent, **row, "row": number} for number, row in enumerate(rows, start=1)]
        return pl.DataFrame(numbered, schema=PAYMENTS)

    return build


@pytest.fixture(scope="session")
def check_of():
    """What a question says -> a `Check`; a UK account asked about by name unless it says otherwise."""

    def build(**said):
        absent = dict.fromkeys(Check._fields)
        usual = {"check": 1, "api": ApiName.COP, "account": "11223312345678", "name": "Ada Quillon"}
        if "api" not in said:
            usual["account_type"] = "Personal"
        return Check(**{**absent, **usual, **said})

    return build


@pytest.fixture(scope="session")
def checks_of():
    """`Check` values -> a `Checks` frame."""
    return lambda *checks: pl.DataFrame(checks, schema=CHECKS, orient="row")


@pytest.fixture(scope="session")
def answers_of():
    """What came back, as keyword arguments of `Answer` -> an `Answers` frame."""

    def build(*answers):
        usual = {"state": AnswerState.ANSWERED, "code": "MTCH", "matched_name": None}
        usual |= {"request_id": "00000000-0000-4000-8000-000000000001", "time": "2030-01-02T03:04:05.678Z"}
        rows = [
            Answer(**{"check": number, "attempts": 1, **usual, **answer})
            for number, answer in enumerate(answers, start=1)
        ]
        return pl.DataFrame(rows, schema=ANSWERS, orient="row")

    return build


@pytest.fixture(scope="session")
def outcomes_of():
    """What was decided, as columns without `check_` -> an `Outcomes` frame, one row per payment."""

    def build(*outcomes):
        usual = {"outcome": "match", "code": "MTCH", "reason": "The name belongs to the account."}
        usual |= {"action": "pay", "api": "cop", "environment": "sandbox", "attempts": 1}
        rows = [
            {"row": number, **{f"check_{column}": value for column, value in {**usual, **outcome}.items()}}
            for number, outcome in enumerate(outcomes, start=1)
        ]
        return pl.DataFrame(rows, schema=OUTCOMES)

    return build


PROFILE = Profile(
    cop=Cop(
        server="production",
        base_url="https://cop.example",
        token_url="https://login.example/token",
        client_id="ID",
        client_secret_env="SECRET",
        scope="s",
    )
)


@pytest.fixture(scope="session")
def finish_run():
    """A payment file and an `Outcomes` frame -> the folder that a finished run of them leaves.

    `warnings` are pairs of a row and the code of its warning. Without `reported` it has no reports, which
    take half the time: for a property that is tried with many files and looks at none. Only a `related` one
    looks for the run that corrected or held its payments.
    """

    def build(
        file,
        outcomes,
        *,
        environment="production",
        profile="main",
        mapping=(),
        encoding=None,
        format_name=None,
        secret=None,
        warnings=(),
        reported=True,
        related=False,
    ):
        folder = file.parent / f"{file.stem}.precheck"
        time = "2030-01-02T03:04:05.678Z"
        source = read(file, mapping=dict(mapping), encoding=encoding)
        identity = RunIdentity(source.sha256, "0" * 64, environment, "0")
        path = folder / "ledger.db"
        with SqliteLedger.open(path, identity, now=time, fresh=True, secret=secret) as ledger:
            written = write(
                source.original,
                outcomes,
                folder,
                format_name=format_name or source.outcome_format,
                dialect=source.dialect,
            )
            described = InputFile(
                name=file.name,
                sha256=source.sha256,
                byte_count=source.byte_count,
                row_count=source.payments.height,
                made_of=made_of(file, source.sha256, folder) if related else None,
                format=source.format,
                columns={reading.header: reading.field for reading in source.columns if reading.field},
                mapping=dict(mapping),
                decision=dict(source.decision),
                **source.dialect._asdict(),
                **({} if source.packing is None else source.packing._asdict()),
                extra_column_count=source.extra_column_count,
            )
            about = {"tool_version": "0", "profile": profile, "environment": Environment(environment)}
            header = about | {"started": time, "finished": time, "input": described}
            header |= {"routes": [], "next_step": "run again"}
            odd = pl.DataFrame(
                [(row, "name", code, "odd", '["rule.name_missing",{}]') for row, code in warnings],
                schema=WARNINGS,
                orient="row",
            )
            summary = summarise(header, source.payments, outcomes, odd, [])
            keep_document(folder / SUMMARY, summary)
            rows = Rows(source.payments, outcomes, source.original)
            made = reports(folder, summary, rows, outcome_name=written.path.name) if reported else ()
            finish = ledger.finish(time, question_count=0, unanswered_count=0, outcome_sha256=written.sha256)
            write_manifest(
                folder,
                summary,
                RunSettings(profile, PROFILE, "0" * 64, dict(mapping), "en"),
                LedgerSummary(finish, ledger.counts, ledger.created_at, 1, ledger.digests(1)),
                [written.path, folder / "summary.json", *made],
            )
        return folder

    return build


def pytest_addoption(parser):
    parser.addoption("--write-pictures", action="store_true", help="write the pictures of the documentation")
