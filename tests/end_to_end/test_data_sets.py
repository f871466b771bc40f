"""Data sets: parts are checked as one file would be, whatever carries them out and whatever kills the run."""

import csv
import gzip
import json
import logging
import re
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack, closing
from decimal import Decimal

import openpyxl
import polars as pl
import pytest
from desk import HEADER, VOLATILE
from paymentfiles.pain001 import Batch, Dialect, Payment, document
from refusals import said
from signers import key_files

from pipeline.executors.datasets.engines import engine

pytestmark = pytest.mark.usefixtures("in_this_process")

NAMES = ["ann.csv", "bob.csv", "cid.csv", "part-7.csv"]
PLACE = re.compile(r"(row \d+) \([^)]*\)")
"""Where a row stands is said by its line in a file, and by its part in a data set."""


@pytest.fixture
def rows(network_payments):
    """Payments that repeat across parts, whose unknown accounts are in sequence, with rejects among them."""
    made = [dict(row) for row in network_payments(60)]
    for number, row in enumerate(made):
        row["payment_id"] = f"PAY-{number:05d}"
        if number % 11 == 3:
            row["sort_code"] = "12"
        if number % 13 == 5:
            row["iban"], row["name"] = "DE89370400440532013000", "Invented Company"
            row["sort_code"] = row["account_number"] = ""
    repeated = [row | {"payment_id": f"AGAIN-{number}"} for number, row in enumerate(made[:20])]
    return [*made, *repeated]


@pytest.fixture
def keys(desk):
    return key_files(desk, "signing")


def as_data_set(desk, rows, *, parts=4, form="csv"):
    """The same payments as one file and as a folder of parts of different sizes."""
    header = list(dict.fromkeys((*HEADER, *rows[0])))
    desk.payments(rows, "all.csv", header)
    folder = desk.folder / "set"
    folder.mkdir(exist_ok=True)
    starts = [0, *sorted(len(rows) * number**2 // parts**2 for number in range(1, parts)), len(rows)]
    for name, start, end in zip(NAMES, starts, starts[1:], strict=False):
        desk.payments(rows[start:end], f"set/{name}", header)
        if form == "parquet":
            frame = pl.read_csv(folder / name, infer_schema=False)
            frame.write_parquet((folder / name).with_suffix(".parquet"))
            (folder / name).unlink()
    (folder / "_SUCCESS").touch()
    return folder


def decided(desk, out="set.precheck"):
    """The rows of all parts, in order, without what two runs may differ in."""
    found = []
    for path in sorted((desk.folder / out / "outcomes").iterdir()):
        if path.suffix == ".parquet":
            table = pl.read_parquet(path).with_columns(pl.all().cast(pl.String).fill_null(""))
            found += table.rows(named=True)
        else:
            with path.open(newline="", encoding="utf-8") as file:
                found += csv.DictReader(file)
    return sorted(map(stable, found), key=lambda row: row["payment_id"])


def stable(row):
    return {name: PLACE.sub(r"\1", cell) for name, cell in row.items() if name not in VOLATILE}


def by_one_process(desk, sandbox):
    assert desk.ran("run", "all.csv", *sandbox.using("sandbox")).status == 0
    return sorted(map(stable, desk.outcomes("all.precheck")), key=lambda row: row["payment_id"])


def run(desk, sandbox, *words, status=0):
    finished = desk("run", "set", "--work", "work", *sandbox.using("sandbox"), *words)
    assert finished.status == status, finished.err
    return finished


def begun_with(desk, sandbox, *words, status=0):
    """As `run`, for what a test begins with."""
    finished = desk.ran("run", "set", "--work", "work", *sandbox.using("sandbox"), *words)
    assert finished.status == status, finished.err
    return finished


def sections(sandbox, **limits):
    """Of a profile whose accounts are mostly unknown, with other limits."""
    return {api: sandbox.section("sandbox", api, **limits) for api in ("cop", "vop")}


def summary(desk, out="set.precheck"):
    return json.loads((desk.folder / out / "summary.json").read_text())


@pytest.mark.parametrize(
    ("form", "engine"),
    [
        pytest.param("csv", "pool", marks=pytest.mark.nightly),
        ("parquet", "pool"),
        pytest.param("csv", "dask", marks=pytest.mark.nightly),
    ],
)
def test_the_outcomes_are_those_of_one_process_on_one_file(desk, sandbox, rows, form, engine):
    as_data_set(desk, rows, form=form)
    one = by_one_process(desk, sandbox)
    reasons = " ".join(row["check_reason"] for row in one)
    assert said("rule.payment_repeated", "") in reasons
    assert "consecutive numbers" in reasons

    before = sandbox.call_count
    run(desk, sandbox, "--engine", engine)

    assert decided(desk) == one
    mine, theirs = summary(desk), summary(desk, "all.precheck")
    same = ("outcomes", "codes", "saved_call_count", "attention_count", "warning_count", "complete")
    for each in (*same, "banks", "bank_count"):
        assert mine[each] == theirs[each], each
    assert theirs["bank_count"] > 1
    for each in ("row", "code", "amount"):
        assert [row[each] for row in mine["attention"]] == [row[each] for row in theirs["attention"]]
    assert {route["reason"]: route["row_count"] for route in mine["routes"]} == {
        route["reason"]: route["row_count"] for route in theirs["routes"]
    }
    assert [part["row_count"] for part in mine["parts"]] == [5, 15, 25, 35]
    asked = [call for call in sandbox.calls(before) if call["api"] != "token"]
    assert len(asked) == sum(call["question_count"] for call in theirs["calls"])
    assert not any((desk.folder / "work").iterdir()), "the work folder is removed once all is decided"


@pytest.fixture
def of_dask(tmp_path):
    """Start a scheduler of Dask, or a worker of it; each is a process of its own."""
    pytest.importorskip("distributed")
    common = ("--scheduler-file", str(tmp_path / "scheduler.json"), "--no-dashboard", "--host", "127.0.0.1")
    words = {
        "scheduler": ("--port", "0"),
        "worker": ("--nthreads", "1", "--no-nanny", "--local-directory", str(tmp_path / "dask")),
    }
    with ExitStack() as running:

        def start(name):
            command = [sys.executable, "-m", "dask", name, *common, *words[name]]
            process = running.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL))
            running.callback(process.kill)
            return process

        yield start


