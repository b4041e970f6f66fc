"""How long one call of a model may take at most, counted in operations of the loop stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from msc.analysis.repetition import trip_count
from msc.dialects.loop import ForOp
from msc.ir.typed import is_memref


def operations_run(module: ModuleOp, entry: FuncOp) -> int | None:
    """How many operations, on vectors or single elements, a call of `entry` runs, every branch taken.

    None if a loop of the entry function runs as often as values say. A kernel's loop whose bounds are computed counts
    as one along the kernel's largest dimension.
    """
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and op is not entry}
    counts = {name: _kernel_block(op.body.block, op) for name, op in kernels.items() if op.body.blocks}
    return _entry_block(entry.body.block, counts)


def _entry_block(block: Block, kernels: Mapping[str, int]) -> int | None:
    total = 0
    for op in block.ops:
        count = _entry_operation(op, kernels)
        if count is None:
            return None
        total += count
    return total


def _entry_operation(op: Operation, kernels: Mapping[str, int]) -> int | None:
    if isinstance(op, func.CallOp):
        return kernels.get(op.callee.string_value(), 1)
    times = None if isinstance(op, scf.WhileOp) else trip_count(op) if isinstance(op, scf.ForOp) else 1
    total = 0
    for block in _blocks(op):
        count = _entry_block(block, kernels)
        if count is None or times is None:
            return None
        total += count * times
    return total + 1


def _kernel_block(block: Block, kernel: FuncOp) -> int:
    return sum(_kernel_operation(op, kernel) for op in block.ops)


def _kernel_operation(op: Operation, kernel: FuncOp) -> int:
    inside = sum(_kernel_block(block, kernel) for block in _blocks(op))
    if not isinstance(op, ForOp):
        return 1 + inside
    iterations = op.most_iterations
    return inside * (iterations if iterations is not None else max(1, _largest(kernel) // op.step.value.data))


def _blocks(op: Operation) -> Iterator[Block]:
    return (block for region in op.regions for block in region.blocks)


def _largest(function: FuncOp) -> int:
    types = [*(a.type for a in function.body.block.args), *(r.type for op in function.walk() for r in op.results)]
    return max((size for type_ in types if is_memref(type_) for size in type_.get_shape()), default=1)
