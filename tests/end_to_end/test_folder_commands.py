"""report, show and verify on the folder of a run, and the manifest that they rest on."""

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import stat
from decimal import Decimal

import pytest
from refusals import said

from pipeline.frames import RouteReason
from schemas.manifest import Manifest
from schemas.story import Story
from schemas.summary import Summary

pytestmark = pytest.mark.usefixtures("in_this_process")

UK = {"account_type": "Personal", "sort_code": "00-11-22", "account_number": "00012345", "currency": "GBP"}
MATCH = UK | {"payment_id": "P1", "name": "Avery Thornwood", "amount": "100.00"}
AGAIN = MATCH | {"payment_id": "P2", "amount": "1,250.50"}
NO_MATCH = UK | {"payment_id": "P3", "name": "Rowan Blackmere", "amount": "25.50"}
IBAN = {
    "payment_id": "P4",
    "name": "Solène Montferrand",
    "iban": "FR7630003012340000482100733",
    "amount": "4",
}
REJECTED = UK | {"payment_id": "P5", "name": "Avery Thornwood", "sort_code": "1122", "amount": "9"}
ROWS = [MATCH, AGAIN, NO_MATCH, IBAN, REJECTED]


@pytest.fixture
def file(desk):
    return desk.payments(ROWS)


@pytest.fixture
def folder(desk, sandbox, file):
    """The folder of a finished run."""
    assert desk.ran("run", file, *sandbox.using("sandbox"), "--quiet").status == 0
    return desk.folder / "payments.precheck"


def manifest_of(folder):
    return Manifest.model_validate_json((folder / "manifest.json").read_bytes())


def not_well(finished):
    """What verify says is not as it should be: what, and the sentence."""
    found = [line.removeprefix("PROBLEM ") for line in finished.out.splitlines() if line.startswith("PROB")]
    return dict(line.split(": ", 1) for line in found)


# --- the manifest ---


def test_the_manifest_has_the_hash_of_the_input_and_of_every_file(folder, file):
    manifest = manifest_of(folder)

    assert manifest.input.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    evidence = {one.name: one for one in (manifest.outcome_file, *manifest.files)}
    present = {path.name for path in folder.iterdir()} - {"manifest.json", "ledger.db", ".lock"}
    assert set(evidence) == present
    for name, one in evidence.items():
        content = (folder / name).read_bytes()
        assert (one.sha256, one.byte_count) == (hashlib.sha256(content).hexdigest(), len(content))
    assert stat.S_IMODE((folder / "manifest.json").stat().st_mode) == 0o600


def test_counts_and_totals_of_the_manifest_are_those_of_the_file(folder):
    manifest = manifest_of(folder)

    counts = {total.outcome.value: total.row_count for total in manifest.outcomes}
    assert (counts["match"], counts["no_match"], counts["rejected"]) == (3, 1, 1)
    assert {money.currency: money.amount for money in manifest.totals} == {
        "GBP": Decimal("1385.00"),
        None: Decimal("4.00"),
    }
    ledger = manifest.ledger
    assert (ledger.question_count, ledger.answer_count, ledger.attempt_count) == (3, 3, 3)
    assert (ledger.unanswered_count, ledger.reused_count) == (0, 0)


def test_the_manifest_holds_no_name_no_account_and_no_credential(desk, sandbox, folder):
    text = (folder / "manifest.json").read_text()

    section = sandbox.section("sandbox", "cop")
    secret = (sandbox.folder / section["client_secret_file"]).read_text().strip()
    for private in (secret, section["client_id"], "Thornwood", "Blackmere", "Montferrand", "00012345"):
        assert private not in text
    assert "482100733" not in text


def test_a_manifest_keeps_to_its_printed_schema(desk, folder):
    printed = json.loads(desk("schema", "manifest").out)
    assert set(json.loads((folder / "manifest.json").read_text())) == set(printed["properties"])


