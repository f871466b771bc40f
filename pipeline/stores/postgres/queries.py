"""The longer SQL statements for a ledger in PostgreSQL, from `queries.sql`."""

from importlib.resources import files

_FILE = files("pipeline.stores.postgres").joinpath("queries.sql").read_text("utf-8")
_NAMED = (part.partition("\n") for part in _FILE.split("-- name: ")[1:])
STATEMENTS = {name: statement.strip() for name, _, statement in _NAMED}
"""Name, with its module -> statement."""