@pytest.fixture
def scheduler(of_dask, tmp_path, wait_until):
    """The address of a scheduler of Dask that has no worker."""
    of_dask("scheduler")
    said = tmp_path / "scheduler.json"
    wait_until(lambda: said.exists() and said.read_text().rstrip().endswith("}"))  # it is written in place
    return json.loads(said.read_text())["address"]


@pytest.mark.nightly
def test_a_scheduler_without_a_worker_is_waited_for_and_the_worker_that_comes_does_the_work(
    desk, sandbox, rows, scheduler, of_dask, wait_until
):
    as_data_set(desk, rows)
    words = "run", "set", "--work", "work", *sandbox.using("sandbox"), "--engine", "dask"
    with (desk.folder / "said").open("w") as said:
        waiting = desk.start(*words, "--scheduler", scheduler, stderr=said)
    wait_until(lambda: "has no worker yet" in (desk.folder / "said").read_text())
    of_dask("worker")
    assert waiting.end().status == 0
    assert decided(desk) == by_one_process(desk, sandbox)
    assert not any((desk.folder / "work").iterdir())


@pytest.mark.nightly
def test_a_data_set_goes_the_whole_way_on_two_workers_of_dask_although_one_is_killed(
    desk, sandbox, scheduler, of_dask, wait_until
):
    as_data_set(desk, known_to_the_sandbox(40))
    workers = [of_dask("worker") for _ in range(2)]
    with_dask = ("--work", "work", *sandbox.using("sandbox"), "--engine", "dask", "--scheduler", scheduler)
    running = desk.start("run", "set", *with_dask)
    wait_until(lambda: any((desk.folder / "work").rglob("read/*.json")))
    workers[0].kill()
    assert running.end().status == 0
    assert decided(desk) == by_one_process(desk, sandbox)

    assert desk("show", "set.precheck", "--row", "7").status == 0
    accepting = ("--accept", "close_match", "--reason", "asked", "--allow-simulated", "--json")
    corrected = json.loads(desk("fix", "set.precheck", *accepting).out)["corrected"]["path"]
    assert desk("run", corrected, "--out", "set.again", *with_dask).status == 0
    assert desk("split", "set.again", "--by", "Bea", "--allow-simulated").status == 0
    verified = desk("verify", "set.again", "--input", corrected)
    assert verified.status == 0, verified.out


@pytest.mark.nightly
def test_the_processes_of_a_cluster_of_this_machine_write_nothing_on_the_terminal():
    pytest.importorskip("distributed")
    names = ("distributed.worker", "distributed.nanny", "distributed.core")
    with engine("dask") as cluster:
        # A logger that is sent to another process is the logger of that name there.
        levels = cluster.each(logging.Logger.getEffectiveLevel, [logging.getLogger(name) for name in names])
        assert {level for _, level in levels} == {logging.CRITICAL}


@pytest.mark.nightly
def test_a_finished_data_set_is_not_asked_about_again(desk, sandbox, rows):
    as_data_set(desk, rows)
    first = begun_with(desk, sandbox, "--json")
    written = {
        path: path.read_bytes() for path in (desk.folder / "set.precheck").rglob("*") if path.is_file()
    }
    before = sandbox.call_count

    again = run(desk, sandbox, "--json")

    assert sandbox.call_count == before
    assert json.loads(again.out)["outcomes"] == json.loads(first.out)["outcomes"]
    assert {path: path.read_bytes() for path in written} == written


@pytest.mark.nightly
def test_an_outcome_file_that_was_changed_is_written_again_and_nothing_is_asked(desk, sandbox, rows):
    as_data_set(desk, rows)
    begun_with(desk, sandbox)
    one, before = decided(desk), len(sandbox.questions())
    (desk.folder / "set.precheck" / "outcomes" / "part-bob.csv").unlink()

    run(desk, sandbox)

    assert decided(desk) == one
    assert len(sandbox.questions()) == before


def test_a_run_that_is_killed_anywhere_goes_on_and_repeats_no_answered_question(desk, serve, tmp_path, rows):
    with serve(tmp_path / "own") as sandbox:
        killed_twice(desk, sandbox, rows)


def killed_twice(desk, sandbox, rows):
    as_data_set(desk, rows)
    one = by_one_process(desk, sandbox)
    slow = desk.using(**sections(sandbox, rate_per_s=40, in_flight_max=4))
    words = ("run", "set", "--work", "work", *slow)
    out = desk.folder / "set.precheck"
    question_count = sum(call["question_count"] for call in summary(desk, "all.precheck")["calls"])
    moments = [
        lambda: len(sandbox.questions()) >= question_count + 12,
        lambda: any((out / "outcomes").glob("part-*")),
    ]
    for moment in moments:
        running = desk.start(*words)
        running.kill_when(moment)

    assert desk(*words).status == 0
    assert decided(desk) == one
    with closing(sqlite3.connect(out / "ledger.db")) as db:
        [[intended]] = db.execute("SELECT count(*) FROM intent")
        [[answered]] = db.execute("SELECT count(*) FROM answer")
        [[failed]] = db.execute("SELECT count(*) FROM failure")
        [[again]] = db.execute(
            "SELECT count(*) FROM intent AS later JOIN intent AS first ON later.question = first.question"
            " JOIN answer ON answer.intent = first.id WHERE later.id > first.id"
        )
    assert again == 0, "an answered question was asked again"
    assert answered == question_count
    # The sandbox may not have logged the last of them yet.
    assert len(sandbox.questions()) <= question_count + intended, "a request left without its intent"
    in_flight_max = 4 * len(("cop", "vop"))
    assert intended - answered - failed <= in_flight_max * len(moments)


