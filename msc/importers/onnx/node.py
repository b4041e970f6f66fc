"""What an importer sees of a node: its inputs, its attributes, and a way to write operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto
from onnx.helper import make_function, make_node, make_opsetid

from msc.dialects.arrays import Array
from msc.dialects.element_types import element_type
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.constants import scalar_array
from msc.dialects.ms.elementwise import CastOp
from msc.dialects.ms.properties import PlainValue
from msc.dialects.ms.views import ReshapeOp
from msc.importers.failures import NeedsValues, UnknownSize, failure, shown
from msc.importers.onnx.builder import Builder, Operand
from msc.importers.onnx.values import OnnxValue, Slot, TensorSequence, known
from msc.importers.onnx.writing import Writing
from msc.support.diagnostics import Diagnostic, Location, MscError

RunGraph = Callable[[GraphProto, Sequence[Slot]], Sequence[Slot]]
"""Imports a subgraph with values for its inputs, in the scope of the node; gives the values of its outputs."""

CallFunction = Callable[[FunctionProto, Sequence[Slot]], Sequence[Slot]]
"""Imports a function with values for its inputs, as part of the node's operator; gives the values of its outputs."""

STANDARD = 23
"""The opset of the standard's operators by which those of other domains are said."""

MAXIMUM_TABLE = 1 << 27
"""Elements of a table that is made at import."""


