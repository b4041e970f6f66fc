"""What an importer sees of an operator: its inputs, its options, how tensors lie, and a way to write operations.

TensorFlow Lite keeps channels last, operations of msc keep them second. A value that an operation of windows computes
is kept as that operation gives it, in `first`; the transposition that shows it with its channels last is written when
somebody asks for it. Operations that work on each element, or along axes, take such values as they are (`Layout`). So
a network of images has transpositions at its ends alone, and the shapes of its inputs and outputs stay the file's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Block, SSAValue

from msc.dialects import ms
from msc.dialects.arrays import Array, dtype_text, numpy_dtype
from msc.dialects.element_types import element_type
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.building import GraphBuilder
from msc.dialects.ms.constants import scalar_array
from msc.dialects.ms.properties import PlainValue
from msc.dialects.ms.shapes import tensor_type
from msc.dialects.ms.values import Value
from msc.importers.failures import failure, shown
from msc.importers.tflite.model import OperatorRecord, Quantisation, TensorRecord, schema
from msc.interp import evaluate_op
from msc.support.diagnostics import Location, MscError

_MAXIMUM_OPERATIONS = 200_000
"""Written or evaluated at import; a recurrence of absurd length asks for more."""

_NO_OPTIONS = b"\x04\x00\x04\x00\x04\x00\x00\x00", 4
"""A table without fields: each has its default."""


@dataclass(eq=False)
class TfliteValue(Value):
    """A tensor of the model."""

    quantisation: Quantisation | None = None
    first: TfliteValue | None = None
    """The same with its channels behind the batch, if it was computed so."""


Operand: TypeAlias = TfliteValue | float | bool


class TfliteBuilder(GraphBuilder[TfliteValue]):
    """Writes the entry function of a model, up to a number of operations."""

    def __init__(self, entry: Block) -> None:
        super().__init__(entry, TfliteValue, evaluate_op)
        self._emitted = 0

    def emit(
        self,
        operation: type[MsOp],
        *operands: TfliteValue | SSAValue | float | bool | None,
        **properties: PlainValue | None,
    ) -> tuple[TfliteValue, ...]:
        """The results of an operation. Raises MSC0714 for a model that has too many."""
        self._emitted += 1
        if self._emitted > _MAXIMUM_OPERATIONS:
            raise failure("MSC0714", f"the model has more than {_MAXIMUM_OPERATIONS:,} operations when it is unrolled")
        return super().emit(operation, *operands, **properties)

    def ssa(self, value: TfliteValue) -> SSAValue:
        if value.ssa is None and value.array is None and value.first is not None:
            (shown_last,) = self.emit(ms.TransposeOp, value.first, perm=list(channels_last(value.rank)))
            value.ssa = shown_last.ssa
            value.array = shown_last.array
        return super().ssa(value)


def channels_first(rank: int) -> tuple[int, ...]:
    """The order of axes that puts the last one behind the first."""
    return (0, rank - 1, *range(1, rank - 1))


def channels_last(rank: int) -> tuple[int, ...]:
    """The order of axes that puts the second one at the end."""
    return (0, *range(2, rank), 1)


@dataclass(frozen=True)
class Layout:
    """How the operands of one operation lie: as in the file, or of some rank with channels behind the batch."""

    node: TfliteNode
    rank: int
    is_first: bool

    def take(self, value: TfliteValue) -> TfliteValue:
        """An operand that broadcasts, as it lies here."""
        if not self.is_first:
            return value
        if value.rank < self.rank:
            value = self.node.reshape(value, (*(1 for _ in range(self.rank - value.rank)), *value.shape))
        return self.node.first(value)

    def give(self, result: TfliteValue) -> TfliteValue:
        """A result that lies like this, as the file has it."""
        return self.node.last(result) if self.is_first else result

    def axis(self, axis: int) -> int:
        """Where an axis of the file's stands here."""
        return channels_last(self.rank)[axis] if self.is_first else axis

    def order(self, values: Sequence[Any]) -> list[Any]:
        """One value an axis of the file's, in the order that holds here."""
        return [values[a] for a in channels_first(self.rank)] if self.is_first else list(values)


