"""A corrected file at the desk: decisions about the one that it corrects, and which of both is paid."""

import csv
import html
import io
import json
import re
from pathlib import Path

import openpyxl
import pytest
from forgers import forge

MIXED = (Path(__file__).parents[3] / "sample_data" / "payments_mixed.csv").read_bytes()
ONE_PAYMENT = b"".join(MIXED.splitlines(keepends=True)[:2])
ALSO = "The same file was also uploaded:"


@pytest.fixture(scope="module")
def rita(desk_here):
    return desk_here.visitor("Rita")


@pytest.fixture(scope="module")
def checked(rita):
    return rita.checked(MIXED, "payments_mixed.csv")


@pytest.fixture
def at(desk_here, checked):
    """The id of a file that was checked, and not touched since."""
    return desk_here.copy(checked)


def decide(visitor, at, row, decision, reason="agreed", **headers):
    answer = visitor.post(f"/files/{at}/rows/{row}", {"decision": decision, "reason": reason}, **headers)
    assert answer.status in (200, 303), answer.text
    return answer


def released(visitor, at):
    assert visitor.approve(at).status == 303
    body = visitor.get(f"/files/{at}/download/release.simulated.csv").body
    return {row["payment_id"] for row in csv.DictReader(io.StringIO(body.decode("utf-8-sig")))}


def text_of(visitor, path):
    answer = visitor.get(path)
    assert answer.status == 200, answer.text
    return " ".join(html.unescape(re.sub("<[^>]*>", "", answer.text)).split())


def checked_again(visitor, at):
    """The id of its corrected file, checked."""
    again = visitor.post(f"/files/{at}/check-again").to.split("/")[2]
    visitor.post(f"/files/{again}/columns", {"then": "plan"})
    visitor.check(again)
    return again


@pytest.fixture(scope="module")
def both(desk_here, rita, checked):
    """The ids of a file of which row 1, a match, was held and row 2 corrected, and of its corrected file."""
    at = desk_here.copy(checked)
    decide(rita, at, 1, "hold", "has left")
    decide(rita, at, 2, "fix", "seen on the invoice")
    assert "PAY-0001" not in released(rita, at)
    return at, checked_again(rita, at)


def test_a_payment_that_was_held_is_held_in_the_corrected_file_until_it_is_taken_back(desk_here, rita, both):
    before, after = both
    again = desk_here.copy(after)
    ada = desk_here.visitor("Ada")
    page = text_of(ada, f"/files/{again}/release")
    assert "1 hold was carried over from the earlier file: row 1." in page
    assert "Rita: to hold 1 row" in page
    assert "PAY-0001" not in released(ada, again)
    verified = ada.post(f"/files/{again}/verify").text
    assert "Nothing was changed." in verified
    [held] = desk_here.decisions(before)[:1]
    approvals = ada.get(f"/files/{again}/download/approvals.json").body.decode()
    assert f'"time": "{held["time"]}"' in approvals
    assert "has left (carried over from the earlier file)" in approvals
    story = ada.get(f"/files/{again}/rows/1").text
    assert f'<a href="/files/{before}/rows/1">decided in the earlier file</a>' in story
    assert "no longer counts" not in story
    taken_back = dict(re.findall(r'name="(before|decision)" value="([^"]*)"', story))
    assert ada.post(f"/files/{again}/rows/1", taken_back).status == 303
    assert "carried over" not in text_of(ada, f"/files/{again}/release")
    assert "PAY-0001" in released(ada, again)


def test_a_hold_of_the_earlier_file_that_came_later_is_named_before_the_approval(desk_here, rita, both):
    before, after = both
    again = desk_here.copy(after)
    said = "row is held in the earlier file and has no decision here: 3."
    assert said not in text_of(rita, f"/files/{again}/release")
    decide(rita, before, 3, "hold", "called")
    assert said in text_of(rita, f"/files/{again}/release")
    decide(rita, before, 3, "none")
    assert rita.approve(before).status == 303


def test_a_corrected_file_that_was_taken_away_and_uploaded_again_is_known(desk_here, rita, both):
    before, _ = both
    [path] = (desk_here.folder(before) / "run.precheck").glob("corrected.*")
    again = rita.file(path.read_bytes(), "by_hand.csv")
    [carried] = desk_here.decisions(again)
    assert (carried["rows"], carried["decision"], carried["carried_from"]) == ([1], "hold", before)


