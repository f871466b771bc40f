"""plan, columns, quota, doctor, init, schema, sandbox and --help, as people call them."""

import fcntl
import json
import os
import re
import resource
import stat
import struct
import subprocess
import sys
import termios
import tomllib

import polars as pl
import pytest
from refusals import said

from schemas.columns import ColumnsRead
from schemas.forecast import Forecast
from schemas.summary import Summary

GATEWAY_LINES = ["configuration"] + [
    f"{api} {what}" for api in ("cop", "vop_gateway") for what in ("secret", "TLS", "token", "answers")
]
STANDARD_LINES = ["configuration"] + [f"vop_standard {what}" for what in ("certificate", "TLS", "answers")]
ROWS = [
    {"name": "Avery Thornwood", "sort_code": "00-11-22", "account_number": "00012345", "amount": "1"},
    {"name": "Avery Thornwood", "sort_code": "001122", "account_number": "00012345", "amount": "2"},
    {"name": "Rowan Blackmere", "sort_code": "001122", "account_number": "00012345", "amount": "3"},
    {"name": "Solène Montferrand", "iban": "FR76 3000 3012 3400 0048 2100 733", "amount": "4"},
    {"name": "Short", "sort_code": "1122", "account_number": "00012345", "amount": "5"},
]
"""Three questions for four payments, two for CoP; and one reject."""


@pytest.fixture
def file(desk):
    return desk.payments(ROWS)


def test_plan_tells_the_calls_and_sends_nothing(desk, sandbox, file):
    config = desk.configuration(
        mine={
            "cop": sandbox.section("production", "cop", daily_cap=1, rate_per_s=2.5),
            "vop": sandbox.section("production", "vop"),
        }
    )
    before = sandbox.call_count

    planned = desk("plan", file, "--config", config, "--profile", "mine")

    assert planned.status == 0
    assert sandbox.call_count == before
    assert said("terminal.plan_title", payments="5 payments", accepted=4, rejected=1) in planned.out
    assert re.search(r"cop +3 +2 +2\.5 a second, 1 a day +2 days", planned.out)
    assert re.search(r"vop_gateway +1 +1 +200 a second", planned.out)
    assert "1 call saved" in planned.out
    assert "SORT_CODE_DAMAGED" in planned.out
    assert not (desk.folder / "payments.precheck").exists()


def test_plan_promises_what_run_does(desk, sandbox, file):
    planned = desk("plan", file, *sandbox.using("sandbox"))
    before = sandbox.call_count

    run = desk("run", file, *sandbox.using("sandbox"), "--json", "--quiet")

    promised = {api: int(calls) for api, calls in re.findall(r"(cop|vop_gateway) +\d+ +(\d+)", planned.out)}
    summary = Summary.model_validate_json(run.out)
    assert {call.api.value: call.request_count for call in summary.calls} == promised
    assert len(sandbox.questions(before)) == sum(promised.values()) == 3


def test_plan_as_json_is_one_document_that_says_what_the_terminal_says(desk, sandbox, file):
    planned = desk("plan", file, *sandbox.using("sandbox"), "--json")

    assert planned.status == 0
    [line] = planned.out.splitlines()
    forecast = Forecast.model_validate_json(line)
    assert set(json.loads(line)) == set(json.loads(desk("schema", "forecast").out)["properties"])
    assert (forecast.row_count, forecast.accepted_count, forecast.rejected_count) == (5, 4, 1)
    assert {api.api.value: api.call_count for api in forecast.apis} == {"cop": 2, "vop_gateway": 1}
    assert planned.err == desk("plan", file, *sandbox.using("sandbox")).err


def test_plan_tells_how_the_currency_is_known(desk, sandbox, file):
    planned = desk("plan", file, *sandbox.using("sandbox"))

    told = " ".join(planned.out.split())
    assert f"4 rows {said('terminal.as_uk_account')}; 1 row {said('terminal.currency_unknown')}" in told


