"""From a mixed file with problems to a released file, with the real command."""

import csv
import json
import shlex
import shutil
import zipfile
from collections import Counter
from decimal import Decimal
from pathlib import Path

import openpyxl
import pytest
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

MIXED = Path(__file__).parents[2] / "sample_data" / "payments_mixed.csv"
FOLDER = "payments_mixed.precheck"
ACCEPT = ("--accept", "close_match,account_type", "--reason", "agreed", "--by", "Mara Ellery")


@pytest.fixture
def checked(desk):
    """A desk with the folder of a run of the mixed file."""
    assert desk.ran("run", MIXED, "--quiet").status == 0
    return desk


def rows_of(path):
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def money_of(rows):
    sums = Counter()
    for row in rows:
        sums[row["currency"]] += Decimal(row["amount"])
    return sums


def test_a_mixed_file_becomes_a_corrected_file_a_released_file_and_a_hold_list(checked):
    folder = checked.folder / FOLDER
    done = checked("fix", FOLDER, *ACCEPT, "--allow-simulated", "--json")
    assert done.status == 0
    fixed = json.loads(done.out)
    before, after = rows_of(MIXED), rows_of(folder / "corrected.simulated.csv")
    changed = [number for number, pair in enumerate(zip(before, after, strict=True), 1) if pair[0] != pair[1]]
    assert changed == fixed["corrected_rows"] == [2, 5, 7, 8, 10, 12, 13, 16]

    # The command that was printed checks the corrected file: what was corrected matches now.
    words = shlex.split(fixed["next_step"])
    assert fixed["next_step"] in done.out
    assert checked(*words[1:], "--quiet").status == 0
    again = words[-1]
    outcomes = checked.outcomes(again)
    assert {outcomes[number - 1]["check_outcome"] for number in changed} == {"match"}

    done = checked("split", again, "--allow-simulated", "--json")
    assert done.status == 0
    split = json.loads(done.out)
    release = rows_of(checked.folder / again / "release.simulated.csv")
    hold = rows_of(checked.folder / again / "hold.simulated.csv")
    paid = [row["payment_id"] for row in release]
    assert paid == [row["payment_id"] for row in outcomes if row["check_outcome"] == "match"]
    assert sorted([*release, *hold], key=lambda row: row["payment_id"]) == after
    assert money_of(release) + money_of(hold) == money_of(before)
    assert split["input"]["row_count"] == len(release) + len(hold) == 24

    reasons = rows_of(checked.folder / again / "hold_reasons.csv")
    assert [row["row"] for row in reasons] == [
        row["payment_id"].removeprefix("PAY-").lstrip("0") for row in hold
    ]
    assert all(row["why_held"] and row["what_to_do"] for row in reasons)
    assert not [
        row for row in reasons for original in before if original["iban"] and original["iban"] in row.values()
    ]


def test_show_ends_with_what_was_decided_and_where_the_payment_went(checked):
    rows = checked.outcomes(FOLDER)
    match = next(number for number, row in enumerate(rows, 1) if row["check_outcome"] == "match")
    rejected = next(number for number, row in enumerate(rows, 1) if row["check_outcome"] == "rejected")
    assert json.loads(checked("show", FOLDER, "--row", match, "--json").out)["payment_file"] is None
    assert checked("fix", FOLDER, *ACCEPT, "--allow-simulated").status == 0
    split = ("split", FOLDER, "--by", "Noor", "--hold-undecided", "--allow-simulated")
    assert checked(*split).status == 0
    for row, file in ((match, "release.simulated.csv"), (rejected, "hold.simulated.csv")):
        placed = json.loads(checked("show", FOLDER, "--row", row, "--json").out)["payment_file"]
        assert placed.pop("time").endswith("Z")
        assert placed == {
            "file": file,
            "is_released": row == match,
            "approved_by": "Noor",
            "self_approved": True,
        }
    text = checked("show", FOLDER, "--row", rejected).out
    assert "held in   hold.simulated.csv" in text.partition("Payment file\n")[2]
    assert "approval  " + said("story.approved_self", by="Noor") + ", " in text
    corrected = checked("show", FOLDER, "--row", 2).out
    decisions = corrected.partition("Decisions\n")[2].partition("Payment file\n")[0]
    assert "by Mara Ellery, " in decisions
    assert "UTC: agreed" in decisions


