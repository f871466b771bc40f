"""Modules that docstrings, comments and pages name, and that do not exist.

A module is named by its file (`rules/amounts.py`; in code also `amounts.py`) or by its dotted path from a
room of the house (`rules.amounts`, `rules.amounts.AMOUNT`), with or without `pipeline` in front.
"""

import ast
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from io import StringIO
from pathlib import Path

import pipeline

ROOT = Path(__file__).resolve().parent.parent
HOUSE = Path(pipeline.__file__).parent
CODE = ("pipeline", "schemas", "tests", "docs")

_FILE = re.compile(r"(?<![\w/.*-])(?:[\w-]+/)*[\w-]+\.py\b")


def broken_references(page: Path, text: str) -> Iterator[str]:
    """A sentence for each module that a page names and that does not exist.

    A file named without its folder may be a file of the reader's.
    """
    yield from _missing(page.relative_to(ROOT), text, bare_names=False)


def broken_references_in_code() -> Iterator[str]:
    """The same for the docstrings and comments of every module."""
    for path in modules():
        yield from _missing(path.relative_to(HOUSE.parent), "\n".join(_prose(path)), bare_names=True)


@cache
def modules() -> tuple[Path, ...]:
    """The files of all modules."""
    return tuple(path for folder in CODE for path in sorted((HOUSE.parent / folder).rglob("*.py")))


def _prose(path: Path) -> Iterator[str]:
    text = path.read_text("utf-8")
    # To take a module apart into tokens takes ten times as long as to look for what could be in a comment.
    if any("#" in line and (_FILE.search(line) or _dotted().search(line)) for line in text.splitlines()):
        for token in tokenize.generate_tokens(StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.string
    for statement in _statements(ast.parse(text)):
        match statement:
            case ast.Expr(value=ast.Constant(value=str(prose))):
                yield prose


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield part
            yield from _statements(part)


def _missing(page: Path, text: str, *, bare_names: bool) -> Iterator[str]:
    paths = [path.as_posix() for path in modules()]
    named = {name for name in _FILE.findall(text) if not Path(name).stem.isupper()}  # NAME.py is any module
    for name in sorted(named):
        if ("/" in name or bare_names) and not any(path.endswith(f"/{name}") for path in paths):
            yield f"{page}: {name} does not exist; name the module that it has become"
    for name in sorted({*_dotted().findall(text)}):
        if not _exists(name):
            yield f"{page}: {name} does not exist; name what it has become"


@cache
def _dotted() -> re.Pattern[str]:
    """Dotted paths from a room; `files.md`, `config.toml` and the like are files."""
    rooms = "|".join(sorted(path.stem for path in HOUSE.iterdir() if path.name[0] not in "_."))
    return re.compile(rf"(?<![\w./\[-])(?:pipeline\.)?(?:{rooms})(?:\.[A-Za-z_]\w*)+(?![\w/])")


def _exists(name: str) -> bool:
    """Whether a dotted path leads to a module, or to a module and a word in it."""
    if name.rpartition(".")[2] in {"py", "md", "toml", "csv", "json", "svg", "html", "db"}:
        return True
    at = HOUSE
    for step in name.removeprefix("pipeline.").split("."):
        if (at / step).is_dir():
            at /= step
            continue
        module = at / f"{step}.py"
        if module.is_file():
            at = module
            continue
        home = at / "__init__.py" if at.is_dir() else at
        return re.search(rf"\b{step}\b", home.read_text("utf-8")) is not None
    return True