def test_plan_as_json_of_an_unusable_file_prints_no_document(desk, sandbox):
    planned = desk("plan", "nowhere.csv", *sandbox.using("sandbox"), "--json")

    assert (planned.status, planned.out) == (65, "")
    assert len(planned.sentences) == 1


def test_plan_and_run_name_rows_alike_without_thousands_separators(desk, sandbox):
    rows = [ROWS[0]] * 1_200 + [ROWS[4]] * 40
    words = (desk.payments(rows), *sandbox.using("sandbox"))

    planned, run = desk("plan", *words), desk("run", *words)

    numbers, lines = (", ".join(map(str, range(first, first + 10))) for first in (1_201, 1_202))
    assert f"rows {numbers} (lines {lines}) and 30 more" in " ".join(planned.out.split())
    assert f"Rows {numbers} (lines {lines}), ..." in " ".join(run.out.split())


def test_plan_says_that_a_run_would_be_refused(desk, sandbox, network_payments):
    rows = network_payments(5)
    many = desk.payments([{**row, "account_number": rows[0]["account_number"]} for row in rows])

    planned = desk("plan", many, *sandbox.using("production"))

    assert planned.status == 0
    assert said("terminal.would_be_refused") in " ".join(planned.out.split())


def test_plan_of_an_unusable_file_is_65(desk, sandbox):
    finished = desk("plan", "nowhere.csv", *sandbox.using("sandbox"))

    assert finished.status == 65
    assert len(finished.sentences) == 1


def test_columns_shows_how_each_header_would_be_read(desk):
    file = desk.folder / "bank.csv"
    file.write_text("Payee name;Sort-Code;Account No.;Colour\nAvery;001122;00012345;red\n")

    shown = desk("columns", file)

    assert shown.status == 0
    assert re.search(r"Payee name +name", shown.out)
    assert re.search(r"Sort-Code +sort_code", shown.out)
    assert re.search(r"Account No\. +account_number", shown.out)
    assert re.search(r"Colour +-", shown.out)
    assert re.search(said("column.the_payees_role") + " +Avery", shown.out)


def test_columns_comes_as_a_document_too(desk):
    file = desk.folder / "bank.csv"
    file.write_text("Payee name;Supplier;IBAN\nAvery;Thornwood Ltd;DE89370400440532013000\n")

    shown = desk("columns", file, "--json")

    assert shown.status == 0
    told = ColumnsRead.model_validate_json(shown.out)
    assert [column.field for column in told.columns] == ["name", None, "iban"]
    assert (told.columns[0].others, told.columns[0].values) == (["Supplier"], ["Avery"])
    assert told.refusal is None


def test_a_refusal_of_columns_is_in_the_document_and_names_nobody_in_its_sentence(desk):
    file = desk.folder / "bank.csv"
    file.write_text("Tenant;Landlord;IBAN\nAvery Thornwood;Rowan Blackmere;DE89370400440532013000\n")

    shown = desk("columns", file, "--json")

    assert shown.status == 65
    told = ColumnsRead.model_validate_json(shown.out)
    assert told.columns[0].values == ["Avery Thornwood"]
    assert (
        said("headers.either_could_be", what="the payee")
        + "; "
        + said("headers.choose_one")
        + "--map name=Tenant"
        in told.refusal
    )
    assert "Avery" not in shown.err


@pytest.mark.parametrize(
    ("headers", "shown_as", "sentence"),
    [
        ("Tenant;Owner;Sort Code;Account", r"Tenant +name +candidate", "either could be the payee"),
        (
            "Pupil Name;Parent Name;Sort Code;Account",
            r"Parent Name +name +candidate",
            "either could be the payee",
        ),
        ("Contact;Approver;Sort Code;Account", r"Contact +- +never the payee", "no column for the payee"),
    ],
)
def test_columns_shows_the_table_and_the_sentence_where_headers_cannot_be_used(
    desk, headers, shown_as, sentence
):
    file = desk.folder / "bank.csv"
    file.write_text(f"{headers}\nQuillon;Marrow;001122;00012345\n")

    shown = desk("columns", file)

    assert shown.status == 65
    assert re.search(shown_as, shown.out)
    assert re.search(f"Sort Code +sort_code +{said('column.the_fields_name')} +001122", shown.out)
    [refusal] = shown.sentences
    assert sentence in refusal


