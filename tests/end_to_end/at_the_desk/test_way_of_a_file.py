"""From an upload to released files, asked for page by page as a browser does without scripts."""

import csv
import html
import io
import json
import os
import re
import signal
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import clocks
import openpyxl
import pytest
from desk import hold_until
from refusals import said

MIXED = (Path(__file__).parents[3] / "sample_data" / "payments_mixed.csv").read_bytes()
PAIN001 = (Path(__file__).parents[3] / "sample_data" / "payments_pain001.xml").read_bytes()
HEADER = "payment_id,name,sort_code,account_number,amount,currency"


def payments(count, header=HEADER, start=1):
    lines = [
        f"P-{n},Invented Payee {n},010203,{10_000_000 + n},{n}.00,GBP" for n in range(start, start + count)
    ]
    return "\n".join([header, *lines, ""]).encode()


def rows_of(data):
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))


@pytest.fixture(scope="module")
def reviewer(desk_here):
    return desk_here.visitor("Rita")


@pytest.fixture(scope="module")
def checked(reviewer):
    """The id of the mixed file, checked, and not touched since."""
    return reviewer.checked(MIXED, "payments_mixed.csv")


@pytest.fixture
def reviewed(desk_here, checked):
    """The id of one more such file."""
    return desk_here.copy(checked)


def decide(visitor, at, row, decision, reason="agreed", **headers):
    return visitor.post(f"/files/{at}/rows/{row}", {"decision": decision, "reason": reason}, **headers)


def download(visitor, at, name):
    answer = visitor.get(f"/files/{at}/download/{name}")
    assert answer.status == 200, answer.text
    return answer.body


def test_a_mixed_file_becomes_a_released_file_a_hold_list_and_a_corrected_file_that_is_checked_again(
    desk_here, reviewer, reviewed
):
    assert decide(reviewer, reviewed, 10, "release", "paid every month").status == 303
    assert decide(reviewer, reviewed, 2, "fix", "seen on the invoice").status == 303
    assert reviewer.post(f"/files/{reviewed}/hand-over").to.endswith("/release")
    assert reviewer.approve(reviewed).to.endswith("/release#files")
    release = rows_of(download(reviewer, reviewed, "release.simulated.csv"))
    hold = rows_of(download(reviewer, reviewed, "hold.simulated.csv"))
    assert "PAY-0010" in {row["payment_id"] for row in release}
    assert len(release) + len(hold) == 24
    reasons = rows_of(download(reviewer, reviewed, "hold_reasons.csv"))
    assert next(row["why_held"] for row in reasons if row["row"] == "2").endswith("seen on the invoice.")
    verified = reviewer.post(f"/files/{reviewed}/verify")
    assert "Nothing was changed." in verified.text
    assert said("evidence.same_cells", "page", file="payments_mixed.csv") in verified.text

    again = reviewer.post(f"/files/{reviewed}/check-again").to.split("/")[2]
    assert reviewer.post(f"/files/{again}/columns", {"then": "plan"}).to.endswith("/plan")
    assert "saved by answers from the previous run" in reviewer.get(f"/files/{again}/plan").text
    reviewer.check(again)
    for one, other in (
        (reviewed, again),
        (again, reviewed),
    ):  # both have the payments that were right at first
        page = reviewer.get(f"/files/{one}/release").text
        assert "A payment released in one is held in the other." in page
        assert f'<a href="/files/{other}' in page
    outcomes = rows_of(download(reviewer, again, "outcomes.csv"))
    assert outcomes[1]["check_outcome"] == "match"


def test_a_plan_says_that_earlier_answers_are_not_counted(desk_here, reviewer, reviewed):
    said = "Earlier answers to this file's questions are not included."
    assert said not in reviewer.get(f"/files/{reviewed}/plan").text
    [ledger] = desk_here.folder(reviewed).glob("*/ledger.db")
    ledger.write_bytes(b"no ledger")
    assert said in reviewer.get(f"/files/{reviewed}/plan").text


def test_evidence_says_who_decided_each_row_and_that_one_person_alone_approved(desk_here, reviewer, reviewed):
    second = desk_here.visitor("Ada")
    decide(reviewer, reviewed, 10, "release", "paid every month")
    decide(second, reviewed, 16, "release", "phoned")
    assert second.approve(reviewed).status == 303
    approvals = json.loads(download(second, reviewed, "approvals.json"))
    told = {
        row: (one["by"], one["approved_by"], one["self_approved"]) for one in approvals for row in one["rows"]
    }
    assert told == {10: ("Rita", "Ada", True), 16: ("Ada", "Ada", True)}
    recorded = {row: one["time"] for one in desk_here.decisions(reviewed) for row in one["rows"]}
    assert {row: one["time"] for one in approvals for row in one["rows"]} == recorded
    manifest = json.loads(download(second, reviewed, "manifest.json"))
    assert manifest["approvals"] == approvals
    assert manifest["splits"][-1]["self_approved"] is True
    assert "self-approved" in second.get(f"/files/{reviewed}/release").text


@pytest.mark.nightly
def test_the_same_decisions_by_desk_and_by_workbook_give_byte_equal_files(desk_here, reviewer, reviewed):
    said = {10: ("release", "paid every month"), 2: ("fix", "invoice"), 17: ("hold", "unknown to us")}
    for row, (decision, reason) in said.items():
        decide(reviewer, reviewed, row, decision, reason)
    assert reviewer.approve(reviewed).status == 303
    names = ("release", "hold", "corrected")
    files = [*(f"{name}.simulated.csv" for name in names), "hold_reasons.csv", "corrections.csv"]
    by_desk = {name: download(reviewer, reviewed, name) for name in files}

    by_hand = desk_here.desk
    (by_hand.folder / "payments_mixed.csv").write_bytes(MIXED)
    environment = {"PRECHECK_CONFIG": str(by_hand.folder / "profiles.toml")}
    assert (
        by_hand("run", "payments_mixed.csv", "--out", "hand", "--fresh", "--quiet", **environment).status == 0
    )
    book = openpyxl.load_workbook(by_hand.folder / "hand" / "report.xlsx")
    for line in book["All"].iter_rows(min_row=4):
        if line[0].value in said:
            headers = [cell.value for cell in book["All"][3]]
            for header, text in zip(("Decision", "Reason"), said[line[0].value], strict=True):
                line[headers.index(header)].value = text
    book.save(by_hand.folder / "decided.xlsx")
    words = ("hand", "--decisions", "decided.xlsx", "--by", "Mara", "--allow-simulated")
    for command in ("fix", "split"):
        assert by_hand(command, *words, **environment).status == 0
    assert {name: (by_hand.folder / "hand" / name).read_bytes() for name in files} == by_desk


