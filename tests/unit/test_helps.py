"""What commands say of themselves: groups, examples, completion, the nearest word, versions."""

import json
import shlex

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from pipeline.cli.helps import EXAMPLES, GROUPS, LIBRARIES
from pipeline.cli.main import main


def commands():
    for name, command in main.commands.items():
        if isinstance(command, click.Group):
            yield from ((f"{name} {part}", single) for part, single in command.commands.items())
        elif not command.hidden:
            yield name, command


def printed(*words):
    done = CliRunner().invoke(main, words, prog_name="precheck")
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("name", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_help_ends_with_an_example_whose_options_exist(name, command):
    shown = printed(*name.split(), "--help")[1]
    for example in EXAMPLES[name]:
        assert f"\n  {example}\n" in shown
        program, *words = shlex.split(example.rpartition("| ")[2])
        assert program == "precheck"
        assert words[: len(name.split())] == name.split()
        command.make_parser(click.Context(command)).parse_args(words[len(name.split()) :])


def test_the_list_of_commands_has_whole_sentences_at_80_columns():
    groups = [("--help",), *((name, "--help") for name in main.commands if name == "ledger")]
    for words in groups:
        listed = printed(*words)[1].partition("Commands:")[2]
        assert listed
        assert "..." not in listed


def test_the_options_of_run_are_in_groups_and_none_is_lost():
    shown = printed("run", "--help")[1]
    assert all(f"\n{heading}:\n" in shown for heading in (*GROUPS, "Output", "Examples"))
    for option in main.commands["run"].params:
        if isinstance(option, click.Option):
            assert shown.count(f"\n  {option.opts[0]}") >= 1


def test_a_mistaken_value_is_answered_with_the_nearest():
    assert printed("run", "x.csv", "--fail-on", "nomatch")[0] == 2
    assert "did you mean config?" in printed("schema", "confg")[1]
    assert "Did you mean no_match?" in printed("run", "x.csv", "--fail-on", "nomatch")[1]


@pytest.mark.parametrize(
    ("words", "begun", "word"),
    [
        (["explain"], "mb", "MBAM"),
        (["schema"], "conf", "config"),
        (["run", "--profile"], "sandbox-", "sandbox-standard"),
        (["plan", "--input-format"], "pain", "pain001"),
    ],
)
def test_a_shell_completes_codes_documents_profiles_and_formats(words, begun, word):
    found = ShellComplete(main, {}, "precheck", "_PRECHECK_COMPLETE").get_completions(words, begun)
    assert word in [one.value for one in found]


def test_versions_and_the_schema_of_the_configuration():
    assert all(name in printed("--version")[1] for name in ("precheck ", "Python 3.", "OpenSSL", *LIBRARIES))
    assert set(json.loads(printed("schema", "config")[1])["properties"]) == {
        "layouts",
        "desk",
        "inputs",
        "notify",
        "profiles",
    }
