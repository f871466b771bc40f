"""What commands say of themselves: groups, examples, completion, the nearest word, versions, languages."""

import ast
import inspect
import json
import re
import shlex
from functools import cache
from pathlib import Path
from uuid import UUID

import click
import pytest
from babel.messages.pofile import read_po
from click import core, exceptions, formatting, parser, types
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from refusals import refused, said

import pipeline.wording
from pipeline.cli import logs
from pipeline.cli.helps import EXAMPLES, GROUPS, LIBRARIES
from pipeline.cli.main import main
from pipeline.cli.options import read_mapping
from pipeline.errors import UsageError
from pipeline.sandbox.faults.catalogue import SECTIONS
from pipeline.sandbox.scenarios import SCENARIOS
from pipeline.wording import speak
from schemas.payments import FIELDS


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
def test_every_help_ends_with_an_example_that_the_command_takes(name, command):
    shown = printed(*name.split(), "--help")[1]
    for example in EXAMPLES[name]:
        assert f"\n  {example}\n" in shown
        program, *words = shlex.split(example.rpartition("| ")[2].replace(" RUN ", f" {UUID(int=1)} "))
        assert program == "precheck"
        assert words[: len(name.split())] == name.split()
        command.make_context(name, words[len(name.split()) :])


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
    assert "\nOptions:\n" in printed("sandbox", "--help")[1]


def test_a_mistaken_value_is_answered_with_the_nearest():
    assert printed("run", "x.csv", "--fail-on", "nomatch")[0] == 2
    assert said("cli.document_did_you_mean", name="'confg'", near="config") in printed("schema", "confg")[1]
    near = said("cli.value_did_you_mean", near="no_match")
    assert near in printed("run", "x.csv", "--fail-on", "nomatch")[1]
    with refused(UsageError, "cli.map_field_did_you_mean", name="amout", near="amount"):
        read_mapping(("amout=Betrag",))
    with refused(UsageError, "cli.map_field_unknown", name="zzz", fields=list(FIELDS)):
        read_mapping(("zzz=Betrag",))
    assert said("cli.not_a_country_code", value="'UK'") in printed("columns", "x.csv", "--country", "UK")[1]
    assert "'x' is not a valid integer." in printed("show", "x.precheck", "--row", "x")[1]


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


@pytest.fixture
def spoken():
    yield
    speak("en")


def in_language(code, *words, **variables):
    return CliRunner().invoke(main, words, prog_name="precheck", env={"PRECHECK_LANG": code, **variables})


def texts(command):
    """The English texts of the help of a command, as `helps.po` has them."""
    for text in filter(None, (command.help, command.epilog)):
        for paragraph in inspect.cleandoc(text).split("\n\n"):
            kept = paragraph.removeprefix("\b\n")
            yield " ".join(kept.split()) if kept == paragraph else kept
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            yield option.help
    if isinstance(command, click.Group):
        yield from (next(texts(one)) for one in command.commands.values() if not one.hidden)


OF_CLICK = "Show this message and exit."
"""Made once, in English, before the language is known."""
PROGRAM = Path(pipeline.wording.__file__).parents[1]
ALL = [("", main), *commands(), ("ledger", main.commands["ledger"])]


@cache
def said_by_click():
    """The messages of click, without those to the authors of a command line."""
    return [*_said_by_click()]