def test_decisions_leave_as_a_workbook_and_come_back_as_those_of_who_uploads_it(
    desk_here, reviewer, reviewed
):
    decide(reviewer, reviewed, 10, "release", "paid every month")
    body = reviewer.get(f"/files/{reviewed}/decisions.xlsx").body
    path = desk_here.desk.folder / "out.xlsx"
    path.write_bytes(body)
    book = openpyxl.load_workbook(path)
    sheet = book["All"]
    headers = [cell.value for cell in sheet[3]]
    cells = {line[0].value: line for line in sheet.iter_rows(min_row=4)}
    at = [headers.index(header) for header in ("Decision", "Reason", "Decided by")]
    assert [cells[10][i].value for i in at] == ["release", "paid every month", "Rita"]
    for i, text in zip(at, ("release", "phoned", "Bo\u202e Treasurer"), strict=True):
        cells[16][i].value = text
    book.save(path)
    second = desk_here.visitor("Ada")
    answer = second.upload(f"/files/{reviewed}/decisions.xlsx", "x.xlsx", path.read_bytes())
    assert answer.status == 303, answer.text
    decided = {row: one["by"] for one in desk_here.decisions(reviewed) for row in one["rows"]}
    assert decided == {10: "Rita", 16: "Ada"}  # what was decided before stays the first one's
    # The name in the workbook signs nothing, and is kept as what the workbook says.
    assert [one["claimed_by"] for one in desk_here.decisions(reviewed)] == [None, "Bo Treasurer"]
    assert "Ada (the workbook names Bo Treasurer)" in second.get(f"/files/{reviewed}/rows/16").text
    second.approve(reviewed)
    approvals = json.loads(download(second, reviewed, "approvals.json"))
    assert {one["by"]: one["claimed_by"] for one in approvals} == {"Rita": None, "Ada": "Bo Treasurer"}
    again = second.upload(f"/files/{reviewed}/decisions.xlsx", "x.xlsx", path.read_bytes())
    assert said("desk.no_new_decision", "page") in again.text


def test_a_workbook_does_not_bring_back_what_was_decided_otherwise_since(desk_here, reviewer, reviewed):
    decide(reviewer, reviewed, 10, "release", "paid every month")
    path = desk_here.desk.folder / "old.xlsx"
    path.write_bytes(reviewer.get(f"/files/{reviewed}/decisions.xlsx").body)
    book = openpyxl.load_workbook(path)
    sheet = book["All"]
    headers = [cell.value for cell in sheet[3]]
    line = next(line for line in sheet.iter_rows(min_row=4) if line[0].value == 16)
    line[headers.index("Decision")].value, line[headers.index("Reason")].value = "hold", "unknown"
    book.save(path)
    decide(reviewer, reviewed, 10, "hold", "the bank called")
    before = desk_here.decisions(reviewed)
    refused = reviewer.upload(f"/files/{reviewed}/decisions.xlsx", "x.xlsx", path.read_bytes())
    assert refused.status == 409
    assert said("desk.changed_since_shown", "page", what=said("desk.shown_decisions", "page")) in refused.text
    assert desk_here.decisions(reviewed) == before


def test_a_blank_workbook_does_not_replace_what_a_colleague_decided_meanwhile(desk_here, reviewer, reviewed):
    path = desk_here.desk.folder / "blank.xlsx"
    path.write_bytes(reviewer.get(f"/files/{reviewed}/decisions.xlsx").body)
    book = openpyxl.load_workbook(path)
    sheet = book["All"]
    headers = [cell.value for cell in sheet[3]]
    line = next(line for line in sheet.iter_rows(min_row=4) if line[0].value == 10)
    line[headers.index("Decision")].value, line[headers.index("Reason")].value = "release", "looks fine"
    book.save(path)
    decide(desk_here.visitor("Ada"), reviewed, 10, "hold", "the bank called")
    before = desk_here.decisions(reviewed)
    refused = reviewer.upload(f"/files/{reviewed}/decisions.xlsx", "x.xlsx", path.read_bytes())
    assert refused.status == 409
    assert said("desk.decided_meanwhile", "page", name="Ada", row=10) in refused.text
    assert desk_here.decisions(reviewed) == before
    line[headers.index("Decided by")].value = "Ada"  # as a workbook that was made since has it
    book.save(path)
    assert reviewer.upload(f"/files/{reviewed}/decisions.xlsx", "x.xlsx", path.read_bytes()).status == 303


def test_the_plan_says_after_the_check_what_was_planned_and_sent(reviewer, reviewed):
    page = reviewer.get(f"/files/{reviewed}/plan").text
    cells = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', page, re.DOTALL)
    numbers = {name: re.findall('class="number"[^>]*>([0-9]+)<', line) for name, line in cells}
    assert numbers["Confirmation of Payee (UK)"][1:] == ["14", "14", "0"]
    assert "The check took " in page
    rejected = re.findall(r'<tr><th scope="row"><bdi>(.*?)</bdi></th><td[^>]*>22</td>(.*?)</tr>', page)
    assert [(name, "42.00" in cells, "<bdi>3192681</bdi>" in cells) for name, cells in rejected] == [
        ("Imogen Farraday", True, True)
    ]
    assert "A sandbox will answer" not in page


def test_a_workbook_of_another_file_is_refused(desk_here, reviewer, reviewed):
    body = reviewer.get(f"/files/{reviewed}/decisions.xlsx").body
    other = reviewer.checked(payments(1))
    answer = reviewer.upload(f"/files/{other}/decisions.xlsx", "x.xlsx", body)
    assert answer.status == 422
    assert said("excel.not_workbook_of_current_answers", "page") in answer.text


