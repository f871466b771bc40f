"""Compiled templates, kept where Python keeps its compiled modules: a page of few rows is mostly compiling.

As with those, whoever may not write there compiles each time, and what does not fit is compiled anew.
"""

import os
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

_FOLDER = Path(__file__).parent / "__pycache__"
_WRITTEN_BY = f"{sys.implementation.cache_tag}.jinja-{version('jinja2')}"


class CompiledTemplates(BytecodeCache):
    """What jinja made of a template, by the template's text, Python's version and jinja's."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take up what an earlier process compiled."""
        with suppress(OSError), _path(bucket).open("rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled; it appears whole or not at all."""
        if sys.dont_write_bytecode:
            return
        unfinished = _path(bucket).with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            with unfinished.open("wb") as file:
                bucket.write_bytecode(file)
            unfinished.replace(_path(bucket))


def _path(bucket: Bucket) -> Path:
    return _FOLDER / f"{bucket.key}.{_WRITTEN_BY}.template"
