"""Kernels with other inputs and results; operations without users are removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.hints import isa

from msc.dialects.gk import KernelOp
from msc.dialects.gk.attributes import GK_REASONS
from msc.dialects.ms.padding import PadOp


def only_pad(kernel: KernelOp) -> PadOp | None:
    """The padding by a constant that is all that a kernel does; None if it does something else."""
    first, *rest = kernel.body.block.ops
    return first if len(rest) == 1 and isinstance(first, PadOp) and first.word("mode") == "constant" else None


def needed_for(values: Sequence[SSAValue]) -> set[Operation]:
    """The operations of a block that values depend on."""
    found: set[Operation] = set()
    pending = list(values)
    while pending:
        op = pending.pop().owner
        if isinstance(op, Operation) and op not in found:
            found.add(op)
            pending.extend(op.operands)
    return found


def with_results(kernel: KernelOp, values: Sequence[SSAValue]) -> tuple[KernelOp, Mapping[SSAValue, SSAValue]]:
    """A kernel that gives more of what it computes, and what that is called outside."""
    if not values:
        return kernel, {}
    count = len(kernel.results)
    made = rebuilt(kernel, list(kernel.inputs), [*kernel.terminator.values, *values], None)
    return made, dict(zip(values, made.results[count:], strict=True))


def without_results(kernel: KernelOp, dropped: set[int]) -> None:
    """A kernel without some of its results, and without what only they need; none if it has no other."""
    values = [v for k, v in enumerate(kernel.terminator.values) if k not in dropped]
    if not values:
        Rewriter.erase_op(kernel)
        return
    kept = [k for k in range(len(kernel.results)) if k not in dropped]
    needed = needed_for(values)
    terminator = kernel.terminator
    terminator.operands = values
    for op in reversed([op for op in kernel.body.block.ops if op is not terminator]):
        if op not in needed:
            Rewriter.erase_op(op)
    block = kernel.body.block
    read = [a.index for a in block.args if a.first_use is not None]
    inputs = [kernel.inputs[k] for k in read]
    for argument in [a for a in block.args if a.first_use is None]:
        block.erase_arg(argument)
    rebuilt(kernel, inputs, values, None, kept)


def add_reason(kernel: KernelOp, reason: str) -> None:
    """Note a decision about a kernel, for `explain`."""
    known = kernel.attributes.get(GK_REASONS)
    before = list(known) if isa(known, ArrayAttr[StringAttr]) else []
    kernel.attributes[GK_REASONS] = ArrayAttr([*before, StringAttr(reason)])


def rebuilt(
    kernel: KernelOp,
    inputs: Sequence[SSAValue],
    values: Sequence[SSAValue],
    reason: str | None,
    kept: Sequence[int] | None = None,
) -> KernelOp:
    """A kernel with the same body in the place of one, with these inputs and values; the results `kept` come first."""
    kernel.terminator.operands = values
    made = KernelOp(kernel.label.data, inputs, [v.type for v in values], kernel.detach_region(kernel.body))
    made.attributes |= kernel.attributes
    made.location = kernel.location
    if reason is not None:
        add_reason(made, reason)
    kept = range(len(kernel.results)) if kept is None else kept
    for new, old in enumerate(kept):
        made.results[new].name_hint = kernel.results[old].name_hint
        kernel.results[old].replace_all_uses_with(made.results[new])
    block = kernel.parent
    assert block is not None
    block.insert_op_before(made, kernel)
    block.erase_op(kernel)
    return made