def test_the_story_of_a_corrected_row_leads_to_the_earlier_file(rita, both):
    before, after = both
    page = rita.get(f"/files/{after}/rows/2").text
    assert "This row was corrected in an earlier file, payments_mixed.csv, as decided by Rita" in page
    assert f'<a href="/files/{before}/rows/2">its history there</a>' in page
    assert "corrected in an earlier file" not in rita.get(f"/files/{after}/rows/4").text


def test_the_corrections_say_which_were_applied(rita, both):
    body = rita.get(f"/files/{both[0]}/download/corrections.csv").body.decode("utf-8-sig")
    applied = {row["row"]: row["applied"] for row in csv.DictReader(io.StringIO(body))}
    assert applied.pop("2") == "yes"
    assert set(applied.values()) == {"no"}


REJECTED = (
    b"payment_id,name,account_type,sort_code,account_number,amount,currency\n"
    b"P-1,Avery Thornwood,Personl,001122,00012345,10.00,GBP\n"
    b"P-2,,Personal,001122,00012345,20.00,GBP\n"
    b"P-3,Avery Thornwood,Personal,001122,9999999A,30.00,GBP\n"
    b"P-4,Averi Thornwood,Personal,001122,00012345,40.00,GBP\n"
)


def test_a_name_or_an_account_type_is_corrected_here_and_the_approver_sees_old_and_new(desk_here, rita):
    at = rita.checked(REJECTED, "rejected.csv")
    page = rita.get(f"/files/{at}/review").text
    assert page.count('name="written"') == 2  # never an account
    for row, text in ((1, ""), (3, "00012345")):
        answer = rita.post(f"/files/{at}/rows/{row}", {"decision": "fix", "reason": "x", "written": text})
        assert answer.status == 422
    for row, text in ((1, "Personal"), (2, "Avery Thornwood")):
        form = {"decision": "fix", "reason": "seen on the invoice", "written": text}
        assert rita.post(f"/files/{at}/rows/{row}", form).status == 303
    decide(rita, at, 4, "fix", "seen on the invoice")
    assert "Thornwood" not in json.dumps(desk_here.decisions(at))
    book = openpyxl.load_workbook(io.BytesIO(rita.get(f"/files/{at}/decisions.xlsx").body))["All"]
    lines = [[cell.value for cell in line] for line in book.iter_rows(min_row=3)]
    column = lines[0].index("Corrected")
    assert {line[0]: line[column] for line in lines[1:] if line[column]} == {
        1: "Personl → Personal",
        2: "→ Avery Thornwood",
        4: "Averi Thornwood → Avery Thornwood",
    }
    again = checked_again(rita, at)
    run = desk_here.folder(at) / "run.precheck"
    for row, told in (
        (1, 'account type from "Personl" to "Personal"'),
        (2, 'name "Avery Thornwood"; the cell was empty'),
        (4, 'name from "Averi Thornwood" to "Avery Thornwood"'),
    ):
        assert told in " ".join(desk_here.desk("show", run, "--row", str(row)).out.split())
    assert "Corrected file, account type" in text_of(rita, f"/files/{at}/rows/1")
    assert "corrected" not in desk_here.desk("show", run, "--row", "3").out
    shown = text_of(rita, f"/files/{again}/release")
    table = shown.partition("RowFieldBeforeNowDecided by ")[2]
    assert re.findall(r"(\w+) ?(name|account type)(.*?)Rita seen on the invoice", table) == [
        ("1", "account type", "PersonlPersonal"),
        ("2", "name", "emptyAvery Thornwood"),
        ("4", "name", "Averi ThornwoodAvery Thornwood"),
    ]
    assert "Corrected since the first file" not in text_of(rita, f"/files/{at}/release")
    assert released(rita, again) == {"P-1", "P-2", "P-4"}
    written = desk_here.folder(at) / "written"
    assert len([*written.iterdir()]) == 2
    assert rita.post(f"/files/{at}/forget", {"reason": "kept long enough"}).status == 303
    assert not written.exists()
    assert not (run / "corrections.csv").exists()