def test_the_verdict_of_the_policy_stands_beside_the_choice_and_nobody_decides_against_it(
    desk_here, reviewer, reviewed
):
    page = reviewer.get(f"/files/{reviewed}/review").text
    rows = dict(re.findall(r'<tr class="[^"]*" id="row-(\d+)">(.*?)</tr>', page, re.DOTALL))
    assert "Your decision: this payment stays on hold" in rows["10"]
    assert 'value="release"' in rows["10"]
    assert "The policy holds no match: you cannot release it here." in rows["17"]
    assert 'value="release"' not in rows["17"]
    [once] = re.findall(r'<ul class="policies">(.*?)</ul>', page)
    said = re.findall("<li>(.*?)</li>", once)
    assert len(said) == len(set(said)) < len(rows)
    assert all(any(f">{sentence}<" in row for sentence in said) for row in rows.values())
    refused = decide(reviewer, reviewed, 17, "release")
    assert refused.status == 422
    assert "The policy holds no match" in refused.text
    assert not (desk_here.folder(reviewed) / "decisions.jsonl").exists()


@pytest.mark.parametrize(
    ("row", "decision", "reason", "sentence"),
    [
        (10, "release", " ", "Give a reason"),
        (10, "pay", "x", "Choose what to do"),
        (10, "", "x", "Choose what to do"),
        (999, "hold", "x", "no such row"),
        (1, "fix", "x", "no correction is known"),
        (17, "fix", "x", "no correction is known"),
    ],
)
def test_a_decision_that_cannot_be_is_refused_with_a_sentence(
    desk_here, reviewer, reviewed, row, decision, reason, sentence
):
    answer = decide(reviewer, reviewed, row, decision, reason)
    assert answer.status == 422
    assert sentence in answer.text


def test_a_group_is_decided_at_once_but_for_what_was_decided_before(desk_here, reviewer, reviewed):
    decide(reviewer, reviewed, 10, "hold", "not this one")
    fields = {"group": "fix_name", "decision": "release", "reason": "all phoned", "confirmed": "yes"}
    assert reviewer.post(f"/files/{reviewed}/groups", fields).status == 303
    last = desk_here.decisions(reviewed)[-1]
    assert set(last["rows"]) == {2, 5, 16}
    nothing_left = reviewer.post(f"/files/{reviewed}/groups", fields)
    assert nothing_left.status == 422


def test_what_is_decided_at_once_is_stated_first_is_what_the_filter_shows_and_is_taken_back_at_once(
    desk_here, reviewer, reviewed
):
    decide(reviewer, reviewed, 10, "hold", "not this one")
    fields = {"group": "fix_name", "text": "PAY-0005", "decision": "release", "reason": "phoned"}
    asked = reviewer.post(f"/files/{reviewed}/groups", fields)
    assert asked.status == 200
    assert re.search(
        r'close match</th><td class="number">1</td><td class="number"><span>[0-9.,]+ GBP', asked.text
    )
    assert len(desk_here.decisions(reviewed)) == 1
    form = dict(re.findall(r'name="(\w+)" value="([^"]*)"', asked.text.split('class="action">')[1]))
    assert reviewer.post(f"/files/{reviewed}/groups", form).status == 303
    assert desk_here.decisions(reviewed)[-1]["rows"] == [5]
    ticked = {"group": "fix_name", "row": "16", "decision": "hold", "confirmed": "yes"}
    assert reviewer.post(f"/files/{reviewed}/groups", ticked).status == 303
    assert desk_here.decisions(reviewed)[-1]["rows"] == [16]
    everything = {"decision": "hold", "confirmed": "yes"}
    assert reviewer.post(f"/files/{reviewed}/groups", everything).status == 422
    assert ">Undo<" in reviewer.get(f"/files/{reviewed}/review").text
    shown = {"shown": reviewer.shown(reviewed, "review")}
    assert reviewer.post(f"/files/{reviewed}/groups/undo", shown).status == 303
    last = desk_here.decisions(reviewed)[-1]
    assert (last["rows"], last["decision"]) == ([16], None)
    assert ">Undo<" not in reviewer.get(f"/files/{reviewed}/review").text
    shown = {"shown": reviewer.shown(reviewed, "review")}
    assert reviewer.post(f"/files/{reviewed}/groups/undo", shown).status == 422


def test_an_undo_leaves_rows_that_were_decided_again_since(desk_here, reviewer, reviewed):
    held = {"group": "fix_name", "decision": "hold", "confirmed": "yes"}
    assert reviewer.post(f"/files/{reviewed}/groups", held).status == 303
    rows = desk_here.decisions(reviewed)[-1]["rows"]
    assert decide(reviewer, reviewed, rows[0], "release", "phoned").status == 303
    shown = {"shown": reviewer.shown(reviewed, "review")}
    assert reviewer.post(f"/files/{reviewed}/groups/undo", shown).status == 303
    assert desk_here.decisions(reviewed)[-1]["rows"] == rows[1:]


def test_the_approver_sees_what_decisions_release_and_every_payment_to_be_released(reviewer, reviewed):
    assert 'id="overrides"' not in reviewer.get(f"/files/{reviewed}/release").text
    decide(reviewer, reviewed, 10, "release", "paid every month")
    decide(reviewer, reviewed, 16, "release", "seen on the invoice")
    page = reviewer.get(f"/files/{reviewed}/release").text
    table = page.split('id="overrides"')[1].split("</table>")[0]
    assert re.findall(r'/rows/(\d+)">', table) == ["16", "10"]
    assert "paid every month" in table
    assert "CMTC" in table
    assert "<b>2 payments</b>: 1,980.00 EUR, 940.00 GBP" in page
    [link] = re.findall(r'href="([^"]*decided=release[^"]*)"', page)
    listed = reviewer.get(html.unescape(link)).text
    [release] = re.findall(r'Release</th><td class="number">(\d+)', page)
    assert f'<p role="status">{release} rows</p>' in listed
    for row in (2, 5):
        decide(reviewer, reviewed, row, "release", "paid every month")
    page = reviewer.get(f"/files/{reviewed}/release").text
    table = page.split('id="overrides"')[1].split("</table>")[0]
    assert table.count("<td>Rita <small>") == 4  # by whom
    cells = re.findall(r'<td class="number"><b>([0-9.,]+)</b> ([A-Z]+)', table)
    money = [(currency, -float(amount.replace(",", ""))) for amount, currency in cells]
    assert len({currency for currency, _ in money}) < len(money)
    assert money == sorted(money)  # of each currency, the largest first


