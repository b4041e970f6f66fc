"""What operations are built from: tensors that are known arrays, or computed by an operation, or both."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from msc.dialects.arrays import Array, dtype_text
from msc.dialects.element_types import dtype_name
from msc.dialects.ms.shapes import Shape, shape_of, tensor_type
from msc.ir.typed import tensor_type as type_of


@dataclass(eq=False)
class Value:
    """A tensor: `array` if it is known while the graph is built, else `ssa`.

    A known one gets an `ssa` when an operation needs it. `depends` are the graph inputs that it was computed from.
    """

    type: TensorType[Attribute]
    array: Array | None = None
    ssa: SSAValue | None = None
    depends: frozenset[str] = frozenset()
    label: str | None = None
    """The model's name for the value."""

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


def known(array: Array, label: str | None = None) -> Value:
    """The value of an array."""
    return Value(tensor_type(dtype_text(array.dtype), array.shape), array, label=label)


def computed(ssa: SSAValue) -> Value:
    """The value of an SSA value, which is a tensor."""
    return Value(type_of(ssa), ssa=ssa)
