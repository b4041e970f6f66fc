"""Writing `ms` operations; those on known arrays are evaluated at once instead, by the interpreter."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    AnyFloat,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    IntegerType,
    LocationAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from msc.dialects.element_types import BYTES, dtype_name
from msc.dialects.ms.arithmetic import AddOp, MulOp
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.indexing import IotaOp
from msc.dialects.ms.properties import PlainValue
from msc.dialects.ms.shapes import Shape, shape_of
from msc.dialects.ms.structure import ConstantOp, GetParameterOp
from msc.importers.onnx.failures import failure
from msc.importers.onnx.naming import Names
from msc.importers.onnx.values import Value, known
from msc.interp import evaluate_op
from msc.interp.arrays import Array, dtype_text, numpy_dtype
from msc.support.diagnostics import MscError

FOLD_BYTES = 1 << 16
"""What is evaluated at import: indices, shapes, small tables. Larger work on constants is left to the compiler."""

MAXIMUM_OPERATIONS = 200_000
"""Written or evaluated at import; a loop, a recurrence or a window of absurd length asks for more."""

INLINE_BYTES = 256
"""Constants up to here stand in the text."""

OperationT = TypeVar("OperationT", bound=Operation)

Operand = Value | float | bool


class Builder:
    """Collects the operations of one function, its constants in front, and the parameters of the module."""

    def __init__(self, entry: Block) -> None:
        self.block = entry
        self.location: LocationAttr = UNKNOWN_LOC
        self.parameters: dict[str, Array] = {}
        self._entry = entry
        self._prologue: list[Operation] = []
        self._names = Names()
        self._emitted = 0

    def emit(
        self, operation: type[MsOp], *operands: Operand | None, **properties: PlainValue | None
    ) -> tuple[Value, ...]:
        """The results of an operation: computed on the spot if every operand is known and small.

        A number is a constant of rank 0, of the element type of the last tensor among the operands.
        """
        self._count()
        dtype = next((v.dtype for v in reversed(operands) if isinstance(v, Value)), "f32")
        values = [v if isinstance(v, Value) or v is None else scalar(v, dtype) for v in operands]
        present = [v for v in values if v is not None]
        if all(v.array is not None and v.array.nbytes <= FOLD_BYTES for v in present):
            folded = self._fold(operation, values, properties)
            if folded is not None:
                return folded
        return self._append(operation, values, properties)

    def _count(self) -> None:
        """Raises MSC0714 for a model that has too many operations when it is unrolled."""
        self._emitted += 1
        if self._emitted > MAXIMUM_OPERATIONS:
            raise failure("MSC0714", f"the model has more than {MAXIMUM_OPERATIONS} operations when it is unrolled")

    def _append(
        self, operation: type[MsOp], values: Sequence[Value | None], properties: dict[str, PlainValue | None]
    ) -> tuple[Value, ...]:
        op = operation(*(None if v is None else self.ssa(v) for v in values), result_types=None, **properties)
        self.insert(op)
        depends = frozenset[str]().union(*(v.depends for v in values if v is not None))
        return tuple(Value(op.result_tensor(i), ssa=r, depends=depends) for i, r in enumerate(op.results))

    def insert(self, op: OperationT) -> OperationT:
        """Append an operation to the block that is being written."""
        op.location = self.location
        self.block.add_op(op)
        return op

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Within, operations are appended to `block`; if it cannot be written, nothing is left of it."""
        outer, self.block = self.block, block
        try:
            yield
        except MscError:
            block.erase(safe_erase=False)
            raise
        finally:
            self.block = outer

    def _fold(
        self, operation: type[MsOp], values: Sequence[Value | None], properties: dict[str, PlainValue | None]
    ) -> tuple[Value, ...] | None:
        arguments = Block(arg_types=[v.type for v in values if v is not None]).args
        places = iter(arguments)
        op = operation(*(None if v is None else next(places) for v in values), result_types=None, **properties)
        if sum(_bytes(op.result_tensor(i)) for i in range(len(op.results))) > FOLD_BYTES:
            op.erase()
            return None
        arrays = [v.array for v in values if v is not None and v.array is not None]
        results = evaluate_op(op, *arrays)
        op.erase()
        return tuple(known(np.asarray(array)) for array in results)

    def ssa(self, value: Value) -> SSAValue:
        """The value as an operand; a known one becomes a constant or a parameter, once."""
        if value.ssa is None:
            assert value.array is not None
            value.ssa = self._constant(value, value.array)
        return value.ssa

    def _constant(self, value: Value, array: Array) -> SSAValue:
        """In the text if it is small or a range, as a parameter otherwise."""
        progression = None if array.nbytes <= INLINE_BYTES else range_of(array)
        if progression is not None:
            return self._range(array, *progression)
        op = constant_of(array) if array.nbytes <= INLINE_BYTES else self._parameter(value, array)
        self._prologue.append(op)
        return op.results[0]

    def _range(self, array: Array, axis: int, start: int, step: int) -> SSAValue:
        """`start + step * place`, so that passes see what a mask compares."""
        places = IotaOp(result_types=None, shape=list(array.shape), axis=axis, dtype=known(array).type.element_type)
        self._prologue.append(places)
        value: SSAValue = places.results[0]
        for operation, number, neutral in ((MulOp, step, 1), (AddOp, start, 0)):
            if number != neutral:
                constant = constant_of(np.array(number, array.dtype))
                self._prologue += [constant, operation(value, constant.results[0], result_types=None)]
                value = self._prologue[-1].results[0]
        return value

    def _parameter(self, value: Value, array: Array) -> GetParameterOp:
        name = self._names.symbol(value.label or "constant")
        self.parameters[name] = array
        return GetParameterOp(name, value.type)

    def finish(self) -> None:
        """Put constants and parameters in front of everything that uses them."""
        first = self._entry.first_op
        if first is None:
            self._entry.add_ops(self._prologue)
        else:
            self._entry.insert_ops_before(self._prologue, first)
        self._prologue = []


def scalar(value: float | bool, dtype: str) -> Value:
    """A known tensor of rank 0."""
    return known(np.array(value).astype(numpy_dtype(dtype)))


def range_of(array: Array) -> tuple[int, int, int] | None:
    """The axis, start and step of integers that rise or fall evenly along one axis, the only one; None for others."""
    axes = [axis for axis, size in enumerate(array.shape) if size > 1]
    if dtype_text(array.dtype) not in ("i32", "i64") or len(axes) != 1:
        return None
    flat = array.reshape(-1)
    start, step = int(flat[0]), int(flat[1]) - int(flat[0])
    return (axes[0], start, step) if np.array_equal(flat, start + step * np.arange(flat.size)) else None


def constant_of(array: Array) -> ConstantOp:
    """The constant of an array."""
    type_ = cast(TensorType[AnyFloat | IntegerType], known(array).type)
    return ConstantOp(value=DenseIntOrFPElementsAttr(type_, BytesAttr(np.ascontiguousarray(array).tobytes())))


def _bytes(type_: TensorType[Attribute]) -> int:
    shape: Shape = shape_of(type_)
    return math.prod(shape) * BYTES[dtype_name(type_.element_type) or "f64"]