def test_a_bad_part_stops_no_other_and_is_checked_once_it_is_corrected(desk, sandbox, rows):
    folder = as_data_set(desk, rows)
    whole = (folder / "bob.csv").read_text()
    (folder / "bob.csv").write_text(whole.replace("name,", "payee,", 1))
    one = by_one_process(desk, sandbox)

    finished = run(desk, sandbox, status=65)

    assert said("jobs.parts_unusable", problems_count=1, parts_count=4) in finished.err
    expected = said(
        "jobs.part_columns_differ", part="bob.csv", first="ann.csv", differences="without name, with payee"
    )
    assert expected in finished.err
    german = run(desk, sandbox, "--lang", "de", status=65)
    expected = said(
        "jobs.part_columns_differ",
        "command",
        "de",
        part="bob.csv",
        first="ann.csv",
        differences="ohne name, mit payee",
    )
    assert expected in german.err
    problem = next(part for part in summary(desk)["parts"] if part["problem"])
    assert problem["name"] == "bob.csv"
    assert not summary(desk)["complete"]
    assert len(decided(desk)) == len(rows) - 15
    before = len(sandbox.questions())

    (folder / "bob.csv").write_text(whole)
    run(desk, sandbox)

    def codes(rows):
        return [(row["payment_id"], row["check_outcome"], row["check_code"]) for row in rows]

    assert codes(decided(desk)) == codes(one)
    names = [part["name"] for part in summary(desk)["parts"]]
    assert names == ["ann.csv", "cid.csv", "part-7.csv", "bob.csv"], "decisions name the rows by number"
    assert len(sandbox.questions()) - before <= 15


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("b.parquet", b"PAR1", "has the format csv and b.parquet has parquet"),
        ("notes.pdf", b"%PDF", "has none of the formats of a data set's parts (csv, parquet, pain001)"),
        ("b.xlsx", b"PK\x03\x04", "has none of the formats of a data set's parts (csv, parquet, pain001)"),
        ("inner/x.csv", b"", "a folder within a data set"),
        ("ann.tsv", b"x", "another part has this name with another suffix"),
    ],
)
def test_what_cannot_be_parts_is_refused_before_anything_is_left(desk, rows, name, content, sentence):
    folder = as_data_set(desk, rows)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)

    finished = desk("run", "set", "--work", "work")

    assert finished.status == 65
    assert sentence in finished.err
    assert not (desk.folder / "set.precheck").exists()
    assert not (desk.folder / "work").exists()


def test_an_empty_folder_and_a_folder_without_work_are_refused(desk, rows):
    (desk.folder / "none").mkdir()
    assert said("runs.data_set_without_files") in desk("run", "none", "--work", "work").err
    as_data_set(desk, rows)
    finished = desk("run", "set")
    assert finished.status == 65
    assert said("advice.check_as_data_set") in finished.err


@pytest.mark.nightly
def test_names_that_are_tried_on_an_account_across_parts_are_refused(desk, sandbox, rows):
    for number, row in enumerate(rows[:40:10]):
        row |= {
            "name": f"Another Name {number}",
            "sort_code": "010203",
            "account_number": "20000001",
            "iban": "",
        }
    as_data_set(desk, rows)
    before = sandbox.call_count

    finished = run(desk, sandbox, status=65)

    assert said("rules.many_names", names_max=3, account_count=1) in finished.err
    assert "ann.csv row 1" in finished.err
    assert sandbox.call_count == before
    assert not (desk.folder / "set.precheck").exists()
    run(desk, sandbox, "--allow-many-names", "an account of a shared household")


@pytest.mark.nightly
def test_a_limit_defers_the_rest_until_the_next_run(desk, sandbox, rows):
    as_data_set(desk, rows)
    one = by_one_process(desk, sandbox)
    before = len(sandbox.questions())

    run(desk, sandbox, "--limit", "10", status=75)

    assert len(sandbox.questions()) - before == 10
    left = summary(desk)
    assert not left["complete"]
    assert "Questions left: " in left["next_step"]
    assert any((desk.folder / "work").iterdir())
    run(desk, sandbox)
    assert decided(desk) == one
    assert len(sandbox.questions()) - before == sum(call["question_count"] for call in left["calls"])


@pytest.mark.nightly
def test_a_limit_takes_up_new_questions_of_every_bucket_before_those_that_got_no_answer(
    desk, serve, tmp_path, rows
):
    as_data_set(desk, rows)
    with serve(tmp_path / "own", "--fault", "500:api=cop,probability=0.3,seed=7") as sandbox:
        asked = []
        for _ in range(2):
            before = len(sandbox.questions())
            once = desk.using(**sections(sandbox, attempts_max=1))
            assert desk("run", "set", "--work", "work", "--limit", "20", *once).status == 75
            asked.append({call["question"] for call in sandbox.questions()[before:]})
            assert any(row["check_outcome"] == "unanswered" for row in decided(desk))
    assert [len(questions) for questions in asked] == [20, 20]
    assert asked[0].isdisjoint(asked[1])


@pytest.mark.nightly
def test_purge_deletes_the_outcome_files_and_the_work_folder_and_the_run_goes_on(desk, sandbox, rows):
    as_data_set(desk, rows)
    before = len(sandbox.questions())
    run(desk, sandbox, "--limit", "10", status=75)

    purged = desk("purge", "set.precheck", "--outcomes")

    assert purged.status == 0, purged.err
    assert not (desk.folder / "set.precheck" / "outcomes").exists()
    assert list((desk.folder / "work").iterdir()) == []
    assert str(desk.folder / "work") in purged.err
    run(desk, sandbox)
    assert {row["check_outcome"] for row in decided(desk)}.isdisjoint({"deferred"})
    assert len(sandbox.questions()) - before == sum(call["question_count"] for call in summary(desk)["calls"])


@pytest.mark.nightly
def test_a_daily_cap_defers_the_rest_and_says_when_to_go_on(desk, serve, tmp_path, rows):
    as_data_set(desk, rows)
    with serve(tmp_path / "own") as sandbox:
        capped = desk.using(**sections(sandbox, daily_cap=7))
        finished = desk("run", "set", "--work", "work", *capped)
        assert finished.status == 75
        assert said("executors.left_by_cap", cap=7) in summary(desk)["next_step"]
        assert {row["check_code"] for row in decided(desk) if row["check_outcome"] == "deferred"} == {
            "DAILY_CAP"
        }


