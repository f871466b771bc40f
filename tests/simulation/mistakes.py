"""Known mistakes, which the simulation must find: its own test.

A mistake changes one place of the product, or two, while the module is imported, in a process of its own.
"""

import sys
import tomllib
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import NamedTuple


class Mistake(NamedTuple):
    """A change of one place; of two, where each guards what the other does wrong."""

    module: str
    was: str
    becomes: str
    also_was: str = ""
    also_becomes: str = ""

    def made(self, source: str, *, path: str) -> str:
        """The source of its module with the mistake."""
        for was, becomes in ((self.was, self.becomes), (self.also_was, self.also_becomes)):
            assert not was or source.count(was) == 1, f"{path}: the place of the mistake is not there once"
            source = source.replace(was, becomes) if was else source
        return source


MISTAKES = {
    name: Mistake(**table)
    for name, table in tomllib.loads(Path(__file__).with_suffix(".toml").read_text()).items()
}


def make(name: str) -> None:
    """Make a mistake in this process, before anything of the product is imported."""
    mistake = MISTAKES[name]
    assert mistake.module not in sys.modules, f"{mistake.module} is imported already"
    sys.meta_path.insert(0, _Finder(mistake))


class _Finder(MetaPathFinder):
    def __init__(self, mistake: Mistake) -> None:
        self._mistake = mistake

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._mistake.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin, self._mistake)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, mistake: Mistake) -> None:
        super().__init__(fullname, path)
        self._mistake = mistake

    def get_code(self, fullname: str):  # noqa: ARG002  (the one module that there is)
        source = self._mistake.made(Path(self.path).read_text(), path=self.path)
        return compile(source, self.path, "exec")
