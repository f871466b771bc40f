"""The header lines of real files in `unit/headers/corpus.toml`, each with its source and invented rows."""

import tomllib
from functools import cache
from pathlib import Path


@cache
def corpus():
    """The sets, read when a test needs them."""
    path = Path(__file__).parent / "unit" / "headers" / "corpus.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))["set"]


def sets_that(kind):
    """Return a function that gives the sets with this entry."""
    return lambda: [each for each in corpus() if kind in each]
