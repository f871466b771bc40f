"""What waits for whom, the account type that a file does not state, and all files of a check as one."""

import io
import json
import re
import zipfile
from pathlib import Path

import pytest

MIXED = (Path(__file__).parents[3] / "sample_data" / "payments_mixed.csv").read_bytes()
UP, UMA, RITA, ANNA, OTTO, BOTH = (
    f"{name}@example.com" for name in ("up", "uma", "rita", "anna", "otto", "both")
)
UNTYPED = (
    b"name,sort_code,account_number,amount\nAda Quillon,112233,00000007,1.00\nBo Mertz,112233,00000008,2\n"
)


@pytest.fixture(scope="module")
def checked(team_desk):
    return team_desk.person(UP).checked(MIXED, "payments_mixed.csv")


def inbox(visitor):
    return re.findall(r'<li><a href="/\?waits=(\w+)"', visitor.get("/").text)


def listed(visitor, state):
    if state not in inbox(visitor):
        return set()
    return set(re.findall(r'<th scope="row"><a href="/files/(\w+)">', visitor.get(f"/?waits={state}").text))


def test_each_person_sees_what_waits_for_them_with_its_money(team_desk, checked):
    at = team_desk.copy(checked)
    rita, anna, both, otto = map(team_desk.person, (RITA, ANNA, BOTH, OTTO))
    assert at in listed(rita, "review")
    assert "waiting" not in inbox(rita)
    page = rita.get("/").text
    assert re.search(r'waits=review">Review</a> <span class="small">\d+ files?</span>', page)
    assert re.search(r'<span class="number"><span>[\d,.]+ EUR</span> <span>[\d,.]+ GBP</span>', page)
    assert rita.post(f"/files/{at}/hand-over").status == 303
    assert at in listed(anna, "waiting")
    assert at in listed(both, "waiting")
    assert at not in listed(team_desk.person(UP), "waiting")  # who uploaded it
    assert anna.post(f"/files/{at}/send-back", {"comment": "look again"}).status == 303
    assert "Sent back" in rita.get("/").text
    assert at in listed(rita, "review")
    assert rita.post(f"/files/{at}/hand-over").status == 303
    assert anna.approve(at).status == 303
    assert at in listed(anna, "released")
    [sha256] = re.findall('name="sha256" value="(.*?)"', anna.get(f"/files/{at}/release").text)
    assert anna.post(f"/files/{at}/given", {"sha256": sha256}).status == 303
    assert at not in listed(anna, "released")
    assert inbox(otto) == []
    assert "No file is waiting for you." in otto.get("/").text


def test_an_empty_desk_says_to_each_role_what_will_come(tmp_path, serve_team):
    with serve_team(tmp_path / "t") as desk:
        pages = {name: desk.person(name).get("/").text for name in (UP, RITA, OTTO)}
    assert "Try the sample file" in pages[UP]
    for name, said in ((RITA, "You decide after the check."), (OTTO, "You can read the evidence")):
        assert said in pages[name]
        assert "Try the sample file" not in pages[name]
        assert "Upload a payment file" not in pages[name]


def test_a_file_without_account_types_is_asked_as_the_plan_says(team_desk):
    up = team_desk.person(UP)
    at = up.planned(UNTYPED, "untyped.csv")
    plan = up.get(f"/files/{at}/plan").text
    assert "count as Personal" in plan
    assert 'name="account_type"' in plan
    assert up.post(f"/files/{at}/plan", {"account_type": "Other"}).status == 422
    chosen = {"account_type": "Business"}
    assert up.post(f"/files/{at}/start", chosen).to.endswith("/plan")  # another plan is shown first
    assert "count as Business" in up.get(f"/files/{at}/plan").text
    up.post(f"/files/{at}/start", chosen)
    up.wait(at)
    manifest = json.loads(up.get(f"/files/{at}/download/manifest.json").body)
    assert manifest["profile"]["default_account_type"] == "Business"
    assert "Business" in up.get(f"/files/{at}/rows/1").text
    assert "Nothing was changed." in up.post(f"/files/{at}/verify").text


def test_all_files_leave_as_one_without_those_that_are_not_for_a_role(team_desk, checked):
    at = team_desk.copy(checked)
    anna, otto = map(team_desk.person, (ANNA, OTTO))
    assert anna.approve(at).status == 303
    answer = anna.get(f"/files/{at}/files.zip")
    with zipfile.ZipFile(io.BytesIO(answer.body)) as packed:
        names = packed.namelist()
        assert {"release.simulated.csv", "hold.simulated.csv", "manifest.json", "report.html"} <= {*names}
        assert (
            packed.read("release.simulated.csv")
            == anna.get(f"/files/{at}/download/release.simulated.csv").body
        )
    first, _, others = anna.get(f"/files/{at}/release").text.partition("Evidence and other files")
    assert "release.simulated.csv" in first
    assert "manifest.json" not in first
    assert "manifest.json" in others
    with zipfile.ZipFile(io.BytesIO(otto.get(f"/files/{at}/files.zip").body)) as packed:
        assert not [
            name for name in packed.namelist() if name.startswith(("release", "hold", "report", "outcomes"))
        ]
    taken = [
        entry["by"]
        for entry in team_desk.audit()
        if entry["run"] == at and "sha256" in entry["facts"] and entry["deed"] == "downloaded"
    ]
    assert taken == [ANNA, ANNA]
    path = team_desk.folder(at) / "run.precheck" / "release.simulated.csv"
    path.write_bytes(path.read_bytes() + b"x")
    assert anna.get(f"/files/{at}/files.zip").status == 409
