"""The desk of a team: who the proxy says one is, who may do what, and that nobody approves their own work."""

import json
import os
import re
import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from refusals import said

MIXED = (Path(__file__).parents[3] / "sample_data" / "payments_mixed.csv").read_bytes()
NAMES = ("up", "uma", "rita", "anna", "otto", "both")
UP, UMA, RITA, ANNA, OTTO, BOTH = (f"{name}@example.com" for name in NAMES)


@pytest.fixture(scope="module")
def checked(team_desk):
    return team_desk.person(UP).checked(MIXED, "payments_mixed.csv")


@pytest.fixture
def at(team_desk, checked):
    """The id of one more such file."""
    return team_desk.copy(checked)


def decide(visitor, at, row, decision="hold", reason="because"):
    return visitor.post(f"/files/{at}/rows/{row}", {"decision": decision, "reason": reason})


def test_two_people_make_four_eyes_and_the_evidence_names_both(team_desk, at):
    rita, anna = map(team_desk.person, (RITA, ANNA))
    assert decide(rita, at, 10, "release", "paid every month").status == 303
    assert rita.post(f"/files/{at}/hand-over").status == 303
    assert "Waiting for approval" in anna.get("/").text
    assert anna.approve(at).status == 303
    page = anna.get(f"/files/{at}/release").text
    assert "four-eyes check met" in page
    [approval] = json.loads(anna.get(f"/files/{at}/download/approvals.json").body)
    assert (approval["by"], approval["approved_by"], approval["self_approved"]) == (RITA, ANNA, False)
    verified = anna.post(f"/files/{at}/verify").text
    assert said("evidence.decided", "page", deciders=RITA, approvers=ANNA) in verified


def test_who_decided_does_not_approve_and_neither_does_who_uploaded(team_desk, at):
    both, uploader = team_desk.person(BOTH), team_desk.person(UP)
    shown = team_desk.person(ANNA).shown(at)
    refused = uploader.post(f"/files/{at}/release", {"shown": shown})
    assert refused.status == 403
    assert said("desk.approved_by_uploaded", "page") in refused.text
    assert decide(both, at, 10, "release", "phoned").status == 303
    shown = team_desk.person(ANNA).shown(at)
    for name in (BOTH, BOTH.upper()):  # an identity in capitals is the same person
        refused = team_desk.person(name).post(f"/files/{at}/release", {"shown": shown})
        assert refused.status == 403
        assert said("desk.approved_by_decided", "page") in refused.text
    assert said("desk.approved_by_decided", "page") in both.get(f"/files/{at}/release").text
    assert not list((team_desk.folder(at) / "run.precheck").glob("release*"))


def test_a_file_of_which_no_row_was_decided_names_who_wanted_it_approved(team_desk, at):
    anna = team_desk.person(ANNA)
    assert anna.approve(at).status == 303
    assert (
        "four-eyes check met, a different person submitted the file" in anna.get(f"/files/{at}/release").text
    )
    verified = anna.post(f"/files/{at}/verify").text
    assert said("evidence.submitted", "page", deciders=UP, approvers=ANNA) in verified


def test_who_had_a_row_corrected_does_not_approve_the_corrected_file(team_desk, at):
    up, both = team_desk.person(UP), team_desk.person(BOTH)
    assert decide(both, at, 2, "fix", "their letter").status == 303
    assert team_desk.person(ANNA).approve(at).status == 303
    again = up.post(f"/files/{at}/check-again").to.split("/")[2]
    up.post(f"/files/{again}/columns", {"then": "plan"})
    up.check(again)
    shown = team_desk.person(ANNA).shown(again)
    refused = both.post(f"/files/{again}/release", {"shown": shown})
    assert refused.status == 403
    assert said("desk.approved_by_corrected", "page") in refused.text
    assert f'<a href="/files/{again}">Back to the file</a>' in refused.text
    assert team_desk.person(ANNA).approve(again).status == 303


def test_a_decision_that_was_made_since_the_page_was_shown_is_not_overwritten(team_desk, at):
    rita, both = team_desk.person(RITA), team_desk.person(BOTH)
    path, shown = f"/files/{at}/rows/10", {"before": ""}
    assert rita.post(path, {"decision": "release", "reason": "phoned", **shown}).status == 303
    refused = both.post(path, {"decision": "hold", **shown})
    assert refused.status == 409
    assert said("desk.decided_meanwhile", "page", name=RITA, row=10) in refused.text
    # A button that was pressed twice records once.
    assert rita.post(path, {"decision": "release", "reason": "phoned", **shown}).status == 303
    assert [entry["decision"] for entry in team_desk.decisions(at)] == ["release"]


def test_a_button_that_is_pressed_twice_at_once_records_once(team_desk, at):
    fields = {"decision": "hold", "reason": "unknown", "before": ""}
    with ThreadPoolExecutor(4) as presses:
        people = [team_desk.person(RITA) for _ in range(8)]
        pressed = [presses.submit(rita.post, f"/files/{at}/rows/11", fields) for rita in people]
    assert {answer.result().status for answer in pressed} == {303}
    assert [entry["decision"] for entry in team_desk.decisions(at)] == ["hold"]