def _said_by_click():
    for module in (core, exceptions, formatting, parser, types):
        tree = ast.parse(Path(module.__file__).read_text("utf-8"))
        to_authors = {
            call
            for node in ast.walk(tree)
            if isinstance(node, ast.Raise) and re.match(r"raise (Type|Value)Error", ast.unparse(node))
            for call in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node not in to_authors:
                match ast.unparse(node.func), node.args:
                    case ("_", [ast.Constant(str(text))]) | ("ngettext", [ast.Constant(str(text)), *_]):
                        yield text
    yield from (OF_CLICK, "required")


def said_by_sandbox():
    """The headings of `precheck sandbox --list-faults`, and what it says of its scenarios."""
    yield from ("server: ", "client: ", *(title for title, _ in SECTIONS), *(one.what for one in SCENARIOS))


LOGS = re.compile(r"log\s*\.\s*(warning|error)\s*\(")


def said_by_logs():
    """The events that a terminal shows, and the fact that it names in words."""
    yield "reason"
    for path in PROGRAM.rglob("*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if LOGS.search(text) else ():
            match node:
                case ast.Call(func=ast.Attribute(ast.Name("log"), "warning" | "error"), args=[event]):
                    if isinstance(event, ast.Constant):
                        yield event.value
                    elif isinstance(event, ast.Name) and event.id.isupper():
                        yield getattr(logs, event.id)


def helps(code):
    path = PROGRAM / "wording" / "catalogues" / code / "helps.po"
    with path.open("rb") as file:
        return [one for one in read_po(file, locale=code) if one.id]


def forms(text):
    return [text] if isinstance(text, str) else list(text)


KEPT = re.compile(r"{(?!number_type)[^}]*}|--[a-z][a-z0-9-]*|`[^`]+`|[a-z_0-9]+\.[a-z]{3,}|[A-Z]{4,}")
"""What every language writes alike: values, options, commands, files, metavars."""


@pytest.mark.parametrize("code", ["de", "fr"])
def test_every_help_and_every_message_of_click_has_words_that_keep_its_values(code):
    headings = {*GROUPS, "Output", "Example", "Examples"}
    wanted = headings.union(*(texts(command) for _, command in ALL), said_by_click(), said_by_sandbox())
    wanted |= {*said_by_logs(), logs.METRICS_FAILED, logs.METRICS_NOT_SERVED, logs.NOTIFY_FAILED}
    wanted |= {logs.PING_FAILED, logs.TRACES_FAILED}
    found = {forms(one.id)[0]: one for one in helps(code)}
    assert wanted - found.keys() == set()
    assert found.keys() - wanted == set()
    for text, one in found.items():
        for english, part in zip(forms(one.id), forms(one.string), strict=True):
            assert part.strip(), text
            assert set(KEPT.findall(part)) == set(KEPT.findall(english)), text


@pytest.mark.parametrize("code", ["de", "fr"])
@pytest.mark.parametrize(("name", "command"), ALL, ids=lambda value: value if isinstance(value, str) else "")
def test_a_help_is_in_the_language_and_no_line_of_it_is_english(spoken, code, name, command):
    printed = in_language(code, *name.split(), "--help").output
    shown = "".join(printed.split())
    translations = {one.id: one.string for one in helps(code)}
    for text in (*texts(command), OF_CLICK):
        assert "".join(translations[text].split()) in shown
        assert "".join(text.split()) not in shown
    assert not re.search(r"(Usage|Options|Output|Commands|Examples?):|\[(default|required)", printed)


MISTAKES = (
    *(
        "",
        "run",
        "run x --nope",
        "run x --quite",
        "rum",
        "show x",
        "run x --limit a",
        "run x --order b",
        "plan a b",
    ),
    *("run x --limit -1", "run x --fail-on nomatch", "run x --country Germany", "run x --wait-max 9y"),
    *("run x --config", "purge x --older-than 9", "fix x --accept y", "ledger close y --profile x"),
    *("run x --metrics-listen y", "run x --quiet=1"),
)


@pytest.mark.parametrize("code", ["de", "fr"])
@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_in_the_language_and_ends_as_in_english(spoken, code, words):
    english, other = in_language("en", *words.split()), in_language(code, *words.split())
    assert other.exit_code == english.exit_code == 2
    same = set(english.output.splitlines()) & set(other.output.splitlines())
    assert same <= {""}
    assert not re.search(r"Error|Usage|Try|Invalid|[Mm]issing|such|mean|is not|requires", other.output)


@pytest.mark.parametrize(
    "words",
    [["run", "--help", "--lang", "fr"], ["run", "--nope", "--lang=FR"], ["--lang", "fr", "run", "-h"]],
)
def test_the_option_chooses_the_language_wherever_it_stands(spoken, words):
    assert in_language("de", *words).output.startswith("Utilisation")