def test_ctrl_c_ends_the_processes_of_the_pool_too(desk, sandbox, rows):
    as_data_set(desk, rows)
    slow = desk.using(**sections(sandbox, rate_per_s=4, in_flight_max=2))
    before = sandbox.call_count
    running = desk.start("run", "set", "--work", "work", *slow)
    sandbox.wait_for_calls(5, before)
    running.send_signal(signal.SIGINT)
    assert running.end().status == 130
    assert summary(desk)["next_step"]


def test_the_folder_of_a_data_set_is_told_apart_from_that_of_a_file(desk, sandbox, rows):
    as_data_set(desk, rows)
    begun_with(desk, sandbox)
    assert desk("run", "all.csv", "--out", "set.precheck", *sandbox.using("sandbox")).status == 2


def test_the_page_names_every_part_and_the_attention_file_goes_by_size(desk, sandbox, rows):
    as_data_set(desk, [row | {"check_size": "own"} for row in rows])
    begun_with(desk, sandbox)
    page = (desk.folder / "set.precheck" / "report.html").read_text()
    assert "By part" in page
    for name in NAMES:
        assert name in page
    with (desk.folder / "set.precheck" / "attention.csv").open(encoding="utf-8-sig", newline="") as file:
        listed = list(csv.DictReader(file))
    amounts = [float(row["amount"]) for row in listed]
    assert amounts == sorted(amounts, reverse=True)
    assert {row["check_size"] for row in listed} == {"own"}
    assert len(listed) == summary(desk)["attention_count"]
    book = openpyxl.load_workbook(desk.folder / "set.precheck" / "report.xlsx")
    assert book["All"]["A1"].value == said(
        "sheet.rows_in_outcome_file", "", sheet="All", count=80, outcome_file="outcomes"
    )
    counts = {total["outcome"]: total["row_count"] for total in summary(desk)["outcomes"]}
    for sheet, outcome in (
        ("No match", "no_match"),
        ("Not possible", "not_possible"),
        ("Rejected", "rejected"),
    ):
        assert book[sheet]["A1"].value.startswith(f"{sheet} ({counts[outcome]}): ")


def test_reasons_of_a_data_set_are_in_the_language_of_its_reader(desk, sandbox, rows):
    as_data_set(desk, rows)
    ran = run(desk, sandbox, "--engine", "pool", "--lang", "de")
    folder = desk.folder / "set.precheck"
    english = [json.loads(line)["reason"] for line in (folder / "reasons.jsonl").read_text().splitlines()]
    shown = {"de": ran.out, "fr": desk("report", "set.precheck", "--lang", "fr").out}
    repeated = {"de": "dieselbe Zahlung wie Zeile", "fr": "même paiement que la ligne"}
    for language, terminal in shown.items():
        showed = desk("show", "set.precheck", "--row", "80", "--lang", language)
        assert showed.status == 0, showed.err
        row = showed.out
        assert repeated[language] in " ".join(row.split())
        assert "part-7.csv row" not in row
        assert not {one for one in english if one in " ".join(f"{terminal} {row}".split())}
    page = (folder / "report.html").read_text()
    assert repeated["fr"] in page
    assert not {one for one in english if one in page}
    desk("report", "set.precheck", "--lang", "en")
    assert {one for one in english if one in (folder / "report.html").read_text()}
    assert desk("verify", "set.precheck").status == 0


@pytest.mark.nightly
def test_one_large_parquet_file_is_divided_into_parts(desk, sandbox, rows):
    as_data_set(desk, rows)
    one = by_one_process(desk, sandbox)
    table = pl.read_csv(desk.folder / "all.csv", infer_schema=False)
    table.write_parquet(desk.folder / "all.parquet", row_group_size=7)

    words = ("run", "all.parquet", "--work", "work", "--engine", "pool", "--out", "set.precheck")
    assert desk(*words, *sandbox.using("sandbox")).status == 0

    assert decided(desk) == one
    assert summary(desk)["input"]["name"] == "all.parquet"
    assert not any((desk.folder / "work").iterdir())
    (desk.folder / "all.parquet").write_bytes((desk.folder / "all.parquet").read_bytes()[:-9])
    damaged = desk(*words, "--fresh", *sandbox.using("sandbox"))
    assert damaged.status == 65
    assert said("files.parquet_damaged_or_too_large", path="all.parquet") in damaged.err


@pytest.mark.nightly
def test_workers_ask_about_a_data_set_and_the_same_command_then_writes_it(
    desk, sandbox, rows, shared_profile, host
):
    as_data_set(desk, [row for row in rows if not row.get("iban")])
    words = ("--work", "work", *shared_profile())
    before = len(sandbox.questions())

    begun = host("a")("run", "set", "--no-ask", *words).end()
    assert begun.status == 75, begun.err
    assert len(sandbox.questions()) == before
    helped = host("b")("worker", *words, "--until-idle").end()
    assert helped.status == 0, helped.err
    asked = len(sandbox.questions()) - before
    done = host("a")("run", "set", *words).end()

    assert done.status == 0, done.err
    assert len(sandbox.questions()) - before == asked
    assert sum(call["question_count"] for call in summary(desk)["calls"]) == asked
    assert list((desk.folder / "work").iterdir()) == []
    assert desk("run", "all.csv", *sandbox.using("production")).status == 0
    alone = sorted(map(stable, desk.outcomes("all.precheck")), key=lambda row: row["payment_id"])
    assert decided(desk) == alone
    assert host("a")("run", "set", *words).end().status == 0
    assert len(sandbox.questions()) - before == 2 * asked, "the third run asked nothing; the file run did"


