"""Nobody approves a file that they shaped, here or in a file that it is the correction of."""

import json
from pathlib import Path

import pytest
from refusals import said

MIXED = (Path(__file__).parents[3] / "sample_data" / "payments_mixed.csv").read_bytes()
UP, RITA, ANNA, ALL = (f"{name}@example.com" for name in ("up", "rita", "anna", "all"))
"""Of these, the last uploads, reviews and approves."""
COSTS = "If you do this, you can no longer approve this file"


def planned(desk):
    return desk.person(UP).planned(MIXED)


def checked(desk, at):
    desk.person(UP).check(at)
    return at


def agreed(desk):
    return desk.person(UP).checked(MIXED)


def uploaded(desk):
    at = desk.person(ALL).file(MIXED)
    assert desk.person(UP).post(f"/files/{at}/columns", {"then": "plan"}).to.endswith("/plan")
    return checked(desk, at)


def mapped(desk, note="mapped"):
    at = desk.person(UP).file(noted(note))
    assert (
        desk.person(ALL).post(f"/files/{at}/columns", {"column:name": "name", "then": "look"}).status == 303
    )
    assert desk.person(UP).post(f"/files/{at}/columns", {"then": "plan"}).to.endswith("/plan")
    return checked(desk, at)


def mapped_the_same_columns_before(desk):
    """In a file that nobody looks at: the desk remembers it for the next one."""
    mapped(desk, "another")
    at = desk.person(UP).file(noted("another"))
    assert desk.person(UP).post(f"/files/{at}/columns", {"then": "plan"}).to.endswith("/plan")
    return checked(desk, at)


def noted(note):
    """The payments with a column more: what is said of it is remembered for no other file."""
    first, *lines = MIXED.splitlines()
    return b"\n".join([first + b"," + note.encode(), *(line + b",x" for line in lines), b""])


def chose_profile(desk):
    at = planned(desk)
    assert desk.person(ALL).post(f"/files/{at}/plan", {"profile": "sandbox"}).status == 303
    return checked(desk, at)


def started(desk):
    at = planned(desk)
    desk.person(ALL).check(at)
    return at


def allowed_many_names(desk):
    at = planned(desk)
    fields = {"profile": "sandbox", "many_names_reason": "a letting agent"}
    assert desk.person(ALL).post(f"/files/{at}/plan", fields).status == 303
    return checked(desk, at)


def decided(desk):
    at = agreed(desk)
    fields = {"decision": "release", "reason": "phoned"}
    assert desk.person(ALL).post(f"/files/{at}/rows/10", fields).status == 303
    return at


def decided_and_took_back(desk):
    at = decided(desk)
    assert desk.person(ALL).post(f"/files/{at}/rows/10", {"decision": "none"}).status == 303
    return at


def corrected(desk):
    at = agreed(desk)
    assert (
        desk.person(ALL).post(f"/files/{at}/rows/2", {"decision": "fix", "reason": "a letter"}).status == 303
    )
    return at


def handed_over(desk):
    at = agreed(desk)
    assert desk.person(ALL).post(f"/files/{at}/hand-over").status == 303
    return at


def correction_of(desk, at, by):
    up = desk.person(UP)
    if not any(entry["decision"] == "fix" for entry in entries(desk, at)):
        fields = {"decision": "fix", "reason": "a letter"}
        assert desk.person(RITA).post(f"/files/{at}/rows/2", fields).status == 303
    assert desk.person(ANNA).approve(at).status == 303
    again = desk.person(by).post(f"/files/{at}/check-again").to.split("/")[2]
    assert up.post(f"/files/{again}/columns", {"then": "plan"}).to.endswith("/plan")
    return checked(desk, again)


def entries(desk, at):
    return desk.decisions(at) if (desk.folder(at) / "decisions.jsonl").exists() else []


def checked_again(desk):
    return correction_of(desk, agreed(desk), ALL)