def test_quota_before_any_use(desk):
    shown = desk("quota")

    assert shown.status == 0
    assert said("terminal.no_cap_used") in shown.out


def test_init_writes_a_configuration_that_only_lacks_what_is_yours(desk):
    assert desk("init").status == 0

    path = desk.folder / "precheck.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "production" in tomllib.loads(path.read_text())["profiles"]
    path.write_text(re.sub(r"https://[a-z.]+example", "https://127.0.0.1:9", path.read_text()))
    explained = desk("doctor", "--profile", "production")
    assert explained.status == 78
    assert "COP_CLIENT_SECRET" in explained.out
    assert said("doctor.configuration") + ": precheck.toml, profile production" in explained.out


def test_init_names_a_doctor_that_tries_what_it_wrote(desk):
    [hint] = re.findall("`precheck (.*)`", desk("init").err)

    tried = desk(*hint.split())

    assert tried.status == 78
    assert "COP_CLIENT_SECRET" in tried.out


def test_doctor_without_a_profile_says_that_the_configuration_was_not_tried(desk):
    before = desk("doctor")
    desk("init")

    after = desk("doctor")

    assert (before.status, after.status) == (0, 0)
    assert "not tried" not in before.err
    untried = said("doctor.configuration_not_tried", path="precheck.toml")
    assert f"{said('doctor.not_tried')}: {untried}" in after.out


def test_a_sample_replaces_no_file_unless_told_to(desk):
    file = desk.file("payments.csv", "mine")
    words = ("sandbox", "--write-payments", file, "--rows", 3)

    refused = desk(*words)
    kept = file.read_text()

    assert (refused.status, kept) == (73, "mine")
    assert "--force" in refused.err
    assert desk(*words, "--force").status == 0
    assert file.read_text() != "mine"


def test_init_replaces_nothing_unless_told_to(desk):
    path = desk.folder / "precheck.toml"
    path.write_text("mine")

    refused = desk("init")

    assert refused.status == 73
    assert "--force" in refused.err
    assert path.read_text() == "mine"
    assert desk("init", "--force").status == 0
    assert path.read_text() != "mine"


@pytest.mark.parametrize(
    ("profile", "lines"),
    [
        ("sandbox", GATEWAY_LINES),
        ("sandbox-standard", STANDARD_LINES),
    ],
)
def test_doctor_finds_the_sandbox_well_in_one_line_each(desk, sandbox, profile, lines):
    before = sandbox.call_count

    finished = desk("doctor", *sandbox.using(profile))

    assert finished.status == 0
    assert re.findall(r"^[ok-]+ +([\w ]+):", finished.out, re.MULTILINE) == lines
    untried = said("doctor.listing_not_tried"), said("doctor.answers_not_tried")
    asked_by_a_run = rf"^- +(\w+) answers: (?:{'|'.join(map(re.escape, untried))})$"
    assert re.findall(asked_by_a_run, finished.out, re.MULTILINE) == [
        line.split()[0] for line in lines if line.endswith("answers")
    ]
    assert len(finished.out.splitlines()) == len(lines)
    assert not sandbox.questions(before)
    assert re.search(r"TLSv1\.3 TLS_AES_256_GCM_SHA384", finished.out)


