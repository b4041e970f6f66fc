"""Which variables may still be read after a statement or expression of a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

_REFLECTIVE = {"locals", "eval", "exec", "vars", "dir"}

EVERYTHING = frozenset(("*",))


@lru_cache(maxsize=4096)
def live_after(scope: ast.AST, construct: ast.AST) -> frozenset[str]:
    """The names that the code of `scope` may read after `construct`; EVERYTHING if it looks at names by itself."""
    end = (getattr(construct, "end_lineno", 0), getattr(construct, "end_col_offset", 0))
    around = _loop_around(scope, construct)
    names: set[str] = set()
    for node, name in _reads(scope):
        if name in _REFLECTIVE:
            return EVERYTHING
        if (node.lineno, node.col_offset) >= end or (around is not None and _is_within(around, node)):
            names.add(name)
    return frozenset(names)


def is_live(scope: ast.AST, construct: ast.AST, name: str) -> bool:
    """Whether the code of `scope` may read a variable after `construct`."""
    live = live_after(scope, construct)
    return live is EVERYTHING or name in live


def _reads(scope: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            yield node, node.id
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target, node.target.id


def _loop_around(scope: ast.AST, construct: ast.AST) -> ast.AST | None:
    """The outermost loop of `scope` around `construct`, or which it is: control may come back to all that is in it."""
    loops = [n for n in ast.walk(scope) if isinstance(n, ast.For | ast.While) and n is not construct]
    around = [loop for loop in loops if _is_within(loop, construct)]
    return min(around, key=lambda n: n.lineno) if around else None


def _is_within(outer: ast.AST, inner: ast.AST) -> bool:
    return (outer.lineno, outer.col_offset) <= (inner.lineno, inner.col_offset) and (  # pyright: ignore[reportAttributeAccessIssue]
        inner.end_lineno,  # pyright: ignore[reportAttributeAccessIssue]
        inner.end_col_offset,  # pyright: ignore[reportAttributeAccessIssue]
    ) <= (outer.end_lineno, outer.end_col_offset)  # pyright: ignore[reportAttributeAccessIssue]


def always_leaves(statements: list[ast.stmt]) -> bool:
    """Whether control never reaches the end of a block."""
    if not statements:
        return False
    match statements[-1]:
        case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
            return True
        case ast.If(body=body, orelse=orelse):
            return always_leaves(body) and always_leaves(orelse)
        case _:
            return False