def test_decisions_written_into_the_workbook_release_a_row_and_are_on_record(checked, sandbox):
    folder = checked.folder / FOLDER
    profile = "\n".join(
        f"{key} = {json.dumps(value)}" for key, value in sandbox.section("sandbox", "cop").items()
    )
    config = checked.folder / "mine.toml"
    config.write_text(
        f'[profiles.sandbox.policy]\nclose_match = "review"\n[profiles.sandbox.cop]\n{profile}\n'
    )
    book = openpyxl.load_workbook(folder / "report.xlsx")
    wanted = {10: ("release", "paid every month"), 22: ("hold", "left the company")}
    for sheet in (book["Close match"], book["Rejected"]):
        headers = [cell.value for cell in sheet[3]]
        for line in sheet.iter_rows(min_row=4):
            if line[0].value in wanted:
                decision, reason = wanted[line[0].value]
                line[headers.index("Decision")].value, line[headers.index("Reason")].value = decision, reason
    book.save(checked.folder / "decided.xlsx")
    done = checked(
        "split",
        FOLDER,
        "--config",
        config,
        "--decisions",
        "decided.xlsx",
        "--by",
        "Mara",
        "--allow-simulated",
    )
    assert done.status == 0, done.err
    released = [row["payment_id"] for row in rows_of(folder / "release.simulated.csv")]
    assert "PAY-0010" in released
    assert "PAY-0002" not in released
    approvals = json.loads((folder / "approvals.json").read_text())
    said = {(each["by"], each["why"], *each["rows"]) for each in approvals}
    assert said == {("Mara", "paid every month", 10), ("Mara", "left the company", 22)}  # a rejected row, too


def test_simulated_answers_release_nothing_unless_told(checked):
    for words in (("split", FOLDER), ("fix", FOLDER, *ACCEPT)):
        refused = checked(*words)
        assert refused.status == 2
        assert "--allow-simulated" in refused.sentences[0]
    assert not list((checked.folder / FOLDER).glob("*simulated*"))


def test_answers_that_are_not_simulated_are_released_under_the_plain_names(desk, sandbox):
    assert desk("sandbox", "--write-payments", "pay.csv", "--rows", 30).status == 0
    sections = {api: sandbox.section("production", api, server="production") for api in ("cop", "vop")}
    config = desk.configuration(real=sections)
    assert desk("run", "pay.csv", "--config", config, "--profile", "real", "--quiet").status == 0
    assert desk("split", "pay.precheck", "--config", config).status == 0
    folder = desk.folder / "pay.precheck"
    assert (folder / "release.csv").exists()
    assert len(rows_of(folder / "release.csv")) + len(rows_of(folder / "hold.csv")) == 30


@pytest.mark.nightly
def test_a_file_that_is_not_decided_is_not_split(desk, sandbox):
    words = ("run", MIXED, *sandbox.using("sandbox"), "--quiet")
    assert desk(*words, "--limit", 3).status == 75
    refused = desk("split", FOLDER, "--allow-simulated")
    assert refused.status == 75
    assert not list((desk.folder / FOLDER).glob("release*"))
    assert desk("split", FOLDER, "--allow-simulated", "--hold-undecided").status == 0

    # The rest of the answers makes the split untrue, and it goes.
    assert desk(*words).status == 0
    assert not list((desk.folder / FOLDER).glob("release*"))
    assert not (desk.folder / FOLDER / "hold_reasons.csv").exists()


@pytest.mark.nightly
def test_a_folder_that_was_changed_since_is_refused_and_can_be_mended(checked):
    path = checked.folder / FOLDER / "outcomes.csv"
    path.write_text(path.read_text().replace("no_match", "match"))
    refused = checked("split", FOLDER, "--allow-simulated")
    assert refused.status == 65
    path.unlink()
    assert checked("run", MIXED, "--quiet").status == 0
    assert checked("split", FOLDER, "--allow-simulated").status == 0


