"""Adjoints of compute definitions: from the statements of an operator to those of its gradient.

    y[w(d)] (+)= f(x[r(d)], ...)      has the adjoint      gx[r(d)] += df/dx * gy[w(d)]

over the same box: read and write maps are exchanged, and the scalar body is differentiated. Elements that no iteration
writes are zero. If several iterations write one element, as for overlapping windows of a pooling, it is a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import islpy as isl
from xdsl.ir.affine import AffineDimExpr, AffineMap

from msc.poly.compute import Statement, affine_map, dims
from msc.poly.dependences import isl_expr
from msc.poly.derivative import adjoints, is_number
from msc.poly.scalar import Constant, Read, Scalar


class NoAdjoint(Exception):
    """The statements have no adjoint of this form; the message says why."""


@dataclass(frozen=True)
class Differentiated:
    """An operator: its statements, the shapes and element types of its operands and results."""

    statements: Sequence[Statement]
    operands: Sequence[tuple[tuple[int, ...], str]]
    results: Sequence[tuple[tuple[int, ...], str]]


def adjoint(operator: Differentiated, operand: int) -> list[Statement]:
    """The statements of the gradient by an operand. They read the operands, then the results, then their gradients.

    Raises NoAdjoint for combiners other than sums, for indices that are data, and where a statement overwrites what
    another one has computed from operands.
    """
    _check_writes(operator)
    shape, dtype = operator.operands[operand]
    found: list[Statement] = []
    for statement in operator.statements:
        if is_number(operator.results[statement.result][1]):
            for read, value in adjoints(statement.body, _seed(operator, statement)):
                if read.operand == operand:
                    found.append(_contribution(statement, read, value))
    return summed(found, shape, dtype)


def _seed(operator: Differentiated, statement: Statement) -> Scalar:
    """The gradient of what an iteration computes."""
    if statement.combine not in (None, "add"):
        raise NoAdjoint(f"a statement combines by '{statement.combine}'")
    place = len(operator.operands) + len(operator.results) + statement.result
    return Read(place, statement.write, statement.body.dtype)


def _contribution(statement: Statement, read: Read, value: Scalar) -> Statement:
    if read.indirect:
        raise NoAdjoint("an index is computed")
    return Statement(statement.extents, statement.names, read.index, value, "add", accumulate=True)


def _check_writes(operator: Differentiated) -> None:
    """Statements that depend on operands write each place once, unless they add to it."""
    plain = [s for s in operator.statements if not isinstance(s.body, Constant)]
    for k, statement in enumerate(plain):
        if statement.combine is None and not is_injective(statement):
            raise NoAdjoint("a statement writes one element more than once")
        for other in plain[:k]:
            overlapping = _places(statement).intersect(_places(other)).is_empty() is False
            if statement.result == other.result and statement.combine is None and overlapping:
                raise NoAdjoint("a statement overwrites the result of another one")


def _box(statement: Statement) -> str:
    box = " and ".join(f"0 <= d{k} < {n}" for k, n in enumerate(statement.extents))
    variables = ", ".join(f"d{k}" for k in range(len(statement.extents)))
    places = ", ".join(map(isl_expr, statement.write.results))
    return f"{{ S[{variables}] -> A[{places}]{f' : {box}' if box else ''} }}"


def _places(statement: Statement) -> isl.Set:
    return isl.Map(_box(statement)).range()


def is_injective(statement: Statement) -> bool:
    """Whether no two iterations write one place."""
    return bool(isl.Map(_box(statement)).is_injective())


def summed(contributions: Sequence[Statement], shape: tuple[int, ...], dtype: str) -> list[Statement]:
    """Statements that add up contributions, beginning with zeros where the first one does not write every place."""
    if not contributions:
        return [_zeros(shape, dtype)]
    first, *others = contributions
    if _covers(first, shape):
        reduced = len(first.write.used_dims()) < len(first.extents)
        return [replace(first, combine="add" if reduced else None, accumulate=False), *others]
    if not others and is_injective(first):
        copied = replace(first, combine=None, accumulate=False)
        whole = _places(first).is_equal(_places(_zeros(shape, dtype)))
        return [copied] if whole else [_zeros(shape, dtype), copied]
    return [_zeros(shape, dtype), *contributions]


def _covers(statement: Statement, shape: tuple[int, ...]) -> bool:
    """Whether the write map names a dimension of the box for each axis, each of the axis' size."""
    places = [e.position if isinstance(e, AffineDimExpr) else -1 for e in statement.write.results]
    if -1 in places or len(set(places)) != len(places):
        return False
    return all(statement.extents[place] == n for place, n in zip(places, shape, strict=True))


def _zeros(shape: tuple[int, ...], dtype: str) -> Statement:
    rank = len(shape)
    write: AffineMap = affine_map(rank, dims(rank))
    return Statement(shape, tuple(f"i{k}" for k in range(rank)), write, Constant(0.0, dtype))
