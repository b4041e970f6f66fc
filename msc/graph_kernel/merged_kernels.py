"""One kernel of a chain of kernels, its members, with the values between them materialized."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.hints import isa

from msc.analysis.flops import flops
from msc.dialects.gk import KernelOp, KernelYieldOp, MaterializeOp
from msc.dialects.gk.attributes import COMPUTE_AT, GK_REASONS


def merge(chain: Sequence[KernelOp], axes: Sequence[Sequence[int]]) -> KernelOp:
    """Put one kernel in the place of a chain, each the only reader of the only result of the one before.

    `axes` are those along which what is materialized is computed a block at a time. The name is that of the last one.
    """
    between = {kernel.results[0] for kernel in chain[:-1]}
    inputs = list(dict.fromkeys(v for kernel in chain for v in kernel.inputs if v not in between))
    block = Block(arg_types=[v.type for v in inputs])
    known: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for value, argument in zip(inputs, block.args, strict=True):
        argument.name_hint = value.name_hint
    for kernel, along in zip(chain[:-1], axes, strict=True):
        (value,) = _copied(kernel, known, block)
        stored = MaterializeOp(value, along)
        stored.result.name_hint, stored.location = value.name_hint, kernel.location
        block.add_op(stored)
        known[kernel.results[0]] = stored.result
    *others, last = chain
    block.add_op(KernelYieldOp(*_copied(last, known, block)))
    made = KernelOp(last.label.data, inputs, [r.type for r in last.results], Region(block))
    made.attributes |= _attributes(chain)
    made.location = last.location
    Rewriter.replace_op(last, made)
    for kernel in reversed(others):
        Rewriter.erase_op(kernel)
    return made


def _copied(kernel: KernelOp, known: dict[SSAValue, SSAValue], block: Block) -> list[SSAValue]:
    """Add copies of a kernel's operations to a block; what they give."""
    values: dict[SSAValue, SSAValue] = dict(zip(kernel.body.block.args, (known[v] for v in kernel.inputs), strict=True))
    for op in kernel.body.block.ops:
        if op is not kernel.terminator:
            block.add_op(op.clone(values))
    return [values[v] for v in kernel.terminator.values]


def _attributes(chain: Sequence[KernelOp]) -> dict[str, Attribute]:
    """Those of the kernel that computes most, with the reasons of all."""
    reasons = (kernel.attributes.get(GK_REASONS) for kernel in chain)
    every = dict.fromkeys(reason for each in reasons if isa(each, ArrayAttr[Attribute]) for reason in each)
    kept = {k: v for k, v in max(chain, key=flops).attributes.items() if k != COMPUTE_AT}
    return kept | ({GK_REASONS: ArrayAttr(list(every))} if every else {})
