"""What the values of an ONNX graph are while it is imported: known arrays, computed tensors, sequences of them.

Whatever depends on nothing but constants is evaluated on the way: a subgraph that computes a shape leaves no operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from msc.dialects.arrays import Array, dtype_text
from msc.dialects.ms import values as ms_values
from msc.dialects.ms.shapes import tensor_type


@dataclass(frozen=True, eq=False)
class Count:
    """How many elements along an axis are meant: a scalar (i64) that the model computes, and the node that says so."""

    value: OnnxValue
    source: str


@dataclass(eq=False)
class OnnxValue(ms_values.Value):
    """A tensor of the model."""

    narrow: int | None = None
    """The ONNX number of the type whose codes the elements are, of a type that msc does not compute on."""
    counts: Mapping[int, Count] = field(default_factory=dict[int, Count])
    """The axes of which the first elements are meant, as many as data decide."""


@dataclass(eq=False)
class TensorSequence:
    """A sequence whose length is known at import; it exists only there."""

    items: tuple[OnnxValue, ...] = field(default=())


Slot: TypeAlias = OnnxValue | TensorSequence | None
"""What an input or output of a node holds: None is an absent optional."""


def known(array: Array, label: str | None = None) -> OnnxValue:
    """The value of an array."""
    return OnnxValue(tensor_type(dtype_text(array.dtype), array.shape), array, label=label)