class Node:
    """A node under import. Calling it with an operation class and operands writes an operation of one result."""

    def __init__(
        self,
        proto: NodeProto,
        inputs: Sequence[Slot],
        opset: int,
        builder: Builder,
        place: Location,
        run_graph: RunGraph,
        read_tensor: Callable[[TensorProto], Array],
        writing: Writing | None = None,
        call_function: CallFunction | None = None,
    ) -> None:
        self.proto = proto
        self.inputs = inputs
        self.opset = opset
        self.builder = builder
        self.place = place
        self.run_graph = run_graph
        self._call_function = call_function
        self._read_tensor = read_tensor
        self._writing = writing or Writing(builder)
        self._attributes: Mapping[str, AttributeProto] = {a.name: a for a in proto.attribute}

    # Writing.

    def __call__(self, operation: type[MsOp], *operands: Operand | None, **properties: PlainValue | None) -> OnnxValue:
        """Write an operation of one result."""
        return self.many(operation, *operands, **properties)[0]

    def many(
        self, operation: type[MsOp], *operands: Operand | None, **properties: PlainValue | None
    ) -> tuple[OnnxValue, ...]:
        """Write an operation, and give all its results; of f16 and bf16 an operator rounds once (`Writing`)."""
        return self._writing(operation, operands, properties)

    def standard(
        self, operator: str, *inputs: OnnxValue | None, results: int = 1, **attributes: Any
    ) -> list[OnnxValue]:
        """Write an operator of the standard in opset `STANDARD`, with ONNX's attributes; its first results."""
        assert self._call_function is not None
        names = [f"i{k}" if value is not None else "" for k, value in enumerate(inputs)]
        outputs = [f"o{k}" for k in range(results)]
        proto = make_node(operator, names, outputs, **attributes)
        function = make_function("", operator, [n for n in names if n], outputs, [proto], [make_opsetid("", STANDARD)])
        slots = self._call_function(function, [value for value in inputs if value is not None])
        return [slot for slot in slots if isinstance(slot, OnnxValue)]

    def cast(self, value: OnnxValue, dtype: str) -> OnnxValue:
        """The value in another element type; itself if it has that one."""
        return value if value.dtype == dtype else self(CastOp, value, dtype=element_type(dtype))

    def reshape(self, value: OnnxValue, shape: Sequence[int]) -> OnnxValue:
        """The value under another shape; itself if it has that one."""
        return value if value.shape == tuple(shape) else self(ReshapeOp, value, shape=list(shape))

    def scalar(self, value: float | bool, dtype: str) -> OnnxValue:
        """A known tensor of rank 0."""
        return known(scalar_array(value, dtype))

    def constant(self, array: Array) -> OnnxValue:
        """A known tensor."""
        return known(array)

    def unevaluated(self, value: OnnxValue) -> OnnxValue:
        """A known tensor as one that nothing is evaluated of at import: work on weights is for passes to see."""
        return OnnxValue(value.type, ssa=self.builder.ssa(value), label=value.label)

    def arange(self, count: int) -> Array:
        """0, 1, ... as i64. Raises MSC0708 where there would be too many."""
        self.check_table(count)
        return np.arange(count, dtype=np.int64)

    def check_table(self, *sizes: int) -> None:
        """Raise MSC0708 for a table to be made at import that is larger than any sensible one."""
        if math.prod(max(size, 1) for size in sizes) > MAXIMUM_TABLE:
            text = "x".join(map(str, sizes))
            raise self.failure("MSC0708", f"it takes a table of {text} numbers; msc makes {MAXIMUM_TABLE} at most")

    # Inputs.

    def __len__(self) -> int:
        return len(self.inputs)

    def has(self, index: int) -> bool:
        """Whether input `index` is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def __getitem__(self, index: int) -> OnnxValue:
        """A tensor input that must be given."""
        value = self.get(index)
        if value is None:
            raise self.failure("MSC0711", f"input {index} is missing")
        return value

    def get(self, index: int) -> OnnxValue | None:
        """A tensor input, None if it is not given."""
        slot = self.inputs[index] if index < len(self.inputs) else None
        if isinstance(slot, TensorSequence):
            raise self.failure("MSC0711", f"input {index} is a sequence, not a tensor")
        return slot

    def tensors(self) -> list[OnnxValue]:
        """All inputs, which are tensors and one or more."""
        if not self.inputs:
            raise self.failure("MSC0711", "it needs one input or more")
        return [self[i] for i in range(len(self.inputs))]

    def sequence(self, index: int) -> tuple[OnnxValue, ...]:
        """The items of an input that is a sequence."""
        slot = self.inputs[index] if index < len(self.inputs) else None
        if not isinstance(slot, TensorSequence):
            raise self.failure("MSC0711", f"input {index} is not a sequence")
        return slot.items

    def wants(self, index: int) -> bool:
        """Whether output `index` is used."""
        return index < len(self.proto.output) and self.proto.output[index] != ""

    def known(self, index: int, what: str) -> Array:
        """The value of an input that must be known at import. Raises NeedsValues."""
        return self.known_value(self[index], what)

    def known_value(self, value: OnnxValue, what: str) -> Array:
        """The array of a value that must be known at import. Raises NeedsValues."""
        if value.array is not None:
            return value.array
        inputs = sorted(value.depends)
        names = ", ".join(repr(shown(name)) for name in inputs) or "nothing that can be given"
        message = f"{self.label}: its {what} must be known at import, but depends on the value of input {names}"
        given = " ".join(f"--input-value {shown(name)}=..." for name in inputs)
        diagnostic = Diagnostic("MSC0712", message, self.place, help=f"give it: {given}" if inputs else None)
        raise NeedsValues(diagnostic, inputs)

    def known_ints(self, index: int, what: str) -> list[int]:
        """The integers of an input that must be known, whatever its rank."""
        return [int(v) for v in self.known(index, what).reshape(-1)]

    def known_int(self, index: int, what: str) -> int:
        """The one integer of an input that must be known."""
        values = self.known_ints(index, what)
        if len(values) != 1:
            raise self.failure("MSC0711", f"its {what} has {len(values)} elements, but must have one")
        return values[0]

    def shape_of(self, value: OnnxValue, first: int = 0) -> tuple[int, ...]:
        """The shape of a value from axis `first` on, every size known. Raises MSC0713."""
        self._check_known(value, value.shape[first:])
        return value.shape[first:]

    def size_of(self, value: OnnxValue, axis: int) -> int:
        """The size of one axis of a value, which must be known. Raises MSC0713."""
        self._check_known(value, value.shape[axis:][:1])
        return value.shape[axis]

    def _check_known(self, value: OnnxValue, sizes: Sequence[int]) -> None:
        if -1 in sizes:
            text = "x".join("?" if n < 0 else str(n) for n in value.shape)
            raise UnknownSize(
                Diagnostic("MSC0713", f"{self.label}: a size of {text} is not known at import", self.place)
            )

    # Attributes.

    def _attribute(self, name: str, kind: int) -> AttributeProto | None:
        attribute = self._attributes.get(name)
        if attribute is not None and attribute.type not in (kind, AttributeProto.UNDEFINED):
            found = AttributeProto.AttributeType.Name(attribute.type)
            wanted = AttributeProto.AttributeType.Name(cast(AttributeProto.AttributeType, kind))
            raise self.failure("MSC0711", f"attribute '{name}' is of kind {found}, not {wanted}")
        return attribute

    def given(self, name: str) -> bool:
        """Whether an attribute is given."""
        return name in self._attributes

    def int_(self, name: str, default: int) -> int:
        found = self._attribute(name, AttributeProto.INT)
        return default if found is None else found.i

    def flag(self, name: str, default: bool = False) -> bool:
        return bool(self.int_(name, int(default)))

    def real(self, name: str, default: float) -> float:
        found = self._attribute(name, AttributeProto.FLOAT)
        return default if found is None else found.f

    def word(self, name: str, default: str) -> str:
        found = self._attribute(name, AttributeProto.STRING)
        return default if found is None else found.s.decode("utf-8", "replace")

    def ints(self, name: str, default: Sequence[int] = ()) -> list[int]:
        found = self._attribute(name, AttributeProto.INTS)
        return list(default) if found is None else list(found.ints)

    def reals(self, name: str) -> list[float]:
        found = self._attribute(name, AttributeProto.FLOATS)
        return [] if found is None else list(found.floats)

    def words(self, name: str, default: Sequence[str] = ()) -> list[str]:
        found = self._attribute(name, AttributeProto.STRINGS)
        return list(default) if found is None else [s.decode("utf-8", "replace") for s in found.strings]

    def tensor(self, name: str) -> Array | None:
        found = self._attribute(name, AttributeProto.TENSOR)
        return None if found is None else self._read_tensor(found.t)

    def graph(self, name: str) -> GraphProto:
        found = self._attribute(name, AttributeProto.GRAPH)
        if found is None:
            raise self.failure("MSC0711", f"attribute '{name}' is missing")
        return found.g

    def choice(self, name: str, default: str, words: Sequence[str]) -> str:
        """A string attribute that is one of `words`. Raises MSC0711."""
        word = self.word(name, default)
        if word not in words:
            raise self.failure("MSC0711", f"{name} is '{shown(word)}', not one of {', '.join(words)}")
        return word

    def axis(self, axis: int, rank: int, name: str = "axis") -> int:
        """An axis counted from the front. Raises MSC0711."""
        if not -rank <= axis < rank:
            raise self.failure("MSC0711", f"{name} {axis} is outside a tensor of rank {rank}")
        return axis % rank

    # Failing.

    @property
    def label(self) -> str:
        """The node as messages name it: `Conv 'conv1'`."""
        return node_label(self.proto)

    def failure(self, code: str, message: str, *, help: str | None = None) -> MscError:
        """An error about this node."""
        return failure(code, f"{self.label}: {message}", at=self.place, help=help)


def node_label(proto: NodeProto) -> str:
    """A node by operator and name, or by its first output where it has no name."""
    name = proto.name or next(iter(proto.output), "")
    return f"{shown(proto.op_type)} '{shown(name)}'" if name else shown(proto.op_type)