@pytest.mark.parametrize(
    "words",
    [
        ("--accept", "everything", "--reason", "x"),
        ("--accept", "close_match"),
        ("--accept", "close_match", "--reason", " "),
        ("--reason", "x"),
        ("--accept", "close_match", "--reason", "x", "--decisions", "x.xlsx"),
        ("--decisions", "missing.xlsx"),
    ],
)
def test_words_that_do_not_fit_are_told_apart(checked, words):
    refused = checked("fix", FOLDER, *words)
    assert refused.status == 2
    assert "Traceback" not in refused.err


def test_no_name_and_no_account_is_printed(checked):
    fixed = checked("fix", FOLDER, *ACCEPT, "--allow-simulated", "--json")
    split = checked("split", FOLDER, "--allow-simulated", "--json")
    said = fixed.out + fixed.err + split.out + split.err
    for row in rows_of(MIXED):
        for field in ("name", "account_number", "iban"):
            assert not row[field] or row[field] not in said


def contents(folder):
    """The bytes of every file of a folder, and of the parts of those that are archives, by name."""
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.name, path.read_bytes()
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    yield from ((f"{path.name}/{part}", archive.read(part)) for part in archive.namelist())


def holding(folder, names):
    """The files of a folder that hold one of these names."""
    spelled = [name.encode(encoding) for name in names for encoding in ("utf-8", "utf-16-le")]
    return {
        name.partition("/")[0] for name, content in contents(folder) if any(one in content for one in spelled)
    }


PURGED = {
    "outcomes.csv", "report.html", "report.xlsx", "corrections.csv", "corrected.simulated.csv",
}  # fmt: skip


@pytest.fixture
def returned(checked, sandbox):
    """The desk with a run whose file has none of the names that banks returned; those names."""
    outcomes = checked.outcomes(FOLDER)
    names = {row["check_matched_name"] for row in outcomes} - {""}
    rows = [row for row in rows_of(MIXED) if row["name"] not in names]
    shutil.rmtree(checked.folder / FOLDER)
    file = checked.payments(rows, MIXED.name, header=list(rows[0]))
    assert checked("run", file, *sandbox.using("sandbox"), "--quiet").status == 0
    returned = {row["check_matched_name"] for row in checked.outcomes(FOLDER)} - {""}
    assert len(returned) > 1
    return returned


@pytest.mark.nightly
def test_purging_with_the_files_leaves_no_returned_name_and_evidence_that_agrees(checked, returned):
    folder = checked.folder / FOLDER
    assert checked("fix", FOLDER, *ACCEPT, "--allow-simulated").status == 0
    assert checked("split", FOLDER, "--allow-simulated").status == 0
    assert holding(folder, returned) == PURGED | {"ledger.db"}
    (folder / "report.html.part").write_bytes((folder / "report.html").read_bytes())

    purged = checked("purge", FOLDER, "--outcomes")

    assert purged.status == 0
    assert said("cli.may_hold_names") not in purged.err
    assert holding(folder, returned) == set()
    manifest = json.loads((folder / "manifest.json").read_bytes())
    [purge] = manifest["purges"]
    assert set(purge["files"]) == PURGED | {"attention.csv", "reasons.jsonl"}
    verified = checked("verify", FOLDER)
    assert verified.status == 0
    for name in purge["files"]:
        assert f"ok      {name}: " + said("evidence.deleted") + purge["time"] in verified.out
    assert (
        "ok      rows: " + said("evidence.not_counted", file="outcomes.csv") + said("evidence.deleted")
        in verified.out
    )
    assert "release.simulated.csv: unchanged" in verified.out
    assert said("evidence.deleted", "") in checked("show", FOLDER, "--row", 1).sentences[0]

    # What went another way is missing all the same, and what is there again must be what it was.
    (folder / "summary.json").rename(folder / "outcomes.csv")
    verified = checked("verify", FOLDER)
    assert verified.status == 65
    assert "PROBLEM summary.json" in verified.out
    assert "PROBLEM outcomes.csv" in verified.out