ACTS = {
    uploaded: "uploaded",
    mapped: "mapped",
    mapped_the_same_columns_before: "mapped",
    chose_profile: "chose the profile",
    started: "chose the profile",
    allowed_many_names: "allowed many names",
    decided: "decided",
    decided_and_took_back: "decided",
    corrected: "corrected",
    handed_over: "handed over",
    checked_again: "checked again",
}


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_who_did_it_cannot_approve_and_the_evidence_names_them(team_desk, act):
    at, everything = act(team_desk), team_desk.person(ALL)
    refused = everything.post(f"/files/{at}/release", {"shown": team_desk.person(ANNA).shown(at)})
    assert refused.status == 403
    on_record = [entry["facts"] for entry in team_desk.audit() if (entry["run"], entry["by"]) == (at, ALL)]
    assert on_record[-1]["page"] == "POST /files/{id}/release"
    rule = on_record[-1]["rule"]
    assert rule.startswith("approved_by_")
    assert not list((team_desk.folder(at) / "run.precheck").glob("release*"))
    assert said(f"desk.{rule}", "page") in everything.get(f"/files/{at}/release").text
    anna = team_desk.person(ANNA)
    assert anna.approve(at).status == 303
    manifest = json.loads(anna.get(f"/files/{at}/download/manifest.json").body)
    split = manifest["splits"][-1]
    assert (ALL, ACTS[act]) in {(one["by"], one["act"]) for one in split["shaped"]}
    assert (split["by"], split["self_approved"]) == (ANNA, False)
    assert ALL in anna.post(f"/files/{at}/verify").text


@pytest.mark.parametrize(
    "act",
    [pytest.param(mapped, marks=pytest.mark.nightly), decided_and_took_back],
    ids=lambda act: act.__name__,
)
def test_what_was_done_to_an_earlier_file_counts_for_its_correction(team_desk, act):
    again = correction_of(team_desk, act(team_desk), UP)
    shown = team_desk.person(ANNA).shown(again)
    assert team_desk.person(ALL).post(f"/files/{again}/release", {"shown": shown}).status == 403
    assert team_desk.person(ANNA).approve(again).status == 303


def test_who_looked_commented_sent_back_stopped_or_resumed_a_check_may_approve(team_desk):
    at, everything = agreed(team_desk), team_desk.person(ALL)
    everything.post(f"/files/{at}/stop")
    for name in ("summary.json", "manifest.json", "outcomes.csv"):  # as one that was stopped
        (team_desk.folder(at) / "run.precheck" / name).unlink()
    everything.check(at)
    assert everything.post(f"/files/{at}/rows/10/comments", {"comment": "asked"}).status == 303
    assert team_desk.person(RITA).post(f"/files/{at}/hand-over").status == 303
    assert everything.post(f"/files/{at}/send-back", {"comment": "once more"}).status == 303
    assert everything.post(f"/files/{at}/verify").status == 200
    assert team_desk.audit()[-1]["by"] == ALL
    assert everything.approve(at).status == 303


def test_the_page_says_before_each_act_that_it_costs_the_approval(team_desk):
    at, up = planned(team_desk), team_desk.person(UP)
    pages = ["/", f"/files/{at}/columns", f"/files/{at}/plan"]
    for name, is_stated in ((ALL, True), ("uma@example.com", False)):
        for page in pages:
            assert (COSTS in team_desk.person(name).get(page).text) is is_stated, page
    up.check(at)
    for name, is_stated in ((ALL, True), (RITA, False)):
        assert (COSTS in team_desk.person(name).get(f"/files/{at}/review").text) is is_stated
    fields = {"decision": "fix", "reason": "a letter"}
    assert team_desk.person(RITA).post(f"/files/{at}/rows/2", fields).status == 303
    assert team_desk.person(ANNA).approve(at).status == 303
    assert COSTS in team_desk.person(ALL).get(f"/files/{at}/release").text


def test_a_manifest_by_which_one_who_shaped_the_file_approved_it_is_found(team_desk, tmp_path):
    at = mapped(team_desk)
    assert team_desk.person(ANNA).approve(at).status == 303
    path = team_desk.folder(at) / "run.precheck" / "manifest.json"
    path.write_text(path.read_text().replace(ALL, ANNA))
    found = team_desk.desk("verify", path.parent)
    assert found.status == 65
    assert ANNA in found.out + found.err
    assert said("evidence.approved_by_shaper") in found.out + found.err
