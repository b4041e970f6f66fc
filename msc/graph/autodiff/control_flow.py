"""Gradients of branches and loops: `scf.if`, `scf.for` and `scf.while`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue

from msc.graph.autodiff.again import computed_again
from msc.graph.autodiff.loops import for_gradient
from msc.graph.autodiff.reverse import Control, Reverse, captured
from msc.graph.autodiff.while_loops import while_gradient


def _if(reverse: Reverse, op: Operation) -> None:
    """The branch is taken again, with its values computed anew, then backwards."""
    branch = cast(scf.IfOp, op)
    variables = [v for v in captured(op) if v in reverse.active]
    given = [reverse.gradients.get(r) for r in op.results]
    blocks = [_branch(reverse, region, variables, given) for region in op.regions]
    made = reverse.emit.insert(scf.IfOp(branch.cond, [v.type for v in variables], [blocks[0]], [blocks[1]]))
    for value, part in zip(variables, made.results, strict=True):
        reverse.add(value, part)


def _branch(reverse: Reverse, region: Region, variables: Sequence[SSAValue], given: Sequence[SSAValue | None]) -> Block:
    """A branch, and the gradients of the variables through it."""
    block = Block()
    again = computed_again(reverse.emit.within(block), region.block, {})
    inner = again.reverse(variables)
    for result, part in zip(again.results, given, strict=True):
        inner.add(result, part)
    inner.run(again.ops)
    block.add_op(scf.YieldOp(*map(inner.of, variables)))
    return block


CONTROL: Mapping[str, Control] = {"scf.if": _if, "scf.for": for_gradient, "scf.while": while_gradient}
"""The gradients of operations with regions."""