def test_a_server_that_keeps_connections_open_holds_up_no_command(desk, serve, tmp_path, file):
    with serve(tmp_path / "server", "--fault", "half-close") as sandbox:
        assert desk("doctor", *sandbox.using("sandbox-standard")).status == 0
        assert desk("run", file, *sandbox.using("sandbox")).status == 0


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"base_url": "https://127.0.0.1:9/x"}, 75, "cop TLS: 127.0.0.1:9"),
        ({"scope": "api://nothing/.default"}, 77, "HTTP 401"),
        ({"ca_file": None}, 78, "ca_file"),
        ({"base_url": "http://127.0.0.1"}, 78, "https://"),
    ],
    ids=["server", "token", "authority", "configuration"],
)
def test_doctor_names_what_is_wrong_and_ends_with_its_status(desk, sandbox, changes, status, said):
    config = desk.configuration(mine={"cop": sandbox.section("sandbox", "cop", **changes)})

    finished = desk("doctor", "--config", config, "--profile", "mine")

    assert finished.status == status
    assert "PROBLEM" in finished.out
    assert said in finished.out


def test_schema_lists_and_prints_documents(desk):
    names = desk("schema").out.split()

    assert {"summary", "outcome", "payment", "cop-request", "vop-response", "problem"} <= set(names)
    assert desk("schema", "nonsense").status == 2
    assert json.loads(desk("schema", "outcome").out)["properties"]["check_outcome"]


def test_explain_tells_what_a_code_says_and_what_to_do(desk):
    shown = desk("explain", "banm")

    assert (shown.status, shown.err) == (0, "")
    assert shown.out.startswith("BANM\n")
    assert re.search(r"outcome +no match", shown.out)
    told = " ".join(shown.out.split())
    assert said("explain.does_not_say") + " " + said("explain.type_differs") in told
    assert "to do " + said("explain.change_type_to_business") in told


def test_explain_lists_every_code_and_refuses_what_is_none(desk):
    listed, short = desk("explain", "--all"), desk("explain")
    assert (listed.status, short.status) == (0, 0)
    assert len(short.out.splitlines()) <= 50
    for code in ("MTCH", "NOAP", "DAILY_CAP", "FORMAT_ERROR", "SORT_CODE_DAMAGED", "MIXED_SCRIPTS"):
        assert re.search(rf"^{code} ", listed.out, re.MULTILINE), code
        assert code in short.out.split()

    refused = desk("explain", "BANN")
    assert refused.status == 2
    [sentence] = refused.sentences
    assert said("reports.unknown_code_near_match", wanted="'BANN'", near="BANM") in sentence


def test_a_summary_keeps_to_its_printed_schema(desk, sandbox, file):
    schema = json.loads(desk("schema", "summary").out)
    document = json.loads(desk("run", file, *sandbox.using("sandbox"), "--json", "--quiet").out)

    assert set(document) == set(schema["properties"])
    assert set(schema["required"]) <= set(document)


