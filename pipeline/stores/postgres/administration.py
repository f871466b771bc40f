"""Creating a ledger, and granting its use: what its owner does."""

import psycopg
from psycopg import errors, sql
from pydantic import SecretStr

from pipeline.errors import ConfigurationError
from pipeline.stores.postgres import schema
from pipeline.stores.postgres.connection import Database
from pipeline.stores.postgres.keys import new_keys
from pipeline.stores.postgres.store import opened_keys

_IS_THERE = "SELECT to_regclass('precheck.store') IS NOT NULL"


def create(database: Database, secret: SecretStr, *, grant_to: str | None) -> bool:
    """Create the tables of a ledger where there are none, and let a role use them.

    Args:
        database: as the role that is to own the tables.
        secret: the ledger key of the user.
        grant_to: the role of the runs; None: the owner alone may use it.

    Returns:
        Whether they were created now.

    Raises:
        ConfigurationError: there is a ledger of another version or key, the role is unknown, or the owner may
            not.
        IncompleteError: as `Database.run`.
    """
    is_new = database.run(lambda db: _create(db, secret))
    opened_keys(database, secret)
    if grant_to is not None:
        try:
            database.run(lambda db: _grant(db, grant_to))
        except errors.UndefinedObject:
            raise ConfigurationError(
                f"{database.address.place}: there is no role {grant_to}; create it, or name another one"
            ) from None
    return is_new


def _create(db: psycopg.Connection, secret: SecretStr) -> bool:
    with db.transaction():
        # Two that create it at the same time: the second one finds it there.
        db.execute("SELECT pg_advisory_xact_lock(hashtext('precheck'))")
        [is_there] = db.execute(_IS_THERE).fetchone() or (False,)
        if is_there:
            return False
        db.execute("CREATE SCHEMA IF NOT EXISTS precheck")
        for part in schema.PARTS:
            db.execute(part.ddl.encode(), prepare=False)
        wrapped = new_keys().wrapped(secret)
        db.execute(
            "INSERT INTO precheck.store(version, salt, hidden_key) VALUES (%s, %s, %s)",
            (schema.VERSION, *wrapped),
        )
    return True


def _grant(db: psycopg.Connection, role: str) -> None:
    with db.transaction():
        db.execute(sql.SQL("GRANT USAGE ON SCHEMA precheck TO {}").format(sql.Identifier(role)))
        for part in schema.PARTS:
            for grant in part.grants:
                db.execute(sql.SQL("GRANT " + grant + " TO {}").format(sql.Identifier(role)))


def rekey(database: Database, secret: SecretStr, new_secret: SecretStr) -> None:
    """Put a ledger under another key of the user's; no line changes, and what is under way goes on.

    Args:
        database: as the owner of the tables.
        secret: as it is.
        new_secret: what every host is to have from now on.

    Raises:
        ConfigurationError: the ledger has another key, or the role is not the owner.
        IncompleteError: as `Database.run`.
    """
    wrapped = opened_keys(database, secret).wrapped(new_secret)
    database.run(lambda db: db.execute("UPDATE precheck.store SET salt = %s, hidden_key = %s", wrapped))