FORBIDDEN = [
    (RITA, "POST", "/sample"),
    (RITA, "POST", "/files"),
    (RITA, "POST", "/files/{at}/columns"),
    (RITA, "POST", "/files/{at}/start"),
    (RITA, "POST", "/files/{at}/stop"),
    (ANNA, "POST", "/files/{at}/check-again"),
    (RITA, "POST", "/files/{at}/release"),
    (RITA, "POST", "/files/{at}/send-back"),
    (RITA, "POST", "/files/{at}/forget"),
    (RITA, "GET", "/audit"),
    (UMA, "POST", "/files/{at}/forget"),
    (UP, "POST", "/files/{at}/rows/10"),
    (UP, "POST", "/files/{at}/groups"),
    (UP, "POST", "/files/{at}/hand-over"),
    (UP, "POST", "/files/{at}/decisions.xlsx"),
    (ANNA, "POST", "/files/{at}/rows/10"),
    (ANNA, "POST", "/files"),
    (OTTO, "POST", "/files"),
    (OTTO, "POST", "/files/{at}/rows/10"),
    (OTTO, "POST", "/files/{at}/release"),
    (OTTO, "POST", "/search"),
    (OTTO, "GET", "/files/{at}/review"),
    (OTTO, "GET", "/files/{at}/columns"),
    (OTTO, "GET", "/files/{at}/decisions.xlsx"),
    (OTTO, "GET", "/files/{at}/download/outcomes.csv"),
    (OTTO, "GET", "/files/{at}/download/report.html"),
]


@pytest.mark.parametrize(("name", "method", "path"), FORBIDDEN, ids=str)
def test_nobody_does_what_is_not_theirs_to_do(team_desk, checked, name, method, path):
    visitor = team_desk.person(name)
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    fields = b"decision=hold&reason=x&text=Thornwood&then=plan"
    answer = visitor.ask(method, path.format(at=checked), fields if method == "POST" else None, **kind)
    assert answer.status == 403, answer.text
    page = path.format(at="{id}").replace("/10", "/").replace("outcomes.csv", "").replace("report.html", "")
    rules = {rule for by, at, rule in team_desk.refused() if by == name and at.startswith(f"{method} {page}")}
    assert rules & {"may_not", "payments_not_open"}
    assert "Thornwood" not in (team_desk.home / "audit.jsonl").read_text()


def test_who_uploads_deletes_a_file_of_which_no_check_has_begun_and_no_other(team_desk):
    uma = team_desk.person(UMA)
    at, begun = uma.planned(MIXED), uma.planned(MIXED)
    (team_desk.folder(begun) / "log.jsonl").touch()  # as a check leaves it that was killed
    assert "Delete this file" in uma.get(f"/files/{at}/columns").text
    assert uma.post(f"/files/{at}/forget", {"reason": " "}).status == 422
    assert uma.post(f"/files/{at}/forget", {"reason": "the wrong month"}).status == 303
    assert not (team_desk.folder(at) / "input").exists()
    [deleted] = [entry for entry in team_desk.audit() if (entry["run"], entry["deed"]) == (at, "purged")]
    assert (deleted["by"], deleted["facts"]) == (UMA, {"reason": "the wrong month"})
    page = uma.get(f"/files/{at}/release").text
    assert "before it was checked." in page
    assert "Verify the evidence" not in page
    assert uma.post(f"/files/{begun}/forget", {"reason": "the wrong month"}).status == 403
    assert (team_desk.folder(begun) / "input").exists()
    assert team_desk.person(ANNA).post(f"/files/{begun}/forget", {"reason": "asked to"}).status == 303


def test_an_auditor_reads_the_evidence_and_who_did_what(team_desk, checked):
    otto = team_desk.person(OTTO)
    assert otto.get("/audit").status == 200
    listed = otto.get("/").text
    assert f'<a href="/files/{checked}/release">Evidence</a>' in listed
    assert f"/files/{checked}/review" not in listed
    for name in ("manifest.json", "summary.json"):
        assert otto.get(f"/files/{checked}/download/{name}").status == 200
    assert "Thornwood" not in otto.get(f"/files/{checked}/release").text
    assert otto.post(f"/files/{checked}/verify").status == 200


