"""The small changes to a module that its tests must notice. Each one makes a mutant.

A change replaces one part of the text and leaves every other byte alone. It is looked for in the
syntax tree, so that tables, `match` patterns and statements are changed as well as expressions;
docstrings, annotations and imports are not, as nothing that they do can be tested.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from alternatives import Syntax, alternatives


class Change(NamedTuple):
    """One mutant of a module."""

    place: str  # the function it is in, such as Quota.reserve; "" at the top of the module
    line: int
    before: str  # the changed part in one line
    after: str
    nth: int  # of the changes that are told alike, in the order of the text
    source: bytes  # the whole module with the change

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What it is recognised by when lines have moved."""
        return self.place, self.before, self.after, self.nth


def changes(source: bytes) -> list[Change]:
    """Every change of a module, in the order of its text; none twice."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: dict[bytes, Change] = {}
    alike: Counter[tuple[str, str, str]] = Counter()
    for node, place in parts(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        before = source[start:end].decode()
        for after in alternatives(node, before):
            changed = source[:start] + after.encode() + source[end:]
            ast.parse(changed)  # a change that is no Python would be noticed by every test
            if changed not in found and changed != source:
                told = (place, *difference(before, after))
                alike[told] += 1
                found[changed] = Change(place, node.lineno, *told[1:], alike[told], changed)
    return sorted(found.values(), key=lambda change: (change.line, change.key))


def difference(before: str, after: str) -> tuple[str, str]:
    """Both texts in one line each, without the lines that they begin and end with alike."""
    old, new = before.splitlines(), after.splitlines()
    while len(old) > 1 and len(new) > 1 and old[0] == new[0]:
        del old[0], new[0]
    while len(old) > 1 and len(new) > 1 and old[-1] == new[-1]:
        del old[-1], new[-1]
    return " ".join(" ".join(old).split()), " ".join(" ".join(new).split())


def parts(node: ast.AST, place: str = "") -> Iterator[tuple[Syntax, str]]:
    """Every part of a module that may be changed, and the function it is in."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        place = f"{place}.{node.name}" if place else node.name
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return  # imports, for type checkers alone
    if isinstance(node, ast.expr | ast.stmt | ast.pattern) and not is_type(node):
        yield node, place
    if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom) or is_type(node):
        return
    if isinstance(node, ast.keyword) and isinstance(getattr(node.value, "value", None), bool):
        return  # to leave the keyword out is the same change
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "ctx", "keywords" if isinstance(node, ast.ClassDef) else ""}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not is_docstring(child):
                yield from parts(child, place)


def is_docstring(node: ast.AST) -> bool:
    """Whether a statement is nothing but a text."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def is_type(node: ast.AST) -> bool:
    """Whether an expression stands for a type: `Literal[...]`, or a union of names with capitals."""
    match node:
        case ast.Subscript(value=ast.Name(id="Literal")):
            return True
        case ast.BinOp(op=ast.BitOr(), right=ast.Name(id=name)):
            return name[:1].isupper()
    return False
