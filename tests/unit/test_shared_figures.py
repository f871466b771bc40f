"""What commands that ask no shared ledger say of it, rather than figures that are not its own."""

import pytest
from click.testing import CliRunner
from refusals import refused, said
from shared_ledgers import PROFILE

from pipeline.cli.main import main
from pipeline.errors import ConfigurationError
from pipeline.sections import secret

LEDGER = "postgresql://precheck@db.example/precheck"


@pytest.fixture
def call(tmp_path, monkeypatch):
    config = tmp_path / "precheck.toml"
    config.write_text(PROFILE.format(url=LEDGER) + "daily_cap = 100\n")
    monkeypatch.chdir(tmp_path)
    env = {"PRECHECK_CONFIG": str(config), "XDG_STATE_HOME": str(tmp_path), "COLUMNS": "400"}
    return lambda *words: CliRunner().invoke(main, words, env=env)


def test_quota_names_the_ledger_in_which_a_profile_counts(call):
    done = call("quota")
    assert done.exit_code == 0
    assert said("jobs.cap_is_shared", profile="production", ledger=LEDGER) in done.output
    assert said("terminal.no_cap_used") not in done.output


@pytest.mark.parametrize("words", [("set/pay.csv",), ("set", "--work", "work")])
def test_plan_says_what_of_the_shared_ledger_is_not_counted(call, tmp_path, words):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "pay.csv").write_text("name,sort_code,account_number\nAda Quillon,112233,12345678\n")
    printed = call("plan", *words, "--profile", "production").output
    done = call("plan", *words, "--profile", "production", "--json")
    assert done.exit_code == 0, done.output
    assert said("terminal.other_hosts_not_counted", ledger=LEDGER) in " ".join(printed.split())
    assert f'"shared_ledger":"{LEDGER}"' in done.output


def test_a_variable_that_is_not_set_is_told_from_one_that_is_empty(monkeypatch):
    monkeypatch.delenv("LEDGER_KEY", raising=False)
    with refused(ConfigurationError, "sections.variable_not_set", variable="LEDGER_KEY"):
        secret("LEDGER_KEY", None)
    monkeypatch.setenv("LEDGER_KEY", "")
    with refused(ConfigurationError, "sections.variable_empty", variable="LEDGER_KEY"):
        secret("LEDGER_KEY", None)
