"""The rest of a vector loop, too short for a whole vector: one vector of which the first lanes count.

What is computed in the others is thrown away, so nothing may trap there or be summed; loads fetch only what is there
and stores write only that. Local buffers whose rows end with the loop get room for a whole vector instead, so that
register tiles are registers.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineMap
from xdsl.rewriter import Rewriter

from msc.dialects.loop import AccessOp, ForOp, LanesOp
from msc.ir.typed import memref_type
from msc.lowering.vector_types import bits_of
from msc.poly.affine import linear_form

_TRAPPING = frozenset(f"arith.{name}" for name in "divsi divui remsi remui floordivsi ceildivsi ceildivui".split())


@dataclass(frozen=True)
class Rest:
    """The last `count` iterations of a vector loop, run as that many lanes of a vector.

    `ends` are the lengths that rows of local buffers had before any became longer.
    """

    count: int
    ends: dict[Operation, int]

    def part(self, buffer: SSAValue, map_: AffineMap, lanes: int) -> int | None:
        """How many lanes touch memory; None where all do, as a row of a local buffer that ends here is made longer."""
        last = map_.results[-1]
        if not isinstance(buffer.owner, memref.AllocaOp) or not isinstance(last, AffineConstantExpr):
            return self.count
        end = self.ends.setdefault(buffer.owner, memref_type(buffer).get_shape()[-1])
        if last.value + self.count < end:
            return self.count
        _lengthen(buffer, last.value + lanes)
        return None


def _lengthen(buffer: SSAValue, row: int) -> None:
    type_ = memref_type(buffer)
    *outer, before = type_.get_shape()
    Rewriter.replace_value_with_new_type(buffer, MemRefType(type_.element_type, [*outer, max(before, row)]))


def may_be_part(loop: ForOp) -> bool:
    """Whether lanes of the loop's body may compute in vain: its vectors lie side by side, and zeros do not trap.

    Elements narrower than 32 bits have no instructions for parts.
    """
    return all(
        _is_regular(op, loop.variable)
        if isinstance(op, AccessOp)
        else (op.operation.data if isinstance(op, LanesOp) else op.name) not in _TRAPPING
        for op in loop.body.block.ops
    )


def _is_regular(op: AccessOp, variable: SSAValue) -> bool:
    """Whether an access is the same in all iterations, or moves by one along the rows of a buffer."""
    if variable not in op.indices:
        return True
    position = list(op.indices).index(variable)
    forms = [linear_form(expr) for expr in op.map.results]
    steps = [form.coefficients.get(position, 0) if form is not None else None for form in forms]
    return steps == [0] * (len(steps) - 1) + [1] and bits_of(memref_type(op.buffer).element_type) >= 32
