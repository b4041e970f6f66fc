"""What the values of an ONNX graph are while it is imported: known arrays, computed tensors, sequences of them.

Whatever depends on nothing but constants is evaluated on the way: a subgraph that computes a shape leaves no operation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from msc.dialects.element_types import dtype_name
from msc.dialects.ms.shapes import Shape, shape_of, tensor_type
from msc.interp.arrays import Array, dtype_text


@dataclass(eq=False)
class Value:
    """A tensor: `array` if it is known at import, else `ssa`; a known one gets an `ssa` when an operation needs it.

    `depends` are the graph inputs that the value was computed from.
    """

    type: TensorType[Attribute]
    array: Array | None = None
    ssa: SSAValue | None = None
    depends: frozenset[str] = frozenset()
    label: str | None = None
    """The model's name for the value."""
    narrow: int | None = None
    """The ONNX number of the type whose codes the elements are, of a type that msc does not compute on."""

    @property
    def dtype(self) -> str:
        """Name of the element type: "f32"."""
        return dtype_name(self.type.element_type) or "f32"

    @property
    def shape(self) -> Shape:
        """The shape, -1 where a size is not known."""
        return shape_of(self.type)

    @property
    def rank(self) -> int:
        return len(self.type.get_shape())


@dataclass(eq=False)
class TensorSequence:
    """A sequence whose length is known at import; it exists only there."""

    items: tuple[Value, ...] = field(default=())


Slot: TypeAlias = Value | TensorSequence | None
"""What an input or output of a node holds: None is an absent optional."""


def known(array: Array, label: str | None = None) -> Value:
    """The value of an array."""
    return Value(tensor_type(dtype_text(array.dtype), array.shape), array, label=label)
