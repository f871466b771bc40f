"""Cache compiled templates next to Python's compiled modules; a short page takes mostly compilation.

Without write access, each process compiles them; a stale file is compiled again.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from jinja2 import BytecodeCache, Environment, FunctionLoader, StrictUndefined
from jinja2.bccache import Bucket

_FOLDER = Path(__file__).parent / "__pycache__"
_WRITTEN_BY = f"{sys.implementation.cache_tag}.jinja-{version('jinja2')}"


def templates(package: str, *, extensions: Sequence[str] = (), optimized: bool = True) -> Environment:
    """Return the templates of a package; every text is escaped, and unknown names are errors."""
    return Environment(
        loader=FunctionLoader(lambda name: template_file(package, name)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=_CompiledTemplates(),
        extensions=extensions,
        optimized=optimized,
    )


def template_file(package: str, name: str) -> str:
    """Read a file next to the templates of a package."""
    return files(package).joinpath("templates", name).read_text("utf-8")


class _CompiledTemplates(BytecodeCache):
    """Jinja's compiled templates, keyed by template text, Python version and Jinja version."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load a template that an earlier process compiled."""
        with suppress(OSError), _path(bucket).open("rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Store a compiled template in a file that appears whole or not at all."""
        if sys.dont_write_bytecode:
            return
        unfinished = _path(bucket).with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            with unfinished.open("wb") as file:
                bucket.write_bytecode(file)
            unfinished.replace(_path(bucket))


def _path(bucket: Bucket) -> Path:
    return _FOLDER / f"{bucket.key}.{_WRITTEN_BY}.template"
