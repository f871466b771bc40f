"""DESIGN, section 4: the files that a run leaves, to the byte where others depend on it."""

import csv
import json
import os
import pty
import re
import shutil
import stat

import polars as pl
import pytest
from refusals import said

from schemas.summary import Summary

pytestmark = pytest.mark.usefixtures("in_this_process")

COLUMNS = [
    "check_outcome", "check_code", "check_reason", "check_action", "check_matched_name",
    "check_api", "check_environment", "check_id", "check_time", "check_attempts",
]  # fmt: skip
"""Transcribed from DESIGN, section 6."""

MATCH = {
    "payment_id": "P1",
    "name": "Avery Thornwood",
    "account_type": "Personal",
    "sort_code": "001122",
    "account_number": "00012345",
    "amount": "10.00",
    "currency": "GBP",
}
NO_MATCH = MATCH | {"payment_id": "P2", "name": "Rowan Blackmere", "amount": "25.50"}
UNKNOWN = MATCH | {"payment_id": "P3", "account_number": "99999999", "amount": "7"}
REJECTED = MATCH | {"payment_id": "P4", "sort_code": "1122"}


def test_a_run_leaves_its_fixed_files_readable_by_their_owner_only(desk, sandbox):
    file = desk.payments([MATCH, NO_MATCH])

    with desk.start("run", file, *sandbox.using("sandbox")) as running:
        running.end()

    folder = desk.folder / "payments.precheck"
    names = {path.name for path in folder.iterdir()}
    assert names >= {"outcomes.csv", "summary.json", "attention.csv", "ledger.db", "manifest.json"}
    assert not {name for name in names if name.endswith((".part", "-wal", "-shm", ".new"))}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_nothing_is_written_outside_of_the_folder_and_the_users_state(desk, sandbox):
    file = desk.payments([MATCH])

    desk("run", file, *sandbox.using("sandbox"))

    names = {path.name for path in desk.folder.iterdir()}
    assert names <= {"payments.csv", "payments.precheck", "state", desk.temporary.name}
    assert not list(desk.temporary.iterdir())


def test_the_outcome_columns_follow_the_untouched_ones_in_order(desk, sandbox):
    original = (
        "\ufeffReference;Payee name;Sort code;Account number;Extra;Account type\r\n"
        '007;"Thornwood; Avery";00-11-22;00012345;"say ""hi""";Personal\r\n'
        "008;Avery Thornwood;001122;00012345; kept  ;personal\r\n"
    )
    file = desk.folder / "odd.csv"
    file.write_text(original, encoding="utf-8", newline="")

    assert desk("run", file, *sandbox.using("sandbox")).status == 0

    written = desk.folder / "odd.precheck" / "outcomes.csv"
    with written.open(newline="", encoding="utf-8-sig") as lines:
        header, first, second = csv.reader(lines, delimiter=";")
    before = ["Reference", "Payee name", "Sort code", "Account number", "Extra", "Account type"]
    assert header == before + COLUMNS
    assert first[:6] == ["007", "Thornwood; Avery", "00-11-22", "00012345", 'say "hi"', "Personal"]
    assert second[:6] == ["008", "Avery Thornwood", "001122", "00012345", " kept  ", "personal"]
    assert (first[6], second[6]) == ("no_match", "match")


@pytest.mark.parametrize(
    "delimiter", [";", *(pytest.param(mark, marks=pytest.mark.nightly) for mark in (",", "|", "\t"))]
)
def test_the_outcome_file_keeps_the_delimiter(desk, sandbox, delimiter):
    file = desk.payments([MATCH, REJECTED], delimiter=delimiter)

    desk("run", file, *sandbox.using("sandbox"), "--quiet")

    rows = desk.outcomes(delimiter=delimiter)
    assert [row["check_outcome"] for row in rows] == ["match", "rejected"]
    assert [row["sort_code"] for row in rows] == ["001122", "1122"]


