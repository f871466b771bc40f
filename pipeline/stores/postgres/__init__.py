"""Stores in PostgreSQL, which any number of machines share: the ledger, its questions, and who asks them.

Only this package imports psycopg, which the extra `postgres` installs. `address` and this module do not, so
that a configuration can name a ledger where the extra is missing.
"""

from importlib.util import find_spec

from pipeline.errors import ConfigurationError


def require_driver() -> None:
    """Refuse to go on where the extra is missing; to be called before any other module here is imported.

    Raises:
        ConfigurationError: psycopg is not installed.
    """
    if find_spec("psycopg") is None:
        raise ConfigurationError(
            "a ledger in PostgreSQL needs a package that is not installed; install payee-precheck[postgres]"
        )
