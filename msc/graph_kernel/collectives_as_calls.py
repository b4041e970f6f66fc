"""Pass `collectives-as-calls`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from msc.analysis.properties import REWRITES_GRAPH
from msc.dialects import gk, ms
from msc.dialects.element_types import element_type
from msc.dialects.ms.collectives import CollectiveOp
from msc.graph.emitter import Emitter
from msc.graph.graph_loops import put_in_place


@dataclass(frozen=True)
class CollectivesAsCalls(ModulePass):
    """Have ranks exchange rows of memory, which is what MPI sends.

    Takes: a graph of known sizes. Gives: in place of each collective a `gk.call` on one row; the order of elements in
    which that is the collective along another axis is made by `ms.transpose`, in kernels as any other. A group of one
    rank keeps what it has. 16-bit floats are reduced as f32. Keeps: the order of the collectives.
    """

    name = "collectives-as-calls"
    contract = REWRITES_GRAPH

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in [inner for inner in op.walk() if isinstance(inner, CollectiveOp)]:
            emit = Emitter(found)
            value = found.x if found.group_size == 1 else _called(found, emit)
            put_in_place(emit, value, found.name.removeprefix("ms."))


def _called(op: CollectiveOp, emit: Emitter) -> SSAValue:
    size, shape, made = op.group_size, emit.shape(op.x), emit.shape(op.result)
    match op:
        case ms.AllReduceOp():
            return emit.reshape(_reduced(op, op.x, 1, 1, emit), made)
        case ms.ReduceScatterOp():
            parts = _parts_first(op.x, op.axis_of("axis"), size, emit)
            return emit.reshape(_reduced(op, parts, 1, size, emit), made)
        case ms.AllGatherOp():
            gathered = _call(op, op.x, "_", size, 1, emit)
            return _joined(emit.reshape(gathered, (size, *shape)), op.axis_of("axis"), emit)
        case ms.AllToAllOp():
            split, concat = op.axis_of("split"), op.axis_of("concat")
            exchanged = _call(op, _parts_first(op.x, split, size, emit), "_", 1, 1, emit)
            part = (*shape[:split], shape[split] // size, *shape[split + 1 :])
            return _joined(emit.reshape(exchanged, (size, *part)), concat, emit)
        case ms.AllSliceOp():
            parts = _parts_first(op.x, op.axis_of("axis"), size, emit)
            return emit.reshape(_call(op, parts, "_", 1, size, emit), made)
        case ms.BroadcastOp():
            return emit.reshape(_call(op, op.x, str(op.int_("root")), 1, 1, emit), made)
        case _:
            return emit.reshape(_call(op, op.x, "_", 1, 1, emit), made)


def _reduced(op: CollectiveOp, x: SSAValue, times: int, parts: int, emit: Emitter) -> SSAValue:
    dtype = emit.dtype(x)
    wide = "f32" if dtype in ("f16", "bf16") else dtype
    return emit.cast(_call(op, emit.cast(x, wide), op.word("reduce"), times, parts, emit), dtype)


def _call(op: CollectiveOp, x: SSAValue, word: str, times: int, parts: int, emit: Emitter) -> SSAValue:
    """The function on all elements as one row, whose result is `times` as long, divided by `parts`."""
    count = 1
    for size in emit.shape(x):
        count *= size
    dtype = emit.dtype(x)
    groups = list(zip(op.ints("ranks"), op.ints("to"), strict=True)) if isinstance(op, ms.SendRecvOp) else op.members
    text = "/".join(",".join(map(str, members)) for members in groups)
    type_ = TensorType(element_type(dtype), (count * times // parts,))
    name = f"{op.name.removeprefix('ms.')} {word} {text}"
    return emit.insert(gk.CallKernelOp(name, [emit.reshape(x, (count,))], [type_])).results[0]


def _parts_first(x: SSAValue, axis: int, count: int, emit: Emitter) -> SSAValue:
    """An axis cut into `count` parts, which become axis 0."""
    shape = emit.shape(x)
    if axis == 0:
        return x
    apart = emit.reshape(x, (*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :]))
    return emit(ms.TransposeOp, apart, perm=[axis, *(a for a in range(len(shape) + 1) if a != axis)])


def _joined(parts: SSAValue, axis: int, emit: Emitter) -> SSAValue:
    """Parts along axis 0 joined along another."""
    count, *shape = emit.shape(parts)
    if axis:
        parts = emit(ms.TransposeOp, parts, perm=[*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)])
    return emit.reshape(parts, (*shape[:axis], count * shape[axis], *shape[axis + 1 :]))