@pytest.mark.nightly
def test_processes_that_share_a_ledger_ask_new_questions_of_every_bucket_first(
    desk, serve, tmp_path, rows, shared_profile, host
):
    as_data_set(desk, [row for row in rows if not row.get("iban")])
    with serve(tmp_path / "own", "--fault", "500:api=cop,probability=0.3,seed=7") as server:
        once = shared_profile(server=server, attempts_max=1)
        asked = []
        for name in "ab":
            before = len(server.questions())
            assert host(name)("run", "set", "--work", "work", "--limit", "20", *once).end().status == 75
            asked.append({call["question"] for call in server.questions()[before:]})
            assert any(row["check_outcome"] == "unanswered" for row in decided(desk))
    assert [len(questions) for questions in asked] == [20, 20]
    assert asked[0].isdisjoint(asked[1])


def test_no_ask_needs_somebody_who_does(desk, rows):
    as_data_set(desk, rows)
    finished = desk("run", "set", "--work", "work", "--no-ask")
    assert finished.status == 2
    assert said("jobs.no_ask_needs_shared_ledger") in finished.err
    assert said("jobs.name_ledger_or_omit_option") in finished.err
    assert desk("run", "set", "--no-ask").status == 2
    assert desk("run", "all.csv", "--scheduler", "tcp://127.0.0.1:1").status == 2


def test_the_evidence_of_a_data_set_is_that_of_a_file_and_finds_what_was_changed(desk, sandbox, rows, keys):
    as_data_set(desk, rows)
    private, public = keys
    run(desk, sandbox, "--sign-with", private)
    words = ("verify", "set.precheck", "--input", "set", "--signed-by", public)
    sound = desk(*words)
    assert sound.status == 0, sound.out + sound.err
    assert said("evidence.same_cells", file="set") in sound.out

    part = desk.folder / "set.precheck" / "outcomes" / "part-bob.csv"
    whole = part.read_bytes()
    part.write_bytes(whole.replace(b",not_possible,", b",match,", 1))
    assert part.read_bytes() != whole
    changed = desk(*words)
    assert changed.status == 65
    assert re.search(r"PROBLEM\s+outcomes: changed", changed.out), changed.out
    part.write_bytes(whole)
    (part.parent / ".release.csv").touch()
    assert "outcomes/.release.csv" in desk(*words).out
    (part.parent / ".release.csv").unlink()
    input_part = desk.folder / "set" / "cid.csv"
    input_part.write_bytes(input_part.read_bytes() + b"\n")
    assert re.search(r"PROBLEM\s+input: set", desk(*words).out)


def known_to_the_sandbox(count):
    """Payments to one account, of which some have its name, some nearly, and some another account."""
    names = ("Avery Thornwood", "Averi Thornwood", "Zed Nobody")
    account = {"account_type": "Personal", "sort_code": "00-11-22", "currency": "GBP"}
    return [
        account
        | {
            "payment_id": f"PAY-{number:05d}",
            "name": names[number % 3],
            "account_number": "00012345" if number % 5 else "00099999",
            "amount": f"{number}.25",
        }
        for number in range(1, count + 1)
    ]


