"""The statements of a module, for tests that read the program or other tests."""

import ast
from collections.abc import Iterator


def statements(within: ast.AST) -> Iterator[ast.AST]:
    """Every statement; to look into each expression too would take twice as long."""
    for node in ast.iter_child_nodes(within):
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield node
            yield from statements(node)