def test_earlier_outcome_columns_are_replaced(desk, sandbox):
    stale = dict.fromkeys(COLUMNS, "stale")
    file = desk.payments([MATCH | stale], header=(*COLUMNS[:5], *MATCH, *COLUMNS[5:]))

    desk("run", file, *sandbox.using("sandbox"))

    [row] = desk.outcomes()
    assert list(row) == [*MATCH, *COLUMNS]
    assert "stale" not in row.values()


def test_an_outcome_file_can_be_run_again(desk, sandbox):
    file = desk.payments([MATCH, NO_MATCH, REJECTED])
    desk("run", file, *sandbox.using("sandbox"))
    again = shutil.copy(desk.folder / "payments.precheck" / "outcomes.csv", desk.folder / "again.csv")

    desk("run", again, *sandbox.using("sandbox"))

    assert desk.stable_outcomes("again.precheck") == desk.stable_outcomes("payments.precheck")


def test_attention_holds_the_rows_that_a_person_must_look_at(desk, sandbox):
    file = desk.payments([MATCH, NO_MATCH, UNKNOWN, REJECTED])

    desk("run", file, *sandbox.using("sandbox"))

    with (desk.folder / "payments.precheck" / "attention.csv").open(encoding="utf-8-sig") as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["payment_id"], row["check_code"]) for row in rows] == [("P2", "ANNM"), ("P3", "AC01")]


def test_parquet_comes_back_as_parquet_with_its_columns_as_they_were(desk, sandbox):
    frame = pl.DataFrame([MATCH, NO_MATCH]).with_columns(batch=pl.Series([7, 8], dtype=pl.Int16))
    file = desk.folder / "pay.parquet"
    frame.write_parquet(file)

    assert desk("run", file, *sandbox.using("sandbox")).status == 0

    written = pl.read_parquet(desk.folder / "pay.precheck" / "outcomes.parquet")
    assert written.columns == frame.columns + COLUMNS
    assert written.select(frame.columns).equals(frame)
    assert written["check_outcome"].to_list() == ["match", "no_match"]


def test_format_says_what_the_outcome_file_is(desk, sandbox):
    file = desk.payments([MATCH])

    desk("run", file, *sandbox.using("sandbox"), "--format", "parquet")

    written = pl.read_parquet(desk.folder / "payments.precheck" / "outcomes.parquet")
    assert written["sort_code"].to_list() == ["001122"]
    assert not (desk.folder / "payments.precheck" / "outcomes.csv").exists()


def test_a_header_that_nobody_knows_is_read_as_map_says(desk, sandbox):
    row = {**MATCH, "Wer wird bezahlt": MATCH["name"]}
    del row["name"]
    file = desk.payments([row], header=tuple(row))
    refused = desk("run", file, *sandbox.using("sandbox"))

    finished = desk("run", file, *sandbox.using("sandbox"), "--map", "name=Wer wird bezahlt")

    assert refused.status == 65
    assert "--map" in refused.err
    assert finished.status == 0
    [row] = desk.outcomes()
    assert (row["check_outcome"], row["Wer wird bezahlt"]) == ("match", MATCH["name"])


def test_another_encoding_is_read_when_it_is_named_and_refused_when_not(desk, sandbox):
    file = desk.folder / "alt.csv"
    file.write_bytes("name,iban\nSolène Montferrand,FR7630003012340000482100733\n".encode("cp1252"))

    assert desk("run", file, *sandbox.using("sandbox")).status == 65
    assert desk("run", file, *sandbox.using("sandbox"), "--encoding", "cp1252").status == 0

    [row] = desk.outcomes("alt.precheck")
    assert (row["check_outcome"], row["name"]) == ("match", "Solène Montferrand")


