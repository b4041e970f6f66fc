"""Gradients of collectives: each is the adjoint of another, where the loss is the sum of what all ranks compute."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.ms.collectives import CollectiveOp
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.registry import Contributions, gradient
from msc.graph.autodiff.reverse import refusal


@gradient(ms.AllReduceOp)
def _all_reduce(op: ms.AllReduceOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """Of a sum the sum; of an extremum the sum, to those ranks that have it."""
    word = op.word("reduce")
    if word == "prod":
        raise refusal(op, f"{op.name} of products has no gradient")
    total = emit(ms.AllReduceOp, g, **_groups(op))
    if word == "sum":
        return [total]
    has_it = emit.cast(emit(ms.EqualOp, op.x, op.result), emit.dtype(g))
    return [emit(ms.MulOp, total, has_it)]


@gradient(ms.AllGatherOp)
def _all_gather(op: ms.AllGatherOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    return [emit(ms.ReduceScatterOp, g, axis=op.int_("axis"), **_groups(op))]


@gradient(ms.ReduceScatterOp)
def _reduce_scatter(op: ms.ReduceScatterOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    if op.word("reduce") != "sum":
        raise refusal(op, f"{op.name} of {op.word('reduce')} has no gradient")
    return [emit(ms.AllGatherOp, g, axis=op.int_("axis"), **_groups(op))]


@gradient(ms.AllToAllOp)
def _all_to_all(op: ms.AllToAllOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    return [emit(ms.AllToAllOp, g, split=op.int_("concat"), concat=op.int_("split"), **_groups(op))]


@gradient(ms.SendRecvOp)
def _send_recv(op: ms.SendRecvOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    return [emit(ms.SendRecvOp, g, ranks=list(op.ints("to")), to=list(op.ints("ranks")))]


@gradient(ms.BroadcastOp)
def _broadcast(op: ms.BroadcastOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """The sum, on the rank whose tensor was given; zeros on the others."""
    total = emit(ms.AllReduceOp, g, **_groups(op))
    roots = [members[op.int_("root")] for members in op.members]
    return [emit(ms.SendRecvOp, total, ranks=roots, to=roots)]


@gradient(ms.AllSliceOp)
def _all_slice(op: ms.AllSliceOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    raise refusal(op, f"{op.name} has no gradient: it takes a part that differs from rank to rank")


def _groups(op: CollectiveOp) -> dict[str, list[int] | int]:
    return {"ranks": list(op.ints("ranks")), "groups": op.int_("groups")}
