"""The one way to write `ms` operations: importers, the front end and passes build through it.

Types are inferred, numbers become constants, and an operation on known arrays is evaluated at once if the builder has
an evaluator. Meanings belong to the interpreter, above the dialects: who makes a builder gives it `interp.evaluate_op`.

    builder = GraphBuilder(entry, evaluate=evaluate_op)
    y, = builder.emit(ms.MatmulOp, x, weight)
    z, = builder.emit(ms.MulOp, y, 0.5)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeAlias, TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from msc.dialects.arrays import Array, dtype_text
from msc.dialects.element_types import BYTES, dtype_name
from msc.dialects.ms.arithmetic import AddOp, MulOp
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.constants import constant_of, progression_of, scalar_array
from msc.dialects.ms.indexing import IotaOp
from msc.dialects.ms.movement import BroadcastToOp
from msc.dialects.ms.properties import PlainValue
from msc.dialects.ms.shapes import shape_of, tensor_type
from msc.dialects.ms.structure import GetParameterOp, ParameterOp
from msc.dialects.ms.values import Value
from msc.ir.typed import tensor_type as type_of
from msc.support.diagnostics import MscError
from msc.support.naming import Names

FOLD_BYTES = 1 << 16
"""What is evaluated while a graph is built: indices, shapes, small tables. Larger work on constants is for passes."""

INLINE_BYTES = 256
"""Constants up to here stand in the text."""

Evaluate: TypeAlias = Callable[..., tuple[Array, ...]]
"""From an operation and one array an operand to the arrays of its results: the interpreter's meaning."""

OperationT = TypeVar("OperationT", bound=Operation)
ValueT = TypeVar("ValueT", bound=Value)


class OperationBuilder(ABC, Generic[ValueT]):
    """Writes operations one after the other; a subclass says where they and the constants go.

    `value_class` is what values are represented by: `Value` or a subclass whose further fields have defaults.
    """

    def __init__(self, value_class: type[ValueT], evaluate: Evaluate | None = None) -> None:
        self.location: LocationAttr = UNKNOWN_LOC
        self._value_class = value_class
        self._evaluate = evaluate
        self.has_open_sizes = False
        """Whether the graph must have the same operations at all sizes."""
        self._constants: dict[tuple[str, tuple[int, ...], bytes], SSAValue] = {}

    @abstractmethod
    def insert(self, op: OperationT) -> OperationT:
        """Append an operation where operations are being written."""

    @abstractmethod
    def insert_constant(self, op: OperationT) -> OperationT:
        """Put a constant where everything that is written may use it."""

    def place_large(self, value: ValueT, array: Array) -> SSAValue:
        """The SSA value of an array that is too large for the text. A constant, unless there is a better place."""
        return self.insert_constant(constant_of(array)).result

    def emit(
        self, operation: type[MsOp], *operands: ValueT | SSAValue | float | bool | None, **properties: PlainValue | None
    ) -> tuple[ValueT, ...]:
        """The results of an operation: computed on the spot if every operand is known and small.

        A number is a constant of rank 0, of the element type of the last tensor among the operands. An operand that
        is absent is None. Raises ShapeConflict, DtypeConflict or InvalidAttribute as `infer` does.
        """
        values = self._values(operands)
        if self._evaluate is not None and all(v is None or _is_small(v.array) for v in values):
            folded = self._folded(self._evaluate, operation, values, properties)
            if folded is not None:
                return folded
        op = self.insert(
            operation(*(None if v is None else self.ssa(v) for v in values), result_types=None, **properties)
        )
        depends = frozenset[str]().union(*(v.depends for v in values if v is not None))
        return tuple(self._value_class(type_of(result), ssa=result, depends=depends) for result in op.results)

    def known(self, array: Array, label: str | None = None) -> ValueT:
        """The value of an array."""
        return self._value_class(tensor_type(dtype_text(array.dtype), array.shape), array, label=label)

    def _values(self, operands: Sequence[ValueT | SSAValue | float | bool | None]) -> list[ValueT | None]:
        dtype = None
        values: list[ValueT | None] = []
        for operand in operands:
            match operand:
                case Value() | None:
                    values.append(operand)
                case SSAValue():
                    values.append(self._value_class(type_of(operand), ssa=operand))
                case _:
                    dtype = dtype or self._number_type(operands)
                    values.append(self.known(scalar_array(operand, dtype)))
        return values

    def _number_type(self, operands: Sequence[ValueT | SSAValue | float | bool | None]) -> str:
        """The element type of the last tensor among the operands: what a number beside it is a constant of."""
        for operand in reversed(operands):
            if isinstance(operand, Value | SSAValue):
                return dtype_name(type_of(operand.type).element_type) or "f32"
        return "f32"

    def _folded(
        self,
        evaluate: Evaluate,
        operation: type[MsOp],
        values: Sequence[ValueT | None],
        properties: dict[str, PlainValue | None],
    ) -> tuple[ValueT, ...] | None:
        """The results of an operation on known arrays; None if they are too large."""
        arguments = iter(Block(arg_types=[v.type for v in values if v is not None]).args)
        op = operation(*(None if v is None else next(arguments) for v in values), result_types=None, **properties)
        results = None
        if sum(map(_bytes, op.result_types)) <= FOLD_BYTES:
            results = evaluate(op, *(v.array for v in values if v is not None))
        op.erase()
        return None if results is None else tuple(map(self.known, results))

    def ssa(self, value: ValueT) -> SSAValue:
        """The value as an operand; a known one becomes a constant or a parameter, once."""
        if value.ssa is None:
            assert value.array is not None
            value.ssa = self._constant(value, value.array)
        return value.ssa

    def _constant(self, value: ValueT, array: Array) -> SSAValue:
        """In the text if it is small or a range; of equal small ones there is one."""
        is_open = self.has_open_sizes and not _may_be_sizes(array)
        if is_open and array.ndim and array.size and (array == array.flat[0]).all():
            element = self._constant(value, array.reshape(-1)[0].reshape(()))
            return self.insert_constant(BroadcastToOp(element, shape=list(array.shape), result_types=None)).result
        if array.nbytes > INLINE_BYTES or (is_open and progression_of(array)):
            progression = progression_of(array)
            return self.place_large(value, array) if progression is None else self._range(array, *progression)
        key = dtype_text(array.dtype), array.shape, array.tobytes()
        if key not in self._constants:
            self._constants[key] = self.insert_constant(constant_of(array)).result
        return self._constants[key]

    def _range(self, array: Array, axis: int, start: int, step: int) -> SSAValue:
        """`start + step * place`, so that passes see what a mask compares."""
        dtype = dtype_text(array.dtype)
        element = tensor_type(dtype, ()).element_type
        places = self.insert_constant(IotaOp(shape=list(array.shape), axis=axis, dtype=element))
        value: SSAValue = places.result
        for operation, number, neutral in ((MulOp, step, 1), (AddOp, start, 0)):
            if number != neutral:
                constant = self.insert_constant(constant_of(scalar_array(number, dtype)))
                value = self.insert_constant(operation(value, constant.result)).results[0]
        return value