def test_a_run_that_was_killed_before_its_manifest_writes_it_when_run_again(desk, sandbox, folder, file):
    (folder / "manifest.json").unlink()
    before = len(sandbox.questions())

    assert desk("run", file, *sandbox.using("sandbox"), "--quiet").status == 0

    assert len(sandbox.questions()) == before
    assert desk("verify", folder).status == 0


# --- verify ---


def test_verify_finds_an_untouched_folder_well_and_changes_nothing(desk, folder, file):
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}

    finished = desk("verify", folder, "--input", file)

    assert (finished.status, finished.err) == (0, "")
    lines = [line for line in finished.out.splitlines() if line]
    assert all(line.startswith("ok ") for line in lines)
    assert len(lines) >= 10
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["outcomes.csv", "summary.json", "attention.csv"])
def test_verify_names_a_file_that_was_changed_or_has_gone(desk, folder, name):
    path = folder / name
    path.write_bytes(path.read_bytes() + b"\n")
    changed = desk("verify", folder)
    path.unlink()
    gone = desk("verify", folder)

    assert (changed.status, gone.status) == (65, 65)
    assert changed.err == ""
    assert not_well(changed)[name].startswith(said("evidence.changed"))
    assert not_well(gone)[name].startswith(said("system.enoent"))


def test_verify_counts_the_outcome_file_again_even_where_its_hash_was_made_to_fit(desk, folder):
    path = folder / "outcomes.csv"
    text = path.read_text("utf-8").replace(",no_match,ANNM,", ",match,MTCH,").replace("1,250.50", "9,250.50")
    path.write_text(text, "utf-8")
    spoil(folder, lambda manifest: manifest["outcome_file"].update(evidence(path)))

    found = not_well(desk("verify", folder))

    assert "4 match" in found["rows"]
    assert (
        said("evidence.rows_differ", row_count_there=5, outcomes_there="3 match, 1 no match, 1 rejected")
        in found["rows"]
    )
    assert said("evidence.totals_differ") in found["totals"]
    assert "row 3 (line 4);" in found["answers"]
    assert said("evidence.another_outcome_file") in found["ledger"]
    assert "outcomes.csv" not in found


def evidence(path):
    content = path.read_bytes()
    return {"sha256": hashlib.sha256(content).hexdigest(), "byte_count": len(content)}


def spoil(folder, change):
    path = folder / "manifest.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda manifest: manifest["input"].update(sha256="0" * 64), "run"),
        (lambda manifest: manifest["input"].update(row_count=6), "rows"),
        (lambda manifest: manifest["totals"][0].update(amount="1.00"), "totals"),
        (lambda manifest: manifest["ledger"].update(answer_count=4), "ledger"),
        (lambda manifest: manifest.update(started="2020-01-01T00:00:00.000Z"), "summary"),
        (lambda manifest: manifest["profile"].update(sha256="0" * 64), "run"),
        (lambda manifest: manifest["approvals"].append(APPROVAL), "approvals"),
    ],
)
def test_verify_notices_a_manifest_that_says_something_else(desk, folder, change, what):
    spoil(folder, change)

    finished = desk("verify", folder)

    assert finished.status == 65
    assert what in not_well(finished)


APPROVAL = {
    "by": "J. Treasurer",
    "time": "2030-01-01T00:00:00Z",
    "what": "pay",
    "why": "known",
    "rows": [3],
    "approved_by": "J. Treasurer",
    "approved_at": "2030-01-01T00:00:00Z",
    "self_approved": True,
}


def test_verify_notices_a_changed_ledger_and_still_looks_at_the_rest(desk, folder):
    ledger = folder / "ledger.db"
    ledger.write_bytes(ledger.read_bytes().replace(b"ANNM", b"MTCH"))

    finished = desk("verify", folder)

    assert finished.status == 65
    assert set(not_well(finished)) == {"ledger"}
    assert said("advice.start_over") in not_well(finished)["ledger"]
    assert "ok      rows" in finished.out


