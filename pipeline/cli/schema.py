"""`precheck schema`: what the documents look like."""

import click

from pipeline.errors import UsageError


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
        raise UsageError(f"no document {name!r}; one of {', '.join(names())}")