def test_an_auditor_finds_who_released_a_row_and_why_without_names(team_desk, checked):
    at, otto = team_desk.copy(checked), team_desk.person(OTTO)
    decide(team_desk.person(RITA), at, 10, "release", "phoned the payee")
    assert team_desk.person(ANNA).approve(at).status == 303
    said = otto.get(f"/audit?run={at}&deed=decided").text
    assert "<q>phoned the payee</q>" in said
    assert f'<a href="/files/{at}/rows/10">10</a>' in said
    assert "approved" not in re.sub("(?s)<form.*?</form>", "", said)
    by_rita = otto.get(f"/audit?run={at}&by={RITA}").text
    assert {*re.findall('<th scope="row">([^<]*@[^<]*)</th>', by_rita)} == {RITA}
    story = otto.get(f"/files/{at}/rows/10")
    assert story.status == 200
    assert "<b>Released</b> in release.simulated.csv, approved by anna@example.com" in story.text
    named = team_desk.person(RITA).get(f"/files/{at}/rows/10").text
    [name] = re.findall("<dt>[^<]*name</dt><dd><bdi>([^<]*)</bdi>", named, re.IGNORECASE)[:1]
    assert name not in story.text
    assert otto.get(f"/files/{at}/review").status == 403
    table = otto.get(f"/audit.csv?run={at}").text
    assert (
        len(table.splitlines()) == 5
    )  # a header, the decision, the approval, what was refused, who saw accounts
    assert otto.get("/audit?day=1999-01-01").text.count("<tr>") == 1
    assert team_desk.person(RITA).get("/audit.csv").status == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-Forwarded-Email": None}, 401),
        ({"X-Forwarded-Email": ""}, 401),
        ({"X-Forwarded-Email": " "}, 401),
        ({"X-Forwarded-Email": f"{RITA},{ANNA}"}, 401),
        ({"X-Forwarded-Email": "a" * 300}, 401),
        ({"X-Forwarded-Email": "nobody@example.com"}, 403),
        ({"X-Forwarded-Email": None, "X-Forwarded-User": ANNA}, 401),
        ({"X-Forwarded-Email": None, "Remote-User": ANNA}, 401),
        ({"X-Forwarded-Email": None, "Authorization": "Bearer x"}, 401),
    ],
    ids=str,
)
def test_who_is_not_named_once_by_the_one_header_is_nobody(team_desk, headers, status):
    answer = team_desk.person(RITA).get("/", **headers)
    assert answer.status == status
    assert "link" not in re.sub("<[^>]*>", "", answer.text)  # which only one's own desk has


def test_two_identities_in_one_request_are_nobodys(team_desk):
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(team_desk.socket))
        names = f"X-Forwarded-Email: {RITA}\r\nx-forwarded-email: {ANNA}\r\n"
        line.sendall(f"GET / HTTP/1.1\r\nHost: desk.example\r\n{names}Connection: close\r\n\r\n".encode())
        assert line.makefile("rb").readline().split()[1] == b"401"


@pytest.mark.parametrize("host", ["evil.example", "localhost", "desk.example.evil.example"])
def test_a_name_that_is_not_the_teams_is_refused(team_desk, host):
    assert team_desk.person(RITA).get("/", Host=host).status == 403


def test_what_another_page_sends_is_refused(team_desk):
    up = team_desk.person(UP)
    for site in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": None, "Origin": "http://desk.example"}):
        assert up.post("/sample", **site).status == 403


def test_nobody_signs_in_or_out_at_the_desk_of_a_team(team_desk):
    rita = team_desk.person(RITA)
    assert rita.get("/enter?token=x").status == 404
    assert rita.post("/enter", {"token": "x"}).status == 404
    assert "Sign out" not in rita.get("/").text


def test_the_socket_is_for_its_owner_and_group(team_desk):
    assert stat.S_IMODE(team_desk.socket.stat().st_mode) == 0o660


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is another user than nobody")
def test_who_is_not_the_proxy_is_refused_whatever_the_header_says(tmp_path, serve_team):
    with serve_team(tmp_path, proxy_user="nobody") as desk:
        answer = desk.person(ANNA).get("/")
        assert answer.status == 403
        assert said("desk.only_the_proxy", "page") in answer.text


def test_an_identity_header_means_nothing_on_the_loopback_address(own_desk):
    stranger = own_desk.stranger()
    assert stranger.get("/", X_Forwarded_Email=ANNA).status == 401


def test_a_team_desk_listens_on_no_port(team_desk):
    links = [str(link.readlink()) for link in Path(f"/proc/{team_desk.process.pid}/fd").iterdir()]
    inodes = {link.removeprefix("socket:[").removesuffix("]") for link in links if "socket:" in link}
    lines = [
        line.split()
        for kind in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]
    ]
    assert not [line for line in lines if line[9] in inodes and line[3] == "0A"]


def test_files_that_are_old_enough_are_deleted_by_the_desk_itself(tmp_path, serve_team, wait_until):
    with serve_team(tmp_path, keep_days=1) as desk:
        at = desk.person(UP).checked(MIXED)
        for name, member in (("desk.json", "uploaded_at"), ("run.precheck/summary.json", "finished")):
            path = desk.folder(at) / name
            told = json.loads(path.read_text())
            path.write_text(json.dumps({**told, member: "2020-01-02T03:04:05.678Z"}))
    with serve_team(tmp_path, keep_days=1) as desk:
        wait_until(lambda: json.loads((desk.folder(at) / "desk.json").read_text())["purged_at"] is not None)
        assert not (desk.folder(at) / "input").exists()
        wait_until(lambda: desk.audit()[-1]["by"] == "the desk")
