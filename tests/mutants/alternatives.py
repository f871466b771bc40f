"""What may stand in the place of a part of a program: for each kind of part, the likely mistakes."""

import ast
import re
from collections.abc import Iterator
from functools import singledispatch

from pipeline.apis import Basis
from pipeline.frames import AnswerState, OwnCode
from schemas.cop import ReasonCode
from schemas.outcomes import Action, ApiName, Outcome
from schemas.vop import IdMatch, NameMatch

CLOSED_SETS = {
    kind.__name__: list(kind.__members__)
    for kind in (Action, AnswerState, ApiName, Basis, IdMatch, NameMatch, Outcome, OwnCode, ReasonCode)
}
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
OPPOSITES = {"max": "min", "min": "max", "any": "all", "all": "any", "sorted": "list", "floor": "round"}
SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|BEGIN)\b")
SQL_CHANGES = (
    (re.compile(r" > "), " >= "),
    (re.compile(r" < "), " <= "),
    (re.compile(r" = (?=\?)"), " <> "),
    (re.compile(r" AND (?!cap)"), " OR "),
    (re.compile(r"\bmax\("), "min("),
    (re.compile(r" NOT NULL"), ""),
    (re.compile(r" ORDER BY [\w.]+"), ""),
    (re.compile(r" CHECK\((?:[^()]|\([^()]*\))*\)"), ""),
    (re.compile(r" ON CONFLICT DO UPDATE SET .*"), " ON CONFLICT DO NOTHING"),
    (re.compile(r", kind = excluded\.kind"), ""),
    (re.compile(r"cap = excluded\.cap, "), ""),
    (re.compile(r" REFERENCES scope"), ""),
    (re.compile(r" STRICT"), ""),
    (re.compile(r"IMMEDIATE"), "DEFERRED"),
    (re.compile(r"DELETE$"), "WAL"),
    (re.compile(r"EXTRA$"), "OFF"),
    (re.compile(r" ON$"), " OFF"),
    (re.compile(r" OFF$"), " ON"),
)
NUMBER = re.compile(r"\d+")
Syntax = ast.expr | ast.stmt | ast.pattern
"""The parts that have a place in the text."""


@singledispatch
def alternatives(_node: Syntax, _text: str) -> Iterator[str]:
    """What may stand in the place of a part that has this text."""
    yield from ()


@alternatives.register
def _(node: ast.Constant, text: str) -> Iterator[str]:
    match node.value:
        case bool():
            yield str(not node.value)
        case int():
            yield repr(node.value + 1)
            yield repr(node.value - 1)
        case float():
            yield repr(node.value * 1.01 or 1.0)
            yield repr(node.value * 0.99 or -1.0)
        case str() as value:
            yield '""' if value else '"x"'
            if SQL.search(value):
                yield from _statements_like(value)
            elif text.startswith("r"):
                yield from _patterns_like(value)
        case bytes():
            yield 'b"x"'


def _statements_like(sql: str) -> Iterator[str]:
    for found, instead in SQL_CHANGES:
        for hit in found.finditer(sql):
            yield repr(sql[: hit.start()] + instead + sql[hit.end() :])


def _patterns_like(pattern: str) -> Iterator[str]:
    for hit in NUMBER.finditer(pattern):
        for number in (abs(int(hit[0]) - 1), int(hit[0]) + 1):
            yield f"r{pattern[: hit.start()] + str(number) + pattern[hit.end() :]!r}"


@alternatives.register
def _(_node: ast.JoinedStr, _text: str) -> Iterator[str]:
    yield '""'


@alternatives.register
def _(node: ast.Attribute, _text: str) -> Iterator[str]:
    match node.value:
        case ast.Name(id=kind) if node.attr in (members := CLOSED_SETS.get(kind, [])):
            following = members[(members.index(node.attr) + 1) % len(members)]
            # The first is the one to fear: a match, or to pay.
            for other in dict.fromkeys((following, members[0])):
                if other != node.attr:
                    yield f"{kind}.{other}"


@alternatives.register
def _(node: ast.Compare, _text: str) -> Iterator[str]:
    for place, operator in enumerate(node.ops):
        for other in COMPARISONS[type(operator)]:
            operators = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            yield _written(ast.Compare(node.left, operators, node.comparators))


@alternatives.register
def _(node: ast.BoolOp, _text: str) -> Iterator[str]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield _written(ast.BoolOp(other, node.values))
    for place in range(len(node.values)):
        yield _written(ast.BoolOp(node.op, node.values[:place] + node.values[place + 1 :]))


@alternatives.register
def _(node: ast.BinOp, _text: str) -> Iterator[str]:
    yield _written(ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right))


@alternatives.register
def _(node: ast.UnaryOp, _text: str) -> Iterator[str]:
    yield _written(node.operand)


@alternatives.register
def _(node: ast.IfExp, _text: str) -> Iterator[str]:
    yield _written(node.body)
    yield _written(node.orelse)


@alternatives.register
def _(node: ast.Call, _text: str) -> Iterator[str]:
    for place in range(len(node.keywords)):
        yield _written(ast.Call(node.func, node.args, node.keywords[:place] + node.keywords[place + 1 :]))
    if (isinstance(node.func, ast.Attribute) and len(node.args) > 1) or ast.unparse(node.func) in OPPOSITES:
        for place in range(len(node.args)):
            yield _written(ast.Call(node.func, node.args[:place] + node.args[place + 1 :], node.keywords))
    match node.func:
        case ast.Name(id=name) if name in OPPOSITES:
            yield _written(ast.Call(ast.Name(OPPOSITES[name]), node.args, node.keywords))
        case ast.Attribute(value=subject) if not node.args and not node.keywords:
            yield _written(subject)