def _may_be_sizes(array: Array) -> bool:
    """Whether an array may be the sizes of a tensor: a constant, even where they happen to be a range or all the same.

    Ranges and repeated numbers of other lengths mostly begin with zero, or are no integers.
    """
    return array.ndim == 1 and array.dtype.kind in "iu" and 0 < array.size <= _MOST_DIMENSIONS and array[0] != 0


_MOST_DIMENSIONS = 8


class GraphBuilder(OperationBuilder[ValueT]):
    """Writes the body of a function: its constants in front of all else, large ones as parameters of the module."""

    def __init__(self, entry: Block, value_class: type[ValueT], evaluate: Evaluate | None = None) -> None:
        super().__init__(value_class, evaluate)
        self.block = entry
        self.parameters: dict[str, Array] = {}
        """The values of the parameters that constants became, by name."""
        self.names = Names()
        """The names of parameters that are taken."""
        self._entry = entry
        self._last_constant: Operation | None = None

    def insert(self, op: OperationT) -> OperationT:
        """Append an operation to the block that is being written."""
        op.location = self.location
        self.block.add_op(op)
        return op

    def insert_constant(self, op: OperationT) -> OperationT:
        """Put an operation behind the constants in front of the function's body."""
        if self._last_constant is not None:
            self._entry.insert_ops_after([op], self._last_constant)
        elif self._entry.first_op is not None:
            self._entry.insert_ops_before([op], self._entry.first_op)
        else:
            self._entry.add_op(op)
        self._last_constant = op
        return op

    def place_large(self, value: ValueT, array: Array) -> SSAValue:
        """A parameter of the module."""
        name = self.names.symbol(value.label or "constant")
        self.parameters[name] = array
        return self.insert_constant(GetParameterOp(name, value.type)).result

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

    def declarations(self) -> list[ParameterOp]:
        """The declarations of the parameters that constants became, for the module."""
        types = {name: tensor_type(dtype_text(array.dtype), array.shape) for name, array in self.parameters.items()}
        return [ParameterOp(name, type_) for name, type_ in types.items()]


def _is_small(array: Array | None) -> bool:
    return array is not None and array.nbytes <= FOLD_BYTES


def _bytes(type_: Attribute) -> int:
    """The bytes of a tensor; of none if a size is not known, which an operation on arrays cannot give."""
    tensor: TensorType[Attribute] = type_of(type_)
    return math.prod(shape_of(tensor)) * BYTES[dtype_name(tensor.element_type) or "f64"]