def test_verify_does_not_take_another_input_for_the_one_that_was_checked(desk, folder):
    other = desk.payments([MATCH], name="other.csv")

    finished = desk("verify", folder, "--input", other)

    assert finished.status == 65
    assert set(not_well(finished)) == {"input"}


def test_verify_says_which_files_are_no_part_of_the_evidence(desk, folder):
    (folder / "notes.txt").write_text("mine")

    finished = desk("verify", folder)

    assert finished.status == 0
    assert said("evidence.not_in_evidence", files="notes.txt") in finished.out


def test_verify_and_show_are_told_apart_from_a_run_that_works_in_the_folder(desk, sandbox, folder):
    with (folder / ".lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        statuses = {name: desk(name, folder, *words).status for name, *words in LOOKS}
    assert set(statuses.values()) == {75}


LOOKS = [("verify",), ("show", "--row", "1"), ("report",)]


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look[0])
def test_a_folder_without_a_run_is_a_usage_error(desk, look):
    (desk.folder / "empty").mkdir()
    name, *words = look

    finished = desk(name, "empty", *words)

    assert finished.status == 2
    assert said("runs.no_manifest_in_folder", folder="empty", manifest="manifest.json") in finished.err
    assert list((desk.folder / "empty").iterdir()) == []


EVERY_LOOK = [*LOOKS, ("fix",), ("split",), ("purge",)]


@pytest.mark.parametrize("look", EVERY_LOOK, ids=lambda look: look[0])
def test_a_folder_that_is_not_there_and_a_file_in_its_place_are_told_as_such(desk, look):
    file = desk.file("payments.csv", "name\n")
    name, *words = look

    nowhere = desk(name, "payments.precheck", *words)
    mistaken = desk(name, file, *words)

    assert (nowhere.status, mistaken.status) == (2, 2)
    assert nowhere.sentences == ["precheck: " + said("files.no_such_folder", folder="payments.precheck")]
    assert mistaken.sentences == ["precheck: " + said("files.file_not_folder", folder=file)]


def test_a_folder_whose_run_is_at_work_says_so_with_75_also_the_first_time(
    desk, sandbox, misbehaving, wait_until, file
):
    asked = []

    async def never_answer(request):
        asked.append(request.path)
        await asyncio.Event().wait()

    with misbehaving(never_answer) as url:
        silent = {"cop": sandbox.section(base_url=url, token_url=f"{url}/token", attempts_max=10)}
        with desk.start("run", file, *desk.using(**silent), "--quiet") as running:
            wait_until(lambda: asked)
            refused = [desk(name, "payments.precheck", *words) for name, *words in EVERY_LOOK]
            assert not running.has_ended
            running.kill()
            running.wait()
    killed = [desk(name, "payments.precheck", *words) for name, *words in EVERY_LOOK if name != "purge"]

    assert [one.status for one in refused] == [75] * len(EVERY_LOOK)
    for one in refused:
        [sentence] = one.sentences
        assert f"payments.precheck: process {running.pid} on " in sentence
        assert sentence.endswith(said("files.folder_in_use") + "; " + said("files.wait_for_it_to_end"))
    assert {one.status for one in killed} == {2}
    unfinished = "precheck: " + said("runs.not_ended", folder="payments.precheck")
    assert {tuple(one.sentences) for one in killed} == {(unfinished,)}


def test_a_folder_that_was_moved_is_verified_where_it_is(desk, folder):
    moved = desk.folder / "archive"
    shutil.copytree(folder, moved)
    (moved / ".lock").unlink()

    assert desk("verify", moved).status == 0
    assert desk("show", moved, "--row", "1").status == 0


@pytest.mark.nightly
def test_a_resumed_and_a_reusing_run_are_verified_too(desk, sandbox, folder):
    file = desk.payments([*ROWS, MATCH | {"account_type": "Business"}], name="february.csv")
    words = ("run", file, *sandbox.using("sandbox"), "--quiet")
    assert desk(*words, "--reuse-from", folder, "--limit", "1").status == 75
    assert desk("verify", "february.precheck").status == 0
    assert desk(*words).status == 0

    finished = desk("verify", "february.precheck")

    assert finished.status == 0
    assert said("evidence.seals_intact", request_count=2, answer_count=2, reused_count=2) in finished.out


