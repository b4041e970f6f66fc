"""Which variables may still be read after a statement of a function: a backward data-flow analysis of its tree."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

Names = frozenset[str]

NONE: Names = frozenset()
_REFLECTIVE = {"locals", "eval", "exec", "vars", "dir"}


def is_live(scope: ast.AST, construct: ast.AST, name: str) -> bool:
    """Whether `name` may be read after a construct of `scope`; of a loop, after any of its iterations."""
    live = _analysis(scope)
    return live.sees_all or name in live.after(construct) | live.heads.get(construct, NONE)


def is_live_after_loop(scope: ast.AST, loop: ast.AST, name: str) -> bool:
    """Whether `name` may be read when a loop of `scope` has ended."""
    live = _analysis(scope)
    return live.sees_all or name in live.after(loop)


def is_live_where(scope: ast.AST, construct: ast.AST, name: str, left_loop: bool) -> bool:
    """Whether `name` may be read behind a construct that a loop surrounds: where `break` leads to, or elsewhere."""
    live = _analysis(scope)
    if live.sees_all or construct not in live.ends:
        return True
    return name in (live.leaves[construct] if left_loop else live.ends[construct] | live.heads.get(construct, NONE))


@lru_cache(maxsize=1024)
def _analysis(scope: ast.AST) -> Liveness:
    live = Liveness(scope)
    body = getattr(scope, "body", None)
    if isinstance(body, list):
        live.block(body, _Exits())
    return live


@dataclass(frozen=True)
class _Exits:
    """What is live where control goes: to the next statement, out of a loop, to its next iteration, to a handler."""

    out: Names = NONE
    leave: Names = NONE
    again: Names = NONE
    raised: Names = NONE

    def to(self, out: Names) -> _Exits:
        return _Exits(out, self.leave, self.again, self.raised)


@dataclass
class Liveness:
    """The names that are live after each statement of a scope, and at the heads of its loops."""

    scope: ast.AST
    outs: dict[ast.AST, Names] = field(default_factory=dict[ast.AST, Names])
    heads: dict[ast.AST, Names] = field(default_factory=dict[ast.AST, Names])
    leaves: dict[ast.AST, Names] = field(default_factory=dict[ast.AST, Names])
    """What is live where `break` leads to."""
    ends: dict[ast.AST, Names] = field(default_factory=dict[ast.AST, Names])
    """What is live behind a statement that control may leave, as the rest of its block belongs to one of its paths."""

    @property
    def sees_all(self) -> bool:
        """Whether the scope looks at names by itself."""
        return bool(_REFLECTIVE & _reads(self.scope))

    def after(self, construct: ast.AST) -> Names:
        """The names that are live after a construct; of an expression, also those that its statement reads."""
        if construct in self.outs:
            return self.outs[construct]
        around = [s for s in self.outs if _is_within(s, construct)]
        if isinstance(construct, ast.expr) and around:
            statement = max(around, key=lambda s: (s.lineno, s.col_offset))  # pyright: ignore[reportAttributeAccessIssue]
            return self.outs[statement] | _reads(statement)
        return _reads(self.scope)

    def block(self, statements: Iterable[ast.stmt], exits: _Exits) -> Names:
        """The names that are live before statements."""
        live = exits.out
        for statement in reversed(list(statements)):
            self.outs[statement] = live | exits.raised
            if _may_leave(statement):
                self.ends[statement] = live | exits.raised | exits.out | exits.again
                self.leaves[statement] = exits.leave
                self.outs[statement] = self.ends[statement] | exits.leave
            live = self._before(statement, exits.to(live)) | exits.raised
        return live

    def _before(self, node: ast.stmt, exits: _Exits) -> Names:
        match node:
            case ast.If():
                return _reads(node.test) | self.block(node.body, exits) | self.block(node.orelse, exits)
            case ast.While() | ast.For():
                return self._loop(node, exits)
            case ast.Return() | ast.Raise():
                return _reads(node)
            case ast.Break():
                return exits.leave
            case ast.Continue():
                return exits.again
            case ast.Try():
                return self._try(node, exits)
            case ast.With():
                return _reads(*node.items) | self.block(node.body, exits)
            case ast.Match():
                bodies = [self.block(case.body, exits) for case in node.cases]
                return exits.out.union(_reads(node.subject, *(c.pattern for c in node.cases)), *bodies, _guards(node))
            case _:
                return (exits.out - _writes(node)) | _reads(node)

    def _loop(self, node: ast.While | ast.For, exits: _Exits) -> Names:
        test = _reads(node.test) if isinstance(node, ast.While) else NONE
        written = frozenset[str]() if isinstance(node, ast.While) else _writes(node.target)
        ended = self.block(node.orelse, exits)
        head = test | ended
        while True:
            inside = self.block(node.body, _Exits(head, exits.out, head, exits.raised))
            grown = head | test | (inside - written)
            if grown == head:
                break
            head = grown
        self.heads[node] = head
        return head | (_reads(node.iter) if isinstance(node, ast.For) else NONE)

    def _try(self, node: ast.Try, exits: _Exits) -> Names:
        """Control may go to a handler, and to `finally`, from everywhere in the body."""
        last = self.block(node.finalbody, exits)
        inner = _Exits(last, exits.leave | last, exits.again | last, exits.raised | last)
        handlers = frozenset[str]().union(*(_reads(h.type) | self.block(h.body, inner) for h in node.handlers))
        orelse = self.block(node.orelse, inner)
        return self.block(node.body, _Exits(orelse, inner.leave, inner.again, inner.raised | handlers))


def _may_leave(statement: ast.stmt) -> bool:
    """Whether `break` or `continue` stands in a statement; in a loop inside, it does no harm."""
    return any(isinstance(inner, ast.Break | ast.Continue) for inner in ast.walk(statement))


def _guards(node: ast.Match) -> Names:
    return _reads(*(case.guard for case in node.cases))


def _reads(*nodes: ast.AST | None) -> Names:
    """The names that are read somewhere in nodes, functions inside included."""
    return frozenset(name for node in nodes if node is not None for name in _names_read(node))


def _names_read(node: ast.AST) -> Iterable[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Store):
            yield inner.id
        elif isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
            yield inner.target.id


def _writes(node: ast.AST) -> Names:
    """The names that a simple statement always assigns to."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return frozenset((node.name,))
    if isinstance(node, ast.Assign):
        return frozenset[str]().union(*map(_writes, node.targets))
    if isinstance(node, ast.AnnAssign):
        return _writes(node.target) if node.value is not None else NONE
    if isinstance(node, ast.Tuple | ast.List):
        return frozenset[str]().union(*map(_writes, node.elts))
    if isinstance(node, ast.Starred):
        return _writes(node.value)
    return frozenset((node.id,)) if isinstance(node, ast.Name) else NONE


def _is_within(outer: ast.AST, inner: ast.AST) -> bool:
    return _start(outer) <= _start(inner) and _end(inner) <= _end(outer)


def _start(node: ast.AST) -> tuple[int, int]:
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))


def _end(node: ast.AST) -> tuple[int, int]:
    return (getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0))


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