def test_several_files_get_a_folder_each_and_one_bad_file_stops_none(desk, sandbox):
    good = [desk.payments([MATCH], name="jan.csv"), desk.payments([NO_MATCH], name="mar.csv")]
    bad = desk.folder / "feb.csv"
    bad.write_text("nothing here\n")

    finished = desk("run", good[0], bad, good[1], *sandbox.using("sandbox"), "--out", "out", "--quiet")

    assert finished.status == 65
    assert len(finished.sentences) == 1
    assert "feb.csv" in finished.err
    assert [row["check_code"] for row in desk.outcomes("out/jan")] == ["MTCH"]
    assert [row["check_code"] for row in desk.outcomes("out/mar")] == ["ANNM"]


def test_files_that_cannot_be_checked_here_do_not_keep_the_others_waiting(desk, sandbox):
    """Another run's folder, and a file where the folder should be: each is that file's own trouble."""
    files = [desk.payments([MATCH], name=f"{name}.csv") for name in ("other", "blocked", "good")]
    desk("run", desk.payments([NO_MATCH]), *sandbox.using("sandbox"), "--out", "out/other", "--quiet")
    (desk.folder / "out" / "blocked").write_text("in the way")

    finished = desk("run", *files, *sandbox.using("sandbox"), "--out", "out", "--json")

    assert finished.status == 73, "an output that cannot be created is more serious than another run (2)"
    assert len(finished.sentences) == 2
    assert [row["check_code"] for row in desk.outcomes("out/good")] == ["MTCH"]
    [line] = finished.out.splitlines()
    assert json.loads(line)["input"]["name"] == "good.csv"


def test_the_end_of_several_files_tells_of_each_and_of_all(desk, sandbox):
    files = [desk.payments([MATCH, REJECTED], name="jan.csv"), desk.payments([MATCH], name="feb.csv")]
    (desk.folder / "bad.csv").write_text("nothing here\n")

    finished = desk("run", files[0], "bad.csv", files[1], *sandbox.using("sandbox"))

    end = finished.out.partition("3 files:")[2]
    lines = [line.split() for line in end.splitlines()]
    assert ["2", "1", "1", "0", "0", "jan.csv"] in lines
    assert ["65", "bad.csv"] in lines
    assert ["match", "2", "20.00", "GBP"] in lines
    assert ["rejected", "1", "10.00", "GBP"] in lines
    assert "SIMULATED" in end


def test_an_error_that_concerns_every_file_ends_the_command_and_tells_how_far_it_came(desk, sandbox):
    (desk.folder / "bad.csv").write_text("nothing here\n")
    files = ["bad.csv", desk.payments([MATCH], name="jan.csv"), desk.payments([MATCH], name="feb.csv")]

    finished = desk("run", *files, "--config", sandbox.config, "--profile", "nowhere")

    assert finished.status == 78
    assert len(finished.sentences) == 2
    *_, bad, jan, feb = finished.out.splitlines()
    assert [line.split() for line in (bad, jan, feb)] == [
        ["65", "bad.csv"],
        ["-", "jan.csv"],
        ["-", "feb.csv"],
    ]
    assert "no profile 'nowhere'" in finished.sentences[-1]


def test_two_files_that_would_share_a_folder_are_refused_before_anything_is_read(desk):
    one, two = desk.payments([MATCH]), desk.payments([MATCH], name="payments.txt")

    assert desk("run", one, two, "--out", "out").status == 2
    assert not (desk.folder / "out").exists()


def test_two_files_of_one_name_get_folders_named_after_theirs(desk, sandbox):
    for folder in ("may", "june"):
        (desk.folder / folder).mkdir()
        desk.payments([MATCH], name=f"{folder}/payments.csv")

    done = desk("run", "may/payments.csv", "june/payments.csv", "--out", "out", *sandbox.using("sandbox"))

    assert done.status == 0
    assert said("runs.folders_renamed") in done.err
    made = sorted(path.parent.name for path in desk.folder.glob("out/*/outcomes.csv"))
    assert made == ["june-payments", "may-payments"]


