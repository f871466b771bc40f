"""Moving a run aside: to a name that nothing has."""

import pytest

from pipeline.runs.starting import PriorRun, earlier_run, moved_from
from schemas.outcomes import Environment

NOW = "2030-01-02T03:04:05.678Z"


def run_in(folder):
    folder.mkdir()
    (folder / "ledger.db").write_text("no ledger")
    return PriorRun(folder, Environment.PRODUCTION, has_answers=True, profile=None)


def test_two_that_are_moved_in_one_second_have_names_of_their_own(tmp_path):
    folder = tmp_path / "pay[1].precheck"
    names = [run_in(folder).move_aside(NOW).name for _ in range(3)]
    assert names == [f"pay[1].precheck.2030-01-02T030405{end}" for end in ("", "-2", "-3")]
    assert [path.name for path in moved_from(folder)] == names


@pytest.mark.parametrize(
    ("name", "is_kept"),
    [
        (None, False),
        ("outcomes.csv", False),
        ("approvals.json", True),
        ("release.csv", True),
        ("corrected.csv", True),
    ],
)
def test_what_people_decided_and_what_they_made_of_it_is_kept_each_by_itself(tmp_path, name, is_kept):
    if name is not None:
        (tmp_path / name).touch()
    run = PriorRun(tmp_path, Environment.SANDBOX, has_answers=True, profile=None)
    assert run.is_kept == is_kept


def test_a_ledger_that_cannot_be_read_may_be_of_a_real_server(tmp_path):
    folder = tmp_path / "pay.precheck"
    run_in(folder)
    found = earlier_run(folder, NOW)
    assert found.environment is None
    assert found.is_kept