def test_a_purge_of_returned_names_leaves_evidence_that_agrees(desk, sandbox):
    file = desk.payments([MATCH | {"name": "Averi Thornwood"}])
    desk("run", file, *sandbox.using("sandbox"), "--quiet")
    assert said("cli.returned_names", count=1) + " purged" in desk("purge", "payments.precheck").err

    assert desk("verify", "payments.precheck").status == 0
    assert story_of(desk, "payments.precheck", 1).attempts[0].code == "MBAM"

    file = desk.payments(
        [MATCH | {"name": "Farraday Imogen", "sort_code": "20-04-15", "account_number": "31926819"}]
    )
    words = ("run", file, *sandbox.using("sandbox"), "--quiet", "--out", "out")
    desk(*words)
    desk("purge", "out", "--outcomes")
    assert desk("verify", "out").status == 0
    assert desk(*words).status == 0
    assert desk("verify", "out").status == 0


def test_a_purge_deletes_the_files_also_where_it_was_asked_for_them_later(desk, sandbox):
    file = desk.payments([MATCH | {"name": "Averi Thornwood"}])
    desk("run", file, *sandbox.using("sandbox"), "--quiet")
    desk("purge", "payments.precheck")

    again = desk("purge", "payments.precheck", "--outcomes")

    assert (
        said("cli.deleted", files="outcomes.csv, attention.csv, reasons.jsonl, report.html, report.xlsx")
        in again.err
    )
    assert said("cli.may_hold_names") not in again.err
    assert not (desk.folder / "payments.precheck" / "outcomes.csv").exists()


# --- report ---


def test_report_writes_the_reports_anew_without_a_call_and_byte_for_byte(desk, sandbox, folder):
    attention = (folder / "attention.csv").read_bytes()
    (folder / "attention.csv").unlink()
    before = sandbox.call_count

    finished = desk("report", folder)

    assert (finished.status, finished.err) == (0, "")
    assert said("terminal.no_match_or_not_possible", count=1) in finished.out
    assert (folder / "attention.csv").read_bytes() == attention
    assert sandbox.call_count == before
    assert desk("verify", folder).status == 0


def test_report_prints_the_summary_of_the_run_with_json(desk, folder):
    finished = desk("report", folder, "--json")
    assert Summary.model_validate_json(finished.out) == Summary.model_validate_json(
        (folder / "summary.json").read_bytes()
    )


@pytest.mark.parametrize("name", ["outcomes.csv", "summary.json"])
def test_report_makes_nothing_of_files_that_were_changed(desk, folder, name):
    path = folder / name
    path.write_bytes(path.read_bytes().replace(b"no_match", b"match"))
    attention = (folder / "attention.csv").read_bytes()

    finished = desk("report", folder)

    assert finished.status == 65
    assert said("runs.changed_since", path=name) in finished.err
    assert (folder / "attention.csv").read_bytes() == attention


def test_report_of_parquet_and_of_another_delimiter(desk, sandbox):
    semicolons = desk.payments([NO_MATCH], name="de.csv", delimiter=";")
    desk("run", semicolons, *sandbox.using("sandbox"), "--quiet", "--format", "parquet", "--out", "out")
    attention = (desk.folder / "out" / "attention.csv").read_bytes()
    assert attention.count(b";") > 10

    assert desk("report", "out").status == 0

    assert (desk.folder / "out" / "attention.csv").read_bytes() == attention
    assert desk("verify", "out").status == 0


# --- show ---


def story_of(desk, folder, row):
    finished = desk("show", folder, "--row", row, "--json")
    assert finished.status == 0, finished.err
    return Story.model_validate_json(finished.out)


