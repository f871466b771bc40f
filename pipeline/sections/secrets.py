"""Secrets: named in the file, kept outside of it."""

import os
from pathlib import Path

from pydantic import SecretStr

from pipeline.errors import ConfigurationError


def secret(variable: str | None, path: Path | None) -> SecretStr:
    """Read a secret from an environment variable or from a file; exactly one is named.

    Raises:
        ConfigurationError: it is not there, or others could read it.
    """
    if variable is not None:
        value = os.environ.get(variable)
        if not value:
            state = "not set" if value is None else "empty"
            raise ConfigurationError(f"the environment variable {variable} is {state}; put the secret in it")
        return SecretStr(value)
    assert path is not None
    try:
        mode = path.stat().st_mode
        value = path.read_text("utf-8-sig").rstrip("\r\n")
    except OSError as error:
        raise ConfigurationError(
            f"{path}: the secret cannot be read ({error.strerror}); check the path and its permissions"
        ) from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: the secret is not UTF-8 text; save it as UTF-8") from None
    if mode & 0o077:
        raise ConfigurationError(f"{path}: others can read this secret; run `chmod 600 {path}`")
    if not value:
        raise ConfigurationError(f"{path}: the secret is empty; put it in the first line")
    return SecretStr(value)


def secret_if_named(variable: str | None, path: Path | None) -> SecretStr | None:
    """As `secret`, or None where neither is named."""
    return None if variable is None and path is None else secret(variable, path)
