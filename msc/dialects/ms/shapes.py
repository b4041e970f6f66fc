"""Arithmetic on shapes: plain tuples of sizes in which -1 is an unknown one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute

from msc.dialects.element_types import element_type
from msc.ir.errors import InvalidAttribute, ShapeConflict

UNKNOWN = -1

Shape = tuple[int, ...]


def tensor_type(dtype: str, shape: Sequence[int]) -> TensorType[Attribute]:
    """The tensor type of an element type's name and a shape."""
    return _tensor_type(dtype, tuple(shape))


@lru_cache(maxsize=4096)
def _tensor_type(dtype: str, shape: Shape) -> TensorType[Attribute]:
    """Types are immutable, and a network has few of them: looking one up takes a fraction of making it."""
    return TensorType(element_type(dtype), [DYNAMIC_INDEX if size == UNKNOWN else size for size in shape])


def shape_of(type_: TensorType[Attribute]) -> Shape:
    """The shape of a tensor type, with -1 for what the type leaves open."""
    return tuple(UNKNOWN if size == DYNAMIC_INDEX else size for size in type_.get_shape())


def shape_text(shape: Sequence[int]) -> str:
    """A shape for messages: `2x?x3`, or `scalar`."""
    return "x".join("?" if size == UNKNOWN else str(size) for size in shape) or "scalar"


def broadcast_shapes(op: str, *shapes: Shape) -> Shape:
    """NumPy's broadcast of shapes; an unknown size yields to a known one. Raises ShapeConflict naming the shapes."""
    rank = max(map(len, shapes), default=0)
    result: list[int] = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        known = sizes - {UNKNOWN}
        if len(known) > 1:
            text = " and ".join(map(shape_text, shapes))
            meet = " and ".join(map(str, sorted(known)))
            raise ShapeConflict(f"{op}: shapes {text} do not broadcast: sizes {meet} meet")
        result.append(known.pop() if known else UNKNOWN if sizes else 1)
    return tuple(result)


def same_size(a: int, b: int) -> bool:
    """Whether two sizes may be equal."""
    return a == b or UNKNOWN in (a, b)


def same_shape(a: Shape, b: Shape) -> bool:
    """Whether two shapes may be equal."""
    return len(a) == len(b) and all(map(same_size, a, b))


def known(sizes: Sequence[int]) -> bool:
    """Whether no size is unknown."""
    return UNKNOWN not in sizes


def product(sizes: Sequence[int]) -> int:
    """The number of elements; unknown if a size is (an empty axis makes it zero all the same)."""
    if 0 in sizes:
        return 0
    return math.prod(sizes) if known(sizes) else UNKNOWN


def normal_axis(op: str, axis: int, rank: int, name: str = "axis") -> int:
    """An axis counted from the front. Raises InvalidAttribute unless -rank <= axis < rank."""
    if not -rank <= axis < rank:
        span = f"between {-rank} and {rank - 1}" if rank else "possible at all"
        raise InvalidAttribute(f"{op}: {name} {axis} is not {span}, for a tensor of rank {rank}")
    return axis % rank


def normal_axes(op: str, axes: Sequence[int], rank: int, name: str = "axis") -> tuple[int, ...]:
    """Axes counted from the front, in the order given. Raises InvalidAttribute if out of range or given twice."""
    result = tuple(normal_axis(op, axis, rank, name) for axis in axes)
    if len(set(result)) != len(result):
        raise InvalidAttribute(f"{op}: {name} [{', '.join(map(str, axes))}] names an axis twice")
    return result
