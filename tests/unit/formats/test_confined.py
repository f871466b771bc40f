"""Parsing in a child: what it may cost, what comes back, and what the child is not told."""

import io
import os
from contextlib import chdir

import polars as pl
import pytest
from refusals import refused

from pipeline.errors import InputError
from pipeline.files.confined import parse_confined, received_table

PARSERS = """
import os, signal, sys
import polars as pl
from pipeline.errors import InputError
from pipeline.wording import Sentence

def parse(data):
    what = data.decode()
    if what == "abort":
        os.abort()
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "memory":
        bytearray(64 * 1024**3)
    if what == "raise":
        raise ValueError("a cell of somebody")
    if what == "cut":
        sys.stdout.buffer.write(b"half a table")
        sys.stdout.flush()
        os._exit(0)
    if what == "refuse":
        raise InputError(Sentence("jobs.part_unusable", problem="the sheet is empty"))
    if what == "advise":
        said = Sentence("jobs.part_unusable", problem="the sheet is empty")
        raise InputError(said, advice=(Sentence("advice.name_sheet"), Sentence("files.remove_it")))
    if what in ("nested", "no list"):
        said = b"[" * 3_000 if what == "nested" else b'{"reason": "x"}'
        sys.stdout.buffer.write((0).to_bytes(8) + said)
        sys.stdout.flush()
        os._exit(3)
    if what == "half":
        yield pl.DataFrame({"said": [what]})
        os.abort()
    if what == "halt":
        sys.stdout.buffer.write((100).to_bytes(8) + b"less than a hundred bytes")
        sys.stdout.flush()
        os._exit(0)
    if what == "endless":
        sys.stdout.buffer.write((2**63).to_bytes(8))
        sys.stdout.flush()
        os._exit(0)
    if what == "other columns":
        yield pl.DataFrame({"something": [what]})
    if what == "parts":
        for number in range(3):
            yield pl.DataFrame({"said": [f"{number} {row}" for row in range(50_000)]})
        return
    yield pl.DataFrame({"said": [what], "environment": [" ".join(sorted(os.environ))]})
"""


@pytest.fixture
def parse(tmp_path):
    """A module of parsers in a folder that the child is told of."""
    (tmp_path / "hostile_parsers.py").write_text(PARSERS)
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{inherited or ''}".rstrip(os.pathsep)
    yield lambda data: parse_confined("hostile_parsers", data.encode(), where="payroll.x", what="the file")
    if inherited is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = inherited


def test_the_table_comes_back(parse):
    assert parse("hello")["said"].to_list() == ["hello"]


def test_an_open_file_is_read_by_the_child(parse, tmp_path):
    path = tmp_path / "payroll.x"
    path.write_text("hello")
    with path.open("rb") as file:
        found = parse_confined("hostile_parsers", file, where=path.name, what="the file")
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == path.stat().st_size, "who has read it"
    assert found["said"].to_list() == ["hello"]


def test_parts_come_back_as_one_table_in_their_order(parse):
    assert parse("parts")["said"].to_list() == [f"{part} {row}" for part in range(3) for row in range(50_000)]


def test_a_sentence_of_the_parser_is_told(parse):
    with refused(InputError, "files.refused_because", where="payroll.x", problem="the sheet is empty"):
        parse("refuse")


def test_advice_of_the_parser_has_words_of_its_own_on_each_surface(parse):
    with refused(
        InputError, "advice.name_sheet", "files.remove_it", where="payroll.x", problem="the sheet is empty"
    ):
        parse("advise")


@pytest.mark.parametrize(
    "end",
    ["abort", "kill", "memory", "cut", "half", "halt", "endless", "other columns", "nested", "no list"],
)
def test_a_child_that_dies_is_a_sentence(parse, end):
    with refused(InputError, "files.damaged_or_needs_memory", where="payroll.x", what="the file"):
        parse(end)


def test_what_a_parser_says_is_not_repeated(parse):
    with refused(InputError, "files.is_damaged", where="payroll.x", what="the file") as error:
        parse("raise")
    assert error.value.__cause__ is None


def test_parts_may_not_fill_the_parent_one_after_the_other():
    part = io.BytesIO()
    pl.DataFrame({"said": ["x" * 100]}).write_ipc_stream(part)
    said = (len(part.getvalue()).to_bytes(8) + part.getvalue()) * 3
    assert received_table(io.BytesIO(said), table_bytes_max=3 * len(part.getvalue())).height == 3
    with pytest.raises(MemoryError):
        received_table(io.BytesIO(said), table_bytes_max=3 * len(part.getvalue()) - 1)


def test_a_child_that_does_not_read_to_the_end_is_no_error_of_ours(parse):
    with refused(InputError, "files.damaged_or_needs_memory"):
        parse_confined("no_such_module", b"x" * 10_000_000, where="payroll.x", what="the file")


def test_no_credential_is_in_the_environment_of_the_child(parse):
    os.environ["SOME_CLIENT_SECRET"] = "canary"
    try:
        assert "SOME_CLIENT_SECRET" not in parse("hello")["environment"].item()
    finally:
        del os.environ["SOME_CLIENT_SECRET"]


def test_no_module_is_taken_from_the_working_folder(parse, tmp_path):
    elsewhere = tmp_path / "strangers"
    elsewhere.mkdir()
    (elsewhere / "polars.py").write_text("raise SystemExit('imported')")
    with chdir(elsewhere):
        assert parse("hello")["said"].item() == "hello"
