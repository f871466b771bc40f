"""Commands that explain how files are read and what is known; they send nothing."""

import json
from collections.abc import Iterable
from difflib import get_close_matches
from functools import partial
from pathlib import Path

import click

from pipeline.cli.helps import Command, completed
from pipeline.cli.options import PATH, Given, as_given, input_options, option, options, read_mapping
from pipeline.cli.standard_streams import payment_file, print_answer, print_document
from pipeline.errors import UsageError
from pipeline.wording import Sentence, SurfaceKind


@click.command(cls=Command)
@click.argument("file", type=PATH)
@option("--json", "as_json", help="Print the same as JSON on standard output.")
@option("--toml", "as_toml", help="Print the section of precheck.toml that reads such files.")
@options(input_options)
@option("--config FILE", help="The configuration file: [layouts], [inputs].")
@as_given
def columns(given: Given) -> None:
    """Show how precheck reads each column, and which rule it used.

    The output has three whole values of each column, including names and account numbers.
    """
    from pipeline.config.inputs import ReadAs
    from pipeline.jobs.columns import columns_of
    from pipeline.reports.listings import print_columns
    from pipeline.reports.terminal import answers

    read_as = given.make(ReadAs, mapping=read_mapping(given.mapping))
    found, refusal = columns_of(payment_file(given.file), read_as, given.config)
    if refusal is not None:
        found = found.model_copy(update={"refusal": refusal.sentence(SurfaceKind.COMMAND)})
    if given.as_json:
        print_document(found)
    elif given.as_toml:
        click.echo(found.section, nl=False)
    elif found.columns:
        print_columns(found, answers())
    if refusal is not None:
        raise refusal


@click.command(cls=Command)
@option("--config FILE", help="The configuration file, for its [layouts].")
@option("--json", "as_json", help="Print the same as JSON on standard output.")
@option("--all", "in_full", help="Also show how precheck recognises each format.")
def formats(*, config: Path | None, as_json: bool, in_full: bool) -> None:
    """List the payment file formats.

    Shows what fix and split write. Includes [layouts.NAME] from the
    configuration.
    """
    from pipeline.config.profiles import format_choice_of
    from pipeline.jobs.columns import known_formats
    from pipeline.reports.listings import print_formats

    known = known_formats(format_choice_of(None, config))
    print_answer(known, partial(print_formats, in_full=in_full), as_json=as_json)


def _codes() -> Iterable[str]:
    from pipeline.reports.explanations import explanations

    return explanations()


@click.command(cls=Command)
@click.argument("code", required=False, shell_complete=completed(_codes))
@option("--all", "in_full", help="List all codes with their meanings.")
def explain(*, code: str | None, in_full: bool) -> None:
    """Explain what a code means, what it does not mean, and what to do.

    CODE is a value of the column check_code. Without CODE, list all codes. Nothing is sent.
    """
    from pipeline.reports.explanations import explain as explanation_of
    from pipeline.reports.explanations import explanations, print_codes, print_explanation
    from pipeline.reports.terminal import answers

    if code is None:
        print_codes(explanations().values(), answers(), in_full=in_full)
    else:
        print_explanation(explanation_of(code), answers())


def _names() -> list[str]:
    from schemas.catalogue import names

    return [*names(), "config"]


@click.command(cls=Command)
@click.argument("name", required=False, shell_complete=completed(_names))
def schema(*, name: str | None) -> None:
    """Print the JSON Schema of document NAME.

    Without NAME, list the documents. `config` is the schema of precheck.toml, for editors.
    """
    from schemas.catalogue import json_schema

    if name is None:
        click.echo("\n".join(_names()))
    elif name == "config":
        from pipeline.config.file import Configuration

        click.echo(json.dumps(Configuration.model_json_schema(), indent=2))
    elif name in _names():
        click.echo(json_schema(name))
    elif near := get_close_matches(name, _names(), n=1):
        raise UsageError(Sentence("cli.document_did_you_mean", name=repr(name), near=near[0]))
    else:
        raise UsageError(Sentence("cli.document_unknown", name=repr(name), names=_names()))