def test_help_answers_without_the_heavy_imports():
    program = (
        "import sys; from pipeline.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(*sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    loaded = set(done.stdout.split())
    assert "pipeline.cli.main" in loaded
    assert not loaded & {
        "polars",
        "pyarrow",
        "httpx",
        "aiohttp",
        "pydantic",
        "cryptography",
        "schwifty",
        "rich",
    }


def test_a_quiet_run_does_not_load_what_prints_tables(sandbox, file):
    words = [
        "run",
        str(file),
        "--out",
        str(file.parent / "out"),
        *map(str, sandbox.using("sandbox")),
        "--quiet",
    ]
    program = (
        "import sys; sys.modules['httpx._main'] = None\n"  # as the command does
        "from pipeline.cli.main import main\n"
        f"try: main({words!r})\n"
        "except SystemExit as ended: print(ended.code, *sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    status, *loaded = done.stdout.split()
    assert status == "0"
    assert "pipeline.reports.workbook" in loaded
    assert not {"rich", "rich.console", "pipeline.reports.listings"} & {*loaded}


@pytest.mark.parametrize("name", ["run", "plan", "columns", "quota", "doctor", "init", "schema", "sandbox"])
def test_every_command_of_the_contract_has_a_help(desk, name):
    shown = desk(name, "--help")

    assert shown.status == 0
    assert shown.out.startswith(f"Usage: precheck {name}")


def test_version_says_which(desk):
    first, *others = desk("--version").out.splitlines()
    assert re.fullmatch(r"precheck \d+\.\d+\.\d+", first)
    assert len(others) == 2


def test_the_sandbox_ends_with_status_0_when_it_is_stopped(serve, tmp_path):
    with serve(tmp_path / "here") as running:
        assert running.url.startswith("https://127.0.0.1:")
    assert running.process.returncode == 0


def test_the_sandbox_says_when_it_cannot_listen(desk):
    finished = desk("sandbox", "--host", "192.0.2.1")

    assert finished.status == 78
    assert len(finished.sentences) == 1


def test_columns_of_a_file_whose_cells_cannot_hold_a_field_are_shown_too(desk):
    pl.DataFrame({"payee": ["Avery"], "iban": ["DE89370400440532013000"], "amt": [1.5]}).write_parquet(
        desk.folder / "bank.parquet"
    )
    shown = desk("columns", "bank.parquet")
    assert shown.status == 65
    assert re.search(rf"amt +amount +{said('column.the_header_says_amount')} +1\.5", shown.out)
    assert "floating-point numbers" in shown.sentences[0]


def test_a_sentence_on_a_terminal_ends_its_lines_between_words_and_keeps_a_map_whole(desk):
    """In a pipe it is one line, as for a log."""
    file = desk.file("bank.csv", "The tenant,The landlord,IBAN\nAvery Thornwood,Rowan Blackmere,DE89\n")
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with desk.start("plan", file, stderr=theirs, COLUMNS="80") as running:
        os.close(theirs)
        running.wait()
        told = os.read(ours, 64 * 1024).decode()
    os.close(ours)
    lines = told.splitlines()
    assert max(map(len, lines)) <= 80
    [sentence] = desk("plan", file).sentences
    assert " ".join(lines) == sentence
    assert any('--map "name=The tenant"' in line for line in lines)


def test_a_rehearsal_answers_about_any_file_and_nothing_of_it_is_reused_or_released(desk):
    row = {"name": "Jane Payee", "sort_code": "204511", "amount": "1.00", "currency": "GBP"}
    file = desk.payments([row | {"account_number": f"{number:08d}"} for number in range(1, 61)])
    run = desk("run", file, "--rehearse", "--out", "one")
    assert (run.status, "SIMULATED" in run.out) == (0, True)
    found = [row["check_outcome"] for row in desk.outcomes("one")]
    assert 45 < found.count("match") < 60
    for words in (("split", "one"), ("split", "one", "--allow-simulated", "--by", "Anna")):
        refused = desk(*words)
        assert refused.status == 2
        assert said("review.only_a_rehearsal", released=found.count("match")) in refused.err
    assert not [*(desk.folder / "one").glob("release*"), *(desk.folder / "one").glob("approvals*")]
    again = desk("run", file, "--rehearse", "--out", "two", "--reuse-from", "one")
    other = desk("run", file, "--out", "three", "--reuse-from", "one")
    both = desk("run", file, "--rehearse", "--profile", "production")
    assert [ended.status for ended in (again, other, both)] == [2, 2, 2]
    assert "reuses none" in again.err


def test_a_plan_starts_no_sandbox(desk, network_payments):
    file, before = desk.payments(network_payments(2)), resource.getrusage(resource.RUSAGE_CHILDREN)

    planned = desk.here("plan", file, "--profile", "sandbox")

    assert (planned.status, "2 payments" in planned.out) == (0, True), planned.out
    assert resource.getrusage(resource.RUSAGE_CHILDREN) == before, "a child has run and ended"
