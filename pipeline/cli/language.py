"""The language of the terminal: from `--lang`, before or after the command, or the environment.

Help texts and click's messages are in English in the code, and that English is their key in `helps.po`.
"""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click import core, exceptions, formatting, parser, types

from pipeline.wording import ENGLISH, LANGUAGES, Sentence, SurfaceKind, language, language_of, speak, words
from pipeline.wording.catalogue import text_of

CALLED = "called"  # the `obj` of a command that a program runs
_GIVEN = f"{__name__}.given"


def speak_as_called(arguments: Sequence[str]) -> None:
    """Set the language before parsing the command line, because --help and usage errors end the parsing."""
    named = re.findall(r"\0--lang[=\0](\w+)", "\0".join(["", *arguments]).lower())
    speak(next((code for code in reversed(named) if code in LANGUAGES), language_of(os.environ)))


def _terminal_language() -> str:
    """The user's language; English if the output goes to a program."""
    context = click.get_current_context(silent=True)
    return ENGLISH if context and context.find_root().obj in {"json", CALLED} else language()


def in_words(sentence: Sentence) -> str:
    """Return a sentence in the language of the terminal."""
    return words(sentence, SurfaceKind.COMMAND, _terminal_language())


def translated(one: str, several: str = "", count: int = 1) -> str:
    """Translate a text; without an entry in `helps.po`, it stays English."""
    english, code = one if count == 1 else several, _terminal_language()
    return english if code == ENGLISH else text_of("helps", one, count, "", code) or english


def reasons_to_translate(folder: Path, of: Collection[str]) -> Mapping[str, str]:
    """Return the sentences of some of a run's reasons; none if the terminal's language is English."""
    from pipeline.runs.ended import reasons_in

    return {} if language() == ENGLISH else reasons_in(folder, of=of)


for _module in (core, exceptions, formatting, parser, types):
    vars(_module).update(
        _=translated, ngettext=translated
    )  # instead of gettext, which reads only compiled catalogues


def _spoken(context: click.Context, _option: click.Parameter, chosen: str | None) -> None:
    if chosen is not None:
        context.find_root().meta[_GIVEN] = chosen
        speak(chosen)


language_option = click.option(
    "--lang",
    type=click.Choice(list(LANGUAGES), case_sensitive=False),
    is_eager=True,  # so that errors in other options are reported in this language
    expose_value=False,
    callback=_spoken,
    help="Language of the terminal, the page and the workbook. Default: PRECHECK_LANG, then the locale; page "
    "and workbook keep the language in which their run began. Other files and JSON are English.",
)


def given_language(context: click.Context) -> str | None:
    """The value of `--lang`; None if the environment decides."""
    given: str | None = context.find_root().meta.get(_GIVEN)
    return given


def in_any_language(command: click.Command) -> None:
    """Add `--lang` to a command, unless it is hidden, and to the commands of a group."""
    if not command.hidden:
        language_option(command)
    for within in getattr(command, "commands", dict[str, Any]()).values():
        in_any_language(within)