def test_json_puts_the_summary_and_nothing_else_on_standard_output(desk, sandbox):
    file = desk.payments([MATCH, NO_MATCH, REJECTED])

    finished = desk("run", file, *sandbox.using("sandbox"), "--json")

    printed = Summary.model_validate_json(finished.out)
    kept = (desk.folder / "payments.precheck" / "summary.json").read_bytes()
    assert printed == Summary.model_validate_json(kept)
    counts = {total.outcome.value: total.row_count for total in printed.outcomes}
    assert (counts["match"], counts["no_match"], counts["rejected"]) == (1, 1, 1)
    assert sum(counts.values()) == printed.input.row_count == 3
    assert printed.simulated


def test_the_answer_is_on_standard_output_and_nothing_else_is(desk, sandbox):
    finished = desk("run", desk.payments([MATCH]), *sandbox.using("sandbox"))
    assert said("terminal.outcomes_are_in", where="payments.precheck") in finished.out
    assert said("terminal.outcomes_are_in") not in finished.err


def test_quiet_says_nothing_of_a_run_that_went_well(desk, sandbox):
    section = sandbox.section("sandbox", "cop", server="production")
    words = ("--config", desk.configuration(mine={"cop": section}), "--profile", "mine")

    finished = desk("run", desk.payments([MATCH]), *words, "--quiet")

    assert (finished.status, finished.out, finished.err) == (0, "", "")


def test_not_even_quiet_hides_that_answers_are_simulated(desk, sandbox):
    finished = desk("run", desk.payments([MATCH]), *sandbox.using("sandbox"), "--quiet")

    [line] = finished.err.splitlines()
    assert "SIMULATED" in line


def test_the_summary_of_json_is_one_line_that_a_script_can_read_with_quiet(desk, sandbox):
    files = [desk.payments([MATCH], name="jan.csv"), desk.payments([NO_MATCH], name="feb.csv")]

    finished = desk("run", *files, *sandbox.using("sandbox"), "--json", "--quiet")

    documents = [json.loads(line) for line in finished.out.splitlines()]
    assert [document["input"]["name"] for document in documents] == ["jan.csv", "feb.csv"]


def test_a_pipe_and_no_color_get_no_escape_sequences(desk, sandbox):
    file = desk.payments([MATCH | {"name": "Acme [/ltd] \u2728"}, NO_MATCH])

    finished = desk("run", file, *sandbox.using("sandbox"), NO_COLOR="1", FORCE_COLOR="1")

    assert "\x1b[3" not in finished.err
    assert desk("run", file, *sandbox.using("sandbox")).err.count("\x1b") == 0


def test_without_a_profile_the_embedded_sandbox_answers_and_says_so_loudly(desk):
    file = desk.payments([MATCH, NO_MATCH, REJECTED])

    finished = desk("run", file)

    assert finished.status == 0
    assert "SIMULATED" in finished.out
    rows = desk.outcomes()
    assert [row["check_outcome"] for row in rows] == ["match", "no_match", "rejected"]
    assert {row["check_environment"] for row in rows} == {"sandbox"}


def test_a_terminal_gets_a_progress_bar(desk, sandbox, network_payments):
    section = sandbox.section("production", "cop", rate_per_s=40)
    config = desk.configuration(mine={"cop": section})
    ours, theirs = pty.openpty()
    file = desk.payments(network_payments(40))

    with desk.start(
        "run", file, "--config", config, "--profile", "mine", stderr=theirs, TERM="xterm"
    ) as process:
        os.close(theirs)
        shown = b"".join(iter(lambda: _read(ours), b"")).decode()
        assert process.wait(10) == 0

    assert re.search(r"payments\.csv.* of 40", shown)
    assert "/s" in shown


def _read(terminal):
    try:
        return os.read(terminal, 4096)
    except OSError:  # how Linux says that the other end has gone
        return b""
