"""`precheck schema`: print the JSON Schema of a document."""

from difflib import get_close_matches

import click

from pipeline.cli.helps import Command, completed
from pipeline.errors import UsageError
from pipeline.wording import Sentence

CONFIGURATION = "config"


def _names() -> list[str]:
    from schemas.catalogue import names

    return [*names(), CONFIGURATION]


@click.command(cls=Command)
@click.argument("name", required=False, shell_complete=completed(_names))
def schema(*, name: str | None) -> None:
    """Print the JSON Schema of document NAME.

    Without NAME, list the documents. `config` is the schema of precheck.toml, for editors.
    """
    from schemas.catalogue import json_schema

    if name is None:
        click.echo("\n".join(_names()))
    elif name == CONFIGURATION:
        import json

        from pipeline.config.file import Configuration

        click.echo(json.dumps(Configuration.model_json_schema(), indent=2))
    elif name in _names():
        click.echo(json_schema(name))
    elif near := get_close_matches(name, _names(), n=1):
        raise UsageError(Sentence("cli.no_document_near", name=repr(name), near=near[0]))
    else:
        raise UsageError(Sentence("cli.no_document_one", name=repr(name), names=_names()))