def listed(path):
    """The rows of a list for people, without where they stand."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        return [
            {name: cell for name, cell in row.items() if name not in {"line", "part", "place"}}
            for row in csv.DictReader(file)
        ]


def decided_in_workbook(desk, folder, sheet, word, *numbers):
    """`--decisions` with a copy of its workbook: the word beside rows of a sheet, by their place on it."""
    book = openpyxl.load_workbook(desk.folder / folder / "report.xlsx")
    headers = [cell.value for cell in book[sheet][3]]
    decision, reason = headers.index("Decision"), headers.index("Reason")
    rows = list(book[sheet].iter_rows(min_row=4))
    for row in (rows[number] for number in numbers) if numbers else rows:
        row[decision].value, row[reason].value = word, "asked"
    book.save(desk.folder / f"{folder}.decided.xlsx")
    return "--decisions", f"{folder}.decided.xlsx"


@pytest.mark.parametrize(
    ("form", "by"), [("csv", "workbook"), pytest.param("parquet", "kind", marks=pytest.mark.nightly)]
)
def test_a_data_set_is_corrected_checked_again_and_split_as_the_file_of_its_parts_is(desk, sandbox, form, by):
    folder = as_data_set(desk, known_to_the_sandbox(40), form=form)
    for path in (*folder.iterdir(), folder):
        path.chmod(0o500)
    said, last = sandbox.using("sandbox"), {}
    policy = desk.file("policy.toml", '[profiles.sandbox.policy]\nno_match = "review"\n')
    for stem, file, more in (("all", "all.csv", ()), ("set", "set", ("--work", "work"))):
        assert desk("run", file, *more, *said).status == 0
        kinds = ("--accept", "close_match", "--reason", "asked")
        accepting = kinds if by == "kind" else decided_in_workbook(desk, f"{stem}.precheck", "Fix", "fix")
        fixed = desk("fix", f"{stem}.precheck", *accepting, "--allow-simulated", "--json")
        assert fixed.status == 0, fixed.err
        corrected = json.loads(fixed.out)
        words = ("run", corrected["corrected"]["path"], "--out", f"{stem}.again", *more, *said)
        assert desk(*words).status == 0
        released = decided_in_workbook(desk, f"{stem}.again", "No match", "release", 0, -1)
        splitting = (*released, "--config", policy, "--by", "Bea", "--allow-simulated", "--json")
        split = desk("split", f"{stem}.again", *splitting)
        assert split.status == 0, split.err
        assert not json.loads(split.out)["unheeded_rows"]
        verified = desk("verify", f"{stem}.again", "--input", corrected["corrected"]["path"])
        assert verified.status == 0, verified.out
        assert desk("report", f"{stem}.again").status == 0
        assert desk("verify", f"{stem}.again").status == 0
        last[stem] = corrected, json.loads(split.out)
    (fix_of_file, split_of_file), (fix_of_set, split_of_set) = last["all"], last["set"]
    same = ("row_count", "correctable_count", "corrected_rows", "refused_rows")
    assert [fix_of_set[name] for name in same] == [fix_of_file[name] for name in same]
    for name in ("release", "hold", "input"):
        for figure in ("row_count", "totals"):
            assert split_of_set[name][figure] == split_of_file[name][figure], (name, figure)
    assert split_of_file["release"]["row_count"]
    assert split_of_file["hold"]["row_count"]
    folders = [desk.folder / f"{stem}.precheck" for stem in ("set", "all")]
    assert listed(folders[0] / "corrections.csv") == listed(folders[1] / "corrections.csv")
    folders = [desk.folder / f"{stem}.again" for stem in ("set", "all")]
    assert listed(folders[0] / "hold_reasons.csv") == listed(folders[1] / "hold_reasons.csv")
    origin = summary(desk, "set.again")["input"]["made_of"]
    assert (origin["name"], origin["is_corrected"]) == ("set", True)

    released = desk.folder / split_of_set["release"]["path"]
    part = next(path for path in sorted(released.iterdir()))
    part.write_bytes(part.read_bytes()[:-10])
    found = desk("verify", "set.again")
    assert found.status == 65
    assert re.search(rf"PROBLEM\s+{released.name}: changed", found.out)


def test_every_part_is_given_back_as_it_came_with_the_notes_of_a_file(desk, sandbox):
    header, rows = [*known_to_the_sandbox(1)[0], ""], known_to_the_sandbox(4)
    lines = [",".join([*row.values(), "n"]) for row in rows]
    folder = desk.folder / "set"
    folder.mkdir()
    named = ",".join(header)
    total = ",".join("Total" if name == "name" else "3.00" if name == "amount" else "" for name in header)
    texts = {
        "a.csv": "\ufeff" + "\r\n".join([named, *lines]).replace(",", ";") + "\r\n",
        "b.csv.gz": "\n".join(["November", "", named + "column_8", *lines, total, ""]),
        "c.csv": "\n".join([named, lines[0] + ",more", *lines[1:], lines[3] + ",", ""]),
    }
    for name, text in texts.items():
        (folder / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    plan = json.loads(desk("plan", "set", "--work", "work", *sandbox.using("sandbox"), "--json").out)
    assert plan["currency_sources"]["given"] == 13
    assert plan["not_payments"][0]["sentence"]["text"].startswith("b.csv.gz: Line 8 ")
    assert [note[:13] for note in plan["notes"]] == ["c.csv: 1 row "]
    run(desk, sandbox)
    assert [note["text"] for note in summary(desk)["input"]["notes"]] == plan["notes"]
    words = ("--config", sandbox.config, "--allow-simulated", "--by", "Bea", "--json")
    split = json.loads(desk("split", "set.precheck", *words).out)
    assert said("review.lines_above_not_written") in split["notes"][0]
    released = desk.folder / split["release"]["path"]
    data = {name: (released / name).read_bytes() for name in texts}
    data["b.csv.gz"] = gzip.decompress(data["b.csv.gz"])
    assert {name: part.decode().splitlines(keepends=True)[0] for name, part in data.items()} == {
        "a.csv": "\ufeff" + named.replace(",", ";") + "\r\n",
        "b.csv.gz": named + "column_8\n",
        "c.csv": named + "\n",
    }
    too_long = (desk.folder / split["hold"]["path"] / "c.csv").read_text().splitlines()[:2]
    assert too_long == [named, lines[0] + ",more"]
    checked = desk("verify", "set.precheck", "--input", "set")
    assert checked.status == 0, checked.out
    held = ("plan", split["hold"]["path"], "--work", "work", *sandbox.using("sandbox"), "--json")
    again = json.loads(desk(*held).out)
    assert again["row_count"] == split["hold"]["row_count"]
    assert again["rejected_count"] == 1, "the row is as long as before"


def test_a_column_that_is_named_like_one_of_ours_is_the_users(desk, sandbox):
    (desk.folder / "set").mkdir()
    own = "name,iban,amount,currency,extra_1\nAnn,DE89370400440532013000,1.00,EUR,mine\n"
    texts = {
        "a.csv": own + own.splitlines()[1] + ",late\n",
        "b.csv": own,
        "c.csv": own.replace("extra_1", "extra_2"),
    }
    for name, text in texts.items():
        desk.file(f"set/{name}", text)
    finished = run(desk, sandbox, status=65)
    expected = said(
        "jobs.part_columns_differ", part="c.csv", first="a.csv", differences="without extra_1, with extra_2"
    )
    assert expected in finished.err
    (desk.folder / "set" / "c.csv").unlink()
    run(desk, sandbox)
    split = desk("split", "set.precheck", "--config", sandbox.config, "--allow-simulated", "--json")
    hold, release = (json.loads(split.out)[place] for place in ("hold", "release"))
    given_back = {}
    for folder in filter(None, (hold, release)):
        for path in (desk.folder / folder["path"]).iterdir():
            header, *lines = path.read_text().splitlines()
            assert header == own.splitlines()[0]
            given_back.setdefault(path.name, []).extend(lines)
    assert {name: sorted(lines) for name, lines in given_back.items()} == {
        name: sorted(texts[name].splitlines()[1:]) for name in ("a.csv", "b.csv")
    }


def messages(rows):
    """Payment files of two batches each, with these payments."""
    payments = [
        Payment(
            end_to_end_id=row["payment_id"],
            name=row["name"],
            sort_code="001122",
            account=row["account_number"],
            amount=row["amount"],
            currency="GBP",
        )
        for row in rows
    ]
    halves = Batch(tuple(payments[::2])), Batch(tuple(payments[1::2]), id="B-2")
    return document(halves, Dialect())


def test_parts_in_pain001_are_corrected_and_split_as_each_file_alone_is(desk, sandbox):
    rows = known_to_the_sandbox(24)
    (desk.folder / "set").mkdir()
    for name, some in {"a.xml": rows[:10], "b.xml.gz": rows[10:]}.items():
        data = messages(some)
        desk.file(f"set/{name}", gzip.compress(data) if name.endswith(".gz") else data)
    also, simulated = sandbox.using("sandbox"), ("--allow-simulated", "--by", "Bea", "--json")
    work, made = ("--work", "work"), {}
    assert json.loads(desk("plan", "set", *work, *also, "--json").out)["row_count"] == 24
    for stem, file, more in (("a", "set/a.xml", ()), ("b", "set/b.xml.gz", ()), ("set", "set", work)):
        assert desk("run", file, "--out", stem, *more, *also).status == 0
        fixed = desk("fix", stem, "--accept", "close_match", "--reason", "asked", *simulated)
        assert fixed.status == 0, fixed.err
        corrected = json.loads(fixed.out)["corrected"]["path"]
        assert desk("run", corrected, "--out", f"{stem}.again", *more, *also).status == 0
        split = json.loads(desk("split", f"{stem}.again", "--config", sandbox.config, *simulated).out)
        assert desk("verify", f"{stem}.again", "--input", corrected).status == 0
        made[stem] = [
            desk.folder / path for path in (corrected, *(split[of]["path"] for of in ("release", "hold")))
        ]
    for number, stem in enumerate("ab"):
        for alone, together in zip(made[stem], made["set"], strict=True):
            part = sorted(together.iterdir())[number]
            assert part.name == ("a.xml", "b.xml.gz")[number]
            assert part.read_bytes() == alone.read_bytes()
    shown = json.loads(desk("show", "set", "--row", "12", "--json").out)
    alone = json.loads(desk("show", "b", "--row", "2", "--json").out)
    assert (shown["place"], shown["batch"]) == ("b.xml.gz row 2", alone["batch"])
    alone, together = ([summary(desk, stem) for stem in ("a", "b")], summary(desk, "set"))
    batches = [(f"{file['input']['name']} {batch['location']}", batch["totals"]) for file in alone
               for batch in file["batches"]]  # fmt: skip
    assert [(batch["location"], batch["totals"]) for batch in together["batches"]] == batches
    assert together["batch_count"] == len(batches) == 4
    counted = Counter[str]()
    for warning in (warning for file in alone for warning in file["input"]["bank_warnings"]):
        counted[warning["code"]] += warning["place_count"]
    everything = {warning["code"]: warning for warning in together["input"]["bank_warnings"]}
    assert {code: warning["place_count"] for code, warning in everything.items()} == counted != {}
    assert all(one["path"].startswith(("a.xml ", "b.xml.gz ")) for one in everything.values())
    assert desk("report", "set", "--pain002").status == 2
    refused = desk("import", "set", "--report", "vop.xml")
    assert said("jobs.import_not_for_folders", file="set") in refused.err


def test_the_figures_of_every_part_are_compared_with_its_payments(desk, sandbox):
    (desk.folder / "set").mkdir()
    texts = [messages(known_to_the_sandbox(4)) for _ in range(2)]
    desk.file("set/a.xml", texts[0])
    desk.file("set/b.xml", texts[1].replace(b"<NbOfTxs>4<", b"<NbOfTxs>5<", 1))
    run(desk, sandbox)
    read = summary(desk)["input"]
    assert read["warning_codes"] == ["TOTALS_DIFFER"]
    assert [one["difference"]["text"][:7] for one in read["controls"]] == ["b.xml: "]
    refused = desk("split", "set.precheck", "--config", sandbox.config, "--allow-simulated")
    assert refused.status == 65


def test_a_part_of_another_format_than_its_name_says_is_refused(desk, sandbox):
    (desk.folder / "set").mkdir()
    desk.file("set/a.csv", messages(known_to_the_sandbox(2)))
    finished = run(desk, sandbox, status=65)
    assert said("executors.part_of_other_format", part="a.csv", found="pain001", format="csv") in finished.err


def test_a_finished_data_set_is_written_again_in_another_format_or_for_another_country(desk, sandbox):
    [row] = known_to_the_sandbox(1)
    (desk.folder / "set").mkdir()
    desk.payments([row], "set/a.csv", [*row])
    begun_with(desk, sandbox)
    run(desk, sandbox, "--format", "parquet")
    assert [path.name for path in (desk.folder / "set.precheck" / "outcomes").iterdir()] == ["part-a.parquet"]
    run(desk, sandbox, "--format", "parquet", "--country", "GB")
    assert summary(desk)["input"]["country"] == "GB"


def test_calls_that_are_probably_wasted_are_notified_for_any_part(desk, sandbox):
    (desk.folder / "set").mkdir()
    for name, payee in {"a.csv": "Ann", "b.csv": "Ωμέγα"}.items():
        desk.file(f"set/{name}", f"name,iban,amount,currency\n{payee},DE89370400440532013000,1.00,EUR\n")
    also = " ".join(run(desk, sandbox).err.split())
    assert said("jobs.notice_names_not_latin") in also
    assert "b.csv row 1" in also


def test_a_split_is_refused_for_an_undecided_row_in_any_part(desk, sandbox):
    [row] = known_to_the_sandbox(1)
    (desk.folder / "set").mkdir()
    for name, made in {"a.csv": row | {"sort_code": "12"}, "b.csv": row}.items():
        desk.payments([made], f"set/{name}", [*row])
    begun_with(desk, sandbox, "--limit", "0", status=75)
    refused = desk("split", "set.precheck", "--config", sandbox.config, "--allow-simulated")
    assert refused.status == 75
    assert said("jobs.rows_without_answer", count=1) + ";" in refused.err


def test_the_history_of_a_row_of_a_data_set_is_that_of_its_part(desk, sandbox, rows):
    as_data_set(desk, rows)
    by_one_process(desk, sandbox)
    begun_with(desk, sandbox)
    same = ("row", "payment", "route", "answered_by_earlier_run")
    for row in (1, 4, 6, 46, 80):
        mine, theirs = (
            json.loads(desk("show", f"{stem}.precheck", "--row", str(row), "--json").out)
            for stem in ("set", "all")
        )
        for each in same:
            assert mine[each] == theirs[each], (row, each)
        found, expected = (
            [PLACE.sub(r"\1", one["message"]) for one in each["findings"]] for each in (mine, theirs)
        )
        assert found == expected
        assert mine["outcome"]["check_code"] == theirs["outcome"]["check_code"]
        assert len(mine["attempts"]) == len(theirs["attempts"])
    assert found, "the payment that it repeats is in another part"
    assert mine["place"] == "part-7.csv row 35"


@pytest.mark.nightly
def test_a_plan_of_a_data_set_is_that_of_one_file_and_the_run_goes_on_from_it(desk, sandbox, rows):
    as_data_set(desk, rows)
    before = sandbox.call_count

    words = desk.using(**sections(sandbox, price_per_call="0.15 GBP"))
    whole = json.loads(desk("plan", "all.csv", "--json", *words).out)
    planned = desk("plan", "set", "--work", "work", "--json", *words)

    assert planned.status == 0, planned.err
    mine = json.loads(planned.out)
    for each in (
        "row_count",
        "accepted_count",
        "rejected_count",
        "apis",
        "costs",
        "saved_call_count",
        "warning_count",
    ):
        assert mine[each] == whole[each], each
    assert [row["row"] for row in mine["rejects"]] == [row["row"] for row in whole["rejects"]]
    [cost] = mine["costs"]
    assert Decimal(cost["amount"]) == Decimal("0.15") * sum(api["call_count"] for api in mine["apis"])
    assert mine["rejects"][0]["place"] == "ann.csv row 4"
    assert sandbox.call_count == before
    assert not (desk.folder / "set.precheck").exists()
    run(desk, sandbox)


def test_a_plan_of_a_data_set_counts_the_answers_that_are_there_as_that_of_a_file(desk, sandbox):
    as_data_set(desk, known_to_the_sandbox(40))
    said = sandbox.using("sandbox")
    kinds = {"all": ("all.csv",), "set": ("set", "--work", "work")}
    for stem, words in kinds.items():
        assert desk.ran("run", *words, "--out", f"{stem}.first", *said).status == 0
    for own in (("--out", "{}.first"), ("--out", "{}.new", "--reuse-from", "all.first")):
        found = {}
        for stem, words in kinds.items():
            planned = desk("plan", *words, *(word.format(stem) for word in own), "--json", *said)
            found[stem] = json.loads(planned.out)["apis"]
        assert found["set"] == found["all"]
        assert any(api["answered_before_count"] or api["reused_count"] for api in found["all"])


def payroll(rows, month):
    """The payments of a month: other accounts and names than before, a newcomer, and an id of nobody."""
    made = [row | {"Employee No": f"E{number % 7 or number}"} for number, row in enumerate(rows)]
    for number, row in enumerate(made):
        if month and number % 9 == 4 and row["account_number"]:
            row["account_number"] = f"{int(row['account_number']) + month:08d}"
        if month and number % 10 == 7:
            row["name"] = f"Newly Named {month}"
    return [*made, made[0] | {"name": f"Imre Vasko {month}", "Employee No": "", "account_number": "00000019"}]


def compared(desk, folder):
    """What a run found changed and keeps for the next, without the folders' own names and keys."""
    out = desk.folder / folder
    changes = [json.loads(line) for line in (out / "changes.jsonl").read_text().splitlines()]
    kept = pl.read_csv(out / "payees.csv").select("row", "account_shown", "known").sort(pl.all()).rows()
    page = (out / "report.html").read_text()
    section = re.search('<table class="changes.*?</table>', page, re.DOTALL)
    return {
        "changes": [change | {"earlier": None} for change in changes],
        "kept": kept,
        "counted": {name: summary(desk, folder)["compared"][name] for name in ("payee_count", "new_count")},
        "codes": summary(desk, folder)["warning_codes"]
        and [(count["code"], count["row_count"]) for count in summary(desk, folder)["warning_codes"]],
        "page": re.sub(r"<small>(line|\S+ row) \d+</small>", "", section.group() if section else ""),
    }


