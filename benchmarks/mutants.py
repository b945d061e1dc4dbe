"""Create mutants of a module. Each has one small change, such as a shifted comparison or a removed statement.

mutmut skips properties, decorated functions and tables, and cosmic-ray needs a database and a dozen packages. Here, a
list to draw from is enough.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
"""Operators and their replacements."""


@dataclass(frozen=True)
class Mutant:
    """A change: the file, the line, the bytes to remove, and the text to insert."""

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def apply(self, source: str) -> str:
        """Return a module with the change."""
        text = source.encode()
        return (text[: self.start] + self.new.encode() + text[self.end :]).decode()


def mutants(source: str, file: str) -> list[Mutant]:
    """Return all mutants of a module, in order of position. Annotations and docstrings are not changed."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found = []
    for node, new in _changes(ast.parse(source)):
        start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        old = ast.unparse(node)
        found.append(Mutant(file, node.lineno, start, end, old, new))
    return sorted(found, key=lambda one: (one.start, one.end, one.new))


def sample(files: Sequence[str], root: Path, count: int, seed: int) -> list[Mutant]:
    """Return ``count`` random mutants of some modules, drawn without replacement."""
    every = [one for file in files for one in mutants((root / file).read_text(encoding="utf-8"), file)]
    chosen = random.Random(seed).sample(range(len(every)), count)
    return [every[i] for i in sorted(chosen)]


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield each node to change, with the text that replaces it."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr) or _is_for_types(node):
        return
    yield from _operators(node)
    yield from _values(node)
    yield from _steps(node)
    for child in _children(node):
        yield from _changes(child)


def _operators(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    match node:
        case ast.Compare():
            for i, op in enumerate(node.ops):
                ops = [SWAPS[type(op)]() if i == k else other for k, other in enumerate(node.ops)]
                yield node, f"({ast.unparse(ast.Compare(node.left, ops, node.comparators))})"
        case ast.BoolOp():
            yield node, f"({ast.unparse(ast.BoolOp(SWAPS[type(node.op)](), node.values))})"
        case ast.BinOp() if type(node.op) in SWAPS:
            yield node, f"({ast.unparse(ast.BinOp(node.left, SWAPS[type(node.op)](), node.right))})"
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield node, f"({ast.unparse(node.operand)})"


def _values(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    match node:
        case ast.Constant(value=bool()):
            yield node, repr(not node.value)
        case ast.Constant(value=int() | float()):
            yield node, repr(node.value + 1)
        case ast.Constant(value=str()):
            yield node, repr(f"{node.value}XX")
        case ast.If() | ast.While() | ast.IfExp() if not isinstance(node.test, ast.Compare):
            yield node.test, f"(not ({ast.unparse(node.test)}))"


def _steps(node: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    match node:
        case ast.Return(value=ast.expr()) if not isinstance(node.value, ast.Constant):
            yield node, "return None"
        case ast.Break():
            yield node, "continue"
        case ast.Continue():
            yield node, "break"
        case ast.AugAssign() | ast.Raise() | ast.Delete():
            yield node, "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "pass"
        case ast.Expr() if not isinstance(node.value, ast.Constant | ast.Yield):
            yield node, "pass"


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children that affect behaviour, without annotations, docstrings and the wording of messages."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Raise():
            return
        case ast.Call(func=ast.Attribute(value=ast.Name(id="logger"))) | ast.Call(func=ast.Name(id="log")):
            return
        case ast.AnnAssign(value=value):
            if value is not None:
                yield value
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from (*node.args.defaults, *(one for one in node.args.kw_defaults if one), *node.body)
        case ast.ClassDef():
            yield from node.body
        case _:
            yield from ast.iter_child_nodes(node)