class TfliteNode:
    """An operator under import. Calling it with an operation class and operands writes an operation of one result."""

    def __init__(
        self,
        record: OperatorRecord,
        inputs: Sequence[TfliteValue | None],
        outputs: Sequence[TensorRecord],
        builder: TfliteBuilder,
        place: Location,
    ) -> None:
        self.record = record
        self.inputs = inputs
        self.outputs = outputs
        self.builder = builder
        self.place = place

    # Writing.

    def __call__(
        self, operation: type[MsOp], *operands: Operand | None, **properties: PlainValue | None
    ) -> TfliteValue:
        """Write an operation of one result."""
        return self.many(operation, *operands, **properties)[0]

    def many(
        self, operation: type[MsOp], *operands: Operand | None, **properties: PlainValue | None
    ) -> tuple[TfliteValue, ...]:
        """Write an operation, and give all its results."""
        return self.builder.emit(operation, *operands, **properties)

    def cast(self, value: TfliteValue, dtype: str) -> TfliteValue:
        """The value in another element type; itself if it has that one."""
        if value.array is not None:
            array = value.array.astype(numpy_dtype(dtype))
            return self.constant(array, value.label) if value.dtype != dtype else value
        return value if value.dtype == dtype else self(ms.CastOp, value, dtype=element_type(dtype))

    def reshape(self, value: TfliteValue, shape: Sequence[int]) -> TfliteValue:
        """The value under another shape; itself if it has that one."""
        if value.array is not None:
            return self.constant(value.array.reshape(shape), value.label)
        return value if value.shape == tuple(shape) else self(ms.ReshapeOp, value, shape=list(shape))

    def transpose(self, value: TfliteValue, perm: Sequence[int]) -> TfliteValue:
        """The value with its axes in another order."""
        if value.array is not None:
            return self.constant(np.ascontiguousarray(value.array.transpose(perm)), value.label)
        return value if list(perm) == sorted(perm) else self(ms.TransposeOp, value, perm=list(perm))

    def constant(self, array: Array, label: str | None = None) -> TfliteValue:
        """A known tensor."""
        return TfliteValue(tensor_type(dtype_text(array.dtype), array.shape), array, label=label)

    def scalar(self, value: float | bool, dtype: str) -> TfliteValue:
        """A known tensor of rank 0."""
        return self.constant(scalar_array(value, dtype))

    def unevaluated(self, value: TfliteValue) -> TfliteValue:
        """A known tensor as one that nothing is evaluated of at import: work on weights is for passes to see."""
        return TfliteValue(value.type, ssa=self.builder.ssa(value), label=value.label)

    # How tensors lie.

    def first(self, value: TfliteValue) -> TfliteValue:
        """The value with its channels behind the batch."""
        if value.first is None:
            value.first = self.transpose(value, channels_first(value.rank))
        return value.first

    def last(self, first: TfliteValue) -> TfliteValue:
        """What lies with its channels behind the batch, as the file has it."""
        shape = [first.shape[a] for a in channels_last(first.rank)]
        return TfliteValue(tensor_type(first.dtype, shape), depends=first.depends, first=first)

    def layout(self, *values: TfliteValue | None) -> Layout:
        """How an operation on values that broadcast should work: as the one of most axes lies."""
        rank = max((v.rank for v in values if v is not None), default=0)
        is_first = any(v.first is not None and v.array is None and v.rank == rank for v in values if v is not None)
        return Layout(self, rank, is_first and rank > 2)

    # Inputs.

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> TfliteValue:
        """An input that must be given."""
        value = self.get(index)
        if value is None:
            raise self.failure("MSC0711", f"input {index} is missing")
        return value

    def get(self, index: int) -> TfliteValue | None:
        """An input, None if it is not given."""
        return self.inputs[index] if index < len(self.inputs) else None

    def tensors(self) -> list[TfliteValue]:
        """All inputs, which are one or more, and all given."""
        if not self.inputs:
            raise self.failure("MSC0711", "it needs one input or more")
        return [self[k] for k in range(len(self.inputs))]

    def known(self, index: int, what: str) -> Array:
        """The value of an input that must be known at import. Raises MSC0712."""
        array = self[index].array
        if array is None:
            message = f"its {what} must be known at import, but is computed"
            raise self.failure("MSC0712", message, help="convert the model with all sizes fixed")
        return array

    def ints(self, index: int, what: str) -> list[int]:
        """The integers of an input that must be known, whatever its rank."""
        return [int(v) for v in self.known(index, what).reshape(-1)]

    def int_(self, index: int, what: str) -> int:
        """The one integer of an input that must be known."""
        values = self.ints(index, what)
        if len(values) != 1:
            raise self.failure("MSC0711", f"its {what} has {len(values)} elements, but must have one")
        return values[0]

    def output(self, index: int = 0) -> TensorRecord:
        """An output as the file declares it."""
        if index >= len(self.outputs):
            raise self.failure("MSC0711", f"it has {len(self.outputs)} outputs, but {index + 1} are needed")
        return self.outputs[index]

    # Options.

    def options(self, kind: str) -> Any:
        """The operator's options, a class of the schema; each has its default where the file says nothing."""
        options = getattr(schema(), kind)()
        table, number = self.record.options, self.record.options_type
        if table is None or number == 0:
            options.Init(*_NO_OPTIONS)
            return options
        if number != getattr(schema().BuiltinOptions, kind):
            raise self.failure("MSC0711", f"its options are of kind {number}, not {kind}")
        options.Init(table.Bytes, table.Pos)
        return options

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front. Raises MSC0711."""
        if not -rank <= axis < max(rank, 1):
            raise self.failure("MSC0711", f"axis {axis} is outside a tensor of rank {rank}")
        return axis % max(rank, 1)

    # Failing.

    @property
    def label(self) -> str:
        """The operator as messages name it: `operator 3 (CONV_2D)`."""
        return operator_label(self.record)

    def failure(self, code: str, message: str, *, help: str | None = None) -> MscError:
        """An error about this operator."""
        return failure(code, f"{self.label}: {message}", at=self.place, help=help)


def operator_label(record: OperatorRecord) -> str:
    """An operator by its place in the graph and its name."""
    return f"operator {record.index} ({shown(record.name)})"