def test_show_tells_one_row_from_the_file_to_the_outcome(desk, folder):
    rows = desk.outcomes()
    story = story_of(desk, folder, 2)

    assert story.payment == {**AGAIN, "sort_code": "00-11-22", "account_number": "**2345"}
    assert (story.route.api, story.route.reason) == ("cop", RouteReason.SORT_CODE)
    assert story.question.fields["name"] == "Avery Thornwood"
    assert (story.question.rows, story.question.row_count) == ([1, 2], 2)
    [attempt] = story.attempts
    assert (attempt.number, attempt.ended, attempt.code) == (1, "answered", "MTCH")
    assert attempt.request_id == story.outcome.check_id == rows[1]["check_id"]
    assert attempt.sent <= attempt.ended_at == rows[1]["check_time"]
    assert story.outcome.check_outcome == "match"
    assert story.simulated
    assert not story.answered_by_earlier_run


def test_show_tells_which_rules_a_rejected_row_breaks_and_that_nothing_was_sent(desk, folder):
    story = story_of(desk, folder, 5)

    assert [finding.code for finding in story.findings] == ["SORT_CODE_DAMAGED"]
    assert (story.route, story.question, story.attempts) == (None, None, [])
    assert story.outcome.check_outcome == "rejected"


def test_show_never_shows_a_whole_account(desk, folder):
    for row in range(1, 6):
        for words in ((), ("--json",)):
            finished = desk("show", folder, "--row", row, *words)
            said = "".join((finished.out + finished.err).split())
            assert "00012345" not in said
            assert "FR7630003012340000482100733" not in said


def test_show_tells_every_request_of_a_question_that_was_asked_more_than_once(desk, serve, tmp_path):
    with serve(tmp_path / "own", "--fault", "500:first=1") as own:
        finished = desk("run", desk.payments([MATCH], name="one.csv"), *own.using("sandbox"), "--quiet")
    assert finished.status == 0, finished.err

    story = story_of(desk, "one.precheck", 1)

    assert [(one.number, one.ended) for one in story.attempts] == [(1, "failed"), (2, "answered")]
    assert story.attempts[0].code == "SERVER_ERROR"


def test_show_says_so_where_an_earlier_run_had_the_answer(desk, sandbox, folder):
    file = desk.payments([MATCH], name="february.csv")
    desk("run", file, *sandbox.using("sandbox"), "--quiet", "--reuse-from", folder)

    story = story_of(desk, "february.precheck", 1)
    shown = desk("show", "february.precheck", "--row", 1)

    assert story.answered_by_earlier_run
    assert story.attempts == []
    assert said("story.answered_earlier") in shown.out


def test_show_tells_of_an_undecided_row_that_it_is(desk, sandbox, file):
    desk("run", file, *sandbox.using("sandbox"), "--quiet", "--limit", "0")

    story = story_of(desk, "payments.precheck", 1)

    assert story.outcome.check_code == "LIMIT"
    assert story.question.rows == [1, 2]
    assert story.attempts == []
    assert not story.answered_by_earlier_run


def test_a_row_that_was_too_long_to_read_has_no_question(desk, sandbox):
    path = desk.folder / "long.csv"
    row = "Solène Montferrand,FR7630003012340000482100733,1"
    path.write_text(f"name,iban,amount,note\n{row},x,y\n{row},x\n", "utf-8")
    desk("run", path, *sandbox.using("sandbox"), "--quiet")

    story = story_of(desk, "long.precheck", 1)

    assert story.outcome.check_code == "ROW_TOO_LONG"
    assert (story.route, story.question) == (None, None)
    assert story_of(desk, "long.precheck", 2).question.rows == [2]


@pytest.mark.parametrize("row", ["0", "6", "x"])
def test_show_of_a_row_that_does_not_exist_is_a_usage_error(desk, folder, row):
    assert desk("show", folder, "--row", row).status == 2