def test_a_file_is_sent_back_with_a_comment_until_it_is_handed_over_again(desk_here, reviewer, reviewed):
    reviewer.post(f"/files/{reviewed}/hand-over")
    assert reviewer.post(f"/files/{reviewed}/send-back", {"comment": " "}).status == 422
    assert reviewer.post(f"/files/{reviewed}/send-back", {"comment": "call row 16"}).status == 303
    said = r"<b>Sent back</b> by Rita, <time .*</time>: <q>call row 16</q>"
    for page in ("review", "release"):
        assert re.search(said, reviewer.get(f"/files/{reviewed}/{page}").text)
    assert "</span> Sent back</p>" in reviewer.get(f"/files/{reviewed}/review").text
    assert desk_here.audit()[-1]["deed"] == "sent back"
    reviewer.post(f"/files/{reviewed}/hand-over")
    assert "call row 16" not in reviewer.get(f"/files/{reviewed}/release").text
    reviewer.approve(reviewed)
    assert reviewer.post(f"/files/{reviewed}/send-back", {"comment": "no"}).status == 409


def test_the_audit_says_what_an_approval_released_and_who_took_which_file(desk_here, reviewer, reviewed):
    decide(reviewer, reviewed, 10, "release", "paid every month")
    reviewer.approve(reviewed)
    release = download(reviewer, reviewed, "release.simulated.csv")
    approved, taken = [entry["facts"] for entry in desk_here.audit()[-2:]]
    assert approved["released_count"] == len(rows_of(release))
    assert approved["money"] == "63155.00 EUR, 24676.15 GBP"
    assert approved["sha256"] == taken["sha256"] == sha256(release).hexdigest()
    assert "rows released: 9" in reviewer.get("/audit").text


def test_a_group_offers_release_only_where_the_policy_leaves_a_row_to_people(reviewer, reviewed):
    offered = {}
    for group in ("fix_name", "ask_payee"):
        page = reviewer.get(f"/files/{reviewed}/review?group={group}").text
        [form] = re.findall(r'<form [^>]*class="bulk" [^>]*>(.*?)</form>', page, re.DOTALL)
        offered[group] = re.findall(r'name="decision" value="(\w+)"', form)
    assert offered == {"fix_name": ["hold", "fix", "release"], "ask_payee": ["hold"]}


def test_a_new_decision_voids_the_approval_and_its_files_are_not_given_out(desk_here, reviewer, reviewed):
    decide(reviewer, reviewed, 10, "release", "paid every month")
    reviewer.approve(reviewed)
    decide(reviewer, reviewed, 10, "none")
    assert reviewer.get(f"/files/{reviewed}/download/release.simulated.csv").status == 404
    assert "that approval no longer counts" in reviewer.get(f"/files/{reviewed}/release").text
    reviewer.approve(reviewed)
    release = rows_of(download(reviewer, reviewed, "release.simulated.csv"))
    assert "PAY-0010" not in {row["payment_id"] for row in release}


def test_an_approval_of_a_page_on_which_something_was_not_yet_decided_is_refused(
    desk_here, reviewer, reviewed
):
    shown = {"shown": reviewer.shown(reviewed), "decision": "hold", "group": "fix_name"}
    decide(reviewer, reviewed, 10, "release", "paid every month")
    for act in ("release", "hand-over", "groups"):
        answer = reviewer.post(f"/files/{reviewed}/{act}", shown)
        assert answer.status == 409
        changed = said("desk.changed_since_shown", "page", what=said("desk.shown_decisions", "page"))
        assert changed.partition(".")[0] in answer.text
        assert reviewer.post(f"/files/{reviewed}/{act}", shown | {"shown": ""}).status == 409
    assert len(desk_here.decisions(reviewed)) == 1
    assert not list((desk_here.folder(reviewed) / "run.precheck").glob("release*"))


def test_decisions_that_were_changed_on_the_disk_are_found(desk_here, reviewer, reviewed):
    decide(reviewer, reviewed, 10, "hold", "first")
    decide(reviewer, reviewed, 16, "hold", "second")
    path = desk_here.folder(reviewed) / "decisions.jsonl"
    path.write_text(path.read_text().replace("first", "other"))
    assert said("desk.changed_by_another_program", "page") in reviewer.get(f"/files/{reviewed}/review").text


def test_a_search_finds_a_row_by_name_id_and_account_and_puts_nothing_into_the_address(
    desk_here, reviewer, reviewed
):
    for text in ("montferand", "PAY-0016", "FR76 3000 3012", "iban 0733"):
        answer = reviewer.post(f"/files/{reviewed}/review", {"text": text})
        assert answer.status == 200
        assert ('id="row-16"' in answer.text) is (text != "iban 0733")
    assert 'action="/files/' in answer.text
    assert "?text" not in answer.text
    hits = reviewer.post("/search", {"text": "montferand"}).text
    assert f"/files/{reviewed}/rows/16" in hits


def test_the_story_of_a_row_tells_what_was_asked_and_who_decided(desk_here, reviewer, reviewed):
    decide(reviewer, reviewed, 16, "release", "phoned")
    page = reviewer.get(f"/files/{reviewed}/rows/16").text
    assert "What was asked" in page
    assert "Rita: to release, <q>phoned</q>" in page
    assert page.count("FR76") == 1  # the account, whole for who compares
    assert reviewer.get(f"/files/{reviewed}/rows/999").status == 404
    assert "Where the payment went" not in page
    reviewer.approve(reviewed)
    page = reviewer.get(f"/files/{reviewed}/rows/16").text
    assert "<b>Released</b> in release.simulated.csv, approved by Rita" in page
    assert "<b>self-approved</b>" in page
    assert "<b>Held</b> in hold.simulated.csv" in reviewer.get(f"/files/{reviewed}/rows/18").text
    decide(reviewer, reviewed, 16, "hold", "called back")
    page = reviewer.get(f"/files/{reviewed}/rows/16").text
    assert "Later decisions are not in that file." in page


def test_pages_say_what_can_be_done_and_call_fields_and_files_what_they_are(reviewer, reviewed):
    page = reviewer.get(f"/files/{reviewed}/review").text
    unchecked = page.partition('id="row-18"')[2].partition("</tr>")[0]
    assert "administrator can change the policy" in unchecked
    assert "Correct your file with" not in unchecked
    assert "IBAN: " + said("rule.iban_check_digits", "page") in page
    assert not re.search("(iban|account_number|sort_code): ", page)
    assert "<bdi>1,980.00</bdi>" in reviewer.get(f"/files/{reviewed}/rows/16").text
    assert "did not match or could not be checked" in reviewer.get(f"/files/{reviewed}/release").text


