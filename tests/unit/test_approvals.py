"""Who decides."""

import pytest

from pipeline.approvals import approvals_of, decider, record_approval
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
