"""`precheck schema`: what the documents look like."""

import click

from pipeline.errors import UsageError
from pipeline.wording import Sentence


@click.command()
@click.argument("name", required=False)
def schema(*, name: str | None) -> None:
    """Print the JSON Schema of the document NAME; without NAME, list the documents."""
    from schemas.catalogue import json_schema, names

    if name is None:
        click.echo("\n".join(names()))
    elif name in names():
        click.echo(json_schema(name))
    else:
        raise UsageError(Sentence("cli.no_document_one", name=repr(name), names=list(names())))
