"""Planted faults: one place of a file each, which an engineer fears and a reviewer could miss."""

import tomllib
from pathlib import Path
from typing import NamedTuple


class Planted(NamedTuple):
    """One fault."""

    breaks: str
    """The promise that it breaks, as a sentence."""
    file: str
    was: str
    """Stands once in the file."""
    becomes: str
    found_by: list[str]
    """Tests of `make test`, each of which must fail, quickest first."""

    def made(self, source: bytes) -> bytes:
        """The file with the fault.

        Raises:
            ValueError: its place is not in the file exactly once.
        """
        if source.count(self.was.encode()) != 1:
            raise ValueError(f"{self.file}: does not contain this text exactly once: {self.was}")
        return source.replace(self.was.encode(), self.becomes.encode())


PLANTED = {
    name: Planted(**table)
    for name, table in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
