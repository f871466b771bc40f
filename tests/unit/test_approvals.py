"""Who decides."""

import os

import click
import pytest
from click.testing import CliRunner
from refusals import refused

from pipeline.cli.options import by_option
from pipeline.errors import InputError, UsageError
from pipeline.runs.folder import approvals_of, decider, record_approval
from schemas.review import Approval

TIME = "2030-01-02T03:04:05.678Z"
APPROVAL = Approval(
    by="Mara", time=TIME, what="release", why="known", rows=[1],
    approved_by="Noor", approved_at=TIME, self_approved=False,
)  # fmt: skip


def test_what_is_recorded_is_read_again(tmp_path):
    assert approvals_of(tmp_path) == []
    record_approval(tmp_path, APPROVAL)
    record_approval(tmp_path, APPROVAL.model_copy(update={"rows": [2]}))
    assert [approval.rows for approval in approvals_of(tmp_path)] == [[1], [2]]
    assert (tmp_path / "approvals.json").stat().st_mode & 0o777 == 0o600


def test_no_decision_leaves_no_file(tmp_path):
    record_approval(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "name"), [(["--by", "Mara"], "Mara"), (["--by", " "], "m.login"), ([], "m.login")]
)
def test_who_decides_is_the_login_name_where_no_other_is_given(words, name):
    @click.command()
    @by_option
    def decide(by):
        click.echo(by)

    assert CliRunner().invoke(decide, words, env={"LOGNAME": "m.login"}).output == f"{name}\n"


def test_who_decides_is_on_record_without_the_white_space_around_the_name():
    assert decider(" Mara ") == "Mara"


@pytest.mark.parametrize("name", [None, "", " "])
def test_a_decision_without_a_name_is_refused(name):
    with refused(UsageError, "runs.user_without_login_name", "advice.name_decider"):
        decider(name)


@pytest.mark.parametrize(
    "name", ["Ma\nra", "\x1b[2JMara", "Ma\u202era", "Ma\u200bra", "Ma\x00ra", "Ma\ud800ra"]
)
def test_a_name_with_invisible_characters_is_refused(name):
    with refused(UsageError, "runs.decider_name_unprintable") as raised:
        decider(name)
    assert str(raised.value).isprintable()


@pytest.mark.parametrize("name", ["Mara O'Neill", "Søren Ærø", "馬 小明", "مارا"])
def test_a_name_in_any_script_is_one(name):
    assert decider(name) == name


@pytest.mark.parametrize("said", ["", "{}", "null"])
def test_what_is_no_list_of_decisions_is_refused(tmp_path, said):
    (tmp_path / "approvals.json").write_text(said)
    with refused(InputError, "runs.decisions_unreadable", "runs.restore_from_copy"):
        approvals_of(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "approvals.json")
    with refused(InputError, "runs.decisions_unreadable"):
        approvals_of(tmp_path)