def test_rejected_rows_are_corrected_on_the_plan_too_but_never_an_account(desk_here, rita):
    assert "After the check you can correct" in rita.get(f"/files/{rita.planned(REJECTED)}/plan").text
    at = rita.checked(REJECTED, "rejected.csv")
    page = rita.get(f"/files/{at}/plan").text
    assert re.findall('id="row-([0-9]+)"', page) == ["2", "1"]  # not 3, whose account is broken
    forms = re.findall('<form method="post" action="(rows/[0-9]+)">(.*?)</form>', page, re.DOTALL)
    for action, form in forms:
        fields = dict(re.findall('name="(shown|before)" value="([^"]*)"', form))
        text = "Personal" if "<select" in form else "Avery Thornwood"
        said = {**fields, "decision": "fix", "reason": "on the invoice", "written": text}
        assert rita.post(f"/files/{at}/{action}", said).status == 303
    assert [one["rows"] for one in desk_here.decisions(at)] == [[2], [1]]
    now = text_of(rita, f"/files/{at}/plan")
    assert "To be corrected: Avery Thornwood, Rita on the invoice" in now
    seen = [(entry["by"], entry["deed"]) for entry in desk_here.audit() if entry["run"] == at]
    assert ("Rita", "saw accounts") in seen


def test_a_correction_that_was_taken_back_is_in_no_file_of_the_next_approval(desk_here, rita, both):
    at = desk_here.copy(both[0])
    decide(rita, at, 2, "none")
    released(rita, at)
    assert rita.get(f"/files/{at}/download/corrected.simulated.csv").status == 404
    assert '"yes"' not in rita.get(f"/files/{at}/download/corrections.csv").text
    assert "Nothing was changed." in rita.post(f"/files/{at}/verify").text


def test_the_same_file_twice_is_said_wherever_it_may_be_sent_or_paid(desk_here, rita):
    data = ONE_PAYMENT + b"\n\n"  # another test's release file has the bytes of the payment alone
    first, other = rita.checked(data), rita.planned(data)
    for at in (first, other):
        for page in ("columns", "plan"):
            assert ALSO in text_of(rita, f"/files/{at}/{page}")
    second = desk_here.copy(first)
    assert "(released)" not in text_of(rita, f"/files/{second}/release")
    released(rita, first)
    said = rf'<a href="/files/{first}"><time [^>]*>[^<]*</time></a> <b>\(released\)</b>'
    assert re.search(said, rita.get(f"/files/{second}/release").text)
    released(rita, second)
    assert re.search(said, rita.get(f"/files/{second}/release").text)
    third = rita.planned(ONE_PAYMENT.replace(b"PAY-0001", b"PAY-1"))
    gone = rita.planned(ONE_PAYMENT.replace(b"PAY-0001", b"PAY-1"))
    assert ALSO in text_of(rita, f"/files/{third}/plan")
    assert rita.post(f"/files/{gone}/forget", {"reason": "uploaded twice"}).status == 303
    assert ALSO not in text_of(rita, f"/files/{third}/plan")  # nothing of it can be released any more
    broken = [rita.file(b"a,b\n1,2\n", "broken.csv") for _ in range(2)]
    for at in broken:
        assert ALSO not in text_of(rita, f"/files/{at}/columns")


def test_a_released_file_says_what_a_new_decision_does_and_who_made_it(rita, at):
    said = "A new decision voids the approval, but files that were already downloaded cannot be recalled."
    assert said not in text_of(rita, f"/files/{at}/review")
    released(rita, at)
    assert said in text_of(rita, f"/files/{at}/review")
    part = decide(rita, at, 10, "hold", "called", X_Part="row").text
    assert re.search(r'id="stands">.*</span> To review</p>', part)
    assert "A decision was made after Rita approved this file" in part
    page = text_of(rita, f"/files/{at}/release")
    assert re.search("First such decision: Rita, [^:]*:[^:]*: to hold, row 10, called.", page)


