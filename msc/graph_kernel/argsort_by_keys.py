"""Pass `argsort-by-keys`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from msc.analysis.properties import REWRITES_GRAPH
from msc.dialects import gk, ms
from msc.dialects.element_types import element_type, is_float
from msc.dialects.ms.attributes import MS_ORIGIN
from msc.dialects.ms.base import MsOp
from msc.graph.emitter import Emitter
from msc.graph.graph_loops import put_in_place
from msc.poly.compute import integer_range


@dataclass(frozen=True)
class ArgsortByKeys(ModulePass):
    """Order elements by integers, in functions that sort.

    Takes: a graph. Gives: in place of `ms.argsort` the `gk.call "argsort"` of i32 or i64 along the last axis whose
    ascending order is the one wanted. What `expand-composites` makes of the others compares all pairs. Left alone:
    results without elements, and axes of one element.
    """

    name = "argsort-by-keys"
    contract = REWRITES_GRAPH

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in [inner for inner in op.walk() if isinstance(inner, ms.ArgsortOp)]:
            emit = Emitter(found)
            shape, axis = emit.shape(found.x), found.int_("axis") % len(found.shape(0))
            if 0 not in emit.shape(found.result) and shape[axis] > 1:
                keys = _keys(found.x, emit)
                places = _along_last(keys, axis, found.result_shape()[axis], emit)
                for made in (op for op in emit.ops if isinstance(op, MsOp) and not isinstance(op, ms.ConstantOp)):
                    made.attributes[MS_ORIGIN] = StringAttr("argsort")
                put_in_place(emit, places, "argsort")


def _keys(x: SSAValue, emit: Emitter) -> SSAValue:
    """Signed integers in the order wanted; those in descending order are the complements."""
    assert isinstance(emit.op, ms.ArgsortOp)
    keys = _float_keys(x, emit) if is_float(emit.dtype(x)) else _integer_keys(x, emit)
    return emit(ms.BitwiseNotOp, keys) if emit.op.flag("descending") else keys


def _integer_keys(x: SSAValue, emit: Emitter) -> SSAValue:
    dtype = emit.dtype(x)
    if dtype == "ui64":
        least, _ = integer_range("i64")
        return emit(ms.BitwiseXorOp, emit(ms.BitCastOp, x, dtype=element_type("i64")), least)
    return emit.cast(x, "i64" if dtype in ("ui32", "i64") else "i32")


def _float_keys(x: SSAValue, emit: Emitter) -> SSAValue:
    """The bits, of negative numbers but for the sign inverted; NaN as infinity, and both zeros as one number."""
    if emit.dtype(x) in ("f16", "bf16"):
        x = emit.cast(x, "f32")
    dtype = "i32" if emit.dtype(x) == "f32" else "i64"
    x = emit(ms.SelectOp, emit(ms.IsNanOp, x), float("inf"), x)
    x = emit(ms.SelectOp, emit(ms.EqualOp, x, 0.0), 0.0, x)
    key = emit(ms.BitCastOp, x, dtype=element_type(dtype))
    _, all_but_the_sign = integer_range(dtype)
    inverted = emit(ms.BitwiseXorOp, key, all_but_the_sign)
    return emit(ms.SelectOp, emit(ms.LessOp, key, 0), inverted, key)


def _along_last(keys: SSAValue, axis: int, count: int, emit: Emitter) -> SSAValue:
    rank = len(emit.shape(keys))
    last = [*(a for a in range(rank) if a != axis), axis]
    rows = keys if axis == rank - 1 else emit(ms.TransposeOp, keys, perm=last)
    type_ = TensorType(i64, (*emit.shape(rows)[:-1], count))
    places = emit.insert(gk.CallKernelOp("argsort", [rows], [type_])).results[0]
    return places if axis == rank - 1 else emit(ms.TransposeOp, places, perm=[last.index(a) for a in range(rank)])
