"""The commented configuration that `precheck init` writes."""

import os
from importlib.resources import files
from pathlib import Path

from pipeline.errors import Advice, OutputError
from pipeline.files.disk_errors import not_writable

EXAMPLE = files("pipeline.config").joinpath("example.toml").read_text("utf-8")


def write_example(path: Path, *, force: bool) -> None:
    """Write a commented configuration, readable by its owner only.

    Raises:
        OutputError: there is a file already, or none can be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | (os.O_TRUNC if force else os.O_EXCL)
    try:
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(EXAMPLE)
    except FileExistsError:
        raise OutputError(f"{path}: exists already", advice=Advice.REPLACE_FILE) from None
    except OSError as error:
        raise not_writable(path, error, otherwise="choose another path") from None