def test_a_pain001_is_corrected_and_split_in_its_own_bytes(desk_here, reviewer):
    at = reviewer.checked(PAIN001, "payments.xml")
    found = reviewer.post("/search", {"text": "PAY-0101"}).text
    assert re.search(f'/files/{at}/rows/1"[^>]*>1</a></td><td><bdi>Avery Thornwood</bdi>', found)
    assert reviewer.approve(at).status == 303
    assert b"pain.002" in download(reviewer, at, "pain002.simulated.xml")[:400]
    release = download(reviewer, at, "release.simulated.xml")
    assert release.startswith(PAIN001[:38])
    assert "Nothing was changed." in reviewer.post(f"/files/{at}/verify").text


def test_a_column_is_mapped_by_hand_and_remembered_for_the_next_file_of_that_header(desk_here, reviewer):
    odd = payments(1, "Ref,Wer,sort_code,account_number,amount,currency")
    at = reviewer.file(odd)
    page = reviewer.get(f"/files/{at}/columns").text
    assert "The file cannot be read this way." in page
    assert "--map" not in page
    said = {"column:Wer": "name", "then": "plan"}
    assert "Cannot be read" in reviewer.get("/").text
    assert reviewer.post(f"/files/{at}/columns", said).to.endswith("/columns?read=anew")
    page = reviewer.get(f"/files/{at}/columns?read=anew").text
    assert "The file is now read with your changes" in page
    assert "Looks right: continue to the plan" in page
    assert reviewer.get(f"/files/{at}/plan").text.count("Start the check") == 0
    assert "Cannot be read" not in reviewer.get("/").text
    assert reviewer.post(f"/files/{at}/columns", said).to.endswith("/plan")
    next_one = reviewer.file(payments(2, "Ref,Wer,sort_code,account_number,amount,currency"))
    assert "The file cannot be read" not in reviewer.get(f"/files/{next_one}/columns").text


def test_columns_that_are_not_to_be_read_are_left_out_and_come_back_as_they_are(desk_here, reviewer):
    at = reviewer.file(payments(2, "payment_id,name,sort_code,account_number,reference,currency"))
    said = {"column:payment_id": "ignore", "column:reference": "ignore", "then": "plan"}
    reviewer.post(f"/files/{at}/columns", said)
    assert "columns chosen by hand: 2" in reviewer.get("/audit").text
    assert reviewer.post(f"/files/{at}/columns", said).to.endswith("/plan")
    page = reviewer.get(f"/files/{at}/columns").text
    assert page.count('<option value="ignore" selected>Ignore</option>') == 2
    reviewer.check(at)
    run = desk_here.folder(at) / "run.precheck"
    manifest = json.loads((run / "manifest.json").read_bytes())
    assert manifest["mapping"] == {"ignore": "payment_id|reference"}
    assert not {"payment_id", "reference"} & set(manifest["input"]["columns"])
    assert (run / "outcomes.csv").read_text().startswith("payment_id,name,sort_code,")
    assert "Nothing was changed." in reviewer.post(f"/files/{at}/verify").text


def test_two_columns_that_are_joined_as_the_name_are_shown_before_there_is_a_plan(reviewer):
    header = "Ref,supplier,customer,sort_code,account_number,amount,currency"
    lines = [f"P{n},Fenwick Ltd,Orla Quist {n},010203,{10_000_000 + n},5.00,GBP" for n in range(4)]
    at = reviewer.file("\n".join([header, *lines, ""]).encode())
    said = {"column:supplier": "name", "column:customer": "name", "then": "plan"}
    for _ in ("once", "again, from the start"):
        assert reviewer.post(f"/files/{at}/columns", said).to.endswith("/columns?read=anew")
        page = reviewer.get(f"/files/{at}/columns?read=anew").text
        assert "The name is joined from these columns: supplier, customer; first rows:" in page
        assert "<bdi>Fenwick Ltd Orla Quist 0</bdi>, <bdi>Fenwick Ltd Orla Quist 1</bdi>" in page
        other = said | {"column:customer": ""}
        assert reviewer.post(f"/files/{at}/columns", other).to.endswith("/columns?read=anew")
    page = reviewer.get(f"/files/{at}/columns").text
    assert "The name is joined" not in page
    assert reviewer.post(f"/files/{at}/columns", other).to.endswith("/plan")


def test_what_was_chosen_beside_columns_stands_in_the_record(reviewer):
    at = reviewer.file(payments(3, start=700).replace(b"Invented", "Zoë".encode("cp1252")))
    readings = re.findall(
        'name="reading" value="(.*?)"> (.*?) <small>', reviewer.get(f"/files/{at}/columns").text
    )
    assert len(readings) > 1
    assert "Zoë Payee 700" in dict(readings)["cp1252"]
    said = {"encoding": "", "reading": "cp1252", "then": "plan"}
    assert reviewer.post(f"/files/{at}/columns", said).to.endswith("/columns?read=anew")
    assert "Zoë Payee 700" in reviewer.get(f"/files/{at}/columns").text
    assert "encoding: cp1252" in reviewer.get("/audit").text
    assert reviewer.post(f"/files/{at}/columns", said).to.endswith("/plan")


def test_the_same_file_uploaded_before_is_told(desk_here, reviewer):
    data = payments(3, start=500)
    first, second = reviewer.file(data), reviewer.file(data)
    assert f'href="/files/{first}"' in reviewer.get(f"/files/{second}/columns").text