def test_a_purge_names_what_it_leaves_alone_and_may_hold_names(checked):
    folder = checked.folder / FOLDER
    shutil.copyfile(folder / "report.xlsx", folder / "decided.xlsx")
    kept = checked("purge", FOLDER)
    expected = said(
        "cli.may_hold_names",
        files="outcomes.csv, attention.csv, reasons.jsonl, report.html, report.xlsx, decided.xlsx",
    )
    assert expected in kept.err
    assert said("cli.may_hold_names", files="decided.xlsx") in checked("purge", FOLDER, "--outcomes").err
    assert (folder / "decided.xlsx").exists()


def test_a_purge_needs_no_manifest(checked):
    (checked.folder / FOLDER / "manifest.json").write_text("{")
    assert checked("purge", FOLDER, "--outcomes").status == 0
    assert (checked.folder / FOLDER / "manifest.json").read_text() == "{"
    assert not (checked.folder / FOLDER / "outcomes.csv").exists()


def test_a_report_in_a_folder_of_somebody_else_is_not_replaced(desk):
    folder = desk.folder / FOLDER
    folder.mkdir()
    (folder / "report.xlsx").write_text("mine")
    assert desk("run", MIXED, "--quiet").status == 73
    assert (folder / "report.xlsx").read_text() == "mine"


def test_the_findings_of_verify_can_be_read_by_a_program(checked):
    (checked.folder / FOLDER / "report.html").write_text("changed")
    done = checked("verify", FOLDER, "--json")
    found = json.loads(done.out)
    assert (done.status, found["well"]) == (65, False)
    [problem] = [finding for finding in found["findings"] if not finding["well"]]
    assert problem["what"] == "report.html"
    assert f"precheck report {FOLDER}" in problem["detail"]


@pytest.mark.parametrize("name", ["outcomes.csv", pytest.param("summary.json", marks=pytest.mark.nightly)])
def test_what_verify_says_of_a_changed_file_mends_it_without_a_call(checked, name):
    path = checked.folder / FOLDER / name
    path.write_text(path.read_text().replace("no_match", "match"))
    assert checked("verify", FOLDER).status == 65
    path.unlink()
    done = checked("run", MIXED, "--json", "--quiet")
    assert sum(call["request_count"] for call in json.loads(done.out)["calls"]) == 0
    assert checked("verify", FOLDER).status == 0


GOOD = {
    "name": "Avery Thornwood",
    "account_type": "Personal",
    "sort_code": "001122",
    "account_number": "00012345",
}
DAMAGED = GOOD | {"sort_code": "1122"}


@pytest.mark.parametrize("words", [(), ("--accept", "close_match", "--reason", "agreed")], ids=len)
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [GOOD],
            ["Nothing to correct: no payment file was written, and {corrections} lists no row."],
        ),
        (
            [GOOD, DAMAGED],
            [
                "1 row to correct, none of them by this program: {corrections}",
                "No payment file was written: {corrections} lists what you have to correct.",
            ],
        ),
    ],
    ids=["nothing", "for a person"],
)
def test_fix_with_nothing_that_it_can_correct_says_that_no_payment_file_was_written(
    desk, sandbox, words, rows, said
):
    assert desk.ran("run", desk.payments(rows), *sandbox.using("sandbox"), "--quiet").status == 0

    done = desk("fix", "payments.precheck", *words, "--allow-simulated")

    assert done.status == 0
    corrections = "payments.precheck/corrections.csv"
    assert done.out.splitlines()[1:] == [line.format(corrections=corrections) for line in said]
    assert len(rows_of(desk.folder / corrections)) == len(rows) - 1
    assert not list((desk.folder / "payments.precheck").glob("corrected*"))


def test_fix_that_was_told_to_correct_nothing_says_that_no_payment_file_was_written(checked):
    done = checked("fix", FOLDER)

    assert done.status == 0
    assert f"\n{said('review.no_file_written')}\n{said('review.decide_in_a_copy')}" in done.out
    assert not list((checked.folder / FOLDER).glob("corrected*"))