def test_show_of_a_name_mapped_from_two_columns_plans_the_same_question(desk, sandbox):
    rows = [{"vor": "Avery", "nach": "Thornwood", **UK, "amount": "1"}]
    file = desk.payments(rows, header=tuple(rows[0]))
    desk("run", file, *sandbox.using("sandbox"), "--quiet", "--map", "name=vor+nach")

    story = story_of(desk, "payments.precheck", 1)

    assert story.question.fields["name"] == "Avery Thornwood"
    assert len(story.attempts) == 1


# --- on a terminal ---


@pytest.mark.parametrize("width", [60, 80])
def test_no_line_is_wider_than_the_terminal_and_a_pipe_gets_no_escape(desk, folder, width):
    for name, *words in LOOKS:
        finished = desk(name, folder, *words, COLUMNS=str(width), NO_COLOR="1")
        assert "\x1b" not in finished.err
        if name != "verify":  # its lines are sentences, wrapped by the terminal
            assert max(map(len, finished.out.splitlines())) <= width
        assert "…" not in finished.err


def test_hostile_text_cannot_steer_the_terminal(desk, sandbox):
    hostile = "Evil\x1b[31mRed [bold]"
    rows = [UK | {"payment_id": hostile, "name": "Avery Thornwood", "amount": "1"}]
    desk("run", desk.payments(rows), *sandbox.using("sandbox"), "--quiet")

    shown = desk("show", "payments.precheck", "--row", 1, FORCE_COLOR="1")

    assert "\x1b[31mRed" not in shown.err
    assert "Evil\\x1b[31mRed [bold]" in shown.out


def test_a_folder_that_every_user_can_write_into_is_refused_before_anything_is_asked(desk, sandbox):
    out = desk.folder / "open"
    out.mkdir()
    out.chmod(0o777)
    before = sandbox.call_count
    refused = desk("run", desk.payments([MATCH]), *sandbox.using("sandbox"), "--out", out)
    assert (refused.status, sandbox.call_count) == (73, before)
    assert said("files.folder_writable_by_others") in refused.err
    two = (desk.payments([MATCH]), desk.payments([MATCH], name="two.csv"))
    assert desk("run", *two, *sandbox.using("sandbox"), "--out", out).status == 73
    assert sandbox.call_count == before


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders and links away")
@pytest.mark.parametrize("within", ["", "ours"])
def test_a_folder_or_link_that_another_user_made_in_a_shared_one_is_refused(desk, sandbox, within):
    share, ours, own = (desk.folder / name for name in ("share", "ours", "own"))
    out, link, linked = share / "payments.precheck", share / "link", share / "linked"
    (out / within).mkdir(parents=True)
    (ours / within).mkdir(parents=True)
    share.chmod(0o1777)
    link.symlink_to(out)
    linked.symlink_to("../ours")
    own.symlink_to(linked)
    words = (desk.payments([MATCH]), *sandbox.using("sandbox"), "--quiet", "--out")
    os.chown(out, 4711, 4711)
    os.chown(linked, 4711, 4711, follow_symlinks=False)
    for path in (out, link, linked, own):
        refused = desk("run", *words, path / within)
        said = "another user of this computer created this folder or link"
        assert (refused.status, said in refused.err) == (73, True), refused.err
    own.unlink()
    own.symlink_to(ours)
    assert desk("run", *words, own / within).status == 0
    share.chmod(0o755)
    assert desk("run", *words, out / within).status == 0


def test_nothing_is_written_into_a_folder_that_was_opened_to_every_user_since(desk, sandbox):
    assert desk("run", desk.payments([MATCH]), *sandbox.using("sandbox")).status == 0
    folder = desk.folder / "payments.precheck"
    folder.chmod(0o777)
    there = {path.name for path in folder.iterdir()}
    split = ("split", folder, "--allow-simulated")
    for command in (split, ("fix", folder), ("report", folder)):
        assert desk(*command).status == 73, command
    assert {path.name for path in folder.iterdir()} == there
    folder.chmod(0o700)
    assert desk(*split).status == 0
