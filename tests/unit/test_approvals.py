"""Who decides."""

import os

import pytest

from pipeline.errors import InputError, UsageError
from pipeline.runs.approvals import approvals_of, decider, record_approval
from schemas.approvals import Approval

APPROVAL = Approval(by="Mara", time="2030-01-02T03:04:05.678Z", what="release", why="known", rows=[1])


def test_what_is_recorded_is_read_again(tmp_path):
    assert approvals_of(tmp_path) == []
    record_approval(tmp_path, APPROVAL)
    record_approval(tmp_path, APPROVAL.model_copy(update={"rows": [2]}))
    assert [approval.rows for approval in approvals_of(tmp_path)] == [[1], [2]]
    assert (tmp_path / "approvals.json").stat().st_mode & 0o777 == 0o600


def test_no_decision_leaves_no_file(tmp_path):
    record_approval(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("said", [" Mara ", "Mara"])
def test_a_name_that_is_given_goes_before_the_login_name(said):
    assert decider(said) == "Mara"


def test_a_blank_name_is_none():
    assert decider(" ") == decider(None)


@pytest.mark.parametrize(
    "name", ["Ma\nra", "\x1b[2JMara", "Ma\u202era", "Ma\u200bra", "Ma\x00ra", "Ma\ud800ra"]
)
def test_a_name_with_characters_that_nobody_sees_is_refused(name, monkeypatch):
    for said, login in ((name, "mara"), (None, name)):
        monkeypatch.setattr("getpass.getuser", lambda login=login: login)
        with pytest.raises(UsageError, match="control or invisible characters in the name") as refused:
            decider(said)
        assert str(refused.value).isprintable()


@pytest.mark.parametrize("name", ["Mara O'Neill", "Søren Ærø", "馬 小明", "مارا"])
def test_a_name_in_any_script_is_one(name):
    assert decider(name) == name


@pytest.mark.parametrize("said", ["", "{}", "null"])
def test_what_is_no_list_of_decisions_is_refused(tmp_path, said):
    (tmp_path / "approvals.json").write_text(said)
    with pytest.raises(InputError, match="bring it back from a copy"):
        approvals_of(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "approvals.json")
    with pytest.raises(InputError, match="something that is not a file"):
        approvals_of(tmp_path)
