"""Writing ONNX nodes: names, constants, and the registry of how each `ms` operation is said in ONNX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper
from xdsl.ir import Attribute, SSAValue

from msc.dialects.arrays import Array, numpy_dtype
from msc.dialects.element_types import dtype_name
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.shapes import shape_of
from msc.ir.locations import source_location
from msc.ir.typed import tensor_type
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.families import Table

OPSET = 18
"""The version of the standard's operators that is written: ONNX Runtime 1.14 and later know it."""

TYPES: dict[str, int] = {
    "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE,
    "i1": TensorProto.BOOL, "i8": TensorProto.INT8, "i16": TensorProto.INT16, "i32": TensorProto.INT32,
    "i64": TensorProto.INT64, "ui8": TensorProto.UINT8, "ui16": TensorProto.UINT16, "ui32": TensorProto.UINT32,
    "ui64": TensorProto.UINT64,
}  # fmt: skip

Plain: TypeAlias = int | float | str | Sequence[int] | Sequence[float]


class Writer:
    """Collects the nodes and the constants of a graph. Values are their names."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.initialisers: list[TensorProto] = []
        self._names: set[str] = set()
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def name(self, wanted: str) -> str:
        """A name that no value has yet."""
        name, number = wanted, 1
        while name in self._names:
            name, number = f"{wanted}_{number}", number + 1
        self._names.add(name)
        return name

    def __call__(self, operator: str, *inputs: str, **attributes: Plain) -> str:
        """Append a node; the name of its first output."""
        return self.many(1, operator, *inputs, **attributes)[0]

    def many(self, outputs: int, operator: str, /, *inputs: str, **attributes: Plain) -> list[str]:
        """Append a node; the names of all its outputs."""
        names = [self.name(operator.lower()) for _ in range(outputs)]
        node = helper.make_node(operator, list(inputs), names)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self.nodes.append(node)
        return names

    def constant(self, array: Array, name: str = "constant") -> str:
        """An initialiser; equal ones are one."""
        key = array.dtype.name, array.shape, array.tobytes()
        if key not in self._constants:
            self._constants[key] = self.initialiser(array, name)
        return self._constants[key]

    def initialiser(self, array: Array, name: str) -> str:
        """An initialiser of its own."""
        unique = self.name(name)
        dtype = _type_number(array.dtype)
        raw = np.ascontiguousarray(array).tobytes()
        self.initialisers.append(helper.make_tensor(unique, dtype, list(array.shape), raw, raw=True))
        return unique

    def known(self, name: str) -> Array | None:
        """The array of an initialiser; None for any other value."""
        found = next((each for each in self.initialisers if each.name == name), None)
        return None if found is None else numpy_helper.to_array(found)

    def ints(self, values: Sequence[int]) -> str:
        """A constant of i64, one axis."""
        return self.constant(np.array(list(values), np.int64))

    def scalar(self, value: float, dtype: str) -> str:
        """A constant of rank 0."""
        return self.constant(np.array(value).astype(numpy_dtype(dtype)))


def _type_number(dtype: np.dtype[np.generic]) -> int:
    return next(number for name, number in TYPES.items() if numpy_dtype(name) == dtype)


Form: TypeAlias = Callable[..., "str | list[str]"]
"""Writes an operation: takes the writer, the operation and the names of its operands; gives those of its results."""

form: Table[str, Form] = Table("forms", "msc.exporters.onnx.operators", "elementwise", "contractions", "movement")
"""Declares how `ms.<name>` is written, for each name."""


def no_form(op: object, why: str = "") -> MscError:
    """The error for an operation that ONNX does not have."""
    name = getattr(op, "name", "an operation")
    place = source_location(op) if isinstance(op, MsOp) else None
    message = f"'{name}' has no form in ONNX" + (f": {why}" if why else "")
    return MscError(Diagnostic("MSC0720", message, place))


def shape(value: SSAValue | Attribute) -> tuple[int, ...]:
    """The shape of a value."""
    return shape_of(tensor_type(value))


def dtype(value: SSAValue | Attribute) -> str:
    """The element type of a value: "f32"."""
    return dtype_name(tensor_type(value).element_type) or "f32"


def known_shape(op: MsOp) -> tuple[int, ...]:
    """The shape of the first operand, every size known. Raises MSC0720."""
    found = shape(op.operands[0])
    if -1 in found:
        raise no_form(op, "a size is open that it needs")
    return found