def test_an_approval_that_releases_nothing_is_not_called_released(rita):
    at = rita.checked(ONE_PAYMENT + b"\n")
    decide(rita, at, 1, "hold")
    assert rita.approve(at).status == 303
    assert "Nothing to release: every payment is held." in text_of(rita, f"/files/{at}/release")
    listed = rita.get("/").text
    assert re.search(rf'/files/{at}">.*?s-nothing">Approved: nothing to release<', listed, re.DOTALL)


def test_what_one_file_released_is_held_in_its_correction_and_in_what_it_held(desk_here, rita, at):
    decide(rita, at, 2, "fix", "seen on the invoice")
    first = released(rita, at)
    after = checked_again(rita, at)
    page = text_of(rita, f"/files/{after}/release")
    assert re.search(r"\d+ payments were released before in payments_mixed.csv, approved by Rita", page)
    assert "Rita downloaded the release file" in page
    second = released(rita, after)
    assert second == {"PAY-0002"}
    assert not first & second
    hold = rita.get(f"/files/{after}/download/hold.simulated.csv").body
    again = rita.checked(hold, "held.csv")
    assert json.loads((desk_here.folder(again) / "desk.json").read_text())["corrects"] == after
    assert rita.approve(again, hold_undecided="yes").status == 303
    assert "Nothing to release: every payment is held." in text_of(rita, f"/files/{again}/release")
    assert "Nothing was changed." in rita.post(f"/files/{again}/verify").text


def test_a_release_that_was_taken_is_not_in_the_next_approval_of_its_file(rita, at):
    first = released(rita, at)
    assert "Rita downloaded the release file" in text_of(rita, f"/files/{at}/release")
    decide(rita, at, 10, "hold", "called")
    decide(rita, at, 10, "release", "called again")
    page = text_of(rita, f"/files/{at}/release")
    assert f"{len(first)} payments were released before" in page
    assert released(rita, at) == {"PAY-0010"}
    assert "Rita downloaded the release file" in text_of(rita, f"/files/{at}/release")


def test_a_release_that_nobody_took_is_replaced_by_the_next(rita, at):
    assert rita.approve(at).status == 303
    decide(rita, at, 10, "release", "called")
    assert len(released(rita, at)) > 1


def test_the_corrected_file_is_checked_before_anything_is_approved(desk_here, rita, at):
    decide(rita, at, 2, "fix", "seen on the invoice")
    assert "Check the corrected file" in text_of(rita, f"/files/{at}/release")
    again = checked_again(rita, at)
    assert not list((desk_here.folder(at) / "run.precheck").glob("release*"))
    assert rita.post(f"/files/{at}/check-again").status == 409
    [line] = re.findall(
        rf'<tr>\s*<th scope="row"><a href="/files/{again}">.*?</tr>', rita.get("/").text, re.DOTALL
    )
    assert f'Before: <a href="/files/{at}">payments_mixed.csv</a>, To review' in line
    assert rita.get("/").text.count(f'"/files/{at}"') == 1
    assert "PAY-0002" in (first := released(rita, again))
    assert rita.approve(at).status == 303
    held = text_of(rita, f"/files/{at}/release")
    assert f"{len(first) - 1} payments were released before" not in held
    assert f"{len(first)} payments were released before" in held
    assert "Nothing to release: every payment is held." in held


def test_a_forged_ledger_of_the_earlier_file_answers_nothing_of_its_correction(desk_here, rita, at):
    decide(rita, at, 2, "fix", "seen on the invoice")
    again = rita.post(f"/files/{at}/check-again").to.split("/")[2]
    earlier = desk_here.folder(at) / "run.precheck"
    forge(earlier / "ledger.db", "UPDATE answer SET code = 'MTCH', matched_name = NULL, name_salt = NULL")
    plan = text_of(rita, f"/files/{again}/plan")

    rita.post(f"/files/{again}/start")
    rita.wait(again)

    progress = json.loads((desk_here.folder(again) / "progress.json").read_bytes())
    said = "ledger.db: not the ledger that manifest.json records (its lines differ in: answer)"
    assert said in plan
    assert said in text_of(rita, f"/files/{again}/progress")
    assert progress["exit_code"] == 65
    assert str(earlier) in json.dumps(progress["sentences"])
    assert not list((desk_here.folder(again) / "run.precheck").glob("outcomes*"))
