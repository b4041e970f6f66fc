"""Stacks of what a loop carries into its iterations (the tape), and scalars of control as tensors that these hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IndexType, TensorType, i64
from xdsl.dialects.func import CallOp
from xdsl.ir import Attribute, Operation, SSAValue

from msc.dialects.element_types import dtype_name
from msc.dialects.ms.shapes import shape_of, tensor_type
from msc.graph.autodiff.emitting import GradientEmitter
from msc.ir.typed import tensor_type as type_of


def tensor_of(value: SSAValue, emit: GradientEmitter) -> SSAValue:
    """A scalar of control as a tensor of rank 0; a tensor as it is."""
    if isinstance(value.type, TensorType):
        return value
    if isinstance(value.type, IndexType):
        value = emit.insert(arith.IndexCastOp(value, i64)).result
    return emit.insert(tensor.FromElementsOp(value, result_type=TensorType(value.type, []))).result


def scalar_of(value: SSAValue, type_: Attribute, emit: GradientEmitter) -> SSAValue:
    """The value of `type_` that `tensor_of` made a tensor of."""
    if isinstance(type_, TensorType):
        return value
    element = type_of(value).element_type
    scalar = emit.insert(tensor.ExtractOp(value, [], element)).result
    return emit.insert(arith.IndexCastOp(scalar, IndexType())).result if isinstance(type_, IndexType) else scalar


def stack_type(type_: Attribute, count: int) -> TensorType[Attribute]:
    """The type of a stack of `count` values of a type, one at least."""
    count = max(count, 1)
    if isinstance(type_, TensorType):
        found = type_of(cast(Attribute, type_))
        return tensor_type(dtype_name(found.element_type) or "f32", (count, *shape_of(found)))
    return TensorType(i64 if isinstance(type_, IndexType) else type_, [count])


def index(emit: GradientEmitter, value: int) -> SSAValue:
    """A constant of control."""
    return emit.insert(arith.ConstantOp.from_int_and_width(value, IndexType())).result


def remove_dead(ops: Iterable[Operation]) -> None:
    """Erase those whose results nothing uses, from last to first; calls stay."""
    for op in reversed(list(ops)):
        unused = op.results and not any(r.first_use is not None for r in op.results)
        if unused and not isinstance(op, CallOp):
            op.detach()
            op.erase(safe_erase=False)
