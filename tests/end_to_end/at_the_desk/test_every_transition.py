"""The states of a file as one table: who may do what in each, and where it leads; for every role."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

MIXED = (Path(__file__).parents[3] / "sample_data" / "payments_mixed.csv").read_bytes()
PEOPLE = {role: f"{name}@example.com" for role, name in
          (("uploader", "uma"), ("reviewer", "rita"), ("approver", "anna"), ("auditor", "otto"))}  # fmt: skip
DONE, FORBIDDEN, CONFLICT = 303, 403, 409


class Act(NamedTuple):
    """Something that people do with a file."""

    path: str
    fields: dict
    roles: set
    leads: dict
    """State -> the state after it; in any other state it is refused."""


CHECKED = ("review", "waiting", "released", "given", "purged")
ACTS = {
    "agree with the columns": Act(
        "columns", {"then": "plan"}, {"uploader"}, {"new": "planned", "planned": "planned"}
    ),
    "plan again": Act("plan", {"profile": "sandbox"}, {"uploader"}, {"planned": "planned"}),
    "decide": Act(
        "rows/10",
        {"decision": "hold", "reason": "", "voids": "yes"},
        {"reviewer"},
        {"review": "review", "waiting": "review", "released": "review"},
    ),
    "hand over": Act("hand-over", {}, {"reviewer"}, {"review": "waiting", "waiting": "waiting"}),
    "send back": Act(
        "send-back", {"comment": "again"}, {"approver"}, {"review": "review", "waiting": "review"}
    ),
    "approve": Act("release", {}, {"approver"}, {"review": "released", "waiting": "released"}),
    "give to the bank": Act("given", {}, {"uploader", "approver"}, {"released": "given"}),
    "comment": Act(
        "rows/10/comments",
        {"comment": "why"},
        {"uploader", "reviewer", "approver"},
        dict(zip(CHECKED, CHECKED, strict=True)),
    ),
    "delete names": Act(
        "forget",
        {"reason": "asked to"},
        {"approver"},
        dict.fromkeys(("new", "planned", "review", "waiting", "released", "given"), "purged"),
    ),
}


def may(act, state, role):
    """Whether a role has an act; of files that no check has begun, uploaders delete what they uploaded."""
    return role in ACTS[act].roles or (
        act == "delete names" and role == "uploader" and state in ("new", "planned")
    )


@pytest.fixture(scope="module")
def states(team_desk):
    """State -> a file that is in it."""
    up, rita, anna = (team_desk.person(f"{name}@example.com") for name in ("up", "rita", "anna"))
    found = {
        "new": up.file(MIXED, "m.csv"),
        "planned": up.planned(MIXED, "m.csv"),
        "review": up.checked(MIXED, "m.csv"),
    }
    for state, before, visitor, act in (
        ("waiting", "review", rita, "hand over"),
        ("released", "waiting", anna, "approve"),
        ("given", "released", anna, "give to the bank"),
        ("purged", "released", anna, "delete names"),
    ):
        found[state] = team_desk.copy(found[before])
        assert done(team_desk, visitor, found[state], act).status == DONE
    assert {state: state_of(team_desk, at) for state, at in found.items()} == {
        state: state for state in found
    }
    return found


def known_of(desk, at):
    return json.loads((desk.folder(at) / "desk.json").read_text())


def state_of(desk, at):
    """The state of a file, and whether the bank has it."""
    state = desk.person(PEOPLE["uploader"]).progress(at)["state"]
    return "given" if state == "released" and known_of(desk, at)["given"] else state


def done(desk, visitor, at, act, **more):
    path, fields, *_ = ACTS[act]
    if act == "give to the bank":
        releases = known_of(desk, at)["releases"]
        more["sha256"] = releases[-1]["sha256"] if releases else ""
    return visitor.post(f"/files/{at}/{path}", {**fields, **more})


def test_every_act_in_every_state_by_every_role_does_what_the_table_says(team_desk, states):
    wrong = []
    for state, file in states.items():
        for act, (_, _, _, leads) in ACTS.items():
            for role, name in PEOPLE.items():
                visitor, is_theirs = team_desk.person(name), may(act, state, role)
                at = team_desk.copy(file) if is_theirs and state in leads else file
                # What a page showed counts only for who may act.
                status = done(team_desk, visitor, at, act, **({} if at != file else {"shown": ""})).status
                after = state_of(team_desk, at)
                expected = (
                    (FORBIDDEN, state)
                    if not is_theirs
                    else (DONE, leads[state])
                    if state in leads
                    else (CONFLICT, state)
                )
                if (status, after) != expected and not (expected[0] == CONFLICT and status == 422):
                    wrong.append((state, act, role, status, after, expected))
    assert wrong == []
