"""What the rows of a register tile read: `(&x[m * 13][k])[m_2 * 256]`, from the element of the first row on.

Buffers are dense, so rows lie at constant distances. Written so, C compilers see that one address serves all rows once
the tile's loops are unrolled, with constants in the instructions. Of `x[m * 13 + m_2][k]` GCC 12 makes an address for
each row and takes it with an index: there are more than registers, and processors split multiply-adds that load so.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineExpr

from msc.codegen.c.types import CArrayType
from msc.dialects.loop import ForOp, LoadOp, LoopKind
from msc.poly.affine import LinearForm, linear_form


@dataclass(frozen=True)
class TileRow:
    """What the first iteration of the unrolled loops reads, and how many elements further on this one does.

    That is a sum of numbers of strides: of 1, or of what calls decide.
    """

    first: tuple[AffineExpr, ...]
    further: tuple[tuple[AffineExpr, str], ...]


def tile_row(load: LoadOp, buffer: CArrayType) -> TileRow | None:
    """Where a load reads that moves by whole rows of a buffer with unrolled loops; else None."""
    forms = [linear_form(expr) for expr in load.map.results]
    starts = {k: start for k, value in enumerate(load.indices) if (start := _start(value)) is not None}
    linear = [form for form in forms if form is not None]
    strides = buffer.known_strides
    rows = [form for form, stride in zip(linear, strides, strict=False) if stride is None or stride > 1]
    if len(linear) < len(forms) or not any(_moves(form, starts) for form in rows):
        return None
    dims = [AffineExpr.dimension(k) for k in range(len(load.indices))]
    at = [AffineExpr.constant(starts[k]) if k in starts else dim for k, dim in enumerate(dims)]
    further: dict[str, AffineExpr] = {}
    for k, start in sorted(starts.items(), key=lambda item: _depth(load.indices[item[0]])):
        moved: dict[str, int] = {}
        for position, (form, stride) in enumerate(zip(linear, strides, strict=True)):
            unit, number = (buffer.open_strides[position], 1) if stride is None else ("1", stride)
            moved[unit] = moved.get(unit, 0) + form.coefficients.get(k, 0) * number
        for unit, number in moved.items():
            further[unit] = further.get(unit, AffineExpr.constant(0)) + (dims[k] - start) * number
    first = tuple(expr.replace_dims_and_symbols(at, []) for expr in load.map.results)
    return TileRow(first, tuple((expr, unit) for unit, expr in further.items()))


def _moves(form: LinearForm, dims: dict[int, int]) -> bool:
    return any(k in form.coefficients for k in dims)


def _depth(value: SSAValue) -> int:
    """How many operations stand around a loop's variable: outer loops come first, however an index has them."""
    parent, depth = value.owner.parent_op(), 0
    while parent is not None:
        parent, depth = parent.parent_op(), depth + 1
    return depth


def _start(value: SSAValue) -> int | None:
    """Of the variable of a loop that is unrolled its first value."""
    loop = value.owner.parent_op() if isinstance(value, BlockArgument) else None
    if not isinstance(loop, ForOp) or loop.kind.data is not LoopKind.UNROLL:
        return None
    trips = loop.constant_range
    return trips[0] if trips is not None and len(trips) > 1 else None
