"""The table of what may be done with a file: each deed, in each state, by each role."""

import json
from itertools import chain
from pathlib import Path

import pytest

from pipeline.desk.people import Role
from pipeline.desk.states import STEPS, State, step_of
from schemas.desk import Deed

MIXED = (Path(__file__).parents[3] / "sample_data" / "payments_mixed.csv").read_bytes()
PEOPLE = {role: f"{name}@example.com" for role, name in
          (("uploader", "uma"), ("reviewer", "rita"), ("approver", "anna"), ("auditor", "otto"))}  # fmt: skip
DONE, FORBIDDEN, CONFLICT = 303, 403, 409
FORMS = {
    Deed.READ_AS: ("columns", {"then": "plan"}),
    Deed.PLANNED: ("plan", {"profile": "sandbox"}),
    Deed.STARTED: ("start", {}),
    Deed.STOPPED: ("stop", {}),
    Deed.STARTED_OVER: ("start-over", {}),
    Deed.DECIDED: ("rows/10", {"decision": "hold", "reason": "", "voids": "yes"}),
    Deed.HANDED_OVER: ("hand-over", {}),
    Deed.SENT_BACK: ("send-back", {"comment": "again"}),
    Deed.APPROVED: ("release", {}),
    Deed.CORRECTED: ("check-again", {}),
    Deed.COMPARED: ("comparison", {}),
    Deed.GIVEN: ("given", {}),
    Deed.COMMENTED: ("rows/10/comments", {"comment": "why"}),
    Deed.PURGED: ("forget", {"reason": "asked to"}),
}
NEEDS_MORE = {Deed.STARTED, Deed.CORRECTED, Deed.COMPARED}
"""Where they are open, other tests do them: they start a check, or need a decision or a bank's report."""


def test_every_deed_of_the_table_is_walked():
    assert {step.deed for step in STEPS} == {*FORMS}


def test_what_must_be_so_whatever_else_the_table_says():
    """Only an approver has anything released, and what the bank has changes no more."""
    assert {*chain.from_iterable(one.by for one in STEPS if one.to is State.RELEASED)} == {Role.APPROVER}
    assert {one.to for one in STEPS if State.GIVEN in one.of} == {None, State.PURGED}
    assert {one.deed for one in STEPS if State.PURGED in one.of} == {Deed.COMMENTED}
    assert not any(Role.AUDITOR in (*one.by, *one.of_corrections) for one in STEPS)


def expected_of(state, deed, role):
    """The status and the state after it."""
    step = step_of(State(state), deed)
    roles = {*chain.from_iterable(one.by for one in STEPS if one.deed is deed)} if step is None else step.by
    if role not in roles:
        return FORBIDDEN, state
    return (CONFLICT, state) if step is None else (DONE, state if step.to is None else str(step.to))


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
        ("waiting", "review", rita, Deed.HANDED_OVER),
        ("released", "waiting", anna, Deed.APPROVED),
        ("given", "released", anna, Deed.GIVEN),
        ("purged", "released", anna, Deed.PURGED),
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
    return desk.person(PEOPLE["uploader"]).progress(at)["state"]


def done(desk, visitor, at, deed, **more):
    path, fields = FORMS[deed]
    if deed is Deed.GIVEN:
        releases = known_of(desk, at)["releases"]
        more["sha256"] = releases[-1]["sha256"] if releases else ""
    return visitor.post(f"/files/{at}/{path}", {**fields, **more})


def test_every_deed_in_every_state_by_every_role_does_what_the_table_says(team_desk, states):
    wrong = []
    for state, file in states.items():
        for deed in FORMS:
            for role, name in PEOPLE.items():
                visitor, expected = team_desk.person(name), expected_of(state, deed, role)
                is_open = expected[0] == DONE
                if is_open and deed in NEEDS_MORE:
                    continue
                at = team_desk.copy(file) if is_open else file
                # What a page showed counts only for who may act.
                status = done(team_desk, visitor, at, deed, **({} if is_open else {"shown": ""})).status
                if (status, state_of(team_desk, at)) != expected:
                    wrong.append((state, deed, role, status, state_of(team_desk, at), expected))
    assert wrong == []
