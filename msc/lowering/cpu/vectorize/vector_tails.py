"""The tail of a vector loop, shorter than a vector: one vector of which only the first lanes are used.

The results of the other lanes are ignored, so no operation there may trap or be part of a sum; loads and stores access
only existing elements. Local buffers whose rows end with the loop instead get room for a whole vector, so that register
tiles stay in registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineMap
from xdsl.rewriter import Rewriter

from msc.dialects.loop import AccessOp, ForOp, LanesOp, LoopKind, StoreOp
from msc.ir.typed import memref_type
from msc.lowering.cpu.vectorize.vector_types import bits_of
from msc.poly.affine import linear_form

_TRAPPING = frozenset(f"arith.{name}" for name in "divsi divui remsi remui floordivsi ceildivsi ceildivui".split())


@dataclass(frozen=True)
class Tail:
    """The last `count` iterations of a vector loop, run as that many lanes of a vector.

    `ends` are the lengths that the rows of local buffers had before any became longer (`local_rows`).
    """

    count: int
    ends: Mapping[Operation, int]

    def part(self, buffer: SSAValue, map_: AffineMap, steps: Sequence[int], lanes: int) -> int | None:
        """How many lanes touch memory; None where all do, as a row of a local buffer that ends here is made longer."""
        last, owner = map_.results[-1], buffer.owner
        end = self.ends.get(owner) if isinstance(owner, Operation) else None
        if end is None or not isinstance(last, AffineConstantExpr) or not _is_along_row(steps):
            return self.count
        if last.value + self.count < end:
            return self.count
        _lengthen(buffer, last.value + lanes)
        return None


def local_rows(module: ModuleOp) -> dict[Operation, int]:
    """The length of rows of each local buffer that is written by vectors along rows only.

    Elsewhere what follows a row would be read before it is written: whatever it is, it may be slow to compute with.
    """
    stores: dict[Operation, list[StoreOp]] = {}
    for op in module.walk():
        if type(op) is StoreOp and isinstance(op.target.owner, memref.AllocaOp):
            stores.setdefault(op.target.owner, []).append(op)
    return {
        owner: memref_type(owner.results[0]).get_shape()[-1]
        for owner, writes in stores.items()
        if all(map(_is_row, writes))
    }


def _is_row(store: StoreOp) -> bool:
    """Whether a store is one of a vector along a row."""
    loop = store.parent_op()
    if not isinstance(loop, ForOp) or loop.kind.data is not LoopKind.VECTOR or loop.variable not in store.indices:
        return False
    position = list(store.indices).index(loop.variable)
    forms = [linear_form(expr) for expr in store.map.results]
    return _is_along_row([form.coefficients.get(position, 0) if form is not None else 0 for form in forms])


def _is_along_row(steps: Sequence[int]) -> bool:
    return tuple(steps) == (*[0] * (len(steps) - 1), 1)


def _lengthen(buffer: SSAValue, row: int) -> None:
    type_ = memref_type(buffer)
    *outer, before = type_.get_shape()
    Rewriter.replace_value_with_new_type(buffer, MemRefType(type_.element_type, [*outer, max(before, row)]))


def may_be_part(loop: ForOp) -> bool:
    """Whether lanes of the loop's body may compute in vain: their places are affine, and zeros do not trap.

    Elements narrower than 32 bits have no instructions for parts.
    """
    return all(
        _is_regular(op, loop.variable)
        if isinstance(op, AccessOp)
        else (op.operation.data if isinstance(op, LanesOp) else op.name) not in _TRAPPING
        for op in loop.body.block.ops
    )


def _is_regular(op: AccessOp, variable: SSAValue) -> bool:
    """Whether an access is the same in all iterations, or moves evenly over wide elements."""
    if variable not in op.indices:
        return True
    wide = bits_of(memref_type(op.buffer).element_type) >= 32
    return wide and all(linear_form(expr) is not None for expr in op.map.results)