@pytest.mark.parametrize(
    "mixed", [(), pytest.param((("file", "set"), ("set", "file")), marks=pytest.mark.nightly)]
)
def test_a_data_set_and_a_file_are_compared_with_one_another_as_two_files_are(desk, sandbox, rows, mixed):
    said = sandbox.using("sandbox")
    for number, month in enumerate(("jan", "feb", "mar")):
        as_data_set(desk, payroll(rows, number))
        (desk.folder / "all.csv").rename(desk.folder / f"{month}.csv")
        (desk.folder / "set").rename(desk.folder / f"{month}-set")
    assert desk.ran("run", "jan.csv", "--out", "jan.file", *said).status == 0
    assert desk.ran("run", "jan-set", "--work", "work", "--out", "jan.set", *said).status == 0
    for before, month in (("jan", "feb"), ("feb", "mar")):
        found = {}
        for new, old in (("file", "file"), ("set", "set"), *mixed):
            words = (f"{month}.csv",) if new == "file" else (f"{month}-set", "--work", "work")
            out = f"{month}.{new}" if new == old else f"{month}.{new}-{old}"
            words = (*words, "--out", out, "--compare-with", f"{before}.{old}", *said)
            planned = json.loads(desk("plan", *words, "--json").out)
            ran = desk("run", *words)
            assert ran.status == 0, ran.err
            again = desk("run", *words)
            assert "Finished already" in again.out, again.out
            told = [
                one.out[: one.out.index(" payments")].replace(f"{before}.{old}", before)
                for one in (ran, again)
            ]
            assert told[0] == told[1]
            if month == "mar":
                assert [desk(word, out).status for word in ("report", "verify")] == [0, 0]
            found[new, old] = compared(desk, out) | {
                "shown": PLACE.sub(r"\1", told[0]).splitlines()[:-1],
                "planned": [change | {"earlier": None} for change in planned["changes"]],
            }
        of_files = found["file", "file"]
        assert {change["code"] for change in of_files["changes"]} == {
            "ACCOUNT_CHANGED",
            "NAME_CHANGED",
            "PAYEE_NEW",
        }
        for way, here in found.items():
            for what, expected in of_files.items():
                assert here[what] == expected, (month, way, what)
