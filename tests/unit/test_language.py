"""The terminal speaks the language of its user; what machines read is English."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.cli.main import main
from pipeline.errors import StoppedError, stopped_by
from pipeline.executors.asking import AskingResult, QuestionsLeft, next_step
from pipeline.stages.ask.values import AskingTally
from pipeline.wording import Sentence, SurfaceKind, speak, words
from schemas.outcomes import ApiName

NOT_THERE = Sentence("cli.document_unknown", name="'x'", names=["a"])
VARIABLES = ("PRECHECK_LANG", "LC_ALL", "LC_MESSAGES", "LANG")


@pytest.fixture
def call():
    """`call(*words, **variables)`, with no other variables of the locale."""
    yield lambda *said, **given: CliRunner().invoke(main, said, env=dict.fromkeys(VARIABLES) | given)
    speak("en")


def beginning(language):
    """The first words of a refusal in a language."""
    return words(NOT_THERE, SurfaceKind.COMMAND, language).split("'x'")[0]


@pytest.mark.parametrize(
    ("said", "variables", "language"),
    [
        (["schema", "x"], {}, "en"),
        (["--lang", "de", "schema", "x"], {}, "de"),
        (["schema", "x", "--lang", "FR"], {}, "fr"),
        (["--lang", "fr", "schema", "x", "--lang", "de"], {}, "de"),
        (["--lang", "en", "schema", "x"], {"PRECHECK_LANG": "de", "LC_ALL": "fr_FR.UTF-8"}, "en"),
        (["schema", "x"], {"PRECHECK_LANG": "de", "LC_ALL": "fr_FR.UTF-8"}, "de"),
        (["schema", "x"], {"LC_ALL": "fr_FR.UTF-8", "LC_MESSAGES": "de_DE", "LANG": "de_DE"}, "fr"),
        (["schema", "x"], {"LC_ALL": "", "LC_MESSAGES": "de_CH@euro", "LANG": "fr_FR"}, "de"),
        (["schema", "x"], {"LANG": "nl_NL.UTF-8"}, "en"),
        (["schema", "x"], {"PRECHECK_LANG": "nl", "LANG": "de_DE"}, "en"),
    ],
)
def test_the_option_then_the_variable_then_the_locale_choose_the_language(call, said, variables, language):
    done = call(*said, **variables)

    assert done.exit_code == 2
    assert done.stderr.startswith(f"precheck: {beginning(language)}")


def test_each_command_has_the_option_and_knows_no_other_language(call):
    assert call("ledger", "check", "--lang", "nl", "--profile", "x").exit_code == 2
    assert "'en', 'de', 'fr'" in call("run", "x", "--lang", "nl").stderr


def test_json_on_standard_error_is_english(call, tmp_path):
    missing = tmp_path / "pay.csv"
    assert "cannot be read" in call("run", str(missing), "--log", "json", "--lang", "de").stderr


def test_a_refused_file_is_named_as_the_command_names_it(call, tmp_path):
    for folder in ("jan", "feb"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "pay.csv").write_text("")
    files = [str(Path(tmp_path, folder, "pay.csv")) for folder in ("jan", "feb")]
    lines = call("run", *files, "--quiet").stderr.splitlines()
    assert [line.removeprefix("precheck: ").partition(": ")[0] for line in lines] == files


CAPS = {ApiName.COP: (20, datetime(2030, 1, 3, tzinfo=UTC))}
STOPPED = StoppedError(stopped_by(2), 130)


@pytest.mark.parametrize(
    ("left", "closed", "ended_by", "english", "german", "german_page"),
    [
        (
            *(QuestionsLeft(1200, 0, {}), {}, None),
            "Questions left: 1,200. Run the same command again.",
            "Offene Fragen: 1.200. Führen Sie denselben Befehl erneut aus.",
            "Noch 1.200 Prüfungen. Setzen Sie die Prüfung fort.",
        ),
        (
            *(QuestionsLeft(25, 0, {ApiName.COP: 25}), {}, None),
            (
                "Questions left: 25; the daily cap of 20 is used up. Run the same command again after "
                "2030-01-03 00:00 UTC (days needed at this cap: 2)."
            ),
            (
                "Offene Fragen: 25; das Tageslimit von 20 ist ausgeschöpft. Führen Sie denselben Befehl nach "
                "2030-01-03 00:00 UTC erneut aus (nötige Tage bei diesem Limit: 2)."
            ),
            (
                "Offene Prüfungen: 25. Das Tageslimit von 20 ist erreicht; es dauert noch 2 Tage. Setzen Sie "
                "die Prüfung nach dem Zeitpunkt 3. Januar 2030, 00:00 UTC fort."
            ),
        ),
        (
            *(QuestionsLeft(2, 1, {}), {}, STOPPED),
            (
                "Questions left: 1, because the run ended early: stopped by Ctrl-C; answers so far are kept: "
                "run the same command again to continue Questions given up after 3 runs: 1; ask the provider "
                "what is wrong with them, then run the same command with --retry-unanswered."
            ),
            None,
            None,
        ),
        (
            *(QuestionsLeft(3, 0, {}), {ApiName.COP: Sentence("stores.another_run")}, None),
            "Questions left: 3; another run. Then run the same command again.",
            "Offene Fragen: 3; ein anderer Lauf. Führen Sie dann denselben Befehl erneut aus.",
            "Offene Prüfungen: 3; ein anderer Lauf. Setzen Sie die Prüfung dann fort.",
        ),
    ],
)
def test_what_is_left_is_said_in_each_language_and_the_summary_has_it_in_english(
    left, closed, ended_by, english, german, german_page
):
    said = next_step(left, AskingResult(CAPS, AskingTally(closed=closed), left.given_up_count, ended_by))
    assert str(said) == english
    for surface, expected in ((SurfaceKind.COMMAND, german), (SurfaceKind.PAGE, german_page)):
        assert expected in (None, words(said, surface, "de"))
