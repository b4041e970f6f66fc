"""Whether an affine access inside a loop nest can leave its array: decided exactly, by isl."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl
from xdsl.ir.affine import AffineExpr

from msc.poly.dependences import isl_expr

MAX_OPERATIONS = 20_000_000
"""isl's operations for one access; it usually takes some thousands."""


_FEW_DIVISIONS = 4
"""With more of them isl may take hours to find the smallest point, which its limit of operations does not end."""


class Undecided(Exception):
    """Whether an access leaves its array is not known."""


@dataclass(frozen=True)
class LoopRange:
    """`for (i = max(lower); i < min(upper); i += step)`; dimension k of the expressions is the variable of loop k."""

    lower: tuple[AffineExpr, ...]
    upper: tuple[AffineExpr, ...]
    step: int = 1


@dataclass(frozen=True)
class VectorAccess:
    """Indices into an array of `shape`; lane k of `lanes` of a vector is `steps * k` further."""

    index: tuple[AffineExpr, ...]
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    lanes: int = 1


def escaping_iteration(loops: Sequence[LoopRange], access: VectorAccess) -> tuple[int, ...] | None:
    """The loops' variables, outermost first, where the access leaves its array; None if it never does.

    It is the first such iteration, but where many divisions would make that long to find.
    Raises Undecided where isl would take too long.
    """
    outside = " or ".join(_outside(access))
    if not outside:
        return None
    conditions = " and ".join((*iterations(loops), f"({outside})"))
    names = ", ".join(f"d{k}" for k in range(len(loops)))
    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(MAX_OPERATIONS)
    try:
        escaping = isl.Set(f"{{ [{names}] : {conditions} }}")
        if escaping.is_empty():
            return None
        divisions = sum(conditions.count(word) for word in (" mod ", "floor(", "ceil("))
        point = (escaping.lexmin() if divisions <= _FEW_DIVISIONS else escaping).sample_point()
    except isl.Error as error:
        raise Undecided from error
    finally:
        context.set_max_operations(0)
    if point.is_void():
        return None
    values = (point.get_coordinate_val(isl.dim_type.set, k) for k in range(len(loops)))
    return tuple(int(value.to_python()) for value in values)


def iterations(loops: Sequence[LoopRange]) -> Iterator[str]:
    """The conditions of isl under which `d0`, `d1`, ... are an iteration of the loops."""
    for k, loop in enumerate(loops):
        yield from (f"d{k} >= {isl_expr(bound)}" for bound in loop.lower)
        yield from (f"d{k} < {isl_expr(bound)}" for bound in loop.upper)
        if loop.step > 1:
            yield f"(d{k} - {_largest(loop.lower)}) mod {loop.step} = 0"


def _largest(bounds: Sequence[AffineExpr]) -> str:
    first, *others = map(isl_expr, bounds)
    for other in others:
        first = f"max({first}, {other})"
    return f"({first})"


def _outside(access: VectorAccess) -> Iterator[str]:
    for expr, size, step in zip(access.index, access.shape, access.steps, strict=True):
        distance = step * (access.lanes - 1)
        yield f"{isl_expr(expr)} + {min(0, distance)} < 0"
        yield f"{isl_expr(expr)} + {max(0, distance)} >= {size}"
