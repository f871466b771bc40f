"""The commented configuration that `precheck init` writes."""

import os
from importlib.resources import files
from pathlib import Path

from pipeline.errors import OutputError
from pipeline.files.disk_errors import not_writable
from pipeline.files.private import opened
from pipeline.wording import Sentence

EXAMPLE = files("pipeline.config").joinpath("example.toml").read_text("utf-8")


def write_example(path: Path, *, force: bool) -> None:
    """Write a commented configuration, readable by its owner only.

    Raises:
        OutputError: there is a file already, or none can be written.
    """
    try:
        with opened(path, os.O_TRUNC if force else os.O_EXCL) as file:
            file.write(EXAMPLE.encode())
    except FileExistsError:
        raise OutputError(
            Sentence("config.exists_already", path=path), advice=Sentence("advice.replace_file")
        ) from None
    except OSError as error:
        raise not_writable(path, error, otherwise=Sentence("advice.other_path")) from None