@alternatives.register(ast.Tuple)
@alternatives.register(ast.List)
@alternatives.register(ast.Set)
def _(node: ast.Tuple | ast.List | ast.Set, text: str) -> Iterator[str]:
    if isinstance(getattr(node, "ctx", None), ast.Store) or len(node.elts) < 2:
        return
    for place in range(len(node.elts)):
        fewer = type(node)(elts=node.elts[:place] + node.elts[place + 1 :])
        yield _written(fewer) if text.startswith(("(", "[", "{")) else ast.unparse(fewer)


@alternatives.register
def _(node: ast.Dict, _text: str) -> Iterator[str]:
    for place in range(len(node.keys)):
        keys = node.keys[:place] + node.keys[place + 1 :]
        yield _written(ast.Dict(keys, node.values[:place] + node.values[place + 1 :]))


@alternatives.register(ast.ListComp)
@alternatives.register(ast.SetComp)
@alternatives.register(ast.GeneratorExp)
@alternatives.register(ast.DictComp)
def _(node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, _text: str) -> Iterator[str]:
    for place, loop in enumerate(node.generators):
        for condition in range(len(loop.ifs)):
            fewer = loop.ifs[:condition] + loop.ifs[condition + 1 :]
            loops = list(node.generators)
            loops[place] = ast.comprehension(loop.target, loop.iter, fewer, loop.is_async)
            yield _written(type(node)(**{**dict(ast.iter_fields(node)), "generators": loops}))


@alternatives.register(ast.Expr)
@alternatives.register(ast.Assert)
@alternatives.register(ast.Raise)
@alternatives.register(ast.Assign)
@alternatives.register(ast.AugAssign)
def _(node: ast.stmt, _text: str) -> Iterator[str]:
    if node.col_offset and not isinstance(getattr(node, "value", None), ast.Yield):
        yield "pass"


@alternatives.register
def _(node: ast.Return, _text: str) -> Iterator[str]:
    if node.value is not None and ast.unparse(node.value) != "None":
        yield "return None"


@alternatives.register(ast.If)
@alternatives.register(ast.While)
def _(node: ast.If | ast.While, text: str) -> Iterator[str]:
    for truth in ("True", "False"):
        yield text[: _start(node, node.test, text)] + truth + text[_end(node, node.test, text) :]


@alternatives.register
def _(node: ast.With, text: str) -> Iterator[str]:
    last = node.items[-1].optional_vars or node.items[-1].context_expr
    for place in range(len(node.items)):
        items = node.items[:place] + node.items[place + 1 :]
        yield (f"with {', '.join(map(ast.unparse, items))}" if items else "if True") + text[
            _end(node, last, text) :
        ]


@alternatives.register
def _(node: ast.Try, text: str) -> Iterator[str]:
    """An exception that is not handled, one by one; an end that is not tidied up."""
    blocks = [(handler.body, "raise") for handler in node.handlers] + [(node.finalbody, "pass")]
    for block, instead in blocks:
        if block:
            yield text[: _start(node, block[0], text)] + instead + text[_end(node, block[-1], text) :]


@alternatives.register
def _(node: ast.Match, text: str) -> Iterator[str]:
    """A match that lacks one of its cases, or the condition of one."""
    for case in node.cases:
        if case.guard is None:
            end = _end(node, case.pattern, text)
            yield f"{text[:end]} if False{text[end:]}"
        else:
            for truth in ("True", "False"):
                yield text[: _start(node, case.guard, text)] + truth + text[_end(node, case.guard, text) :]


@alternatives.register
def _(node: ast.MatchSingleton, _text: str) -> Iterator[str]:
    yield "_"
    if isinstance(node.value, bool):
        yield str(not node.value)


@alternatives.register
def _(node: ast.MatchAs, _text: str) -> Iterator[str]:
    if node.pattern is not None and node.name is not None:
        yield node.name


@alternatives.register
def _(node: ast.MatchOr, _text: str) -> Iterator[str]:
    for place in range(len(node.patterns)):
        rest = node.patterns[:place] + node.patterns[place + 1 :]
        yield f"({ast.unparse(ast.MatchOr(rest))})" if len(rest) > 1 else ast.unparse(rest[0])


def _written(node: ast.AST) -> str:
    """A changed expression as text, in brackets, so that it binds as what it stands for."""
    return f"({ast.unparse(node)})"


def _start(outer: Syntax, inner: Syntax, text: str) -> int:
    return _position(outer, inner.lineno, inner.col_offset, text)


def _end(outer: Syntax, inner: Syntax, text: str) -> int:
    return _position(outer, inner.end_lineno or 0, inner.end_col_offset or 0, text)


def _position(outer: Syntax, line: int, column: int, text: str) -> int:
    """Where a position in the module stands in the text of a statement around it, in characters."""
    lines = text.encode().splitlines(keepends=True)
    if line == outer.lineno:
        return len(lines[0][: column - outer.col_offset].decode())
    before = lines[: line - outer.lineno]
    return len(b"".join([*before, lines[line - outer.lineno][:column]]).decode())