@pytest.mark.parametrize(
    ("data", "name", "sentence"),
    [
        (b"", "a.csv", "is empty"),
        (b"\x00\x01\x02", "a.bin", "not a format that can be read"),
        (b"%PDF-1.4", "a.pdf", "PDF"),
        (b"name,amount\n", "a.csv", "no"),
        (b"<a/>", "a.xml", "not"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_and_the_desk_lives(desk_here, reviewer, data, name, sentence):
    answer = reviewer.upload("/files", name, data)
    if answer.status == 303:
        answer = reviewer.get(answer.to)
    assert sentence in answer.text
    assert "--" not in re.sub(r"<!--.*?-->|<[^>]*>", "", answer.text)
    assert reviewer.get("/").status == 200


def process_of(desk, at):
    """The process that checks a file."""
    return json.loads((desk.folder(at) / "run.precheck" / ".lock").read_text())["pid"]


def test_a_check_survives_a_killed_desk_is_found_again_stopped_and_goes_on(
    tmp_path, serve_desk, serve, wait_until
):
    count = 240  # more than are in flight when it goes on
    with serve(tmp_path / "slow", "--latency", "0.5") as sandbox:
        environment = {"PRECHECK_CONFIG": str(sandbox.config)}
        with serve_desk(tmp_path, environment=environment) as desk:
            visitor = desk.visitor()
            at = visitor.planned(payments(count))
            assert visitor.start(at, "sandbox").status == 303
            assert visitor.start(at, "sandbox").status == 409  # a double click
            wait_until(lambda: visitor.progress(at)["done"] > 0)
            os.kill(
                process_of(desk, at), signal.SIGSTOP
            )  # so that it is not done before the next desk is there
            desk.process.kill()
            desk.process.wait()
        with serve_desk(tmp_path, environment=environment) as desk:
            visitor = desk.visitor()
            done = visitor.progress(at)["done"]
            assert visitor.progress(at)["is_on"]
            os.kill(process_of(desk, at), signal.SIGCONT)
            wait_until(
                lambda: visitor.progress(at)["done"] > done
            )  # it goes on, without the desk it came from
            assert visitor.post(f"/files/{at}/stop").status == 303
            visitor.wait(at)
            page = visitor.get(f"/files/{at}/progress").text
            assert "Resume" in page
            assert "command" not in page
            assert visitor.post(f"/files/{at}/stop").status == 409
            assert visitor.post(f"/files/{at}/start-over").status == 409  # no answer is set aside
            asked = len(sandbox.questions())
            assert asked > 0
            outcomes = rows_of(download(visitor, at, "outcomes.csv"))
            is_answered = [row["check_outcome"] not in ("deferred", "unanswered") for row in outcomes]
            for row in (is_answered.index(True) + 1, is_answered.index(False) + 1):
                assert decide(visitor, at, row, "hold").status == 303
            assert "to hold 2 rows" in visitor.get(f"/files/{at}/release").text
            old = {"shown": visitor.shown(at), "decision": "hold", "group": "ask_payee"}
            visitor.check(at)
            for act in ("release", "hand-over", "groups", "rows/1"):
                stale = visitor.post(f"/files/{at}/{act}", old | {"hold_undecided": "yes"})
                assert (stale.status, "to you: the check, the outcomes" in stale.text) == (409, True)
            assert not list((desk.folder(at) / "run.precheck").glob("release*"))
            summary = json.loads((desk.folder(at) / "run.precheck" / "summary.json").read_text())
            answered = sum(call["answered_before_count"] for call in summary["calls"])
            assert 0 < answered < count
            assert answered + len(sandbox.questions()) - asked == count  # an answer is never asked for again
            assert visitor.get(f"/files/{at}").to.endswith("/review")
            # A decision about an answer stays; one about its absence is void now that there is one.
            assert "to hold 1 row<" in visitor.get(f"/files/{at}/release").text


@pytest.mark.nightly
def test_a_check_that_was_killed_says_so_and_goes_on(tmp_path, serve_desk, serve, wait_until):
    with (
        serve(tmp_path / "slow", "--latency", "0.5") as sandbox,
        serve_desk(tmp_path, environment={"PRECHECK_CONFIG": str(sandbox.config)}) as desk,
    ):
        visitor = desk.visitor()
        at = visitor.planned(payments(50))
        visitor.start(at, "sandbox")
        wait_until(lambda: visitor.progress(at)["done"] > 0)
        os.kill(process_of(desk, at), signal.SIGKILL)
        visitor.wait(at)
        assert said("desk.check_ended_unexpectedly", "page") in visitor.get(f"/files/{at}/progress").text
        visitor.check(at)
        assert visitor.get(f"/files/{at}").to.endswith("/review")


def capped(folder, sandbox):
    """A configuration by which two questions a day may be asked."""
    section = sandbox.section("sandbox", "cop", daily_cap=2, server="test")
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in section.items())
    config = folder / "capped.toml"
    config.write_text(f"[profiles.mine.cop]\n{lines}\n")
    return {"PRECHECK_CONFIG": str(config)}


@pytest.mark.nightly
def test_a_reached_cap_says_when_the_check_can_go_on(tmp_path, serve_desk, sandbox):
    with serve_desk(tmp_path, environment=capped(tmp_path, sandbox)) as desk:
        visitor = desk.visitor()
        at = visitor.planned(payments(5))
        assert "2 a day" in visitor.get(f"/files/{at}/plan").text
        visitor.start(at, "mine")
        visitor.wait(at)
        page = visitor.get(f"/files/{at}/progress").text
        assert "Waiting for the next day" in page
        assert said("executors.left_by_cap", "page", cap=2) in html.unescape(page)
        assert "3 rows of 5" in page
        assert visitor.get(f"/files/{at}/review").status == 200
        refused = visitor.approve(at)
        assert refused.status == 422
        assert visitor.approve(at, hold_undecided="yes").status == 303


@pytest.mark.nightly
def test_a_capped_check_goes_on_when_the_next_day_has_come_asks_nothing_twice_and_keeps_decisions(
    tmp_path, serve_desk, serve
):
    # The certificate of the server is valid from now on, whatever the hour.
    today = datetime.now(UTC).date() + timedelta(days=1)
    tomorrow = today + timedelta(days=1)
    # The server minds no clock that is days off, and does not say the time, by which that would be seen.
    faults = ("--clock-skew-max", 14 * 86_400, "--fault", "no-response-timestamp")
    with serve(tmp_path / "server", *faults) as sandbox:
        config = capped(tmp_path, sandbox)
        with serve_desk(tmp_path, environment=config | clocks.at(today, "10:00:00")) as desk:
            visitor = desk.first_visitor()
            at = visitor.planned(payments(4))
            visitor.start(at, "mine")
            visitor.wait(at)
            day = f"{tomorrow.day} {tomorrow:%B %Y}"
            assert (
                said("executors.left_by_cap", "page", count=1, time=f"{day}, 00:00 UTC")
                in visitor.get(f"/files/{at}/progress").text
            )
            codes = [row["check_code"] for row in rows_of(download(visitor, at, "outcomes.csv"))]
            waiting = codes.index("DAILY_CAP") + 1
            answered = next(row for row, code in enumerate(codes, 1) if code != "DAILY_CAP")
            for row in (answered, waiting):
                assert decide(visitor, at, row, "hold").status == 303
            assert len(sandbox.questions()) == 2
        with serve_desk(tmp_path, environment=config | clocks.at(tomorrow, "10:00:00")) as desk:
            visitor = desk.first_visitor()
            assert "Waiting for the next day" in visitor.get("/").text
            visitor.check(at)
            assert len(sandbox.questions()) == 4
            assert visitor.progress(at)["count"] == "4 of 4 questions"
            assert visitor.get(f"/files/{at}").to.endswith("/review")
            rows = rows_of(download(visitor, at, "outcomes.csv"))
            assert len({row["check_id"] for row in rows}) == len(rows)  # each has an answer of its own
            # The decision on a row that had its answer stays; the one on a row without is void.
            decided = visitor.get(f"/files/{at}/rows/{answered}").text
            assert "to hold, <q>agreed</q>" in decided
            assert "no longer counts" not in decided
            assert "no longer counts" in visitor.get(f"/files/{at}/rows/{waiting}").text
            assert "to hold 1 row<" in visitor.get(f"/files/{at}/release").text


def begin_upload(desk, visitor, byte_count):
    """Send the first bytes of a file; the connection."""
    connection = visitor.connect()
    connection.putrequest("POST", "/files")
    cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    kind = "multipart/form-data; boundary=x"
    sent = {"Origin": desk.origin, "Cookie": cookies, "Content-Type": kind, "Content-Length": byte_count}
    for name, value in sent.items():
        connection.putheader(name, value)
    connection.endheaders()
    connection.send(b'--x\r\nContent-Disposition: form-data; name="file"; filename="half.csv"\r\n\r\nname')
    return connection


def test_a_killed_desk_leaves_no_half_upload(tmp_path, serve_desk):
    with serve_desk(tmp_path) as desk:
        visitor = desk.visitor()
        connection = begin_upload(desk, visitor, 100_000)
        hold_until(lambda: list((desk.home / "runs").glob("*/input/half.csv")))
        desk.process.kill()
        desk.process.wait()
        connection.close()
        assert len(list((desk.home / "runs").iterdir())) == 1
    with serve_desk(tmp_path) as desk:
        desk.visitor()
        assert list((desk.home / "runs").iterdir()) == []
        [purged] = [entry for entry in desk.audit() if entry["deed"] == "purged"]
        assert purged["facts"] == {"unfinished_upload_count": 1}


def test_the_desk_hands_out_only_what_was_approved(desk_here, reviewer, reviewed):
    assert reviewer.approve(reviewed).status == 303
    run = desk_here.folder(reviewed) / "run.precheck"
    release = run / "release.simulated.csv"
    release.write_text(release.read_text().replace("GBP", "EUR"))
    (run / "release.csv").write_text("forged")

    changed = reviewer.get(f"/files/{reviewed}/download/{release.name}")

    assert (changed.status, said("desk.download_was_changed", "page") in changed.text) == (409, True)
    assert reviewer.get(f"/files/{reviewed}/download/release.csv").status == 404


def test_a_release_that_the_command_made_since_the_approval_is_not_handed_out(desk_here, reviewer, reviewed):
    assert reviewer.approve(reviewed, hold_undecided="yes").status == 303
    folder = desk_here.folder(reviewed) / "run.precheck"
    [release] = folder.glob("release*.csv")
    before = release.read_bytes()
    policy = "[profiles.sandbox.policy]\nno_match = 'release'\n"
    (desk_here.home / "other.toml").write_text(policy)
    words = (
        "--hold-undecided",
        "--allow-simulated",
        "--by",
        "Mallory",
        "--config",
        desk_here.home / "other.toml",
    )
    said = desk_here.desk("split", folder, *words)
    assert said.status == 0, said.err
    assert release.read_bytes() != before
    assert reviewer.get(f"/files/{reviewed}/download/{release.name}").status == 409


def test_uploads_are_bounded_and_nothing_is_left_of_what_was_not_whole(tmp_path, serve_desk):
    config = tmp_path / "small.toml"
    config.write_text("[desk]\nupload_mib_max = 1\nperson_mib_max = 2\n")
    with serve_desk(tmp_path, "--config", config) as desk:
        visitor = desk.visitor()
        too_large = visitor.upload("/files", "a.csv", b"x" * (1024 * 1024 + 1))
        assert too_large.status == 413
        assert said("desk.upload_too_large", "page", size=1) in too_large.text
        assert list((desk.home / "runs").iterdir()) == []
        under_way = [begin_upload(desk, visitor, 1024 * 1024 + 200) for _ in range(2)]
        hold_until(lambda: len(list((desk.home / "runs").iterdir())) == 2)
        assert visitor.upload("/files", "a.csv", b"x" * (1024 * 1024)).status == 413  # they count
        for connection in under_way:
            connection.close()
        hold_until(lambda: not list((desk.home / "runs").iterdir()))
        for _ in range(2):
            assert visitor.upload("/files", "a.csv", b"x" * (1024 * 1024)).status == 303
        full = visitor.upload("/files", "a.csv", b"x")
        assert full.status == 413
        assert said("desk.room_used_up", "page") in full.text
        begin_upload(desk, visitor, 100_000).close()
        desk.desk.start("--version").end()
        assert len(list((desk.home / "runs").iterdir())) == 2


def test_deleted_names_are_gone_and_the_evidence_stays(desk_here, reviewer, reviewed):
    assert "Montferand" in reviewer.get(f"/files/{reviewed}/review").text
    reviewer.approve(reviewed)
    assert reviewer.post(f"/files/{reviewed}/forget", {"reason": " "}).status == 422
    assert reviewer.post(f"/files/{reviewed}/forget", {"reason": "no longer needed"}).status == 303
    page = reviewer.get(f"/files/{reviewed}/release").text
    assert "Names deleted" in page
    kept = b"".join(path.read_bytes() for path in desk_here.folder(reviewed).rglob("*") if path.is_file())
    assert b"Montferand" not in kept
    assert reviewer.get(f"/files/{reviewed}/download/manifest.json").status == 200
    for page in ("review", "columns", "rows/16", "download/outcomes.csv", "decisions.xlsx"):
        answer = reviewer.get(f"/files/{reviewed}/{page}")
        assert answer.status in (404, 409), page
        assert "Montferand" not in answer.text
    assert f"/files/{reviewed}/rows" not in reviewer.post("/search", {"text": "Montferand"}).text
    assert reviewer.post(f"/files/{reviewed}/verify").status == 200


def test_the_journal_says_who_did_what_and_a_change_of_it_is_found(tmp_path, serve_desk):
    with serve_desk(tmp_path) as desk:
        visitor = desk.visitor("Ada")
        at = visitor.planned(payments(1), "payroll.csv")
        visitor.check(at)
        assert decide(visitor, at, 1, "hold").status == 303
        download(visitor, at, "manifest.json")
        page = visitor.get("/audit").text
        assert f'<a href="/files/{at}">payroll.csv</a>' in page
        assert "decision: Hold" in page
        for deed in ("opened", "uploaded", "read as", "started", "downloaded"):
            assert f">{deed}</td>" in page
        path = desk.home / "audit.jsonl"
        path.write_text(path.read_text().replace('"by":"Ada"', '"by":"Bob"', 1))
        assert said("desk.changed_by_another_program", "page") in visitor.get("/audit").text


@pytest.mark.nightly
def test_the_sample_goes_all_the_way(tmp_path, serve_desk):
    with serve_desk(tmp_path) as desk:
        visitor = desk.visitor()
        assert "Try the sample file" in visitor.get("/").text
        at = visitor.post("/sample").to.split("/")[2]
        assert visitor.post(f"/files/{at}/columns", {"then": "plan"}).to.endswith("/plan")
        visitor.check(at)
        assert visitor.get(f"/files/{at}").to.endswith("/review")
        summary = json.loads((desk.folder(at) / "run.precheck" / "summary.json").read_bytes())
        counts = {total["outcome"]: total["row_count"] for total in summary["outcomes"]}
        assert counts["match"] > sum(counts.values()) / 2
        assert all(counts[outcome] for outcome in ("close_match", "no_match", "not_possible", "rejected"))
        assert "&lt;a " not in visitor.get(f"/files/{at}/review").text
        assert visitor.approve(at).status == 303


def test_a_start_with_another_profile_than_was_planned_shows_its_plan_and_starts_nothing(
    tmp_path, serve_desk, sandbox
):
    with serve_desk(tmp_path, "--config", sandbox.config) as desk:
        visitor, before = desk.visitor(), sandbox.call_count
        at = visitor.planned(payments(1))
        visitor.post(f"/files/{at}/plan", {"profile": "sandbox"})
        assert "<b>Simulated.</b>" in visitor.get(f"/files/{at}/plan").text
        other = {"planned": "sandbox", "profile": "production"}
        assert visitor.post(f"/files/{at}/start", other).to.endswith("/plan")
        assert '<option value="production" selected>' in visitor.get(f"/files/{at}/plan").text
        assert sandbox.call_count == before
        assert visitor.post(f"/files/{at}/start", other | {"planned": "production"}).to.endswith("/progress")
        visitor.wait(at)
        assert [entry["facts"] for entry in desk.audit() if entry["deed"] == "started"] == [
            {"profile": "production"}
        ]


MATCHING = "payment_id,name,account_type,sort_code,account_number,amount,currency,reference\n" + "".join(
    f"P-{number},{name},Personal,{account},{amount},GBP,{reference}\n"
    for number, (name, account, amount, reference) in enumerate(
        [
            ("Avery Thornwood", "001122,00012345", "50.00", "INV 1"),
            ("Imogen Farraday", "200415,31926819", "70.00", "INV 2"),
            ("Avery Thornwood", "001122,00012345", "50.00", "INV 1"),
        ],
        start=1,
    )
)


def listed_rows(page):
    return [int(row) for row in re.findall(r'<tr class="[a-z_ ]+" id="row-(\d+)">', page)]


def test_a_match_that_repeats_another_payment_is_looked_at_and_can_be_held(desk_here, reviewer):
    at = reviewer.checked(MATCHING.encode(), "twice.csv")
    page = reviewer.get(f"/files/{at}/review").text
    assert "<b>1</b> of 3 payments needs review" in page
    assert listed_rows(page) == [3]
    assert "review?group=pay-PAYMENT_REPEATED" in page
    assert "3 payments; 1 to review." in reviewer.get(f"/files/{at}/progress").text
    line = reviewer.get("/").text.partition(f'"/files/{at}">')[2].partition("</tr>")[0]
    assert re.search('data-label="To review">1<', line)
    assert listed_rows(reviewer.get(f"/files/{at}/review?rows=all&sort=row").text) == [1, 2, 3]
    assert "1 row to review has no decision" in reviewer.get(f"/files/{at}/release").text
    assert decide(reviewer, at, 3, "hold").status == 303
    assert "1 row to review has no decision" not in reviewer.get(f"/files/{at}/release").text
    reviewer.approve(at)
    released = rows_of(download(reviewer, at, "release.simulated.csv"))
    assert [row["payment_id"] for row in released] == ["P-1", "P-2"]


def test_rows_without_a_readable_amount_are_beside_the_total(reviewer):
    at = reviewer.checked(MATCHING.replace("70.00", "?").encode(), "unread.csv")
    line = reviewer.get("/").text.partition(f'"/files/{at}">')[2].partition("</tr>")[0]
    assert "100.00 GBP" in line
    assert "without 1 row that has no readable amount" in line


def test_a_match_without_a_warning_opens_like_any_other_row(desk_here, reviewer):
    at = reviewer.checked(MATCHING.encode(), "matches.csv")
    assert decide(reviewer, at, 2, "hold", "the payee has left").status == 303
    page = reviewer.get(f"/files/{at}/review?rows=all&decided=yes").text
    assert listed_rows(page) == [2]


def test_a_warning_about_reading_is_one_line_with_its_count_on_plan_and_review(desk_here, reviewer):
    at = reviewer.checked(MATCHING.replace("GBP", "EUR").encode(), "euros.csv")
    warning = said("warned.UK_ACCOUNT_CURRENCY").partition(": ")[2]
    for page in ("plan", "review"):
        shown = reviewer.get(f"/files/{at}/{page}").text
        assert shown.count(f"{warning}: 3 rows") == 1, page
