"""The language of a terminal: `--lang`, before the command or after it, then what the environment says."""

import os
from typing import Any

import click

from pipeline.wording import LANGUAGES, language_of, speak

_GIVEN = f"{__name__}.given"


def _spoken(context: click.Context, _option: click.Parameter, chosen: str | None) -> None:
    root = context.find_root()
    if chosen is not None:
        root.meta[_GIVEN] = chosen
    speak(given_language(root) or language_of(os.environ))


language_option = click.option(
    "--lang",
    type=click.Choice(list(LANGUAGES), case_sensitive=False),
    is_eager=True,  # so that a mistake in other options is reported in this language
    expose_value=False,
    callback=_spoken,
    help="Language of the terminal, the page and the workbook. Default: PRECHECK_LANG, then the locale; page "
    "and workbook keep the one that their run began in. Other files and JSON are English.",
)


def given_language(context: click.Context) -> str | None:
    """What `--lang` says; None if it is not given, and the environment decides."""
    given: str | None = context.find_root().meta.get(_GIVEN)
    return given


def in_any_language(command: click.Command) -> None:
    """Give a command that people call, and those of its group, the option."""
    if not command.hidden:
        language_option(command)
    for within in getattr(command, "commands", dict[str, Any]()).values():
        in_any_language(within)
